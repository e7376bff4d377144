/* Devices of CUDA: found when a model is opened, in the driver's library, which
 * is loaded then. Handles that share weights have a stream of their own in the
 * device's primary context, which other libraries of the process use, too, or
 * in one of the caller's; it is a thread's current one only inside of these
 * functions. */
#include "runtime/Cuda.h"

#include <dlfcn.h>
#include <stdlib.h>

/* What kernels are compiled for; drivers compile it on for later devices. */
enum { LeastMajor = 8, LeastMinor = 0 };

static heed_cuda_device *of(heed_gpu_device *device) {
  return (heed_cuda_device *)device;
}

/* ---- statuses and contexts ---- */

static const char *nameOf(const heed_cuda_library *cuda, int32_t status) {
  const char *name = NULL;
  return cuda->cuGetErrorName(status, &name) == CUDA_SUCCESS && name
             ? name
             : "no name";
}

int heed_cuda_failed(heed_door *door, int code, const char *function,
                     int32_t status) {
  bool isMemory = status == CUDA_ERROR_OUT_OF_MEMORY;
  code = isMemory ? halide_error_code_out_of_memory : code;
  heed_door_says(door, code, "%s failed (%d, %s)", function, status,
                 nameOf(&of(door->device)->cuda, status));
  door->failed = !isMemory;
  return code;
}

int32_t heed_cuda_enter(heed_cuda_device *d) {
  return d->cuda.cuCtxPushCurrent_v2(d->context);
}

void heed_cuda_leave(heed_cuda_device *d) {
  CUcontext ours;
  d->cuda.cuCtxPopCurrent_v2(&ours);
}

CUstream heed_cuda_stream(const heed_door *door) {
  return door->stream ? door->stream : of(door->device)->stream;
}

/* ---- the driver ---- */

static void *take(heed_door *door, size_t bytes) {
  heed_cuda_device *d = of(door->device);
  CUdeviceptr memory = 0;
  const char *function = "cuCtxPushCurrent";
  int32_t status = heed_cuda_enter(d);
  if (!status) {
    function = "cuMemAlloc";
    status = d->cuda.cuMemAlloc_v2(&memory, bytes);
    heed_cuda_leave(d);
  }
  if (!status)
    return (void *)(uintptr_t)memory;
  if (status != CUDA_ERROR_OUT_OF_MEMORY)
    heed_cuda_failed(door, 0, function, status);
  return NULL;
}

static void give(heed_gpu_device *device, void *memory) {
  heed_cuda_device *d = of(device);
  bool isEntered = heed_cuda_enter(d) == CUDA_SUCCESS;
  d->cuda.cuMemFree_v2((CUdeviceptr)(uintptr_t)memory);
  if (isEntered)
    heed_cuda_leave(d);
}

static int finish(heed_door *door) {
  heed_cuda_device *d = of(door->device);
  const char *function = "cuCtxPushCurrent";
  int32_t status = heed_cuda_enter(d);
  if (!status) {
    function = "cuStreamSynchronize";
    status = heed_cuda_wait(door);
    heed_cuda_leave(d);
  }
  return status ? heed_cuda_failed(door, halide_error_code_device_sync_failed,
                                   function, status)
                : 0;
}

/* Null, or the function that failed with *status. */
static const char *record(const heed_door *door, bool begins, double *seconds,
                          int32_t *status) {
  heed_cuda_device *d = of(door->device);
  CUevent *event = begins ? &d->begin : &d->end;
  if (!*event && (*status = d->cuda.cuEventCreate(event, 0)))
    return "cuEventCreate";
  if ((*status = d->cuda.cuEventRecord(*event, heed_cuda_stream(door))))
    return "cuEventRecord";
  if (begins)
    return NULL;
  if ((*status = heed_cuda_wait(door)))
    return "cuStreamSynchronize";
  float milliseconds = 0;
  if ((*status = d->cuda.cuEventElapsedTime(&milliseconds, d->begin, d->end)))
    return "cuEventElapsedTime";
  *seconds = 1e-3 * (double)milliseconds;
  return NULL;
}

