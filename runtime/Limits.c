/* What this machine can do at most with the handle's threads, measured when a
 * profile is printed: f32 fused multiply-adds in registers, and reading memory
 * that no cache holds. */
#include "runtime/Model.h"
#include "runtime/Program.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { Rounds = 500000, Accumulators = 12, Repeats = 10 };

typedef struct measurement {
  int64_t (*flops)(float *sink); /* does the work, returns how much it was */
  const float *memory;
  size_t count; /* floats */
  int threads;
  int64_t done; /* by one task */
} measurement;

#if defined(__x86_64__)
/* Twelve chains hide the latency of two units. */
#define CHAINS(Vector, set1, fmadd, add, store, lanes)                         \
  Vector sum[Accumulators], a = set1(1.0000001f), b = set1(1e-7f);             \
  for (int k = 0; k < Accumulators; ++k)                                       \
    sum[k] = set1((float)k);                                                   \
  for (int round = 0; round < Rounds; ++round)                                 \
    for (int k = 0; k < Accumulators; ++k)                                     \
      sum[k] = fmadd(sum[k], a, b);                                            \
  for (int k = 1; k < Accumulators; ++k)                                       \
    sum[0] = add(sum[0], sum[k]);                                              \
  store(sink, sum[0]);                                                         \
  return (int64_t)2 * Rounds * Accumulators * (lanes);

__attribute__((target("avx512f"))) static int64_t flops512(float *sink) {
  CHAINS(__m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps,
         _mm512_storeu_ps, 16)
}
__attribute__((target("avx2,fma"))) static int64_t flops256(float *sink) {
  CHAINS(__m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps,
         _mm256_storeu_ps, 8)
}
static __m128 multiplyAdd(__m128 x, __m128 a, __m128 b) {
  return _mm_add_ps(_mm_mul_ps(x, a), b);
}
static int64_t flops128(float *sink) {
  CHAINS(__m128, _mm_set1_ps, multiplyAdd, _mm_add_ps, _mm_storeu_ps, 4)
}
#else
static int64_t flops128(float *sink) {
  float sum[Accumulators] = {0};
  for (int round = 0; round < Rounds; ++round)
    for (int k = 0; k < Accumulators; ++k)
      sum[k] = sum[k] * 1.0000001f + 1e-7f;
  for (int k = 0; k < Accumulators; ++k)
    sink[k % 4] += sum[k];
  return (int64_t)2 * Rounds * Accumulators;
}
#endif

static bool supports(const char *features) {
  const char *missing;
  size_t length;
  return heed_cpu_supports(features, &missing, &length);
}

static int computeTask(void *context, int index, uint8_t *closure) {
  measurement *m = (measurement *)closure;
  float sink[16];
  int64_t done = m->flops(sink);
  if (index == 0)
    m->done = done;
  /* The compiler must believe that somebody reads it. */
  __asm__ volatile("" : : "r"(sink) : "memory");
  (void)context;
  return 0;
}

static int readTask(void *context, int index, uint8_t *closure) {
  const measurement *m = (const measurement *)closure;
  size_t share = m->count / (size_t)m->threads;
  const uint64_t *p = (const uint64_t *)(m->memory + share * (size_t)index);
  uint64_t sums[8] = {0};
  for (size_t k = 0; k + 8 <= share / 2; k += 8)
    for (int lane = 0; lane < 8; ++lane)
      sums[lane] += p[k + lane];
  __asm__ volatile("" : : "r"(sums) : "memory");
  (void)context;
  return 0;
}

static double bestTime(heed_model *model, heed_task task, measurement *m) {
  double best = 1e30;
  for (int repeat = 0; repeat < Repeats; ++repeat) {
    double start = heed_seconds();
    heed_loop_run(model, task, 0, m->threads, (uint8_t *)m);
    double time = heed_seconds() - start;
    best = time < best ? time : best;
  }
  return best;
}

heed_limits heed_measure_limits(heed_model *model) {
  heed_limits limits = {0, 0};
  measurement m = {.threads = heed_num_threads(model), .flops = flops128};
#if defined(__x86_64__)
  if (supports("avx512f"))
    m.flops = flops512;
  else if (supports("avx2,fma"))
    m.flops = flops256;
#endif
  double time = bestTime(model, computeTask, &m);
  if (time > 0)
    limits.flops = (double)m.done * m.threads / time;

  size_t bytes = (size_t)256 << 20;
  void *memory = heed_heap_take(NULL, 64, bytes);
  if (!memory)
    return limits;
  memset(memory, 1, bytes);
  m.memory = memory;
  m.count = bytes / sizeof(float);
  time = bestTime(model, readTask, &m);
  if (time > 0)
    limits.bytes = (double)bytes / time;
  heed_heap_give(NULL, memory, bytes);
  return limits;
}
