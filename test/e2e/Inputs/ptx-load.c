/* Reads PTX to instructions: statements up to `;`, labels, registers by number.
 */
#include "ptx.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct registers {
  char prefix[16];
  int32_t first;
  bool one; /* %SP has no number */
} registers;

typedef struct label {
  char *name;
  int32_t place;
} label;

typedef struct reader {
  const char *at;
  ptx_kernel *kernel;
  registers prefixes[32];
  int numPrefixes;
  label *labels;
  int numLabels;
  char **targets; /* of branches, by instruction; null: none */
  char *message;
  size_t size;
  jmp_buf failed;
} reader;

static void fail(reader *r, const char *what, const char *where) {
  snprintf(r->message, r->size, "%s: %.*s", what,
           (int)(strcspn(where, "\n;") < 80 ? strcspn(where, "\n;") : 80),
           where);
  longjmp(r->failed, 1);
}

static void skip(reader *r) {
  while (isspace((unsigned char)*r->at) || !strncmp(r->at, "//", 2))
    r->at += *r->at == '/' ? strcspn(r->at, "\n") : 1;
}

/* A word of letters, digits and some of what names have; copied. */
static char *word(reader *r) {
  skip(r);
  size_t length = 0;
  while (isalnum((unsigned char)r->at[length]) ||
         (r->at[length] && strchr("_$%.", r->at[length])))
    ++length;
  char *copy = strndup(r->at, length);
  r->at += length;
  return copy;
}

static bool takes(reader *r, char c) {
  skip(r);
  if (*r->at != c)
    return false;
  ++r->at;
  return true;
}

static void expect(reader *r, char c) {
  char what[] = "expected ' '";
  what[10] = c;
  if (!takes(r, c))
    fail(r, what, r->at);
}

/* ---- operands ---- */

static int32_t slotOf(reader *r, const char *name) {
  static const char *const special[] = {"%tid.", "%ntid.", "%ctaid.",
                                        "%nctaid."};
  for (int k = 0; k < 4; ++k) {
    size_t length = strlen(special[k]);
    if (!strncmp(name, special[k], length) && name[length] >= 'x' &&
        name[length] <= 'z')
      return 3 * k + name[length] - 'x';
  }
  size_t letters = strcspn(name, "0123456789");
  for (int k = 0; k < r->numPrefixes; ++k) {
    const registers *p = &r->prefixes[k];
    if (strlen(p->prefix) == letters && !strncmp(p->prefix, name, letters))
      return p->first + (p->one ? 0 : atoi(name + letters));
  }
  fail(r, "no such register", name);
  return -1;
}

/* A register, a number (0f3F800000 is a float's bits), or 0 for the start of
 * local memory, which has one symbol. */
static ptx_operand operand(reader *r) {
  bool negative = takes(r, '-');
  const char *where = r->at;
  char *name = word(r);
  ptx_operand o = {0, -1};
  if (name[0] == '%')
    o.slot = slotOf(r, name);
  else if (name[0] == '0' && (name[1] == 'f' || name[1] == 'd'))
    o.number = strtoull(name + 2, NULL, 16);
  else if (isdigit((unsigned char)name[0]))
    o.number = strtoull(name, NULL, 0);
  else if (strncmp(name, "__local_depot", 13))
    fail(r, "not understood", where);
  free(name);
  if (negative)
    o.number = -o.number;
  return o;
}

/* [%rd1+4], [name], [16] */
static void address(reader *r, ptx_instruction *in) {
  expect(r, '[');
  ptx_operand *o = &in->operands[in->count++];
  skip(r);
  if (in->space == PTX_PARAM) {
    char *name = word(r);
    in->parameter = -1;
    for (size_t k = 0; k < r->kernel->numParameters; ++k)
      if (!strcmp(name, r->kernel->parameters[k]))
        in->parameter = (int32_t)k;
    if (in->parameter < 0)
      fail(r, "no such parameter", name);
    free(name);
    *o = (ptx_operand){0, -1};
  } else {
    *o = operand(r);
  }
  if (takes(r, '+'))
    o->number += operand(r).number;
  expect(r, ']');
}

/* One, or {several}. */
static int values(reader *r, ptx_instruction *in) {
  if (!takes(r, '{')) {
    in->operands[in->count++] = operand(r);
    return 1;
  }
  int count = 0;
  do {
    if (++count > 4)
      fail(r, "more than four", in->text);
    in->operands[in->count++] = operand(r);
  } while (takes(r, ','));
  expect(r, '}');
  return count;
}

/* ---- opcodes ---- */

