/* Devices that OpenCL knows: found when a model is opened, in a library that is
 * loaded then. A model has a context, if the caller gives it none, and a queue
 * of its own. Memory is OpenCL
 * 2.0's shared virtual memory, of which kernels take addresses inside of what
 * was allocated, wherever they lie; it is copied like any other. */
#include "runtime/OpenCL.h"

#include <dlfcn.h>
#include <stdlib.h>

static heed_opencl_device *of(heed_gpu_device *device) {
  return (heed_opencl_device *)device;
}

int heed_opencl_failed(heed_door *door, int code, const char *function,
                       int32_t status) {
  heed_door_says(door, code, "%s failed (%d)", function, status);
  door->failed = true;
  return code;
}

cl_command_queue heed_opencl_queue(const heed_door *door) {
  return door->stream ? door->stream : of(door->device)->queue;
}

/* ---- the driver ---- */

static void *take(heed_door *door, size_t bytes) {
  heed_opencl_device *d = of(door->device);
  return d->cl.clSVMAlloc(d->context, CL_MEM_READ_WRITE, bytes, 0);
}

static void give(heed_gpu_device *device, void *memory) {
  of(device)->cl.clSVMFree(of(device)->context, memory);
}

static int copy(heed_door *door, void *to, const void *from, size_t bytes,
                heed_way way) {
  heed_opencl_device *d = of(door->device);
  int32_t status =
      d->cl.clEnqueueSVMMemcpy(heed_opencl_queue(door), way != HEED_WITHIN, to,
                               from, bytes, 0, NULL, NULL);
  return status
             ? heed_opencl_failed(door,
                                  halide_error_code_device_buffer_copy_failed,
                                  "clEnqueueSVMMemcpy", status)
             : 0;
}

static int finish(heed_door *door) {
  heed_opencl_device *d = of(door->device);
  int32_t status = d->cl.clFinish(heed_opencl_queue(door));
  return status ? heed_opencl_failed(door, halide_error_code_device_sync_failed,
                                     "clFinish", status)
                : 0;
}

static const heed_driver driver = {.take = take,
                                   .give = give,
                                   .copy = copy,
                                   .finish = finish,
                                   .build = heed_opencl_build,
                                   .dropProgram = heed_opencl_drop_program,
                                   .findKernel = heed_opencl_find_kernel,
                                   .dropKernel = heed_opencl_drop_kernel,
                                   .launch = heed_opencl_launch};

/* ---- open, close ---- */

/* The library stays open: drivers have threads of their own. */
static void *library(void) {
  void *opened = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return opened ? opened : dlopen("libOpenCL.so", RTLD_NOW | RTLD_LOCAL);
}

/* Null, or the name of a function that it lacks. */
static const char *load(heed_opencl_library *cl, void *opened) {
  const char *missing = NULL;
#define LOAD(result, name, arguments)                                          \
  *(void **)&cl->name = dlsym(opened, #name);                                  \
  if (!cl->name)                                                               \
    missing = #name;
  HEED_OPENCL_FUNCTIONS(LOAD)
#undef LOAD
  return missing;
}

enum { Most = 16 }; /* platforms, and devices of one */

/* The device of that number of a kind, of whatever platform. */
static cl_device_id findOf(const heed_opencl_library *cl, uint64_t kind,
                           uint32_t numPlatforms,
                           const cl_platform_id *platforms, int64_t number) {
  for (uint32_t k = 0; k < numPlatforms; ++k) {
    cl_device_id found[Most];
    uint32_t count = 0;
    if (cl->clGetDeviceIDs(platforms[k], kind, Most, found, &count) !=
        CL_SUCCESS)
      continue;
    if (count > Most)
      count = Most;
    if (number >= 0 && number < count)
      return found[number];
    number -= count;
  }
  return NULL;
}

static cl_device_id findAny(const heed_opencl_library *cl, bool any,
                            int32_t number) {
  cl_platform_id platforms[Most];
  uint32_t numPlatforms = 0;
  if (cl->clGetPlatformIDs(Most, platforms, &numPlatforms) != CL_SUCCESS)
    numPlatforms = 0;
  if (numPlatforms > Most)
    numPlatforms = Most;
  cl_device_id id =
      findOf(cl, CL_DEVICE_TYPE_GPU, numPlatforms, platforms, number);
  return id || !any
             ? id
             : findOf(cl, CL_DEVICE_TYPE_ALL, numPlatforms, platforms, number);
}

/* The device of that number of the caller's context. */
static cl_device_id findOfContext(const heed_opencl_library *cl,
                                  cl_context context, int32_t number) {
  cl_device_id found[Most];
  size_t bytes = 0;
  if (number < 0 ||
      cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof found, found,
                           &bytes) != CL_SUCCESS)
    return NULL;
  return (size_t)number < bytes / sizeof *found ? found[number] : NULL;
}

