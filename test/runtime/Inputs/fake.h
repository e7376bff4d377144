/* The hand-written model, its arrays, and what it must compute with the test's
 * weights: table[v, m] = 10 v + m, biases that sum to 100. */
#ifndef HEED_TEST_RUNTIME_FAKE_H
#define HEED_TEST_RUNTIME_FAKE_H

#include "runtime/host.h"

#include <stdio.h>
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

#endif