static int timeKernels(heed_door *door, bool begins, double *seconds) {
  heed_cuda_device *d = of(door->device);
  int32_t status = heed_cuda_enter(d);
  const char *function = "cuCtxPushCurrent";
  if (!status) {
    function = record(door, begins, seconds, &status);
    heed_cuda_leave(d);
  }
  return status ? heed_cuda_failed(door, halide_error_code_device_run_failed,
                                   function, status)
                : 0;
}

static const heed_driver driver = {.take = take,
                                   .give = give,
                                   .copy = heed_cuda_copy,
                                   .finish = finish,
                                   .time = timeKernels,
                                   .build = heed_cuda_build,
                                   .dropProgram = heed_cuda_drop_program,
                                   .findKernel = heed_cuda_find_kernel,
                                   .launch = heed_cuda_launch};

/* ---- open, close ---- */

/* Null, or the name of a function that it lacks. */
static const char *load(heed_cuda_library *cuda, void *opened) {
  const char *missing = NULL;
#define LOAD(name, arguments)                                                  \
  *(void **)&cuda->name = dlsym(opened, #name);                                \
  if (!cuda->name)                                                             \
    missing = #name;
  HEED_CUDA_FUNCTIONS(LOAD)
#undef LOAD
  return missing;
}

static int32_t attributeOf(const heed_cuda_device *d, int32_t attribute) {
  int32_t value = 0;
  return d->cuda.cuDeviceGetAttribute(&value, attribute, d->id) == CUDA_SUCCESS
             ? value
             : 0;
}

/* Whether kernels run on d->id; else the text says why not. */
static bool isFit(heed_cuda_device *d, char name[128], char *text,
                  size_t size) {
  snprintf(name, 128, "?");
  d->cuda.cuDeviceGetName(name, 128, d->id);
  name[127] = 0;
  d->major = attributeOf(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  d->minor = attributeOf(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (d->major > LeastMajor ||
      (d->major == LeastMajor && d->minor >= LeastMinor))
    return true;
  snprintf(text, size,
           "CUDA device '%s' has compute capability %d.%d, kernels need %d.%d",
           name, d->major, d->minor, LeastMajor, LeastMinor);
  return false;
}

/* The device of that number of those that kernels run on becomes d->id; else
 * the text says why none is. */
static bool findDevice(heed_cuda_device *d, int32_t count, int32_t number,
                       char name[128], char *text, size_t size) {
  snprintf(text, size, "CUDA's driver finds no device");
  int32_t found = 0;
  for (int32_t k = 0; k < count; ++k) {
    if (d->cuda.cuDeviceGet(&d->id, k) != CUDA_SUCCESS)
      continue;
    d->base.number = k;
    if (isFit(d, name, text, size) && found++ == number)
      return true;
  }
  if (found)
    snprintf(text, size,
             "CUDA's driver finds %d devices for kernels, none of number %d",
             found, number);
  return false;
}

/* The same for the one of the caller's context. */
static bool findContext(heed_cuda_device *d, int32_t count, char name[128],
                        char *text, size_t size) {
  CUdevice id = 0, one;
  const char *function = "cuCtxPushCurrent";
  int32_t status = heed_cuda_enter(d);
  if (!status) {
    function = "cuCtxGetDevice";
    status = d->cuda.cuCtxGetDevice(&id);
    heed_cuda_leave(d);
  }
  if (status) {
    snprintf(text, size, "options.context: %s failed (%d, %s)", function,
             status, nameOf(&d->cuda, status));
    return false;
  }
  for (int32_t k = 0; k < count; ++k)
    if (d->cuda.cuDeviceGet(&one, k) == CUDA_SUCCESS && one == id)
      d->base.number = k;
  d->id = id;
  return isFit(d, name, text, size);
}

static bool choose(heed_cuda_device *d, int32_t number, char name[128],
                   char *text, size_t size) {
  int32_t count = 0, status = d->cuda.cuInit(0);
  if (!status)
    status = d->cuda.cuDeviceGetCount(&count);
  if (status) {
    snprintf(text, size, "CUDA's driver finds no device (%d, %s)", status,
             nameOf(&d->cuda, status));
    return false;
  }
  return d->context ? findContext(d, count, name, text, size)
                    : findDevice(d, count, number, name, text, size);
}

/* Context and stream; the text says which device it is, or what is wrong. */
static bool open(heed_cuda_device *d, int32_t number, char *text, size_t size) {
  char name[128];
  if (!choose(d, number, name, text, size))
    return false;
  d->base.type = HEED_DEVICE_CUDA;
  d->sharedBytes =
      attributeOf(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  const char *function = "cuDevicePrimaryCtxRetain";
  int32_t status = CUDA_SUCCESS;
  if (!d->context) {
    status = d->cuda.cuDevicePrimaryCtxRetain(&d->context, d->id);
    d->isRetained = !status;
  }
  if (!status) {
    function = "cuCtxPushCurrent";
    status = heed_cuda_enter(d);
  }
  if (!status) {
    function = "cuStreamCreate";
    status = d->cuda.cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING);
    heed_cuda_leave(d);
  }
  if (!status) {
    snprintf(text, size, "CUDA device '%s'", name);
    return true;
  }
  if (d->isRetained)
    d->cuda.cuDevicePrimaryCtxRelease_v2(d->id);
  snprintf(text, size, "CUDA device '%s': %s failed (%d, %s)", name, function,
           status, nameOf(&d->cuda, status));
  return false;
}

/* The library stays open: the driver has threads of its own. */
static bool fill(heed_cuda_device *d, int32_t number, char *text, size_t size) {
  void *opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const char *missing = opened ? load(&d->cuda, opened) : NULL;
  if (!opened)
    snprintf(text, size, "no CUDA driver, libcuda.so.1, can be loaded");
  else if (missing)
    snprintf(text, size, "CUDA's driver has no %s", missing);
  else
    return open(d, number, text, size);
  return false;
}

static bool find(heed_model *model, bool any, bool f64) {
  (void)any; /* all of them are GPUs */
  (void)f64; /* which all have */
  heed_cuda_device *d = calloc(1, sizeof *d);
  snprintf(model->deviceText, sizeof model->deviceText,
           "no memory to open a device");
  if (d)
    d->context = model->deviceContext;
  if (d && fill(d, heed_device_number(model), model->deviceText,
                sizeof model->deviceText)) {
    d->base.driver = &driver;
    return heed_device_found(model, &d->base);
  }
  free(d);
  return heed_device_found(model, NULL);
}

/* Of a device that is lost each of these fails, and nothing is to be done. */
static void closeDevice(heed_gpu_device *device) {
  heed_cuda_device *d = of(device);
  bool isEntered = heed_cuda_enter(d) == CUDA_SUCCESS;
  d->cuda.cuStreamSynchronize(d->stream);
  heed_device_close_programs(device);
  heed_device_close_memory(device);
  heed_cuda_close_staging(d);
  if (d->begin)
    d->cuda.cuEventDestroy_v2(d->begin);
  if (d->end)
    d->cuda.cuEventDestroy_v2(d->end);
  d->cuda.cuStreamDestroy_v2(d->stream);
  if (isEntered)
    heed_cuda_leave(d);
  if (d->isRetained)
    d->cuda.cuDevicePrimaryCtxRelease_v2(d->id);
  pthread_mutex_destroy(&device->lock);
  free(d);
}

const heed_gpu heed_cuda = {.find = find,
                            .close = closeDevice,
                            .closeModel = heed_device_close_model,
                            .keepWhole = heed_device_keep_whole,
                            .settle = heed_device_settle,
                            .closeState = heed_device_close_state,
                            .writeRow = heed_device_write_row,
                            .isShared = heed_device_is_shared,
                            .has = heed_device_has,
                            .fetch = heed_device_fetch,
                            .abandon = heed_device_abandon,
                            .print = heed_device_print};
