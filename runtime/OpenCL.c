/* Devices that OpenCL knows. Linked into what was compiled for the target
 * opencl alone, with Halide's runtime for OpenCL, some of whose weak
 * functions are replaced here: the library is opened when a model is, and each
 * model has a context and a queue of its own, on the device that was chosen for
 * it. */
#include "runtime/Model.h"

#include "HalideRuntime.h"
#include "HalideRuntimeOpenCL.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- as OpenCL's headers have it, which nobody needs to install ---- */

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_kernel *cl_kernel;

enum { CL_SUCCESS = 0, CL_DEVICE_NOT_AVAILABLE = -2, CL_DEVICE_NAME = 0x102B };
static const uint64_t CL_DEVICE_TYPE_GPU = 1 << 2;
static const uint64_t CL_DEVICE_TYPE_ALL = 0xFFFFFFFF;

typedef int32_t (*get_platforms)(uint32_t, cl_platform_id *, uint32_t *);
typedef int32_t (*get_devices)(cl_platform_id, uint64_t, uint32_t,
                               cl_device_id *, uint32_t *);
typedef int32_t (*get_info)(cl_device_id, uint32_t, size_t, void *, size_t *);
typedef cl_context (*create_context)(const intptr_t *, uint32_t,
                                     const cl_device_id *, void *, void *,
                                     int32_t *);
typedef cl_command_queue (*create_queue)(cl_context, cl_device_id, uint64_t,
                                         int32_t *);
typedef int32_t (*enqueue_kernel)(cl_command_queue, cl_kernel, uint32_t,
                                  const size_t *, const size_t *,
                                  const size_t *, uint32_t, const void *,
                                  void *);
typedef int32_t (*release)(void *);

struct heed_gpu_device {
  cl_context context;
  cl_command_queue queue;
  atomic_bool used; /* by Halide's runtime, which has loaded the library then */
};

/* The library stays open: drivers have threads of their own. */
static void *library(void) {
  void *opened = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return opened ? opened : dlopen("libOpenCL.so", RTLD_NOW | RTLD_LOCAL);
}

/* ---- what Halide's runtime asks for ---- */

/* A grid of no places is nothing to do, but an error of OpenCL's. */
static int32_t enqueueKernel(cl_command_queue queue, cl_kernel kernel,
                             uint32_t rank, const size_t *offset,
                             const size_t *places, const size_t *block,
                             uint32_t numEvents, const void *events,
                             void *event) {
  for (uint32_t k = 0; k < rank; ++k)
    if (!places[k])
      return CL_SUCCESS;
  void *opened = library();
  enqueue_kernel enqueue =
      opened ? (enqueue_kernel)dlsym(opened, "clEnqueueNDRangeKernel") : NULL;
  return enqueue ? enqueue(queue, kernel, rank, offset, places, block,
                           numEvents, events, event)
                 : CL_DEVICE_NOT_AVAILABLE;
}

void *halide_opencl_get_symbol(void *context, const char *name) {
  (void)context;
  void *opened = library();
  void *found = opened ? dlsym(opened, name) : NULL;
  if (found && !strcmp(name, "clEnqueueNDRangeKernel"))
    return (void *)enqueueKernel;
  return found;
}

/* No header has it. */
int halide_opencl_device_malloc(void *context, struct halide_buffer_t *buffer);

/* Halide's runtime ends the process where a buffer has no element: here that
 * gets memory for one. */
int halide_device_malloc(void *context, struct halide_buffer_t *buffer,
                         const struct halide_device_interface_t *interface) {
  (void)interface;
  enum { Most = 64 };
  struct halide_dimension_t dims[Most];
  if (buffer->device)
    return halide_error_code_success;
  if (buffer->dimensions > Most)
    return halide_error_code_device_malloc_failed;
  struct halide_buffer_t least = *buffer;
  least.dim = dims;
  for (int32_t k = 0; k < buffer->dimensions; ++k) {
    dims[k] = buffer->dim[k];
    if (dims[k].extent < 1)
      dims[k].extent = 1;
  }
  int result = halide_opencl_device_malloc(context, &least);
  buffer->device = least.device;
  buffer->device_interface = least.device_interface;
  return result;
}

