/* OpenCL's library with one function that fails: each goes to the real one, at
 * REAL, but for calls number AT to UNTIL (AT alone, if there is none) of the
 * function FAIL; calls are counted in calls_FUNCTION. When the process ends it
 * says what was made and not given back. Every function that the runtime asks
 * for; none has more arguments than are handed on, all of them pointers and
 * integers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *real(const char *name) {
  return dlsym(dlopen(getenv("REAL"), RTLD_NOW | RTLD_LOCAL), name);
}

static int made;

__attribute__((destructor)) static void end(void) {
  if (made)
    fprintf(stderr, "opencl-stub: %d things are not given back\n", made);
}

static int fails(const char *name, int call) {
  const char *until = getenv("UNTIL");
  int first = atoi(getenv("AT"));
  return !strcmp(getenv("FAIL"), name) && call >= first &&
         call <= (until ? atoi(until) : first);
}

#define ARGUMENTS                                                              \
  void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h,      \
      void *i
#define PASS(name)                                                             \
  (((void *(*)(ARGUMENTS))real(#name))(a, b, c, d, e, f, g, h, i))

/* Of those that return a status. */
#define STATUS(name)                                                           \
  int calls_##name;                                                            \
  void *name(ARGUMENTS) {                                                      \
    return fails(#name, ++calls_##name) ? (void *)-5L : PASS(name);            \
  }
/* Of those that return what they make: null, and a status at `place`. */
#define MAKES(name, place)                                                     \
  int calls_##name;                                                            \
  void *name(ARGUMENTS) {                                                      \
    void *result = NULL, *status = (place);                                    \
    if (!fails(#name, ++calls_##name))                                         \
      result = PASS(name);                                                     \
    else if (status)                                                           \
      *(int *)status = -5;                                                     \
    made += result != NULL;                                                    \
    return result;                                                             \
  }
#define GIVES(name)                                                            \
  void *name(ARGUMENTS) {                                                      \
    --made;                                                                    \
    return PASS(name);                                                         \
  }

STATUS(clGetPlatformIDs)
STATUS(clGetDeviceIDs)
STATUS(clGetDeviceInfo)
MAKES(clCreateContext, f)
GIVES(clReleaseContext)
void *clRetainContext(ARGUMENTS) {
  ++made;
  return PASS(clRetainContext);
}
STATUS(clGetContextInfo)
MAKES(clCreateCommandQueue, d)
GIVES(clReleaseCommandQueue)
STATUS(clFinish)
MAKES(clSVMAlloc, NULL)
GIVES(clSVMFree)

/* Bytes that have come from or gone to the host. */
static long copied;
long opencl_stub_copied(void) { return copied; }

int calls_clEnqueueSVMMemcpy;
void *clEnqueueSVMMemcpy(ARGUMENTS) {
  copied += b ? (long)e : 0;
  return fails("clEnqueueSVMMemcpy", ++calls_clEnqueueSVMMemcpy)
             ? (void *)-5L
             : PASS(clEnqueueSVMMemcpy);
}

MAKES(clCreateProgramWithSource, e)
STATUS(clBuildProgram)
STATUS(clGetProgramBuildInfo)
GIVES(clReleaseProgram)
MAKES(clCreateKernel, c)
GIVES(clReleaseKernel)
STATUS(clSetKernelArg)
STATUS(clSetKernelArgSVMPointer)
STATUS(clEnqueueNDRangeKernel)
