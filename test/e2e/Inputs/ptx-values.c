/* What PTX computes: of registers' bits, by the type that an instruction gives
 * them. */
#include "ptx.h"

#include <math.h>
#include <string.h>

/* ---- values ---- */

uint64_t ptx_read(const uint64_t *slots, const ptx_operand *o) {
  return o->slot < 0 ? o->number : slots[o->slot];
}

uint64_t ptx_fit(ptx_type type, uint64_t value) {
  if (type.bits == 64)
    return value;
  value &= (UINT64_C(1) << type.bits) - 1;
  if (type.kind == PTX_SIGNED && value >> (type.bits - 1))
    value |= ~UINT64_C(0) << type.bits;
  return value;
}

static double toFloat(const ptx_instruction *in, ptx_type type, uint64_t bits) {
  if (type.bits == 64) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return in->flush && fpclassify(value) == FP_SUBNORMAL
             ? copysign(0., (double)value)
             : (double)value;
}

static uint64_t ofFloat(const ptx_instruction *in, ptx_type type,
                        double value) {
  uint64_t bits = 0;
  if (in->saturate)
    value = value > 0 ? fmin(value, 1) : 0;
  if (type.bits == 64) {
    memcpy(&bits, &value, sizeof value);
    return bits;
  }
  float narrow = (float)value;
  if (in->flush && fpclassify(narrow) == FP_SUBNORMAL)
    narrow = copysignf(0, narrow);
  memcpy(&bits, &narrow, sizeof narrow);
  return bits;
}

/* ---- arithmetic ---- */

