/* CUDA's driver library as far as this runtime calls it, and a device of it. As
 * its header has it, which nobody needs to install. */
#ifndef HEED_CUDA_H
#define HEED_CUDA_H

#include "runtime/Device.h"

typedef int32_t CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CU_STREAM_NON_BLOCKING = 1,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

/** Its functions: name, arguments. Each returns a status. */
#define HEED_CUDA_FUNCTIONS(X)                                                 \
  X(cuInit, (uint32_t))                                                        \
  X(cuGetErrorName, (int32_t, const char **))                                  \
  X(cuDeviceGetCount, (int32_t *))                                             \
  X(cuDeviceGet, (CUdevice *, int32_t))                                        \
  X(cuDeviceGetName, (char *, int32_t, CUdevice))                              \
  X(cuDeviceGetAttribute, (int32_t *, int32_t, CUdevice))                      \
  X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                         \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                  \
  X(cuCtxPushCurrent_v2, (CUcontext))                                          \
  X(cuCtxPopCurrent_v2, (CUcontext *))                                         \
  X(cuCtxGetDevice, (CUdevice *))                                              \
  X(cuStreamCreate, (CUstream *, uint32_t))                                    \
  X(cuStreamSynchronize, (CUstream))                                           \
  X(cuStreamDestroy_v2, (CUstream))                                            \
  X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                    \
  X(cuMemFree_v2, (CUdeviceptr))                                               \
  X(cuMemHostAlloc, (void **, size_t, uint32_t))                               \
  X(cuMemFreeHost, (void *))                                                   \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))       \
  X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))             \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))        \
  X(cuEventCreate, (CUevent *, uint32_t))                                      \
  X(cuEventRecord, (CUevent, CUstream))                                        \
  X(cuEventElapsedTime, (float *, CUevent, CUevent))                           \
  X(cuEventDestroy_v2, (CUevent))                                              \
  X(cuModuleLoadDataEx,                                                        \
    (CUmodule *, const void *, uint32_t, int32_t *, void **))                  \
  X(cuModuleUnload, (CUmodule))                                                \
  X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))               \
  X(cuFuncSetAttribute, (CUfunction, int32_t, int32_t))                        \
  X(cuLaunchKernel,                                                            \
    (CUfunction, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,   \
     uint32_t, CUstream, void **, void **))

typedef struct heed_cuda_library {
#define HEED_CUDA_MEMBER(name, arguments) int32_t(*name) arguments;
  HEED_CUDA_FUNCTIONS(HEED_CUDA_MEMBER)
#undef HEED_CUDA_MEMBER
} heed_cuda_library;

/** What has left the device, and arrives when its stream has been waited for.
 */
typedef struct heed_cuda_arrival {
  void *to;
  const char *from; /* in the staging memory */
  size_t bytes;
} heed_cuda_arrival;

/** Pinned memory of the host that small arrays go through (CudaCopies.c). */
typedef struct heed_cuda_staging {
  char *memory; /* null before it is needed, and where there is none */
  bool isRefused;
  size_t used;
  CUstream stream; /* that uses it, if it is used */
  heed_cuda_arrival arrivals[16];
  int32_t numArrivals;
} heed_cuda_staging;

typedef struct heed_cuda_device {
  heed_gpu_device base;
  heed_cuda_library cuda;
  CUdevice id;
  CUcontext context; /* the caller's, or the device's primary one */
  bool isRetained;   /* the primary one */
  CUstream stream;
  CUevent begin, end;   /* null before something is timed */
  int32_t major, minor; /* of its compute capability */
  int32_t sharedBytes;  /* of a block, at most */
  heed_cuda_staging staging;
} heed_cuda_device;

/* ---- Cuda.c ---- */

/** The device's context becomes the thread's, and what it was before. 0, or
 * CUDA's status. */
int32_t heed_cuda_enter(heed_cuda_device *device);
void heed_cuda_leave(heed_cuda_device *device);
/** Writes a text and door->failed; returns `code`, or the one of memory where
 * that is missing. `function` without the version in its name. */
int heed_cuda_failed(heed_door *door, int code, const char *function,
                     int32_t status);

/** The stream of what a door asks for: the call's or the device's own. */
CUstream heed_cuda_stream(const heed_door *door);

/* ---- CudaCopies.c ---- */

/** For heed_driver. */
int heed_cuda_copy(heed_door *door, void *to, const void *from, size_t bytes,
                   heed_way way);
/** Waits for the door's stream, and for what arrives with it; the context is
 * entered. CUDA's status. */
int32_t heed_cuda_wait(const heed_door *door);
/** Gives the staging memory back; the context is entered. */
void heed_cuda_close_staging(heed_cuda_device *device);

/* ---- CudaKernels.c, for heed_driver ---- */

int heed_cuda_build(heed_door *door, const char *code, size_t size,
                    void **program);
void heed_cuda_drop_program(heed_gpu_device *device, void *program);
int heed_cuda_find_kernel(heed_door *door, void *program, const char *name,
                          void **function);
int heed_cuda_launch(heed_door *door, heed_gpu_kernel *kernel,
                     const heed_launch *launch);

#endif
