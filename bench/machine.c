/* What this machine can do at most, measured: f32 multiply-adds, reading,
 * writing and copying of memory, on all threads at once.
 *
 * cc -O3 -march=native machine.c -lpthread; ./a.out wall|cpu CORE... runs a
 * thread on each of these cores and answers each line on standard input with
 * a line "GFLOP/s GB/s-read GB/s-written GB/s-copied SWITCHES SECONDS", a
 * copy's bytes being those it reads and those it writes: `f` measures the first
 * only, `m` all; involuntary context switches meanwhile, and how long it took.
 * Short, because it stands between the runs of a block. Never part of the
 * product: it is compiled where it runs. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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
enum { Chains = 12, Steps = 1 << 19, Lanes = VectorBytes / sizeof(float) };
enum kind { MultiplyAdd, Read, Write, Copy, Kinds };
/* The clock of a core changes within milliseconds: of multiply-adds the mean of
 * the middle half counts, which a switch to another program does not touch;
 * memory takes long enough for one round. */
static const int roundsOf[Kinds] = {12, 1, 1, 1};
enum { MaxRounds = 12 };
/* Beyond the caches of the largest machines when there are several threads. */
static const size_t bytesPerThread = (size_t)256 << 20;

typedef struct worker {
  pthread_t thread;
  pthread_barrier_t *barrier;
  vector *memory;
  const int *kinds; /* how many are asked for; 0 ends */
  int core;
  float sink;
  double seconds[Kinds];
} worker;

static int processorTime;

static double now(void) {
  struct timespec t;
  clock_gettime(processorTime ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float sumOf(vector v) {
  float sum = 0;
  for (unsigned k = 0; k < Lanes; ++k)
    sum += v[k];
  return sum;
}

static float multiplyAdd(void) {
  vector chain[Chains], scale, step;
  for (unsigned k = 0; k < Lanes; ++k) {
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

/* From a few places at once: one stream alone waits at the end of each page. */
static float readAll(const vector *memory) {
  enum { Streams = 4 };
  size_t part = bytesPerThread / sizeof(vector) / Streams;
  vector sums[2 * Streams];
  memset(sums, 0, sizeof sums);
  for (size_t k = 0; k + 2 <= part; k += 2)
    for (int c = 0; c < Streams; ++c) {
      sums[2 * c] += memory[c * part + k];
      sums[2 * c + 1] += memory[c * part + k + 1];
    }
  for (int c = 1; c < 2 * Streams; ++c)
    sums[0] += sums[c];
  return sumOf(sums[0]);
}

static float writeAll(vector *memory, int value) {
  memset(memory, value, bytesPerThread); /* past the caches, where that pays */
  return sumOf(memory[bytesPerThread / sizeof(vector) / 2]);
}

/* As a loop does it: lines that are written are read first, which memcpy knows
 * to avoid. */
static float copyAll(vector *memory) {
  size_t half = bytesPerThread / sizeof(vector) / 2;
  for (size_t k = 0; k < half; ++k) {
    memory[half + k] = memory[k];
    __asm__ volatile("" ::: "memory");
  }
  return sumOf(memory[half]);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* One request; thread 0 keeps the time. */
static void measure(worker *w, int kinds) {
  for (int kind = 0; kind < kinds; ++kind) {
    double seconds[MaxRounds];
    int rounds = roundsOf[kind];
    for (int round = 0; round < rounds; ++round) {
      pthread_barrier_wait(w->barrier);
      double start = now();
      w->sink += kind == MultiplyAdd ? multiplyAdd()
                 : kind == Read      ? readAll(w->memory)
                 : kind == Write     ? writeAll(w->memory, round)
                                     : copyAll(w->memory);
      pthread_barrier_wait(w->barrier);
      seconds[round] = now() - start;
    }
    qsort(seconds, (size_t)rounds, sizeof *seconds, compare);
    int first = rounds / 4, last = rounds - first;
    w->seconds[kind] = 0;
    for (int round = first; round < last; ++round)
      w->seconds[kind] += seconds[round] / (last - first);
  }
}

/* Each thread on a core of its own: two that wake up on one stay there for
 * longer than a measurement takes. */
static int pin(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((size_t)core, &one);
  return pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static long switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

static double wall(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *serve(void *argument) {
  worker *w = argument;
  if (pin(w->core))
    exit(1);
  memset(w->memory, 0, bytesPerThread); /* by the thread that reads it */
  for (;;) {
    pthread_barrier_wait(w->barrier);
    int kinds = *w->kinds;
    if (!kinds)
      return NULL;
    measure(w, kinds);
  }
}

int main(int argc, char **argv) {
  int threads = argc - 2, kinds = 0;
  processorTime = argc > 1 && !strcmp(argv[1], "cpu");
  if (threads < 1)
    return 1;
  worker *workers = calloc((size_t)threads, sizeof *workers);
  pthread_barrier_t barrier;
  if (!workers || pthread_barrier_init(&barrier, NULL, (unsigned)threads))
    return 1;
  for (int t = 0; t < threads; ++t) {
    workers[t].barrier = &barrier;
    workers[t].kinds = &kinds;
    char *end;
    workers[t].core = (int)strtol(argv[2 + t], &end, 10);
    if (end == argv[2 + t] || *end)
      return 1;
    if (posix_memalign((void **)&workers[t].memory, 4096, bytesPerThread) ||
        (t && pthread_create(&workers[t].thread, NULL, serve, &workers[t])))
      return 1;
  }
  if (pin(workers[0].core))
    return 1;
  memset(workers[0].memory, 0, bytesPerThread);
  double flops = 2.0 * Chains * Steps * Lanes * threads;
  double bytes = (double)bytesPerThread * threads;
  for (int letter; (letter = getchar()) != EOF;) {
    if (letter != 'f' && letter != 'm')
      continue;
    kinds = letter == 'm' ? Kinds : 1;
    long switched = switches();
    double start = wall();
    pthread_barrier_wait(&barrier);
    measure(&workers[0], kinds);
    const double *seconds = workers[0].seconds;
    printf("%.2f %.3f %.3f %.3f %ld %.6f\n",
           1e-9 * flops / seconds[MultiplyAdd],
           kinds > Read ? 1e-9 * bytes / seconds[Read] : 0,
           kinds > Write ? 1e-9 * bytes / seconds[Write] : 0,
           kinds > Copy ? 1e-9 * bytes / seconds[Copy] : 0,
           switches() - switched, wall() - start);
    fflush(stdout);
  }
  kinds = 0;
  pthread_barrier_wait(&barrier);
  float sink = workers[0].sink;
  for (int t = 1; t < threads; ++t) {
    pthread_join(workers[t].thread, NULL);
    sink += workers[t].sink;
  }
  return sink == 1.5f; /* never; but the work must be done */
}