static int32_t makeContext(heed_opencl_device *d) {
  int32_t status = CL_SUCCESS;
  if (d->context) {
    /* Its memory is known to the caller, too. */
    status = d->cl.clRetainContext(d->context);
    d->base.type = HEED_DEVICE_OPENCL;
    d->context = status ? NULL : d->context;
  } else {
    d->context = d->cl.clCreateContext(NULL, 1, &d->id, NULL, NULL, &status);
  }
  return status;
}

static bool hasF64(const heed_opencl_device *d) {
  uint64_t config = 0;
  return d->cl.clGetDeviceInfo(d->id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof config,
                               &config, NULL) == CL_SUCCESS &&
         config;
}

/* Context and queue of d->id; the text says which it is, or what is wrong. */
static bool open(heed_opencl_device *d, bool f64, char *text, size_t size) {
  const heed_opencl_library *cl = &d->cl;
  char name[128] = "?";
  cl->clGetDeviceInfo(d->id, CL_DEVICE_NAME, sizeof name, name, NULL);
  name[sizeof name - 1] = 0;
  uint64_t memory = 0;
  if (cl->clGetDeviceInfo(d->id, CL_DEVICE_SVM_CAPABILITIES, sizeof memory,
                          &memory, NULL) != CL_SUCCESS ||
      !(memory & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER)) {
    snprintf(text, size, "OpenCL device '%s' has no shared virtual memory",
             name);
    return false;
  }
  if (f64 && !hasF64(d)) {
    snprintf(text, size,
             "OpenCL device '%s' has no f64 (cl_khr_fp64), in which kernels of "
             "this model compute",
             name);
    return false;
  }
  int32_t status = makeContext(d);
  if (d->context)
    d->queue = cl->clCreateCommandQueue(d->context, d->id, 0, &status);
  if (d->queue) {
    snprintf(text, size, "OpenCL device '%s'", name);
    return true;
  }
  if (d->context)
    cl->clReleaseContext(d->context);
  snprintf(text, size, "OpenCL device '%s' gives no context and queue (%d)",
           name, status);
  return false;
}

static bool fill(heed_opencl_device *d, bool any, bool f64, int32_t number,
                 char *text, size_t size) {
  void *opened = library();
  const char *missing = opened ? load(&d->cl, opened) : NULL;
  if (!opened)
    snprintf(text, size, "no OpenCL library, libOpenCL.so.1, can be loaded");
  else if (missing)
    snprintf(text, size, "the OpenCL library has no %s", missing);
  else if (d->context && !(d->id = findOfContext(&d->cl, d->context, number)))
    snprintf(text, size, "options.context has no OpenCL device of number %d",
             number);
  else if (!d->id && !(d->id = findAny(&d->cl, any, number)) && number)
    snprintf(text, size, "OpenCL finds no device of number %d", number);
  else if (!d->id)
    snprintf(text, size,
             any ? "OpenCL finds no device"
                 : "OpenCL finds no device of type GPU; HEED_TARGET=opencl "
                   "takes any");
  else
    return open(d, f64, text, size);
  return false;
}

static bool find(heed_model *model, bool any, bool f64) {
  heed_opencl_device *d = calloc(1, sizeof *d);
  snprintf(model->deviceText, sizeof model->deviceText,
           "no memory to open a device");
  if (d)
    d->context = model->deviceContext;
  if (d && fill(d, any, f64, heed_device_number(model), model->deviceText,
                sizeof model->deviceText)) {
    d->base.driver = &driver;
    return heed_device_found(model, &d->base);
  }
  free(d);
  return heed_device_found(model, NULL);
}

static void closeDevice(heed_gpu_device *device) {
  heed_opencl_device *d = of(device);
  d->cl.clFinish(d->queue);
  heed_device_close_programs(device);
  heed_device_close_memory(device);
  d->cl.clReleaseCommandQueue(d->queue);
  d->cl.clReleaseContext(d->context);
  pthread_mutex_destroy(&device->lock);
  free(d);
}

const heed_gpu heed_opencl = {.find = find,
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
