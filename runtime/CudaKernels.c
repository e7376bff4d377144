/* Modules and launches of CUDA, and its names for what kernels of the target
 * cuda ask of Halide's runtime. */
#include "runtime/Cuda.h"
#include "runtime/CudaCode.h"

#include "HalideRuntimeCuda.h"

#include <stdlib.h>
#include <string.h>

static heed_cuda_device *of(heed_gpu_device *device) {
  return (heed_cuda_device *)device;
}

static int failed(heed_door *door, const char *function, int32_t status) {
  return heed_cuda_failed(door, halide_error_code_device_run_failed, function,
                          status);
}

/* ---- modules ---- */

/* Whether a kernel's code ends with machine code, which *end describes. */
static bool hasCode(const char *code, size_t size, heed_cuda_code_end *end) {
  if (size < sizeof *end)
    return false;
  memcpy(end, code + size - sizeof *end, sizeof *end);
  size_t least = sizeof *end + (end->bytes + 7) / 8 * 8;
  return !memcmp(end->mark, HEED_CUDA_CODE_MARK, sizeof end->mark) &&
         end->bytes <= size && end->whole >= least && end->whole <= size;
}

/* Machine code runs on devices of its major version that are not older. Takes
 * what is for the newest one, if there is any, and leaves *size that of the
 * PTX. */
static const char *bestCode(const heed_cuda_device *d, const char *code,
                            size_t *size, size_t *bytes) {
  heed_cuda_code_end end;
  const char *best = NULL;
  int32_t minor = -1;
  for (; hasCode(code, *size, &end); *size -= end.whole)
    if (end.major == d->major && end.minor <= d->minor && end.minor > minor) {
      minor = end.minor;
      *bytes = end.bytes;
      best = code + *size - sizeof end - (end.bytes + 7) / 8 * 8;
    }
  return best;
}

/* Null where there is no machine code for the device, or its driver takes none
 * that such a ptxas has made: then there is still the PTX. */
static CUmodule loadCode(heed_cuda_device *d, const char *code, size_t bytes) {
  /* The driver may want an alignment of which it does not speak. */
  void *aligned = code ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
  CUmodule module = NULL;
  if (!aligned || heed_cuda_enter(d))
    return free(aligned), NULL;
  memcpy(aligned, code, bytes);
  if (d->cuda.cuModuleLoadDataEx(&module, aligned, 0, NULL, NULL))
    module = NULL;
  heed_cuda_leave(d);
  free(aligned);
  return module;
}

/* Machine code, or PTX, which the driver compiles for the device, or keeps from
 * an earlier time; registers are as many as a kernel wants. The first line of
 * its log is the error's reason. */
