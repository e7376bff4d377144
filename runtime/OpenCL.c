/* Devices that OpenCL knows: found when a model is opened, in a library that is
 * loaded then. A model has a context and a queue of its own. Memory is OpenCL
 * 2.0's shared virtual memory, of which kernels take addresses inside of what
 * was allocated, wherever they lie; it is copied like any other. */
#include "runtime/OpenCL.h"

#include <dlfcn.h>
#include <stdlib.h>

static heed_opencl_device *of(heed_gpu_device *device) {
  return (heed_opencl_device *)device;
}

/* ---- the driver ---- */

static void *take(heed_gpu_device *device, size_t bytes) {
  heed_opencl_device *d = of(device);
  return d->cl.clSVMAlloc(d->context, CL_MEM_READ_WRITE, bytes, 0);
}

static void give(heed_gpu_device *device, void *memory) {
  of(device)->cl.clSVMFree(of(device)->context, memory);
}

static int32_t copy(heed_gpu_device *device, void *to, const void *from,
                    size_t bytes, bool withHost) {
  heed_opencl_device *d = of(device);
  return d->cl.clEnqueueSVMMemcpy(d->queue, withHost, to, from, bytes, 0, NULL,
                                  NULL);
}

static int32_t finish(heed_gpu_device *device) {
  return of(device)->cl.clFinish(of(device)->queue);
}

static const heed_driver driver = {
    take, give, copy, finish, "clEnqueueSVMMemcpy", "clFinish"};

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

/* The first device of a kind, of whatever platform. */
static cl_device_id findOf(const heed_opencl_library *cl, uint64_t kind,
                           uint32_t numPlatforms,
                           const cl_platform_id *platforms) {
  for (uint32_t k = 0; k < numPlatforms; ++k) {
    cl_device_id found = NULL;
    uint32_t count = 0;
    if (cl->clGetDeviceIDs(platforms[k], kind, 1, &found, &count) ==
            CL_SUCCESS &&
        count)
      return found;
  }
  return NULL;
}

static cl_device_id findAny(const heed_opencl_library *cl, bool any) {
  enum { Most = 16 };
  cl_platform_id platforms[Most];
  uint32_t numPlatforms = 0;
  if (cl->clGetPlatformIDs(Most, platforms, &numPlatforms) != CL_SUCCESS)
    numPlatforms = 0;
  if (numPlatforms > Most)
    numPlatforms = Most;
  cl_device_id id = findOf(cl, CL_DEVICE_TYPE_GPU, numPlatforms, platforms);
  return id || !any ? id
                    : findOf(cl, CL_DEVICE_TYPE_ALL, numPlatforms, platforms);
}

/* Context and queue of d->id; the text says which it is, or what is wrong. */
static bool open(heed_opencl_device *d, char *text, size_t size) {
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
  int32_t status = CL_SUCCESS;
  d->context = cl->clCreateContext(NULL, 1, &d->id, NULL, NULL, &status);
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

static bool fill(heed_opencl_device *d, bool any, char *text, size_t size) {
  void *opened = library();
  const char *missing = opened ? load(&d->cl, opened) : NULL;
  if (!opened)
    snprintf(text, size, "no OpenCL library, libOpenCL.so.1, can be loaded");
  else if (missing)
    snprintf(text, size, "the OpenCL library has no %s", missing);
  else if (!(d->id = findAny(&d->cl, any)))
    snprintf(text, size,
             any ? "OpenCL finds no device"
                 : "OpenCL finds no device of type GPU; HEED_TARGET=opencl "
                   "takes any");
  else
    return open(d, text, size);
  return false;
}

static bool find(heed_model *model, bool any) {
  heed_opencl_device *d = calloc(1, sizeof *d);
  snprintf(model->deviceText, sizeof model->deviceText,
           "no memory to open a device");
  if (d && fill(d, any, model->deviceText, sizeof model->deviceText)) {
    d->base.driver = &driver;
    pthread_mutex_init(&d->base.lock, NULL);
    model->device = &d->base;
    heed_say(model, HEED_LOG_INFO, "%s", model->deviceText);
    return true;
  }
  free(d);
  heed_fail(model, HEED_ERROR_DEVICE,
            "model '%s' was compiled for a device: %s", model->desc->name,
            model->deviceText);
  return false;
}

static void closeDevice(heed_gpu_device *device) {
  heed_opencl_device *d = of(device);
  d->cl.clFinish(d->queue);
  heed_opencl_close_programs(d);
  heed_device_close_memory(device);
  d->cl.clReleaseCommandQueue(d->queue);
  d->cl.clReleaseContext(d->context);
  pthread_mutex_destroy(&device->lock);
  free(d);
}

const heed_gpu heed_opencl = {find,
                              closeDevice,
                              heed_device_close_model,
                              heed_device_keep_whole,
                              heed_device_settle,
                              heed_device_close_state,
                              heed_device_write_row,
                              heed_device_print};
