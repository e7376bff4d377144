/* Times of a compiled program: whole runs, and kernel by kernel. */
#include "runtime/Model.h"
#include "runtime/Program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

static int byTime(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* Times of runs, sorted at the end. */
typedef struct sample {
  double *times;
  size_t count, capacity;
} sample;

/* The time that so large a share of the runs did not exceed. */
static double percentile(const sample *s, double share) {
  size_t rank = (size_t)(share * (double)s->count);
  return 1e3 * s->times[rank < s->count ? rank : s->count - 1];
}

/* Until `runs` are done or, if it is 0, `seconds` have passed and `least` are.
 */
static heed_status measure(heed_model *model, const heed_signature *entry,
                           const heed_buffer *inputs, heed_buffer *outputs,
                           heed_state *const states[2], int64_t runs,
                           double seconds, size_t least, sample *s) {
  heed_call call = {.size = sizeof call, .state = states[1]};
  size_t most = runs && (size_t)runs < s->capacity ? (size_t)runs : s->capacity;
  double begin = heed_seconds();
  for (s->count = 0; s->count < most;) {
    if (states[0] && heed_state_copy(states[0], states[1]) != HEED_OK)
      return HEED_ERROR_INTERNAL;
    double start = heed_seconds();
    heed_status status =
        heed_run(model, entry->entry, inputs, (size_t)entry->numInputs, outputs,
                 (size_t)entry->numOutputs, &call);
    if (status)
      return status;
    double stop = heed_seconds();
    s->times[s->count++] = stop - start;
    if (!runs && s->count >= least && stop - begin > seconds)
      break;
  }
  return HEED_OK;
}

static void printJson(heed_model *model, const heed_arguments *a,
                      const heed_buffer *inputs, size_t warmUp, double mean,
                      const sample *s, FILE *stream) {
  const heed_signature *entry = a->entry;
  fprintf(stream,
          "{\"entry\": \"%s\", \"target\": \"%s\", \"threads\": %d, "
          "\"warm_up\": %zu, \"runs\": %zu, \"inputs\": {",
          entry->entry, heed_target(model), heed_num_threads(model), warmUp,
          s->count);
  const char *comma = "";
  for (int k = 0; k < entry->numInputs; ++k) {
    if (entry->inputs[k]->isScalar)
      continue;
    char shape[256];
    heed_io_format_shape(shape, sizeof shape, inputs[k].rank, inputs[k].shape);
    fprintf(stream, "%s\"%s\": %s", comma, entry->inputs[k]->name, shape);
    comma = ", ";
  }
  fprintf(stream,
          "}, \"ms\": {\"best\": %.6f, \"median\": %.6f, \"mean\": %.6f, "
          "\"p90\": %.6f, \"p99\": %.6f, \"worst\": %.6f}}\n",
          1e3 * s->times[0], percentile(s, 0.5), mean, percentile(s, 0.9),
          percentile(s, 0.99), 1e3 * s->times[s->count - 1]);
}

static void printTimes(heed_model *model, const heed_arguments *a,
                       const heed_buffer *inputs, size_t warmUp,
                       const sample *s, FILE *stream) {
  double mean = 0;
  for (size_t k = 0; k < s->count; ++k)
    mean += 1e3 * s->times[k] / (double)s->count;
  if (a->json)
    printJson(model, a, inputs, warmUp, mean, s, stream);
  else
    fprintf(stream,
            "%zu runs, %d threads: best %.3f ms, median %.3f ms, mean %.3f ms, "
            "90 %% within %.3f ms, 99 %% within %.3f ms\n",
            s->count, heed_num_threads(model), 1e3 * s->times[0],
            percentile(s, 0.5), mean, percentile(s, 0.9), percentile(s, 0.99));
}

heed_status heed_bench(heed_model *model, const heed_arguments *a,
                       const heed_buffer *inputs, heed_buffer *outputs,
                       heed_state *const states[2], FILE *stream) {
  /* Without a count, about a second; before it, a tenth of one for memory,
   * caches, threads and the processor's clock. With one, so many after the
   * first: what is run is the same each time. */
  enum { Most = 100000 };
  sample s = {.capacity = Most, .times = malloc(Most * sizeof *s.times)};
  if (!s.times)
    return HEED_ERROR_MEMORY;
  heed_status status = measure(model, a->entry, inputs, outputs, states,
                               a->benchRuns ? 1 : 0, 0.1, 1, &s);
  size_t warmUp = s.count;
  heed_profile_reset(model);
  if (!status)
    status = measure(model, a->entry, inputs, outputs, states, a->benchRuns, 1,
                     5, &s);
  if (!status) {
    qsort(s.times, s.count, sizeof *s.times, byTime);
    printTimes(model, a, inputs, warmUp, &s, stream);
  }
  free(s.times);
  return status;
}

/* One cell of a table, or "-" where there is no number. */
static const char *cell(char text[32], double value, const char *unit) {
  if (value > 0)
    snprintf(text, 32, "%.1f%s", value, unit);
  else
    snprintf(text, 32, "-");
  return text;
}

void heed_profile_print(heed_model *model, FILE *stream) {
  size_t count = heed_profile(model, NULL, 0);
  heed_kernel_profile *kernels = calloc(count + 1, sizeof *kernels);
  if (!kernels)
    return;
  kernels->size = sizeof *kernels;
  heed_profile(model, kernels, count);
  heed_memory_use memory = {.size = sizeof memory};
  heed_memory(model, &memory);
  struct rusage usage; /* before measuring takes memory of its own */
  int64_t peak = getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0;
  fprintf(stream,
          "memory: %.1f MB at most in this process; %.1f MB of weights, %.1f "
          "MB of packed copies, %.1f MB of buffers\n",
          1e-6 * 1024 * (double)peak, 1e-6 * (double)memory.weights,
          1e-6 * (double)memory.copies, 1e-6 * (double)memory.buffers);
  /* Of a device none are known. */
  heed_limits limits = {0, 0};
  if (!model->device)
    limits = heed_measure_limits(model);
  double total = 0;
  bool pairs = false;
  for (size_t k = 0; k < count; ++k) {
    total += kernels[k].seconds;
    pairs |= kernels[k].pairs != 0;
  }
  if (!model->device)
    fprintf(stream,
            "limits, measured now with %d threads: %.1f GFLOP/s (f32 "
            "multiply-adds), %.1f GB/s (reading 256 MiB)\n",
            heed_num_threads(model), 1e-9 * limits.flops, 1e-9 * limits.bytes);
  fprintf(stream, "%-32s %8s %12s %7s %10s %9s %9s%s\n", "kernel", "calls",
          "ms", "share", "GFLOP/s", "GB/s", "of limit",
          pairs ? "        pairs" : "");
  for (size_t k = 0; k < count; ++k) {
    const heed_kernel_profile *p = &kernels[k];
    if (!p->calls)
      continue;
    char flops[32], bytes[32], share[32];
    double perSecond = p->seconds > 0 ? 1 / p->seconds : 0;
    double compute = limits.flops > 0 ? p->flops / limits.flops : 0;
    double move = limits.bytes > 0 ? p->bytes / limits.bytes : 0;
    fprintf(
        stream, "%-32s %8" PRId64 " %12.3f %6.1f%% %10s %9s %9s", p->kernel,
        p->calls, 1e3 * p->seconds, total > 0 ? 100 * p->seconds / total : 0,
        cell(flops, 1e-9 * p->flops * perSecond, ""),
        cell(bytes, 1e-9 * p->bytes * perSecond, ""),
        cell(share, 100 * (compute > move ? compute : move) * perSecond, "%"));
    if (pairs)
      fprintf(stream, " %12" PRId64, p->pairs);
    fputs("\n", stream);
  }
  free(kernels);
}