static const struct {
  const char *name;
  ptx_op op;
} ops[] = {{"mov", PTX_MOV},     {"ld", PTX_LD},
           {"st", PTX_ST},       {"cvt", PTX_CVT},
           {"setp", PTX_SETP},   {"selp", PTX_SELP},
           {"bra", PTX_BRA},     {"bar", PTX_BAR},
           {"barrier", PTX_BAR}, {"ret", PTX_RET},
           {"exit", PTX_RET},    {"trap", PTX_TRAP},
           {"add", PTX_ADD},     {"sub", PTX_SUB},
           {"mul", PTX_MUL},     {"mad", PTX_MAD},
           {"fma", PTX_FMA},     {"div", PTX_DIV},
           {"rem", PTX_REM},     {"min", PTX_MIN},
           {"max", PTX_MAX},     {"abs", PTX_ABS},
           {"neg", PTX_NEG},     {"and", PTX_AND},
           {"or", PTX_OR},       {"xor", PTX_XOR},
           {"not", PTX_NOT},     {"shl", PTX_SHL},
           {"shr", PTX_SHR},     {"shf", PTX_SHF},
           {"bfe", PTX_BFE},     {"clz", PTX_CLZ},
           {"popc", PTX_POPC},   {"brev", PTX_BREV},
           {"prmt", PTX_PRMT},   {"rcp", PTX_RCP},
           {"sqrt", PTX_SQRT},   {"rsqrt", PTX_RSQRT},
           {"ex2", PTX_EX2},     {"lg2", PTX_LG2},
           {"sin", PTX_SIN},     {"cos", PTX_COS},
           {"tanh", PTX_TANH},   {"copysign", PTX_COPYSIGN},
           {"cvta", PTX_MOV}};

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
  static const char *const spaces[] = {"global", "shared", "local", "param"};
  static const char *const parts[] = {"lo", "hi", "wide"};
  static const char *const ignored[] = {"nc", "sync", "uni", "rn", "approx", "full", "to", "aligned", "volatile", "relaxed", "b1"};
  /* clang-format on */
  for (int k = 0; in->op == PTX_SETP && k < 14; ++k)
    if (!strcmp(name, compares[k]))
      return in->compare = (ptx_relation)k, true;
  for (int k = 0; in->op == PTX_SETP && k < 4; ++k)
    if (!strcmp(name, unsignedCompares[k]))
      return in->compare = (ptx_relation)(PTX_LT + k), true;
  for (int k = 0; k < 4; ++k)
    if (!strcmp(name, spaces[k]))
      return in->space = (ptx_space)k, true;
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
  in->saturate |= !strcmp(name, "sat");
  in->wraps |= !strcmp(name, "wrap");
  in->left |= !strcmp(name, "l");
  return !strcmp(name, "ftz") || !strcmp(name, "sat") ||
         !strcmp(name, "wrap") || !strcmp(name, "l") || !strcmp(name, "r") ||
         !strcmp(name, "clamp");
}

static void opcode(reader *r, ptx_instruction *in, char *name) {
  char *rest = name;
  const char *op = strsep(&rest, "."), *next;
  in->op = PTX_NONE;
  for (size_t k = 0; k < sizeof ops / sizeof *ops; ++k)
    if (!strcmp(op, ops[k].name))
      in->op = ops[k].op;
  bool isTyped = false;
  while (in->op != PTX_NONE && (next = strsep(&rest, "."))) {
    ptx_type type;
    if (typeOf(next, &type)) {
      in->from = type;
      in->type = isTyped ? in->type : type;
      isTyped = true;
    } else if (!modifier(in, next)) {
      in->op = PTX_NONE;
    }
  }
  if (in->op == PTX_NONE)
    fail(r, "no such instruction here", in->text);
  in->isPlain = in->type.kind == PTX_FLOAT && in->type.bits == 32 &&
                !in->flush && !in->saturate &&
                (in->op == PTX_FMA || in->op == PTX_ADD || in->op == PTX_SUB ||
                 in->op == PTX_MUL);
  if (in->type.kind == PTX_FLOAT && in->type.bits != 32 && in->type.bits != 64)
    fail(r, "no such type here", in->text);
}

static void operands(reader *r, ptx_instruction *in) {
  if (in->op == PTX_RET || in->op == PTX_TRAP)
    return;
  if (in->op == PTX_BRA) {
    r->targets =
        realloc(r->targets, (r->kernel->count + 1) * sizeof *r->targets);
    r->targets[r->kernel->count] = word(r);
    return;
  }
  if (in->op == PTX_LD) {
    in->lanes = values(r, in);
    expect(r, ',');
    return address(r, in);
  }
  if (in->op == PTX_ST) {
    address(r, in);
    expect(r, ',');
    in->lanes = values(r, in);
    return;
  }
  int lanes = values(r, in);
  if (in->op == PTX_BAR)
    return;
  if (in->op == PTX_MOV && lanes > 1)
    in->op = PTX_UNPACK, in->lanes = lanes;
  while (takes(r, ',')) {
    lanes = values(r, in);
    if (in->op == PTX_MOV && lanes > 1)
      in->op = PTX_PACK, in->lanes = lanes;
    if (in->count > PTX_OPERANDS - 4)
      break;
  }
}

/* ---- kernels ---- */

static void declare(reader *r) {
  char *type = word(r), *name = word(r);
  if (r->numPrefixes == 32 || strlen(name) > 15)
    fail(r, "too many registers", name);
  registers *p = &r->prefixes[r->numPrefixes++];
  strcpy(p->prefix, name);
  p->first = r->kernel->slots;
  p->one = !takes(r, '<');
  if (!p->one) {
    r->kernel->slots += (int32_t)operand(r).number;
    expect(r, '>');
  } else {
    ++r->kernel->slots;
  }
  free(type);
  free(name);
}

