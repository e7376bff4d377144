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

heed_status heed_bench(heed_model *model, const heed_signature *entry,
                       const heed_buffer *inputs, heed_buffer *outputs,
                       int64_t runs, FILE *stream) {
  /* The first run, which the caller has done, warmed memory and threads up;
   * without a count, about a second, five runs at least. */
  enum { Most = 100000 };
  size_t capacity = runs ? (size_t)runs : Most;
  if (capacity > Most)
    capacity = Most;
  double *times = malloc(capacity * sizeof *times);
  if (!times)
    return HEED_ERROR_MEMORY;
  heed_profile_reset(model);
  size_t count = 0;
  double begin = heed_seconds();
  while (count < capacity) {
    double start = heed_seconds();
    heed_status status =
        heed_run(model, entry->entry, inputs, (size_t)entry->numInputs, outputs,
                 (size_t)entry->numOutputs, NULL);
    if (status) {
      free(times);
      return status;
    }
    double stop = heed_seconds();
    times[count++] = stop - start;
    if (!runs && count >= 5 && stop - begin > 1)
      break;
  }
  qsort(times, count, sizeof *times, byTime);
  double sum = 0;
  for (size_t k = 0; k < count; ++k)
    sum += times[k];
  fprintf(stream,
          "%zu runs, %d threads: best %.3f ms, median %.3f ms, mean %.3f ms\n",
          count, heed_num_threads(model), 1e3 * times[0],
          1e3 * times[count / 2], 1e3 * sum / (double)count);
  free(times);
  return HEED_OK;
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
  heed_limits limits = heed_measure_limits(model);
  double total = 0;
  for (size_t k = 0; k < count; ++k)
    total += kernels[k].seconds;
  fprintf(stream,
          "limits, measured now with %d threads: %.1f GFLOP/s (f32 "
          "multiply-adds), %.1f GB/s (reading 256 MiB)\n",
          heed_num_threads(model), 1e-9 * limits.flops, 1e-9 * limits.bytes);
  fprintf(stream, "%-32s %8s %12s %7s %10s %9s %9s\n", "kernel", "calls", "ms",
          "share", "GFLOP/s", "GB/s", "of limit");
  for (size_t k = 0; k < count; ++k) {
    const heed_kernel_profile *p = &kernels[k];
    if (!p->calls)
      continue;
    char flops[32], bytes[32], share[32];
    double perSecond = p->seconds > 0 ? 1 / p->seconds : 0;
    double compute = limits.flops > 0 ? p->flops / limits.flops : 0;
    double move = limits.bytes > 0 ? p->bytes / limits.bytes : 0;
    fprintf(
        stream, "%-32s %8" PRId64 " %12.3f %6.1f%% %10s %9s %9s\n", p->kernel,
        p->calls, 1e3 * p->seconds, total > 0 ? 100 * p->seconds / total : 0,
        cell(flops, 1e-9 * p->flops * perSecond, ""),
        cell(bytes, 1e-9 * p->bytes * perSecond, ""),
        cell(share, 100 * (compute > move ? compute : move) * perSecond, "%"));
  }
  free(kernels);
}
