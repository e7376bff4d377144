/* Runs PTX: the threads of a block one after the other, each until a barrier or
 * its end, in an order that changes. */
#include "ptx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct thread {
  uint64_t *slots;
  char *local;
  size_t at; /* the next instruction */
  bool ended;
} thread;

typedef struct block {
  const ptx_kernel *kernel;
  ptx_launch *launch;
  char *shared;
  uint32_t random;
} block;

static bool wrong(block *b, const ptx_instruction *in, const char *what,
                  uint64_t address) {
  snprintf(b->launch->message, sizeof b->launch->message, "%s, at %#llx: %.*s",
           what, (unsigned long long)address, (int)strcspn(in->text, ";\n"),
           in->text);
  return false;
}

/* ---- memory ---- */

static bool isTable(const block *b, const ptx_instruction *in, uint64_t address,
                    size_t bytes) {
  const ptx_module *module = b->kernel->module;
  for (size_t k = 0; in->op == PTX_LD && k < module->numTables; ++k) {
    uint64_t begin = (uint64_t)(uintptr_t)module->tables[k].data;
    if (address >= begin && address + bytes <= begin + module->tables[k].bytes)
      return true;
  }
  return false;
}

static char *find(block *b, thread *t, const ptx_instruction *in,
                  const ptx_operand *o, size_t bytes) {
  uint64_t address = o->number + (o->slot < 0 ? 0 : t->slots[o->slot]);
  if (in->space == PTX_PARAM)
    return (char *)b->launch->parameters[in->parameter] + address;
  if (address % bytes) {
    wrong(b, in, "not aligned", address);
    return NULL;
  }
  if (in->space == PTX_GLOBAL &&
      (b->launch->isMemory(address, bytes) || isTable(b, in, address, bytes)))
    return (char *)(uintptr_t)address;
  if (in->space == PTX_GLOBAL) {
    wrong(b, in, "no memory of the device", address);
    return NULL;
  }
  bool isShared = in->space == PTX_SHARED;
  size_t size = isShared ? b->launch->sharedBytes : b->kernel->localBytes;
  if (address <= size && bytes <= size - address)
    return (isShared ? b->shared : t->local) + address;
  wrong(b, in, isShared ? "beyond shared memory" : "beyond local memory",
        address);
  return NULL;
}

static bool move(block *b, thread *t, const ptx_instruction *in) {
  bool loads = in->op == PTX_LD;
  const ptx_operand *values = loads ? in->operands : in->operands + 1,
                    *address = loads ? in->operands + in->lanes : in->operands;
  size_t bytes = (size_t)in->type.bits / 8;
  if (in->space == PTX_PARAM && in->parameter < 0) {
    int32_t slot = loads ? values->slot : address->slot;
    t->slots[slot] = ptx_read(t->slots, loads ? address : values);
    return true;
  }
  char *place = find(b, t, in, address, bytes * (size_t)in->lanes);
  for (int k = 0; place && k < in->lanes; ++k, place += bytes) {
    uint64_t value = 0;
    uint32_t word;
    if (loads && bytes == sizeof word && in->type.kind == PTX_BITS) {
      memcpy(&word, place, sizeof word);
      t->slots[values[k].slot] = word;
    } else if (loads) {
      memcpy(&value, place, bytes);
      t->slots[values[k].slot] = ptx_fit(in->type, value);
    } else {
      value = ptx_read(t->slots, &values[k]);
      memcpy(place, &value, bytes);
    }
  }
  return place != NULL;
}

/* {a, b} in one register, and back. */
static void pack(thread *t, const ptx_instruction *in) {
  int bits = in->type.bits / in->lanes;
  ptx_type part = {PTX_UNSIGNED, bits};
  const ptx_operand *o = in->operands;
  if (in->op == PTX_PACK) {
    uint64_t value = 0;
    for (int k = in->lanes; k > 0; --k)
      value = value << bits | ptx_fit(part, ptx_read(t->slots, &o[k]));
    t->slots[o[0].slot] = value;
    return;
  }
  uint64_t value = ptx_read(t->slots, &o[in->lanes]);
  for (int k = 0; k < in->lanes; ++k)
    t->slots[o[k].slot] = ptx_fit(part, value >> (bits * k));
}

/* ---- threads ---- */

