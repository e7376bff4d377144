/* What belongs to the host's process: a mark that tells a child of fork from
 * its parent, and the mode in which a thread computes with floating-point
 * numbers.
 */
#include "runtime/Model.h"

#include <fenv.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- fork ---- */

/* A page that the system fills with zeros in a child: to look at it costs
 * nothing, to ask for the process's number is a call of the system. */
void heed_mark_open(heed_mark *mark) {
  mark->process = getpid();
  mark->page = NULL;
#ifdef MADV_WIPEONFORK
  size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return;
  if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
    munmap(page, bytes);
    return;
  }
  mark->page = page;
  *mark->page = 1;
#endif
}

bool heed_mark_is_foreign(const heed_mark *mark) {
  return mark->page ? !*(volatile int32_t *)mark->page
                    : mark->process != getpid();
}

void heed_mark_close(heed_mark *mark) {
  if (mark->page)
    munmap(mark->page, (size_t)sysconf(_SC_PAGESIZE));
  mark->page = NULL;
}

/* ---- floating point ---- */

#if defined(__x86_64__)
/* All exceptions masked, rounding to nearest, neither denormals-are-zero nor
 * flush-to-zero. Long doubles, which have a mode of their own, are not computed
 * with. */
enum { PlainMode = 0x1f80, ModeBits = 0xffc0 };

uint64_t heed_float_mode_enter(void) {
  uint32_t before = __builtin_ia32_stmxcsr();
  if ((before & ModeBits) != PlainMode)
    __builtin_ia32_ldmxcsr(PlainMode);
  return before;
}

void heed_float_mode_leave(uint64_t before) {
  /* What was raised meanwhile is forgotten where the mode was another. */
  if ((before & ModeBits) != PlainMode)
    __builtin_ia32_ldmxcsr((uint32_t)before);
}
#elif defined(__aarch64__)
uint64_t heed_float_mode_enter(void) {
  uint64_t before, plain = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  if (before)
    __asm__ volatile("msr fpcr, %0" : : "r"(plain));
  return before;
}

void heed_float_mode_leave(uint64_t before) {
  if (before)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
}
#else
/* The rounding mode at least. */
uint64_t heed_float_mode_enter(void) {
  int before = fegetround();
  if (before != FE_TONEAREST)
    fesetround(FE_TONEAREST);
  return (uint64_t)before;
}

void heed_float_mode_leave(uint64_t before) {
  if ((int)before != FE_TONEAREST)
    fesetround((int)before);
}
#endif
