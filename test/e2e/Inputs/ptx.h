/* PTX as LLVM writes it, read and run by the processor, for tests where no GPU
 * is. Each access of global memory is looked at; a barrier that the threads of
 * a block do not reach together is an error. What no kernel of ours has needed
 * yet is one when it is read. */
#ifndef HEED_TEST_PTX_H
#define HEED_TEST_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_operand {
  uint64_t number; /* the value itself, or an offset to the register's */
  int32_t slot;    /* of a register; -1: none */
} ptx_operand;

typedef enum ptx_kind {
  PTX_BITS,
  PTX_UNSIGNED,
  PTX_SIGNED,
  PTX_FLOAT
} ptx_kind;

typedef struct ptx_type {
  ptx_kind kind;
  int bits; /* 1: a predicate */
} ptx_type;

/* clang-format off */
typedef enum ptx_op {
  PTX_MOV, PTX_PACK, PTX_UNPACK, PTX_LD, PTX_ST, PTX_CVT, PTX_SETP, PTX_SELP, PTX_BRA, PTX_BAR, PTX_RET, PTX_TRAP,
  PTX_ADD, PTX_SUB, PTX_MUL, PTX_MAD, PTX_FMA, PTX_DIV, PTX_REM, PTX_MIN, PTX_MAX, PTX_ABS, PTX_NEG, PTX_AND, PTX_OR, PTX_XOR, PTX_NOT, PTX_SHL,
  PTX_SHR, PTX_SHF, PTX_BFE, PTX_CLZ, PTX_POPC, PTX_BREV, PTX_PRMT, PTX_RCP, PTX_SQRT, PTX_RSQRT, PTX_EX2, PTX_LG2, PTX_SIN, PTX_COS, PTX_TANH,
  PTX_COPYSIGN, PTX_POW, PTX_NONE
} ptx_op;
typedef enum ptx_relation {
  PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE, PTX_EQU, PTX_NEU, PTX_LTU, PTX_LEU, PTX_GTU, PTX_GEU, PTX_NUM, PTX_NAN
} ptx_relation;
/* clang-format on */
typedef enum ptx_space {
  PTX_GLOBAL,
  PTX_SHARED,
  PTX_LOCAL,
  PTX_PARAM
} ptx_space;
typedef enum ptx_part { PTX_LOW, PTX_HIGH, PTX_WIDE } ptx_part;

/* %tid, %ntid, %ctaid, %nctaid, and the carry of sums. */
enum { PTX_OPERANDS = 9, PTX_CARRY = 12, PTX_SPECIAL };

typedef struct ptx_instruction {
  ptx_op op;
  ptx_type type, from; /* from: what is converted */
  ptx_relation compare;
  ptx_space space;
  ptx_part part;
  char round; /* cvt: n, z, m or p; i with it is isWhole */
  bool isWhole, flush, saturate, wraps, left;
  bool takesCarry, givesCarry;
  bool isPlain;  /* of three floats as they are: most of what kernels do */
  int32_t guard; /* a predicate's slot; -1: always */
  bool unless;
  int32_t lanes, count, target, parameter;
  ptx_operand operands[PTX_OPERANDS];
  const char *text; /* for messages */
} ptx_instruction;

typedef struct ptx_module ptx_module;

typedef struct ptx_kernel {
  char *name;
  const ptx_module *module;
  ptx_instruction *code;
  size_t count, capacity;
  int32_t slots;
  size_t localBytes;
  char **parameters; /* names */
  size_t numParameters;
} ptx_kernel;

/* A table that kernels read. */
typedef struct ptx_table {
  char *name;
  unsigned char *data;
  size_t bytes;
} ptx_table;

struct ptx_module {
  char *text;
  ptx_kernel *kernels;
  size_t count;
  ptx_table *tables;
  size_t numTables;
};

/** Null and a message. */
ptx_module *ptx_load(const char *text, char *message, size_t size);
void ptx_unload(ptx_module *module);
/** Null: there is none of that name. */
const ptx_kernel *ptx_find(const ptx_module *module, const char *name);

typedef struct ptx_launch {
  uint32_t blocks[3], threads[3], sharedBytes;
  void **parameters;
  bool (*isMemory)(uint64_t address, size_t bytes);
  char message[256]; /* what a thread did wrong */
} ptx_launch;

/** False and a message where a thread may not do what it does. */
bool ptx_run(const ptx_kernel *kernel, ptx_launch *launch);

/* ---- ptx-opcodes.c ---- */

/** Reads `name`, which it spoils; false: no such instruction is known. */
bool ptx_opcode(ptx_instruction *in, char *name);

/* ---- ptx-values.c ---- */

uint64_t ptx_read(const uint64_t *slots, const ptx_operand *o);
/** The low bits, with their sign if the type has one. */
uint64_t ptx_fit(ptx_type type, uint64_t value);
/** Arithmetic; cvt; setp. */
void ptx_compute(uint64_t *slots, const ptx_instruction *in);
void ptx_convert(uint64_t *slots, const ptx_instruction *in);
void ptx_compare(uint64_t *slots, const ptx_instruction *in);

#endif