static bool isLess(ptx_type type, uint64_t a, uint64_t b) {
  return type.kind == PTX_SIGNED ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t product(const ptx_instruction *in, uint64_t a, uint64_t b) {
  if (in->part == PTX_LOW || in->part == PTX_WIDE)
    return a * b;
  __int128 whole = in->type.kind == PTX_SIGNED
                       ? (__int128)(int64_t)a * (int64_t)b
                       : (__int128)((unsigned __int128)a * b);
  return (uint64_t)(whole >> in->type.bits);
}

static uint64_t divided(const ptx_instruction *in, uint64_t a, uint64_t b) {
  bool isRest = in->op == PTX_REM;
  if (b == 0)
    return isRest ? a : ~UINT64_C(0);
  if (in->type.kind != PTX_SIGNED)
    return isRest ? a % b : a / b;
  if ((int64_t)b == -1)
    return isRest ? 0 : -a;
  int64_t x = (int64_t)a, y = (int64_t)b;
  return (uint64_t)(isRest ? x % y : x / y);
}

static uint64_t shifted(const ptx_instruction *in, uint64_t a, uint64_t by) {
  by = (uint32_t)by;
  uint64_t bits = (uint64_t)in->type.bits;
  if (in->op == PTX_SHL)
    return by >= bits ? 0 : a << by;
  if (in->type.kind == PTX_SIGNED)
    return (uint64_t)((int64_t)a >> (by >= bits ? bits - 1 : by));
  return by >= bits ? 0 : a >> by;
}

/* 64 bits of two halves; shifts by 32 at most, or by the low five bits. */
static uint64_t funnel(const ptx_instruction *in, uint64_t low, uint64_t high,
                       uint64_t by) {
  uint64_t both = (uint32_t)high;
  both = both << 32 | (uint32_t)low;
  by = in->wraps ? by & 31 : (uint32_t)by > 32 ? 32 : by;
  return in->left ? (both << by) >> 32 : both >> by;
}

static uint64_t permuted(uint64_t low, uint64_t high, uint64_t choice) {
  uint64_t both = (uint64_t)(uint32_t)high << 32 | (uint32_t)low, result = 0;
  for (int k = 0; k < 4; ++k) {
    uint64_t nibble = choice >> (4 * k) & 15,
             byte = both >> (8 * (nibble & 7)) & 255;
    if (nibble & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * k);
  }
  return result;
}

static uint64_t bitField(const ptx_instruction *in, uint64_t a, uint64_t first,
                         uint64_t count) {
  first &= 255, count &= 255;
  int bits = in->type.bits;
  if (!count || first >= (uint64_t)bits)
    return 0;
  ptx_type part = {in->type.kind, count > (uint64_t)bits ? bits : (int)count};
  return ptx_fit(part, (uint64_t)((int64_t)a >> first));
}

static uint64_t reversed(uint64_t a, int bits) {
  uint64_t result = 0;
  for (int k = 0; k < bits; ++k)
    result |= (a >> k & 1) << (bits - 1 - k);
  return result;
}

static uint64_t whole(const ptx_instruction *in, uint64_t a, uint64_t b,
                      uint64_t c) {
  bool less = isLess(in->type, a, b);
  uint64_t bits = ptx_fit((ptx_type){PTX_UNSIGNED, in->type.bits}, a);
  switch (in->op) {
  case PTX_ADD:
    return a + b;
  case PTX_SUB:
    return a - b;
  case PTX_MUL:
    return product(in, a, b);
  case PTX_MAD:
    return product(in, a, b) + c;
  case PTX_DIV:
  case PTX_REM:
    return divided(in, a, b);
  case PTX_MIN:
    return less ? a : b;
  case PTX_MAX:
    return less ? b : a;
  case PTX_ABS:
    return (int64_t)a < 0 ? -a : a;
  case PTX_NEG:
    return -a;
  case PTX_AND:
    return a & b;
  case PTX_OR:
    return a | b;
  case PTX_XOR:
    return a ^ b;
  case PTX_NOT:
    return ~a;
  case PTX_SHL:
  case PTX_SHR:
    return shifted(in, a, b);
  case PTX_SHF:
    return funnel(in, a, b, c);
  case PTX_BFE:
    return bitField(in, a, b, c);
  case PTX_PRMT:
    return permuted(a, b, c);
  case PTX_BREV:
    return reversed(a, in->type.bits);
  case PTX_POPC:
    return (uint64_t)__builtin_popcountll(bits);
  default: /* PTX_CLZ */
    return (uint64_t)(bits ? __builtin_clzll(bits) - 64 + in->type.bits
                           : in->type.bits);
  }
}

/* Sums and products of two floats are exact in double, or rounded as if they
 * were: one rounding to float follows. Not so of three. */
static double real(const ptx_instruction *in, double a, double b, double c) {
  bool isWide = in->type.bits == 64;
  switch (in->op) {
  case PTX_ADD:
    return a + b;
  case PTX_SUB:
    return a - b;
  case PTX_MUL:
    return a * b;
  case PTX_MAD:
  case PTX_FMA:
    return isWide ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
  case PTX_DIV:
    return a / b;
  case PTX_MIN:
    return a == b ? (signbit(a) ? a : b) : fmin(a, b);
  case PTX_MAX:
    return a == b ? (signbit(a) ? b : a) : fmax(a, b);
  case PTX_ABS:
    return fabs(a);
  case PTX_NEG:
    return -a;
  case PTX_RCP:
    return 1 / a;
  case PTX_SQRT:
    return sqrt(a);
  case PTX_RSQRT:
    return 1 / sqrt(a);
  case PTX_EX2:
    return exp2(a);
  case PTX_LG2:
    return log2(a);
  case PTX_SIN:
    return sin(a);
  case PTX_COS:
    return cos(a);
  case PTX_TANH:
    return tanh(a);
  case PTX_POW:
    return pow(fabs(a), b);
  default: /* PTX_COPYSIGN: of the first */
    return copysign(b, a);
  }
}

/* Sums of 32 bits of which a carry comes or goes. */
static uint64_t carried(uint64_t *slots, const ptx_instruction *in,
                        const uint64_t given[3]) {
  bool isMad = in->op == PTX_MAD;
  uint64_t value =
      isMad ? product(in, (uint32_t)given[0], (uint32_t)given[1]) : given[0];
  value = (uint64_t)(uint32_t)value + (uint32_t)given[isMad ? 2 : 1] +
          (in->takesCarry ? slots[PTX_CARRY] : 0);
  if (in->givesCarry)
    slots[PTX_CARRY] = value >> 32;
  return (uint32_t)value;
}

void ptx_compute(uint64_t *slots, const ptx_instruction *in) {
  const ptx_operand *o = in->operands;
  uint64_t given[3] = {0, 0, 0};
  for (int k = 1; k < in->count && k < 4; ++k)
    given[k - 1] = ptx_read(slots, &o[k]);
  uint64_t *result = &slots[o[0].slot];
  if (in->type.kind == PTX_FLOAT) {
    double r[3];
    for (int k = 0; k < 3; ++k)
      r[k] = toFloat(in, in->type, given[k]);
    *result = ofFloat(in, in->type, real(in, r[0], r[1], r[2]));
    return;
  }
  if (in->takesCarry || in->givesCarry) {
    *result = carried(slots, in, given);
    return;
  }
  bool counts = in->op == PTX_SHL || in->op == PTX_SHR || in->op == PTX_BFE ||
                in->op == PTX_SHF;
  ptx_type last = in->type;
  if (in->part == PTX_WIDE)
    last.bits *= 2;
  uint64_t value = whole(
      in, ptx_fit(in->type, given[0]),
      counts && in->op != PTX_SHF ? given[1] : ptx_fit(in->type, given[1]),
      counts ? given[2] : ptx_fit(last, given[2]));
  *result = ptx_fit((ptx_type){PTX_UNSIGNED, last.bits}, value);
}

/* ---- conversions, comparisons ---- */

static double rounded(const ptx_instruction *in, double value) {
  switch (in->round) {
  case 'n':
    return rint(value);
  case 'z':
    return trunc(value);
  case 'm':
    return floor(value);
  default:
    return ceil(value);
  }
}

/* The nearest number of the type; 0 of a NaN. */
static uint64_t toWhole(ptx_type type, double value) {
  if (isnan(value))
    return 0;
  bool isSigned = type.kind == PTX_SIGNED;
  double end = ldexp(1, isSigned ? type.bits - 1 : type.bits),
         least = isSigned ? -end : 0;
  if (value < least)
    value = least;
  if (value >= end)
    return isSigned ? ((uint64_t)1 << (type.bits - 1)) - 1
                    : ~UINT64_C(0) >> (64 - type.bits);
  return isSigned ? (uint64_t)(int64_t)value : (uint64_t)value;
}

void ptx_convert(uint64_t *slots, const ptx_instruction *in) {
  uint64_t from = ptx_fit(in->from, ptx_read(slots, &in->operands[1])), to;
  bool isFloat = in->type.kind == PTX_FLOAT;
  if (in->from.kind == PTX_FLOAT) {
    double value = toFloat(in, in->from, from);
    if (in->isWhole)
      value = rounded(in, value);
    to = isFloat ? ofFloat(in, in->type, value) : toWhole(in->type, value);
  } else if (isFloat && in->type.bits == 32) {
    /* Not through double, which would round twice. */
    float value =
        in->from.kind == PTX_SIGNED ? (float)(int64_t)from : (float)from;
    to = ofFloat(in, in->type, (double)value);
  } else if (isFloat) {
    to = ofFloat(in, in->type,
                 in->from.kind == PTX_SIGNED ? (double)(int64_t)from
                                             : (double)from);
  } else {
    to = from;
  }
  slots[in->operands[0].slot] = ptx_fit(in->type, to);
}

static bool compares(ptx_relation how, bool less, bool equal, bool unordered) {
  switch (how) {
  case PTX_EQ:
  case PTX_EQU:
    return unordered ? how == PTX_EQU : equal;
  case PTX_NE:
  case PTX_NEU:
    return unordered ? how == PTX_NEU : !equal;
  case PTX_LT:
  case PTX_LTU:
    return unordered ? how == PTX_LTU : less;
  case PTX_LE:
  case PTX_LEU:
    return unordered ? how == PTX_LEU : less || equal;
  case PTX_GT:
  case PTX_GTU:
    return unordered ? how == PTX_GTU : !less && !equal;
  case PTX_GE:
  case PTX_GEU:
    return unordered ? how == PTX_GEU : !less;
  case PTX_NUM:
    return !unordered;
  default:
    return unordered;
  }
}

void ptx_compare(uint64_t *slots, const ptx_instruction *in) {
  uint64_t a = ptx_fit(in->type, ptx_read(slots, &in->operands[1])),
           b = ptx_fit(in->type, ptx_read(slots, &in->operands[2]));
  bool result;
  if (in->type.kind == PTX_FLOAT) {
    double x = toFloat(in, in->type, a), y = toFloat(in, in->type, b);
    result = compares(in->compare, x < y, x == y, isnan(x) || isnan(y));
  } else {
    result = compares(in->compare, isLess(in->type, a, b), a == b, false);
  }
  slots[in->operands[0].slot] = result;
}
