/* What this machine can do at most, measured: f32 multiply-adds and reading of
 * memory, on all threads at once.
 *
 * cc -O3 -march=native machine.c -lpthread; ./a.out THREADS prints "GFLOP/s
 * GB/s". Never part of the product: it is compiled where it runs. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
enum { VectorBytes = 64 };
#elif defined(__AVX__)
enum { VectorBytes = 32 };
#else
enum { VectorBytes = 16 };
#endif
typedef float vector __attribute__((vector_size(VectorBytes)));

/* More chains than latency times units of any core: 12 of them and two
 * constants fit in 16 registers. */
enum { Chains = 12, Steps = 1 << 20, Rounds = 5 };
/* Beyond the caches of the largest machines when there are several threads. */
static const size_t bytesPerThread = (size_t)256 << 20;

typedef struct worker {
  pthread_t thread;
  pthread_barrier_t *barrier;
  vector *memory;
  double seconds[2][Rounds];
  float sink;
} worker;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float sumOf(vector v) {
  float sum = 0;
  for (unsigned k = 0; k < VectorBytes / sizeof(float); ++k)
    sum += v[k];
  return sum;
}

static float multiplyAdd(void) {
  vector chain[Chains], scale, step;
  for (unsigned k = 0; k < VectorBytes / sizeof(float); ++k) {
    scale[k] = 0.999f;
    step[k] = 0.001f;
  }
  for (int c = 0; c < Chains; ++c)
    chain[c] = step * (float)c;
  for (int s = 0; s < Steps; ++s)
#pragma GCC unroll 12
    for (int c = 0; c < Chains; ++c)
      chain[c] = chain[c] * scale + step;
  vector sum = chain[0];
  for (int c = 1; c < Chains; ++c)
    sum += chain[c];
  return sumOf(sum);
}

static float readAll(const vector *memory) {
  vector sums[8];
  memset(sums, 0, sizeof sums);
  for (size_t k = 0; k + 8 <= bytesPerThread / sizeof(vector); k += 8)
    for (int c = 0; c < 8; ++c)
      sums[c] += memory[k + c];
  for (int c = 1; c < 8; ++c)
    sums[0] += sums[c];
  return sumOf(sums[0]);
}

static void *work(void *argument) {
  worker *w = argument;
  memset(w->memory, 0, bytesPerThread); /* by the thread that reads it */
  for (int round = 0; round < Rounds; ++round)
    for (int kind = 0; kind < 2; ++kind) {
      pthread_barrier_wait(w->barrier);
      double start = now();
      w->sink += kind ? readAll(w->memory) : multiplyAdd();
      pthread_barrier_wait(w->barrier);
      w->seconds[kind][round] = now() - start;
    }
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  worker *workers = calloc((size_t)threads, sizeof *workers);
  pthread_barrier_t barrier;
  if (threads < 1 || !workers ||
      pthread_barrier_init(&barrier, NULL, (unsigned)threads))
    return 1;
  for (int t = 0; t < threads; ++t) {
    workers[t].barrier = &barrier;
    if (posix_memalign((void **)&workers[t].memory, 4096, bytesPerThread) ||
        (t && pthread_create(&workers[t].thread, NULL, work, &workers[t])))
      return 1;
  }
  work(&workers[0]);
  double best[2] = {1e9, 1e9};
  float sink = workers[0].sink;
  for (int t = 1; t < threads; ++t) {
    pthread_join(workers[t].thread, NULL);
    sink += workers[t].sink;
  }
  for (int kind = 0; kind < 2; ++kind)
    for (int round = 0; round < Rounds; ++round)
      if (workers[0].seconds[kind][round] < best[kind])
        best[kind] = workers[0].seconds[kind][round];
  double flops = 2.0 * Chains * Steps * (VectorBytes / sizeof(float)) * threads;
  printf("%.1f %.2f\n", 1e-9 * flops / best[0],
         1e-9 * (double)bytesPerThread * threads / best[1]);
  return sink == 1.5f; /* never; but the work must be done */
}
