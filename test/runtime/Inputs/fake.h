/* The hand-written model, its arrays, and what it must compute with the test's
 * weights: table[v, m] = 10 v + m, biases that sum to 100. */
#ifndef HEED_TEST_RUNTIME_FAKE_H
#define HEED_TEST_RUNTIME_FAKE_H

#include "runtime/host.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const heed_model_desc fake_model, fake_alien_model, fake_targets_model,
    fake_aliens_model;

/** Called at the start of every task of the model's kernel, on its thread,
 * where it is not null. */
extern void (*fake_row_hook)(int row);

static inline int check(int condition, const char *text, int line,
                        const heed_model *model) {
  if (!condition)
    printf("line %d: expected %s; last error: %s\n", line, text,
           heed_last_error(model));
  return condition ? 0 : 1;
}
#define CHECK(condition)                                                       \
  failures += check((condition), #condition, __LINE__, model)

enum { Rows = 37 };

typedef struct arrays {
  float x[Rows * 4], y[Rows * 4], scale;
  int32_t ids[Rows], count;
  heed_buffer in[3], out[2];
} arrays;

static inline void fill(arrays *a, float scale) {
  memset(a, 0, sizeof *a);
  for (int k = 0; k < Rows * 4; ++k)
    a->x[k] = (float)k;
  for (int k = 0; k < Rows; ++k)
    a->ids[k] = k % 5;
  a->scale = scale;
  a->in[0] = HEED_BUFFER(a->x, HEED_F32, 2, Rows, 4);
  a->in[1] = HEED_BUFFER(a->ids, HEED_I32, 1, Rows);
  a->in[2] = HEED_BUFFER(&a->scale, HEED_F32, 0, 0);
  a->out[0] = HEED_BUFFER(a->y, HEED_F32, 2, Rows, 4);
  a->out[1] = HEED_BUFFER(&a->count, HEED_I32, 0, 0);
}

static inline int isRight(const arrays *a) {
  for (int n = 0; n < Rows; ++n)
    for (int m = 0; m < 4; ++m)
      if (a->y[4 * n + m] !=
          (float)(4 * n + m) * a->scale + (float)(10 * (n % 5) + m) + 100)
        return 0;
  return a->count == Rows;
}

static inline heed_status run(heed_model *model, arrays *a) {
  return heed_run(model, NULL, a->in, 3, a->out, 2, NULL);
}

static inline int says(const heed_model *model, const char *text) {
  return strstr(heed_last_error(model), text) != NULL;
}

/* Opens, runs, closes; the status of opening. */
static inline heed_status once(const heed_options *options, int *failures) {
  heed_model *model = NULL;
  arrays a;
  heed_status status = heed_open(&fake_model, options, &model);
  if (!status) {
    fill(&a, 2);
    *failures += check(run(model, &a) == HEED_OK && isRight(&a),
                       "a right result", __LINE__, model);
  }
  heed_close(model);
  return status;
}

/* A thread that runs a handle; how often its result was wrong. */
static inline void *runOften(void *argument) {
  heed_model *model = argument;
  arrays *a = malloc(sizeof *a);
  intptr_t wrong = 0;
  for (int k = 0; k < 300; ++k) {
    fill(a, (float)(k % 7));
    wrong += run(model, a) != HEED_OK || !isRight(a);
  }
  free(a);
  return (void *)wrong;
}

#endif