static float plainFloat(const thread *t, const ptx_operand *o) {
  uint32_t bits = (uint32_t)(o->slot < 0 ? o->number : t->slots[o->slot]);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void plain(thread *t, const ptx_instruction *in) {
  const ptx_operand *o = in->operands;
  float a = plainFloat(t, &o[1]), b = plainFloat(t, &o[2]), result;
  if (in->op == PTX_FMA)
    result = fmaf(a, b, plainFloat(t, &o[3]));
  else
    result = in->op == PTX_MUL ? a * b : in->op == PTX_ADD ? a + b : a - b;
  uint32_t bits;
  memcpy(&bits, &result, sizeof bits);
  t->slots[o[0].slot] = bits;
}

static void selects(thread *t, const ptx_instruction *in) {
  const ptx_operand *o = in->operands;
  t->slots[o[0].slot] =
      ptx_read(t->slots, ptx_read(t->slots, &o[3]) & 1 ? &o[1] : &o[2]);
}

/* Until a barrier, behind which it goes on, or its end. */
static bool runThread(block *b, thread *t) {
  const ptx_kernel *kernel = b->kernel;
  for (;;) {
    if (t->at >= kernel->count)
      return t->ended = true;
    const ptx_instruction *in = &kernel->code[t->at++];
    if (in->guard >= 0 && (t->slots[in->guard] & 1) == in->unless)
      continue;
    if (in->isPlain) {
      plain(t, in);
      continue;
    }
    switch (in->op) {
    case PTX_BRA:
      t->at = (size_t)in->target;
      break;
    case PTX_BAR:
      return true;
    case PTX_RET:
      return t->ended = true;
    case PTX_TRAP:
      return wrong(b, in, "a trap", 0);
    case PTX_LD:
    case PTX_ST:
      if (!move(b, t, in))
        return false;
      break;
    case PTX_MOV:
      t->slots[in->operands[0].slot] = ptx_read(t->slots, &in->operands[1]);
      break;
    case PTX_PACK:
    case PTX_UNPACK:
      pack(t, in);
      break;
    case PTX_CVT:
      ptx_convert(t->slots, in);
      break;
    case PTX_SETP:
      ptx_compare(t->slots, in);
      break;
    case PTX_SELP:
      selects(t, in);
      break;
    default:
      ptx_compute(t->slots, in);
    }
  }
}

/* All threads to the next barrier, which is the same for each. From the first
 * to the last, or the other way round: what reads what another thread writes
 * without a barrier between finds it in one order alone. */
static bool runBlock(block *b, thread *threads, size_t count) {
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    b->random = b->random * 1664525 + 1013904223;
    for (size_t k = 0; k < count; ++k) {
      thread *t = &threads[b->random >> 31 ? count - 1 - k : k];
      if (!t->ended && !runThread(b, t))
        return false;
      goesOn |= !t->ended;
    }
    for (size_t k = 1; goesOn && k < count; ++k)
      if (threads[k].ended != threads[0].ended ||
          threads[k].at != threads[0].at)
        return wrong(b, &b->kernel->code[threads[0].at - 1],
                     "threads of a block do not meet", k);
  }
  return true;
}

static void begin(block *b, thread *threads, const uint32_t place[3]) {
  const ptx_launch *launch = b->launch;
  const uint32_t *size = launch->threads;
  memset(b->shared, 0xff, launch->sharedBytes); /* NaN */
  for (uint32_t k = 0; k < size[0] * size[1] * size[2]; ++k) {
    thread *t = &threads[k];
    const uint32_t own[3] = {k % size[0], k / size[0] % size[1],
                             k / size[0] / size[1]};
    for (int axis = 0; axis < 3; ++axis) {
      t->slots[axis] = own[axis];
      t->slots[3 + axis] = size[axis];
      t->slots[6 + axis] = place[axis];
      t->slots[9 + axis] = launch->blocks[axis];
    }
    t->at = 0;
    t->ended = false;
    memset(t->local, 0xff, b->kernel->localBytes);
  }
}

bool ptx_run(const ptx_kernel *kernel, ptx_launch *launch) {
  const uint32_t *size = launch->threads, *blocks = launch->blocks;
  size_t count = (size_t)size[0] * size[1] * size[2];
  block b = {kernel, launch, malloc(launch->sharedBytes + 16), 1};
  thread *threads = calloc(count, sizeof *threads);
  size_t slots = (size_t)kernel->slots;
  uint64_t *registers = calloc(count * slots, sizeof *registers);
  char *local = malloc(count * kernel->localBytes + 1);
  for (size_t k = 0; k < count; ++k) {
    threads[k].slots = registers + k * slots;
    threads[k].local = local + k * kernel->localBytes;
  }
  bool stands = true;
  uint32_t place[3];
  for (place[2] = 0; stands && place[2] < blocks[2]; ++place[2])
    for (place[1] = 0; stands && place[1] < blocks[1]; ++place[1])
      for (place[0] = 0; stands && place[0] < blocks[0]; ++place[0]) {
        begin(&b, threads, place);
        stands = runBlock(&b, threads, count);
      }
  free(local);
  free(registers);
  free(threads);
  free(b.shared);
  return stands;
}
