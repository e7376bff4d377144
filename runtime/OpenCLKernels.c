/* Programs and launches of OpenCL, and its names for what kernels of the target
 * opencl ask of Halide's runtime. */
#include "runtime/OpenCL.h"

#include "HalideRuntimeOpenCL.h"

#include <stdlib.h>
#include <string.h>

static heed_opencl_device *of(heed_gpu_device *device) {
  return (heed_opencl_device *)device;
}

static int failed(heed_door *door, const char *function, int32_t status) {
  return heed_opencl_failed(door, halide_error_code_device_run_failed, function,
                            status);
}

/* ---- programs ---- */

/* The first line of the compiler's log is the error's reason. */
static int notBuilt(heed_door *door, cl_program program, int32_t status) {
  heed_opencl_device *d = of(door->device);
  char log[160] = "";
  size_t length = 0;
  char *whole = NULL;
  if (d->cl.clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                  &length) == CL_SUCCESS &&
      (whole = calloc(1, length + 1)) &&
      d->cl.clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, length,
                                  whole, NULL) == CL_SUCCESS)
    snprintf(log, sizeof log, ": %.*s", (int)strcspn(whole, "\n"), whole);
  free(whole);
  d->cl.clReleaseProgram(program);
  return heed_door_says(door, halide_error_code_device_run_failed,
                        "clBuildProgram failed (%d)%s", status, log);
}

int heed_opencl_build(heed_door *door, const char *code, size_t size,
                      void **program) {
  heed_opencl_device *d = of(door->device);
  (void)size;
  int32_t status = CL_SUCCESS;
  cl_program built =
      d->cl.clCreateProgramWithSource(d->context, 1, &code, NULL, &status);
  if (!built)
    return failed(door, "clCreateProgramWithSource", status);
  /* Small tables are no constants: their memory is like any other. */
  status = d->cl.clBuildProgram(
      built, 1, &d->id, "-D MAX_CONSTANT_BUFFER_SIZE=0 -D MAX_CONSTANT_ARGS=0",
      NULL, NULL);
  if (status)
    return notBuilt(door, built, status);
  *program = built;
  return 0;
}

void heed_opencl_drop_program(heed_gpu_device *device, void *program) {
  of(device)->cl.clReleaseProgram(program);
}

int heed_opencl_find_kernel(heed_door *door, void *program, const char *name,
                            void **function) {
  int32_t status = CL_SUCCESS;
  *function = of(door->device)->cl.clCreateKernel(program, name, &status);
  return *function ? 0 : failed(door, "clCreateKernel", status);
}

void heed_opencl_drop_kernel(heed_gpu_device *device, void *function) {
  of(device)->cl.clReleaseKernel(function);
}

/* ---- launches ---- */

int heed_opencl_launch(heed_door *door, heed_gpu_kernel *kernel,
                       const heed_launch *launch) {
  heed_opencl_device *d = of(door->device);
  cl_kernel function = kernel->function;
  uint32_t k = 0;
  int32_t status = CL_SUCCESS;
  for (; launch->args[k]; ++k) {
    const struct halide_buffer_t *buffer = launch->args[k];
    bool isBuffer = launch->isBuffer[k];
    status = isBuffer
                 ? d->cl.clSetKernelArgSVMPointer(
                       function, k, (const void *)(uintptr_t)buffer->device)
                 : d->cl.clSetKernelArg(function, k, launch->sizes[k],
                                        launch->args[k]);
    if (status)
      return failed(door,
                    isBuffer ? "clSetKernelArgSVMPointer" : "clSetKernelArg",
                    status);
  }
  /* The last one is what the threads of a block share. */
  status = d->cl.clSetKernelArg(
      function, k, launch->sharedBytes > 0 ? (size_t)launch->sharedBytes : 1,
      NULL);
  if (status)
    return failed(door, "clSetKernelArg", status);
  size_t block[3], places[3];
  for (int axis = 0; axis < 3; ++axis) {
    block[axis] = (size_t)launch->threads[axis];
    places[axis] = (size_t)launch->blocks[axis] * block[axis];
  }
  status = d->cl.clEnqueueNDRangeKernel(heed_opencl_queue(door), function, 3,
                                        NULL, places, block, 0, NULL, NULL);
  return status ? failed(door, "clEnqueueNDRangeKernel", status) : 0;
}

/* ---- what kernels call ---- */

int halide_opencl_initialize_kernels(void *context, void **state,
                                     const char *code, int size) {
  return heed_device_build(context, state, code, size);
}

void halide_opencl_finalize_kernels(void *context, void *state) {
  (void)context;
  (void)state;
}

int halide_opencl_run(void *context, void *state, const char *name, int blocksX,
                      int blocksY, int blocksZ, int threadsX, int threadsY,
                      int threadsZ, int sharedBytes, size_t sizes[],
                      void *args[], int8_t isBuffer[]) {
  const heed_launch launch = {{blocksX, blocksY, blocksZ},
                              {threadsX, threadsY, threadsZ},
                              sharedBytes,
                              args,
                              sizes,
                              isBuffer};
  return heed_device_launch(context, state, name, &launch);
}

const struct halide_device_interface_t *halide_opencl_device_interface(void) {
  static const struct halide_device_interface_t none;
  return &none;
}
