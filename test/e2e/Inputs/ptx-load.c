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
  ptx_module *module;
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
    if (p->one ? !strcmp(p->prefix, name)
               : strlen(p->prefix) == letters &&
                     !strncmp(p->prefix, name, letters))
      return p->first + (p->one ? 0 : atoi(name + letters));
  }
  fail(r, "no such register", name);
  return -1;
}

static uint64_t tableAt(reader *r, const char *name) {
  for (size_t k = 0; k < r->module->numTables; ++k)
    if (!strcmp(r->module->tables[k].name, name))
      return (uint64_t)(uintptr_t)r->module->tables[k].data;
  fail(r, "not understood", name);
  return 0;
}

/* A register, a number (0f3F800000 is a float's bits), or 0 for the start of
 * local memory, which has one symbol. */
static ptx_operand operand(reader *r) {
  bool negative = takes(r, '-');
  char *name = word(r);
  ptx_operand o = {0, -1};
  if (name[0] == '%' || isalpha((unsigned char)name[0]))
    o.slot = slotOf(r, name);
  else if (name[0] == '0' && (name[1] == 'f' || name[1] == 'd'))
    o.number = strtoull(name + 2, NULL, 16);
  else if (isdigit((unsigned char)name[0]))
    o.number = strtoull(name, NULL, 0);
  else if (strncmp(name, "__local_depot", 13))
    o.number = tableAt(r, name);
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
    /* Of a call they are registers. */
    *o = (ptx_operand){0, in->parameter < 0 ? slotOf(r, name) : -1};
    free(name);
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

/* ---- instructions ---- */

/* call.uni (retval0), __internal_accurate_pow, (param0, param1): of
 * the functions that libdevice keeps as such the one that our kernels reach. */
static void called(reader *r, ptx_instruction *in) {
  expect(r, '(');
  in->operands[in->count++] = operand(r);
  expect(r, ')');
  expect(r, ',');
  char *name = word(r);
  if (strcmp(name, "__internal_accurate_pow"))
    in->op = PTX_TRAP; /* that of sin() where it is called with 1e5 and more */
  free(name);
  expect(r, ',');
  expect(r, '(');
  do
    in->operands[in->count++] = operand(r);
  while (takes(r, ',') && in->count < 3);
  expect(r, ')');
  in->type = (ptx_type){PTX_FLOAT, 64};
}

static void operands(reader *r, ptx_instruction *in) {
  if (in->op == PTX_POW)
    return called(r, in);
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

static void instruction(reader *r, ptx_instruction *in, char *name) {
  if (!ptx_opcode(in, name))
    fail(r, "no such instruction here", in->text);
  operands(r, in);
  ++r->kernel->count;
}

static void statement(reader *r);

/* { .reg .b32 tmp; ... }: names of its own. */
static void scope(reader *r) {
  int outside = r->numPrefixes;
  while (!takes(r, '}'))
    statement(r);
  r->numPrefixes = outside;
}

static void statement(reader *r) {
  ptx_kernel *kernel = r->kernel;
  if (takes(r, '{'))
    return scope(r);
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
  if (!strcmp(name, ".reg") || !strcmp(name, ".param"))
    declare(r);
  else if (!strcmp(name, ".local"))
    local(r);
  else if (name[0] == '.')
    fail(r, "no such directive here", text);
  else
    instruction(r, in, name);
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
  kernel->module = module;
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

/* .const .align 4 .b8 __cudart_i2opi_f[24] = {65, 144, ...} */
static void table(reader *r) {
  const char *end = r->at + strcspn(r->at, "=;");
  r->at += strcspn(r->at, "[;");
  const char *name = r->at;
  if (*end != '=' || *name != '[')
    fail(r, "not understood", r->at);
  while (name[-1] != ' ' && name[-1] != '\t')
    --name;
  ptx_module *module = r->module;
  module->tables =
      realloc(module->tables, (module->numTables + 1) * sizeof *module->tables);
  ptx_table *made = &module->tables[module->numTables++];
  *made = (ptx_table){strndup(name, (size_t)(r->at - name)), NULL, 0};
  expect(r, '[');
  made->bytes = operand(r).number;
  made->data = aligned_alloc(16, (made->bytes + 15) / 16 * 16);
  r->at = end + 1;
  expect(r, '{');
  for (size_t k = 0; k < made->bytes; ++k, takes(r, ','))
    made->data[k] = (unsigned char)operand(r).number;
  expect(r, '}');
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
  r->module = module;
  bool isPtx = strstr(r->at, ".version") != NULL;
  if (!isPtx)
    fail(r, "no PTX", r->at);
  const char *begin = r->at;
  const char *const words[] = {"\n.global .align", "\n.const .align"};
  for (int k = 0; k < 2; ++k)
    for (r->at = begin; (r->at = strstr(r->at, words[k]));) {
      ++r->at;
      table(r);
    }
  for (r->at = begin; (r->at = strstr(r->at, ".entry"));) {
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
  for (size_t k = 0; k < module->numTables; ++k) {
    free(module->tables[k].name);
    free(module->tables[k].data);
  }
  free(module->tables);
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
