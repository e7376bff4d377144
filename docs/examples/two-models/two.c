/* Two compiled models in one process: self-attention by `sdpa`, and the same
 * queries, keys and values by `attention`, which is causal.
 *
 * Prints both results, one number a line, after a line with name and shape. */
#include "attention.h"
#include "sdpa.h"
#include <stdio.h>
#include <stdlib.h>

enum { B = 2, H = 4, N = 37, E = 16, COUNT = B * H * N * E };

/* Numbers in -1 to 1 that any language can make again. */
static void fill(float *data, int seed) {
  for (int k = 0; k < COUNT; ++k)
    data[k] = ((k * 37 + seed) % 101 - 50) / 50.0f;
}

static int fail(heed_model *model, heed_status status) {
  fprintf(stderr, "%s error: %s\n", heed_status_name(status),
          model ? heed_last_error(model) : "no handle");
  return 1;
}

/* One run. The shape of the output is asked for, not assumed. */
static int run(heed_model *model, const heed_model_desc *desc,
               const heed_buffer inputs[3]) {
  heed_buffer output = {.size = sizeof output};
  heed_status status = heed_output_shapes(model, NULL, inputs, 3, &output, 1);
  if (status)
    return fail(model, status);
  size_t count = 1;
  for (int axis = 0; axis < output.rank; ++axis)
    count *= (size_t)output.shape[axis];
  float *result = output.data =
      aligned_alloc(64, (count * sizeof(float) + 64) / 64 * 64);
  if (!result)
    return 1;
  status = heed_run(model, NULL, inputs, 3, &output, 1, NULL);
  if (!status) {
    printf("%s", heed_model_name(desc));
    for (int axis = 0; axis < output.rank; ++axis)
      printf(" %lld", (long long)output.shape[axis]);
    printf("\n");
    for (size_t k = 0; k < count; ++k)
      printf("%.9g\n", result[k]);
  }
  free(result);
  return status ? fail(model, status) : 0;
}

int main(void) {
  static float q[COUNT], k[COUNT], v[COUNT];
  fill(q, 1);
  fill(k, 2);
  fill(v, 3);
  const heed_buffer inputs[3] = {HEED_BUFFER(q, HEED_F32, 4, B, H, N, E),
                                 HEED_BUFFER(k, HEED_F32, 4, B, H, N, E),
                                 HEED_BUFFER(v, HEED_F32, 4, B, H, N, E)};

  /* Both are open at once, each with threads of its own. */
  heed_options options = {.size = sizeof options, .threads = 2};
  heed_model *plain = NULL, *causal = NULL;
  heed_status status = heed_open(&sdpa_model, &options, &plain);
  int failed = status ? fail(plain, status) : 0;
  if (!failed && (status = heed_open(&attention_model, &options, &causal)))
    failed = fail(causal, status);
  if (!failed)
    failed = run(plain, &sdpa_model, inputs) ||
             run(causal, &attention_model, inputs) ||
             run(plain, &sdpa_model, inputs);
  heed_close(causal);
  heed_close(plain);
  return failed;
}
