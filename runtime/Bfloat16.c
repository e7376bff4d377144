/* Conversions to bf16 that LLVM calls on processors without the instruction.
 * compiler-rt and newer libgcc have them; Debian 12's libgcc does not. Weak, so
 * that those are taken where they are. */
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__clang__)

/* Upper half of a float's bits, rounded to the nearest, ties to even. */
/* NOLINTNEXTLINE(misc-use-internal-linkage): code that LLVM makes calls it. */
__attribute__((weak)) __bf16 __truncsfbf2(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000)
    bits |= 0x00400000; /* a NaN stays one */
  else
    bits += 0x7fff + (bits >> 16 & 1);
  uint16_t upper = (uint16_t)(bits >> 16);
  __bf16 result;
  memcpy(&result, &upper, sizeof result);
  return result;
}

/* To odd first, so that rounding twice is rounding once. */
/* NOLINTNEXTLINE(misc-use-internal-linkage) */
__attribute__((weak)) __bf16 __truncdfbf2(double x) {
  float nearest = (float)x;
  uint32_t bits;
  memcpy(&bits, &nearest, sizeof bits);
  if ((double)nearest != x && x == x) {
    double magnitude = x < 0 ? -x : x, found = nearest < 0 ? -nearest : nearest;
    bits -= found > magnitude; /* towards zero */
    bits |= 1;
    memcpy(&nearest, &bits, sizeof nearest);
  }
  return __truncsfbf2(nearest);
}

#endif
