/* Two models of libraries that were built apart, in one program: each handle is
 * served by its own library's runtime, whichever functions of heed.h the
 * program meets first. The result of `sums` is a @ b, of `shifted` a @ b + 1.
 *
 * With an argument the second library is loaded by its name, its model found by
 * `heed_models`. */
#include "heed.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const heed_model_desc sums_model;
#ifndef LOADED
extern const heed_model_desc shifted_model;
#endif

/* Names that the libraries have, too: of the runtime, of Halide, of kernels'. A
 * call of one of these ends the program. */
#define MINE(name)                                                             \
  void name(void) {                                                            \
    puts("the program's " #name " was called");                                \
    abort();                                                                   \
  }
MINE(halide_malloc)
MINE(halide_free)
MINE(halide_error)
MINE(halide_do_par_for)
MINE(halide_print)
MINE(heed_host_alloc)
MINE(heed_host_kernel)
MINE(heed_pool_take)
MINE(heed_team_run)
MINE(heed_fail)
MINE(heed_own_runtime)
MINE(heed_params_load)

enum { N = 200, K = 60, M = 90 };
static float a[N * K], b[K * M];

typedef struct job {
  heed_model *model;
  float shift;
} job;

/* Wrong results of 20 runs. */
static void *work(void *argument) {
  const job *j = argument;
  float *y = malloc(N * M * sizeof *y);
  intptr_t wrong = 0;
  for (int turn = 0; turn < 20; ++turn) {
    heed_buffer in[] = {HEED_BUFFER(a, HEED_F32, 2, N, K),
                        HEED_BUFFER(b, HEED_F32, 2, K, M)},
                out = HEED_BUFFER(y, HEED_F32, 2, N, M);
    memset(y, 0, N * M * sizeof *y);
    heed_status status = heed_run(j->model, NULL, in, 2, &out, 1, NULL);
    if (status)
      printf("%s: %s\n", heed_status_name(status), heed_last_error(j->model));
    wrong += status != HEED_OK;
    for (int n = 0; n < N; n += 7)
      for (int m = 0; m < M; ++m) {
        double sum = j->shift;
        for (int k = 0; k < K; ++k)
          sum += (double)a[n * K + k] * b[k * M + m];
        wrong += !(fabs(sum - y[n * M + m]) < 1e-3);
      }
  }
  free(y);
  return (void *)wrong;
}

int main(int argc, char **argv) {
  for (int k = 0; k < N * K; ++k)
    a[k] = (float)(k * 37 % 101 - 50) / 50;
  for (int k = 0; k < K * M; ++k)
    b[k] = (float)(k * 53 % 97 - 48) / 48;
#ifdef LOADED
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  const heed_model_desc *const *models =
      library ? dlsym(library, "heed_models") : NULL;
  if (!models || !models[0] || models[1]) {
    printf("no list of one model: %s\n", dlerror());
    return 1;
  }
  const heed_model_desc *shifted = models[0];
#else
  const heed_model_desc *shifted = &shifted_model;
  (void)argc;
  (void)argv;
#endif
  int failures = 0;
  /* Threads of each handle's own, then those of a pool of either library. */
  for (int turn = 0; turn < 3; ++turn) {
    heed_threads *pool =
        turn ? heed_threads_open(turn == 1 ? &sums_model : shifted, 3,
                                 HEED_WAIT_WATCH)
             : NULL;
    heed_options options = {.size = sizeof options, .threads = 2, .pool = pool};
    job jobs[2] = {{NULL, 0}, {NULL, 1}};
    pthread_t threads[2];
    failures += heed_open(&sums_model, &options, &jobs[0].model) != HEED_OK;
    failures += heed_open(shifted, &options, &jobs[1].model) != HEED_OK;
    failures += heed_num_threads(jobs[1].model) != (turn ? 3 : 2);
    for (int k = 0; k < 2 && !failures; ++k)
      pthread_create(&threads[k], NULL, work, &jobs[k]);
    for (int k = 0; k < 2 && !failures; ++k) {
      void *wrong;
      pthread_join(threads[k], &wrong);
      failures += wrong != NULL;
    }
    heed_close(jobs[1].model);
    heed_close(jobs[0].model);
    heed_threads_close(pool);
  }
  failures += strcmp(heed_model_name(shifted), "shifted") != 0;
  puts(failures ? "failed" : "both right");
  return failures != 0;
}
