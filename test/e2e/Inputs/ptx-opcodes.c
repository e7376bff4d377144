/* What the words of a PTX opcode mean: mul.wide.s32, ld.global.nc.v4.b32. */
#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  ptx_op op;
} ops[] = {{"mov", PTX_MOV},           {"ld", PTX_LD},     {"st", PTX_ST},
           {"cvt", PTX_CVT},           {"setp", PTX_SETP}, {"selp", PTX_SELP},
           {"bra", PTX_BRA},           {"bar", PTX_BAR},   {"barrier", PTX_BAR},
           {"ret", PTX_RET},           {"exit", PTX_RET},  {"trap", PTX_TRAP},
           {"add", PTX_ADD},           {"sub", PTX_SUB},   {"mul", PTX_MUL},
           {"mad", PTX_MAD},           {"madc", PTX_MAD},  {"addc", PTX_ADD},
           {"fma", PTX_FMA},           {"div", PTX_DIV},   {"rem", PTX_REM},
           {"min", PTX_MIN},           {"max", PTX_MAX},   {"abs", PTX_ABS},
           {"neg", PTX_NEG},           {"and", PTX_AND},   {"or", PTX_OR},
           {"xor", PTX_XOR},           {"not", PTX_NOT},   {"shl", PTX_SHL},
           {"shr", PTX_SHR},           {"shf", PTX_SHF},   {"bfe", PTX_BFE},
           {"clz", PTX_CLZ},           {"popc", PTX_POPC}, {"brev", PTX_BREV},
           {"prmt", PTX_PRMT},         {"rcp", PTX_RCP},   {"sqrt", PTX_SQRT},
           {"rsqrt", PTX_RSQRT},       {"ex2", PTX_EX2},   {"lg2", PTX_LG2},
           {"sin", PTX_SIN},           {"cos", PTX_COS},   {"tanh", PTX_TANH},
           {"copysign", PTX_COPYSIGN}, {"cvta", PTX_MOV},  {"call", PTX_POW}};

static bool typeOf(const char *name, ptx_type *type) {
  static const char kinds[] = "busf";
  const char *kind = *name ? strchr(kinds, *name) : NULL;
  if (!strcmp(name, "pred"))
    return *type = (ptx_type){PTX_BITS, 1}, true;
  if (!kind || !isdigit((unsigned char)name[1]))
    return false;
  char *end;
  int bits = (int)strtol(name + 1, &end, 10);
  *type = (ptx_type){(ptx_kind)(kind - kinds), bits};
  return !*end;
}

/* What stands between dots, but for types. */
static bool modifier(ptx_instruction *in, const char *name) {
  /* clang-format off */
  static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  static const char *const unsignedCompares[] = {"lo", "ls", "hi", "hs"};
  static const char *const spaces[] = {"global", "shared", "local", "param", "const"};
  static const char *const parts[] = {"lo", "hi", "wide"};
  static const char *const ignored[] = {"nc", "sync", "uni", "rn", "approx", "full", "to", "aligned", "volatile", "relaxed", "b1"};
  /* clang-format on */
  for (int k = 0; in->op == PTX_SETP && k < 14; ++k)
    if (!strcmp(name, compares[k]))
      return in->compare = (ptx_relation)k, true;
  for (int k = 0; in->op == PTX_SETP && k < 4; ++k)
    if (!strcmp(name, unsignedCompares[k]))
      return in->compare = (ptx_relation)(PTX_LT + k), true;
  for (int k = 0; k < 5; ++k)
    if (!strcmp(name, spaces[k]))
      return in->space = (ptx_space)(k % 4), true;
  for (int k = 0; k < 3; ++k)
    if (!strcmp(name, parts[k]))
      return in->part = (ptx_part)k, true;
  if (in->op == PTX_CVT && name[0] == 'r' && strchr("nzmp", name[1])) {
    in->round = name[1];
    in->isWhole = name[2] == 'i';
    return true;
  }
  for (size_t k = 0; k < sizeof ignored / sizeof *ignored; ++k)
    if (!strcmp(name, ignored[k]))
      return true;
  if (name[0] == 'v' && (name[1] == '2' || name[1] == '4'))
    return in->lanes = name[1] - '0', true;
  in->flush |= !strcmp(name, "ftz");
  in->givesCarry |= !strcmp(name, "cc");
  in->saturate |= !strcmp(name, "sat");
  in->wraps |= !strcmp(name, "wrap");
  in->left |= !strcmp(name, "l");
  return !strcmp(name, "ftz") || !strcmp(name, "cc") || !strcmp(name, "sat") ||
         !strcmp(name, "wrap") || !strcmp(name, "l") || !strcmp(name, "r") ||
         !strcmp(name, "clamp");
}

bool ptx_opcode(ptx_instruction *in, char *name) {
  char *rest = name;
  const char *op = strsep(&rest, "."), *next;
  in->op = PTX_NONE;
  for (size_t k = 0; k < sizeof ops / sizeof *ops; ++k)
    if (!strcmp(op, ops[k].name))
      in->op = ops[k].op;
  in->takesCarry = in->op != PTX_NONE && strlen(op) == 4 && op[3] == 'c';
  bool isTyped = false;
  while (in->op != PTX_NONE && (next = strsep(&rest, "."))) {
    ptx_type type;
    if (typeOf(next, &type)) {
      in->from = type;
      in->type = isTyped ? in->type : type;
      isTyped = true;
    } else if (!modifier(in, next)) {
      return false;
    }
  }
  bool isFloat = in->type.kind == PTX_FLOAT;
  in->isPlain = isFloat && in->type.bits == 32 && !in->flush && !in->saturate &&
                (in->op == PTX_FMA || in->op == PTX_ADD || in->op == PTX_SUB ||
                 in->op == PTX_MUL);
  return in->op != PTX_NONE &&
         (!isFloat || in->type.bits == 32 || in->type.bits == 64);
}