int halide_acquire_cl_context(void *context, cl_context *cl,
                              cl_command_queue *queue, bool create) {
  heed_model *model = context;
  if (create && model && model->device)
    atomic_store(&model->device->used, true);
  *cl = model && model->device ? model->device->context : NULL;
  *queue = model && model->device ? model->device->queue : NULL;
  return *cl ? halide_error_code_success : halide_error_code_gpu_device_error;
}

int halide_release_cl_context(void *context) {
  (void)context;
  return halide_error_code_success;
}

/* ---- what the runtime asks for ---- */

/* The first device of a kind, of whatever platform. */
static cl_device_id findOf(void *opened, uint64_t kind, uint32_t numPlatforms,
                           const cl_platform_id *platforms) {
  get_devices devices = (get_devices)dlsym(opened, "clGetDeviceIDs");
  for (uint32_t k = 0; devices && k < numPlatforms; ++k) {
    cl_device_id found = NULL;
    uint32_t count = 0;
    if (devices(platforms[k], kind, 1, &found, &count) == CL_SUCCESS && count)
      return found;
  }
  return NULL;
}

static heed_gpu_device *open(void *opened, cl_device_id id, char *text,
                             size_t size) {
  char name[128] = "?";
  get_info info = (get_info)dlsym(opened, "clGetDeviceInfo");
  if (info)
    info(id, CL_DEVICE_NAME, sizeof name, name, NULL);
  name[sizeof name - 1] = 0;
  heed_gpu_device *device = calloc(1, sizeof *device);
  create_context contextOf = (create_context)dlsym(opened, "clCreateContext");
  create_queue queueOf = (create_queue)dlsym(opened, "clCreateCommandQueue");
  int32_t status = CL_SUCCESS;
  if (device && contextOf)
    device->context = contextOf(NULL, 1, &id, NULL, NULL, &status);
  if (device && device->context && queueOf)
    device->queue = queueOf(device->context, id, 0, &status);
  if (device && device->queue) {
    snprintf(text, size, "OpenCL device '%s'", name);
    return device;
  }
  if (device && device->context)
    ((release)dlsym(opened, "clReleaseContext"))(device->context);
  free(device);
  snprintf(text, size, "OpenCL device '%s' gives no context and queue (%d)",
           name, status);
  return NULL;
}

static heed_gpu_device *find(bool any, char *text, size_t size) {
  enum { Most = 16 };
  cl_platform_id platforms[Most];
  uint32_t numPlatforms = 0;
  void *opened = library();
  if (!opened) {
    snprintf(text, size, "no OpenCL library, libOpenCL.so.1, can be loaded");
    return NULL;
  }
  get_platforms list = (get_platforms)dlsym(opened, "clGetPlatformIDs");
  if (!list || list(Most, platforms, &numPlatforms) != CL_SUCCESS)
    numPlatforms = 0;
  if (numPlatforms > Most)
    numPlatforms = Most;
  cl_device_id id = findOf(opened, CL_DEVICE_TYPE_GPU, numPlatforms, platforms);
  if (!id && any)
    id = findOf(opened, CL_DEVICE_TYPE_ALL, numPlatforms, platforms);
  if (id)
    return open(opened, id, text, size);
  snprintf(text, size,
           any ? "OpenCL finds no device"
               : "OpenCL finds no device of type GPU; HEED_TARGET=opencl takes "
                 "any");
  return NULL;
}

static void closeDevice(heed_gpu_device *device) {
  /* Halide's runtime gives back the programs of a context. */
  heed_model closing;
  memset(&closing, 0, sizeof closing);
  closing.device = device;
  if (device->used)
    halide_device_release(&closing, halide_opencl_device_interface());
  void *opened = library();
  if (opened) {
    ((release)dlsym(opened, "clReleaseCommandQueue"))(device->queue);
    ((release)dlsym(opened, "clReleaseContext"))(device->context);
  }
  free(device);
}

static int take(heed_model *model, struct halide_buffer_t *buffer) {
  return halide_device_malloc(model, buffer, halide_opencl_device_interface());
}

static int settle(heed_model *model, struct halide_buffer_t *buffer,
                  bool copy) {
  int result = 0;
  if (copy && (buffer->flags & halide_buffer_flag_device_dirty))
    result = halide_copy_to_host(model, buffer);
  if (buffer->device)
    halide_device_free(model, buffer);
  return result;
}

const heed_gpu heed_opencl = {
    find, closeDevice, heed_device_note, heed_device_call, take, settle};
