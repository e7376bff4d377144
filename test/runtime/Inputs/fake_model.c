/* A hand-written model description, as heedc would emit it: a test of the
 * interface between emitted code and the runtime.
 *
 *   y[n, m] = x[n, m] * scale + table[ids[n], m] + sum_l bias_l[m],   count = N
 *
 * scale = 13 makes the kernel fail, 14 asks for memory that overflowed, 15 for
 * too much memory. */
#include "test/runtime/Inputs/fake.h"

#include "HalideRuntime.h"

#include <string.h>

static const char *const extentsX[] = {"N", "4"}, *const extentsIds[] = {"N"},
                         *const extentsTable[] = {"V", "4"},
                         *const extentsBias[] = {"4"};
static const int64_t sizesX[] = {-1, 4}, sizesIds[] = {-1}, sizesBias[] = {4};
#define INFO(...)                                                              \
  &(const heed_tensor_info){sizeof(heed_tensor_info), __VA_ARGS__}
static const heed_tensor_info *const inputs[] = {
    INFO("x", HEED_F32, 2, extentsX, sizesX, 0, 0, 0, 0),
    INFO("ids", HEED_I32, 1, extentsIds, sizesIds, 0, 0, 0, 0),
    INFO("scale", HEED_F32, 0, NULL, NULL, 1, 1, 2.0, 0),
};
static const heed_tensor_info *const outputs[] = {
    INFO("y", HEED_F32, 2, extentsX, sizesX, 0, 0, 0, 0),
    INFO("count", HEED_I32, 0, NULL, NULL, 0, 0, 0, 0),
};
static const char *const namesTable[] = {"table", "alt.table"},
                         *const namesBias[] = {"layer.{0}.bias"};
static const int64_t boundsBias[] = {1, 3};
static const heed_param_info params[] = {
    {sizeof(heed_param_info), namesTable, 2, 0, NULL, HEED_F32, 2, extentsTable,
     sizesX, 0},
    {sizeof(heed_param_info), namesBias, 1, 1, boundsBias, HEED_F32, 1,
     extentsBias, sizesBias, 0},
};

/* The kernel: argument 0 is the user context, as in Halide's own _argv
 * functions. */
typedef struct row_closure {
  halide_buffer_t *x, *y;
  const int32_t *ids;
  const float *table, *bias;
  float scale;
} row_closure;

void (*fake_row_hook)(int row);

static int row(void *context, int n, uint8_t *closure) {
  const row_closure *c = (const row_closure *)closure;
  if (fake_row_hook)
    fake_row_hook(n);
  float *scratch = halide_malloc(context, 4 * sizeof *scratch);
  if (!scratch)
    return halide_error_code_out_of_memory;
  const float *x = (const float *)c->x->host + (int64_t)n * c->x->dim[1].stride;
  for (int m = 0; m < 4; ++m)
    scratch[m] = x[m] * c->scale + c->table[4 * c->ids[n] + m] + c->bias[m];
  memcpy((float *)c->y->host + (int64_t)n * c->y->dim[1].stride, scratch,
         4 * sizeof *scratch);
  halide_free(context, scratch);
  if (c->scale == 13 && n == 1) {
    halide_error(context, "the number 13\n");
    return -77;
  }
  return 0;
}

static int rows(void **args) {
  row_closure c = {args[1], args[2], args[3],
                   args[4], args[5], *(float *)args[6]};
  return halide_do_par_for(*(void **)args[0], row, 0, c.x->dim[1].extent,
                           (uint8_t *)&c);
}

static int shapes(heed_model *model, const heed_argument *in,
                  heed_argument *out) {
  int64_t values[] = {in[1].shape[0], in[0].shape[0]};
  if (values[0] != values[1])
    heed_host_require_failed(
        model, "extent of 'ids' (axis 0) is {0}, expected N = {1}", 2, values);
  out[0].shape[0] = in[0].shape[0];
  out[0].shape[1] = 4;
  return 0;
}

/* Sums the biases of layers 1 and 2 once. */
static int init(heed_model *model) {
  float *sum = heed_host_keep(model, 0, 4 * sizeof *sum);
  memset(sum, 0, 4 * sizeof *sum);
  for (int64_t l = 1; l < 3; ++l) {
    const float *bias = heed_host_param(model, 1, &l);
    for (int m = 0; m < 4; ++m)
      sum[m] += bias[m];
  }
  return 0;
}