int heed_cuda_build(heed_door *door, const char *code, size_t size,
                    void **program) {
  heed_cuda_device *d = of(door->device);
  size_t bytes = 0;
  const char *machine = bestCode(d, code, &size, &bytes);
  *program = loadCode(d, machine, bytes);
  if (*program)
    return 0;
  if (!size || code[size - 1])
    return heed_door_says(door, halide_error_code_device_run_failed,
                          "the kernel's PTX does not end");
  char log[512] = "";
  int32_t options[] = {CU_JIT_ERROR_LOG_BUFFER,
                       CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
  CUmodule module = NULL;
  int32_t status = heed_cuda_enter(d);
  if (status)
    return failed(door, "cuCtxPushCurrent", status);
  status = d->cuda.cuModuleLoadDataEx(&module, code, 2, options, values);
  heed_cuda_leave(d);
  *program = module;
  if (!status)
    return 0;
  int result = failed(door, "cuModuleLoadDataEx", status);
  const char *line = log + strspn(log, "\n");
  size_t length = strlen(door->text);
  if (*line)
    snprintf(door->text + length, sizeof door->text - length, ": %.*s",
             (int)strcspn(line, "\n"), line);
  return result;
}

void heed_cuda_drop_program(heed_gpu_device *device, void *program) {
  heed_cuda_device *d = of(device);
  bool isEntered = heed_cuda_enter(d) == CUDA_SUCCESS;
  d->cuda.cuModuleUnload(program);
  if (isEntered)
    heed_cuda_leave(d);
}

int heed_cuda_find_kernel(heed_door *door, void *program, const char *name,
                          void **function) {
  heed_cuda_device *d = of(door->device);
  CUfunction found = NULL;
  int32_t status = heed_cuda_enter(d);
  if (status)
    return failed(door, "cuCtxPushCurrent", status);
  status = d->cuda.cuModuleGetFunction(&found, program, name);
  heed_cuda_leave(d);
  *function = found;
  return status ? failed(door, "cuModuleGetFunction", status) : 0;
}

/* ---- launches ---- */

/* What CUDA's grids have at most, and a block without asking. */
enum { MostBlocks = 65535, FreeSharedBytes = 48 << 10, MostArguments = 512 };

static int refused(heed_door *door, const heed_gpu_kernel *kernel,
                   const char *what, int64_t found, int64_t most) {
  return heed_door_says(door, halide_error_code_device_run_failed,
                        "a launch of '%s' has %lld %s, CUDA at most %lld here",
                        kernel->name, (long long)found, what, (long long)most);
}

/* Blocks that share more memory than any device lets them have say so once. */
static int raiseShared(heed_door *door, heed_gpu_kernel *kernel,
                       int32_t bytes) {
  heed_cuda_device *d = of(door->device);
  if (bytes > d->sharedBytes)
    return refused(door, kernel, "bytes of shared memory in a block", bytes,
                   d->sharedBytes);
  int32_t status = d->cuda.cuFuncSetAttribute(
      kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
  if (status)
    return failed(door, "cuFuncSetAttribute", status);
  kernel->sharedBytes = bytes;
  return 0;
}

static int launchEntered(heed_door *door, heed_gpu_kernel *kernel,
                         const heed_launch *launch, void **arguments) {
  heed_cuda_device *d = of(door->device);
  if (launch->sharedBytes > FreeSharedBytes &&
      launch->sharedBytes > kernel->sharedBytes) {
    int result = raiseShared(door, kernel, launch->sharedBytes);
    if (result)
      return result;
  }
  const int32_t *blocks = launch->blocks, *threads = launch->threads;
  int32_t status = d->cuda.cuLaunchKernel(
      kernel->function, (uint32_t)blocks[0], (uint32_t)blocks[1],
      (uint32_t)blocks[2], (uint32_t)threads[0], (uint32_t)threads[1],
      (uint32_t)threads[2],
      launch->sharedBytes > 0 ? (uint32_t)launch->sharedBytes : 0,
      heed_cuda_stream(door), arguments, NULL);
  return status ? failed(door, "cuLaunchKernel", status) : 0;
}

int heed_cuda_launch(heed_door *door, heed_gpu_kernel *kernel,
                     const heed_launch *launch) {
  heed_cuda_device *d = of(door->device);
  void *arguments[MostArguments];
  int32_t count = 0;
  for (; launch->args[count]; ++count) {
    struct halide_buffer_t *buffer = launch->args[count];
    if (count == MostArguments)
      return refused(door, kernel, "arguments or more", count + 1, count);
    arguments[count] =
        launch->isBuffer[count] ? (void *)&buffer->device : launch->args[count];
  }
  for (int axis = 1; axis < 3; ++axis)
    if (launch->blocks[axis] > MostBlocks)
      return refused(door, kernel, axis == 1 ? "blocks in y" : "blocks in z",
                     launch->blocks[axis], MostBlocks);
  int32_t status = heed_cuda_enter(d);
  if (status)
    return failed(door, "cuCtxPushCurrent", status);
  int result = launchEntered(door, kernel, launch, arguments);
  heed_cuda_leave(d);
  return result;
}

/* ---- what kernels call ---- */

int halide_cuda_initialize_kernels(void *context, void **state,
                                   const char *code, int size) {
  return heed_device_build(context, state, code, size);
}

void halide_cuda_finalize_kernels(void *context, void *state) {
  (void)context;
  (void)state;
}

int halide_cuda_run(void *context, void *state, const char *name, int blocksX,
                    int blocksY, int blocksZ, int threadsX, int threadsY,
                    int threadsZ, int sharedBytes, size_t sizes[], void *args[],
                    int8_t isBuffer[]) {
  const heed_launch launch = {{blocksX, blocksY, blocksZ},
                              {threadsX, threadsY, threadsZ},
                              sharedBytes,
                              args,
                              sizes,
                              isBuffer};
  return heed_device_launch(context, state, name, &launch);
}

const struct halide_device_interface_t *halide_cuda_device_interface(void) {
  static const struct halide_device_interface_t none;
  return &none;
}
