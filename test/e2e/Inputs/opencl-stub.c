/* OpenCL's library with one function that fails: each goes to the real one, at
 * REAL, but for call number AT of the function FAIL. Every
 * function that Halide's runtime asks for; none has more arguments than are
 * handed on, all of them pointers and integers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *real(const char *name) {
  return dlsym(dlopen(getenv("REAL"), RTLD_NOW | RTLD_LOCAL), name);
}

/* What fails: returns a status, or null and a status behind the last argument.
 */
#define ARGUMENTS                                                              \
  void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h,      \
      void *i, void *j, void *k, void *l, void *m, void *n
#define FAILING(name, place)                                                   \
  void *name(ARGUMENTS) {                                                      \
    static int calls;                                                          \
    void *(*next)(ARGUMENTS) = real(#name);                                    \
    if (strcmp(getenv("FAIL"), #name) || ++calls != atoi(getenv("AT")))        \
      return next(a, b, c, d, e, f, g, h, i, j, k, l, m, n);                   \
    void *status = (place);                                                    \
    if (!status)                                                               \
      return (void *)-5L;                                                      \
    *(int *)status = -5;                                                       \
    return NULL;                                                               \
  }

FAILING(clGetPlatformIDs, NULL)
FAILING(clGetDeviceIDs, NULL)
FAILING(clGetDeviceInfo, NULL)
FAILING(clCreateContext, f)
FAILING(clCreateCommandQueue, d)
FAILING(clCreateBuffer, e)
FAILING(clCreateProgramWithSource, e)
FAILING(clBuildProgram, NULL)
FAILING(clCreateKernel, c)
FAILING(clSetKernelArg, NULL)
FAILING(clEnqueueNDRangeKernel, NULL)
FAILING(clEnqueueWriteBuffer, NULL)
FAILING(clEnqueueReadBuffer, NULL)
FAILING(clFinish, NULL)
FAILING(clReleaseMemObject, NULL)

#define ALL(each)                                                              \
  each(clGetPlatformInfo) each(clCreateSubDevices) each(clRetainDevice) each(  \
      clReleaseDevice) each(clCreateContextFromType) each(clRetainContext)     \
      each(clReleaseContext) each(clGetContextInfo) each(clRetainCommandQueue) \
          each(clReleaseCommandQueue) each(clGetCommandQueueInfo) each(        \
              clCreateSubBuffer) each(clCreateImage) each(clRetainMemObject)   \
              each(clGetSupportedImageFormats) each(clGetMemObjectInfo) each(  \
                  clGetImageInfo) each(clSetMemObjectDestructorCallback)       \
                  each(clRetainProgram) each(clReleaseProgram) each(           \
                      clGetProgramBuildInfo) each(clRetainKernel)              \
                      each(clReleaseKernel) each(clFlush) each(                \
                          clEnqueueReadBufferRect)                             \
                          each(clEnqueueWriteBufferRect) each(                 \
                              clEnqueueCopyBuffer) each(clEnqueueReadImage)    \
                              each(clEnqueueWriteImage)                        \
                                  each(clEnqueueMapBuffer)                     \
                                      each(clEnqueueMapImage)                  \
                                          each(clEnqueueUnmapMemObject)

#define PASSING(name)                                                          \
  void *name(ARGUMENTS) {                                                      \
    void *(*next)(ARGUMENTS) = real(#name);                                    \
    return next(a, b, c, d, e, f, g, h, i, j, k, l, m, n);                     \
  }
ALL(PASSING)