/* .local .align 4 .b8 __local_depot0[64] */
static void local(reader *r) {
  r->at += strcspn(r->at, "[;");
  expect(r, '[');
  r->kernel->localBytes = operand(r).number;
  expect(r, ']');
}

static ptx_instruction *newInstruction(ptx_kernel *kernel) {
  if (kernel->count == kernel->capacity) {
    kernel->capacity = 2 * kernel->capacity + 256;
    kernel->code =
        realloc(kernel->code, kernel->capacity * sizeof *kernel->code);
  }
  ptx_instruction *in = &kernel->code[kernel->count];
  memset(in, 0, sizeof *in);
  in->guard = -1;
  in->lanes = 1;
  return in;
}

static void statement(reader *r) {
  ptx_kernel *kernel = r->kernel;
  const char *text = r->at;
  ptx_instruction *in = newInstruction(kernel);
  in->text = text;
  if (takes(r, '@')) {
    in->unless = takes(r, '!');
    in->guard = operand(r).slot;
  }
  char *name = word(r);
  skip(r);
  if (in->guard < 0 && takes(r, ':')) {
    r->labels =
        realloc(r->labels, (size_t)(r->numLabels + 1) * sizeof *r->labels);
    r->labels[r->numLabels++] = (label){name, (int32_t)kernel->count};
    return;
  }
  if (!strcmp(name, ".reg"))
    declare(r);
  else if (!strcmp(name, ".local"))
    local(r);
  else if (name[0] == '.')
    fail(r, "no such directive here", text);
  else
    opcode(r, in, name), operands(r, in), ++kernel->count;
  free(name);
  expect(r, ';');
}

static void findTargets(reader *r) {
  for (size_t k = 0; k < r->kernel->count; ++k) {
    ptx_instruction *in = &r->kernel->code[k];
    if (in->op != PTX_BRA)
      continue;
    in->target = -1;
    for (int l = 0; l < r->numLabels; ++l)
      if (!strcmp(r->labels[l].name, r->targets[k]))
        in->target = r->labels[l].place;
    if (in->target < 0)
      fail(r, "no such label", in->text);
    free(r->targets[k]);
  }
  for (int l = 0; l < r->numLabels; ++l)
    free(r->labels[l].name);
  free(r->labels);
  free(r->targets);
  r->labels = NULL;
  r->targets = NULL;
  r->numLabels = r->numPrefixes = 0;
}

/* name ( .param .u64 .ptr .align 1 name, ... ) { statements } */
static void entry(reader *r, ptx_module *module) {
  module->kernels =
      realloc(module->kernels, (module->count + 1) * sizeof *module->kernels);
  ptx_kernel *kernel = r->kernel = &module->kernels[module->count++];
  memset(kernel, 0, sizeof *kernel);
  kernel->slots = PTX_SPECIAL;
  kernel->name = word(r);
  expect(r, '(');
  while (!takes(r, ')')) {
    char *last = NULL;
    skip(r);
    while (*r->at && *r->at != ',' && *r->at != ')') {
      free(last);
      last = word(r);
      skip(r);
      if (!*last)
        fail(r, "no such parameter here", r->at);
    }
    kernel->parameters =
        realloc(kernel->parameters,
                (kernel->numParameters + 1) * sizeof *kernel->parameters);
    kernel->parameters[kernel->numParameters++] = last;
    takes(r, ',');
  }
  while (!takes(r, '{')) /* .maxntid 128, ... */
    ++r->at;
  while (!takes(r, '}'))
    statement(r);
  findTargets(r);
}

ptx_module *ptx_load(const char *text, char *message, size_t size) {
  ptx_module *module = calloc(1, sizeof *module);
  reader *r = calloc(1, sizeof *r);
  module->text = strdup(text);
  r->message = message;
  r->size = size;
  if (setjmp(r->failed)) {
    free(r);
    ptx_unload(module);
    return NULL;
  }
  r->at = module->text;
  bool isPtx = strstr(r->at, ".version") != NULL;
  if (!isPtx)
    fail(r, "no PTX", r->at);
  while ((r->at = strstr(r->at, ".entry"))) {
    r->at += strlen(".entry");
    entry(r, module);
  }
  free(r);
  return module;
}

void ptx_unload(ptx_module *module) {
  for (size_t k = 0; k < module->count; ++k) {
    ptx_kernel *kernel = &module->kernels[k];
    for (size_t p = 0; p < kernel->numParameters; ++p)
      free(kernel->parameters[p]);
    free(kernel->parameters);
    free(kernel->code);
    free(kernel->name);
  }
  free(module->kernels);
  free(module->text);
  free(module);
}

const ptx_kernel *ptx_find(const ptx_module *module, const char *name) {
  for (size_t k = 0; k < module->count; ++k)
    if (!strcmp(module->kernels[k].name, name))
      return &module->kernels[k];
  return NULL;
}