static int compute(heed_model *model, const heed_argument *in,
                   heed_argument *out) {
  int64_t vocabulary = heed_host_param_extent(model, 0, NULL, 0);
  heed_host_check_range(model, in[1].data, in[1].type, 1, in[1].shape, NULL, 0,
                        vocabulary, "ids", "table (axis 0)");
  float scale = *(const float *)in[2].data;
  int64_t absurd[] = {INT64_C(1) << 40, INT64_C(1) << 40},
          large[] = {INT64_C(1) << 50};
  if (scale == 14)
    heed_host_alloc(model, heed_host_bytes(2, absurd, 4));
  if (scale == 15)
    heed_host_alloc(model, heed_host_bytes(1, large, 4));

  float *copy = heed_host_alloc(model, heed_host_bytes(2, in[0].shape, 4));
  memcpy(copy, in[0].data, (size_t)in[0].shape[0] * 16);
  halide_buffer_t x, y;
  halide_dimension_t dims[4];
  heed_host_buffer(model, &x, dims, copy, halide_type_float, 32, 2, in[0].shape,
                   NULL, HEED_MAX_EXTENT);
  heed_host_buffer(model, &y, dims + 2, out[0].data, halide_type_float, 32, 2,
                   out[0].shape, NULL, HEED_MAX_EXTENT);
  void *args[] = {
      NULL,
      &x,
      &y,
      in[1].data,
      (void *)(uintptr_t)heed_host_param(model, 0, NULL),
      (void *)(uintptr_t)heed_host_kept(model, 0, 4 * sizeof(float)),
      &scale};
  heed_host_kernel(model, 0, rows, args, 7, 0, 8.0 * (double)in[0].shape[0],
                   48.0 * (double)in[0].shape[0]);
  heed_host_free(model, copy);
  *(int32_t *)out[1].data = (int32_t)in[0].shape[0];
  return 0;
}

static const heed_entry_desc entries[] = {
    {{sizeof(heed_signature), "fake", 3, 2, inputs, outputs},
     shapes,
     compute,
     NULL}};
static const char *const kernels[] = {"k_rows"};

/* What all descriptions of this model have in common. */
#define MODEL                                                                  \
  .abiVersion = HEED_ABI_VERSION, .numEntries = 1,                             \
  .runtime = &heed_own_runtime, .name = "fake", .source = "fake.heed",         \
  .params = params, .numParams = 2, .numKernels = 1, .kernels = kernels,       \
  .numKept = 1, .init = init, .key = "fa4e"

const heed_model_desc fake_model = {MODEL, .cpuFeatures = "",
                                    .entries = entries};

/* One that no processor can run. */
const heed_model_desc fake_alien_model = {.abiVersion = HEED_ABI_VERSION,
                                          .runtime = &heed_own_runtime,
                                          .numEntries = 1,
                                          .name = "alien",
                                          .source = "fake.heed",
                                          .cpuFeatures = "sse3,+antigravity",
                                          .entries = entries};

/* Three targets: one that no processor can run, and two that every one can. */
static int32_t runBetter(heed_model *model, const heed_argument *in,
                         heed_argument *out) {
  int32_t status = compute(model, in, out);
  *(int32_t *)out[1].data += 1000;
  return status;
}
static const heed_entry_desc betterEntries[] = {
    {{sizeof(heed_signature), "fake", 3, 2, inputs, outputs},
     shapes,
     runBetter,
     NULL}};
static const heed_model_desc best = {MODEL, .cpuFeatures = "sse2,antigravity",
                                     .entries = entries, .target = "alien"};
static const heed_model_desc better = {
    MODEL, .cpuFeatures = "sse2", .entries = betterEntries, .target = "better"};
static const heed_model_desc *const variants[] = {&best, &better, NULL};
const heed_model_desc fake_targets_model = {
    MODEL, .cpuFeatures = "", .entries = entries, .variants = variants,
    .target = "plain"};
static const heed_model_desc *const aliens[] = {&best, NULL};
const heed_model_desc fake_aliens_model = {.abiVersion = HEED_ABI_VERSION,
                                           .runtime = &heed_own_runtime,
                                           .numEntries = 1,
                                           .name = "aliens",
                                           .cpuFeatures = "sse3,telepathy",
                                           .entries = entries,
                                           .variants = aliens,
                                           .target = "mind"};
