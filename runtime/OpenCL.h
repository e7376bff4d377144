/* OpenCL's library as far as this runtime calls it, and a device of it. As its
 * headers have it, which nobody needs to install. */
#ifndef HEED_OPENCL_H
#define HEED_OPENCL_H

#include "runtime/Device.h"

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;

enum {
  CL_SUCCESS = 0,
  CL_DEVICE_NAME = 0x102B,
  CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
  CL_DEVICE_SVM_CAPABILITIES = 0x1053,
  CL_DEVICE_SVM_COARSE_GRAIN_BUFFER = 1,
  CL_MEM_READ_WRITE = 1,
  CL_CONTEXT_DEVICES = 0x1081,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_DEVICE_TYPE_GPU = 1 << 2
};
static const uint64_t CL_DEVICE_TYPE_ALL = 0xFFFFFFFF;

/** Its functions: result, name, arguments. */
#define HEED_OPENCL_FUNCTIONS(X)                                               \
  X(int32_t, clGetPlatformIDs, (uint32_t, cl_platform_id *, uint32_t *))       \
  X(int32_t, clGetDeviceIDs,                                                   \
    (cl_platform_id, uint64_t, uint32_t, cl_device_id *, uint32_t *))          \
  X(int32_t, clGetDeviceInfo,                                                  \
    (cl_device_id, uint32_t, size_t, void *, size_t *))                        \
  X(cl_context, clCreateContext,                                               \
    (const intptr_t *, uint32_t, const cl_device_id *, void *, void *,         \
     int32_t *))                                                               \
  X(int32_t, clReleaseContext, (cl_context))                                   \
  X(int32_t, clRetainContext, (cl_context))                                    \
  X(int32_t, clGetContextInfo,                                                 \
    (cl_context, uint32_t, size_t, void *, size_t *))                          \
  X(cl_command_queue, clCreateCommandQueue,                                    \
    (cl_context, cl_device_id, uint64_t, int32_t *))                           \
  X(int32_t, clReleaseCommandQueue, (cl_command_queue))                        \
  X(int32_t, clFinish, (cl_command_queue))                                     \
  X(void *, clSVMAlloc, (cl_context, uint64_t, size_t, uint32_t))              \
  X(void, clSVMFree, (cl_context, void *))                                     \
  X(int32_t, clEnqueueSVMMemcpy,                                               \
    (cl_command_queue, uint32_t, void *, const void *, size_t, uint32_t,       \
     const void *, void *))                                                    \
  X(cl_program, clCreateProgramWithSource,                                     \
    (cl_context, uint32_t, const char **, const size_t *, int32_t *))          \
  X(int32_t, clBuildProgram,                                                   \
    (cl_program, uint32_t, const cl_device_id *, const char *, void *,         \
     void *))                                                                  \
  X(int32_t, clGetProgramBuildInfo,                                            \
    (cl_program, cl_device_id, uint32_t, size_t, void *, size_t *))            \
  X(int32_t, clReleaseProgram, (cl_program))                                   \
  X(cl_kernel, clCreateKernel, (cl_program, const char *, int32_t *))          \
  X(int32_t, clReleaseKernel, (cl_kernel))                                     \
  X(int32_t, clSetKernelArg, (cl_kernel, uint32_t, size_t, const void *))      \
  X(int32_t, clSetKernelArgSVMPointer, (cl_kernel, uint32_t, const void *))    \
  X(int32_t, clEnqueueNDRangeKernel,                                           \
    (cl_command_queue, cl_kernel, uint32_t, const size_t *, const size_t *,    \
     const size_t *, uint32_t, const void *, void *))

typedef struct heed_opencl_library {
#define HEED_OPENCL_MEMBER(result, name, arguments) result(*name) arguments;
  HEED_OPENCL_FUNCTIONS(HEED_OPENCL_MEMBER)
#undef HEED_OPENCL_MEMBER
} heed_opencl_library;

typedef struct heed_opencl_device {
  heed_gpu_device base;
  heed_opencl_library cl;
  cl_device_id id;
  cl_context context; /* one of our own, or the caller's */
  cl_command_queue queue;
} heed_opencl_device;

/* ---- OpenCL.c ---- */

/** Writes a text and door->failed; returns `code`. */
int heed_opencl_failed(heed_door *door, int code, const char *function,
                       int32_t status);

/** The queue of what a door asks for: the call's or the device's own. */
cl_command_queue heed_opencl_queue(const heed_door *door);

/* ---- OpenCLKernels.c, for heed_driver ---- */

int heed_opencl_build(heed_door *door, const char *code, size_t size,
                      void **program);
void heed_opencl_drop_program(heed_gpu_device *device, void *program);
int heed_opencl_find_kernel(heed_door *door, void *program, const char *name,
                            void **function);
void heed_opencl_drop_kernel(heed_gpu_device *device, void *function);
int heed_opencl_launch(heed_door *door, heed_gpu_kernel *kernel,
                       const heed_launch *launch);

#endif
