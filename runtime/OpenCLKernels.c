/* What kernels of the target opencl ask of Halide's runtime for a device:
 * programs, launches, memory of their own. None of it is Halide's. The device's
 * lock is held: Device.c calls kernels. Programs and kernels are made once for
 * a device. */
#include "runtime/OpenCL.h"

#include "HalideRuntimeOpenCL.h"

#include <stdlib.h>
#include <string.h>

static heed_opencl_device *deviceOf(void *context) {
  return (heed_opencl_device *)((heed_model *)context)->device;
}

static heed_door *doorOf(void *context) {
  return &((heed_model *)context)->memory->door;
}

static int failed(void *context, const char *function, int32_t status) {
  return heed_door_says(doorOf(context), halide_error_code_device_run_failed,
                        "%s failed (%d)", function, status);
}

static int noMemory(void *context) {
  return heed_door_says(doorOf(context), halide_error_code_out_of_memory,
                        "no memory for a program of the device");
}

/* ---- programs ---- */

static heed_opencl_program *findProgram(const heed_opencl_device *d,
                                        const char *code) {
  for (size_t k = 0; k < d->numPrograms; ++k)
    if (d->programs[k].code == code)
      return &d->programs[k];
  return NULL;
}

void heed_opencl_close_programs(heed_opencl_device *d) {
  for (size_t k = 0; k < d->numPrograms; ++k) {
    heed_opencl_program *program = &d->programs[k];
    for (size_t n = 0; n < program->numKernels; ++n)
      d->cl.clReleaseKernel(program->kernels[n].kernel);
    d->cl.clReleaseProgram(program->program);
    free(program->kernels);
  }
  free(d->programs);
}

/* The first line of the compiler's log is the error's reason. */
static int notBuilt(void *context, cl_program program, int32_t status) {
  heed_opencl_device *d = deviceOf(context);
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
  return heed_door_says(doorOf(context), halide_error_code_device_run_failed,
                        "clBuildProgram failed (%d)%s", status, log);
}

int halide_opencl_initialize_kernels(void *context, void **state,
                                     const char *code, int size) {
  heed_opencl_device *d = deviceOf(context);
  (void)size;
  *state = (void *)(uintptr_t)code;
  if (findProgram(d, code))
    return 0;
  if (d->numPrograms == d->capacity) {
    size_t capacity = 2 * d->capacity + 16;
    heed_opencl_program *grown = realloc(d->programs, capacity * sizeof *grown);
    if (!grown)
      return noMemory(context);
    d->programs = grown;
    d->capacity = capacity;
  }
  int32_t status = CL_SUCCESS;
  cl_program program =
      d->cl.clCreateProgramWithSource(d->context, 1, &code, NULL, &status);
  if (!program)
    return failed(context, "clCreateProgramWithSource", status);
  /* Small tables are no constants: their memory is like any other. */
  status = d->cl.clBuildProgram(
      program, 1, &d->id,
      "-D MAX_CONSTANT_BUFFER_SIZE=0 -D MAX_CONSTANT_ARGS=0", NULL, NULL);
  if (status)
    return notBuilt(context, program, status);
  d->programs[d->numPrograms++] =
      (heed_opencl_program){.code = code, .program = program};
  return 0;
}

void halide_opencl_finalize_kernels(void *context, void *state) {
  (void)context;
  (void)state;
}

static int findKernel(void *context, const char *code, const char *name,
                      cl_kernel *kernel) {
  heed_opencl_device *d = deviceOf(context);
  heed_opencl_program *program = findProgram(d, code);
  for (size_t k = 0; k < program->numKernels; ++k)
    if (!strcmp(program->kernels[k].name, name)) {
      *kernel = program->kernels[k].kernel;
      return 0;
    }
  heed_opencl_kernel *grown =
      realloc(program->kernels, (program->numKernels + 1) * sizeof *grown);
  if (!grown)
    return noMemory(context);
  program->kernels = grown;
  int32_t status = CL_SUCCESS;
  *kernel = d->cl.clCreateKernel(program->program, name, &status);
  if (!*kernel)
    return failed(context, "clCreateKernel", status);
  grown[program->numKernels++] = (heed_opencl_kernel){name, *kernel};
  return 0;
}

/* ---- launches ---- */

int halide_opencl_run(void *context, void *state, const char *name, int blocksX,
                      int blocksY, int blocksZ, int threadsX, int threadsY,
                      int threadsZ, int sharedBytes, size_t sizes[],
                      void *args[], int8_t isBuffer[]) {
  heed_opencl_device *d = deviceOf(context);
  cl_kernel kernel;
  int result = findKernel(context, state, name, &kernel);
  if (result)
    return result;
  uint32_t k = 0;
  int32_t status = CL_SUCCESS;
  for (; args[k] && !status; ++k) {
    const struct halide_buffer_t *buffer = args[k];
    status = isBuffer[k]
                 ? d->cl.clSetKernelArgSVMPointer(
                       kernel, k, (const void *)(uintptr_t)buffer->device)
                 : d->cl.clSetKernelArg(kernel, k, sizes[k], args[k]);
    if (status)
      return failed(context,
                    isBuffer[k] ? "clSetKernelArgSVMPointer" : "clSetKernelArg",
                    status);
  }
  /* The last one is what the threads of a block share. */
  status = d->cl.clSetKernelArg(
      kernel, k, sharedBytes > 0 ? (size_t)sharedBytes : 1, NULL);
  if (status)
    return failed(context, "clSetKernelArg", status);
  size_t block[3] = {(size_t)threadsX, (size_t)threadsY, (size_t)threadsZ};
  size_t places[3] = {(size_t)blocksX * block[0], (size_t)blocksY * block[1],
                      (size_t)blocksZ * block[2]};
  /* Nothing to do, but an error of OpenCL's. */
  if (!places[0] || !places[1] || !places[2])
    return 0;
  status = d->cl.clEnqueueNDRangeKernel(d->queue, kernel, 3, NULL, places,
                                        block, 0, NULL, NULL);
  return status ? failed(context, "clEnqueueNDRangeKernel", status) : 0;
}

/* ---- memory between the parts of a kernel ---- */

const struct halide_device_interface_t *halide_opencl_device_interface(void) {
  static const struct halide_device_interface_t none;
  return &none;
}

/* Bytes from the first element to the last; at least one. */
static size_t bytesOf(const struct halide_buffer_t *buffer) {
  int64_t last = 0;
  for (int32_t k = 0; k < buffer->dimensions; ++k)
    if (buffer->dim[k].extent > 1)
      last += (int64_t)(buffer->dim[k].extent - 1) * buffer->dim[k].stride;
  return (size_t)(last + 1) * (size_t)((buffer->type.bits + 7) / 8);
}

int halide_device_malloc(void *context, struct halide_buffer_t *buffer,
                         const struct halide_device_interface_t *interface) {
  if (buffer->device)
    return 0;
  char *memory = heed_device_take(doorOf(context), bytesOf(buffer));
  buffer->device = (uintptr_t)memory;
  buffer->device_interface = interface;
  return memory ? 0 : halide_error_code_out_of_memory;
}

int halide_device_free(void *context, struct halide_buffer_t *buffer) {
  heed_device_give(&deviceOf(context)->base,
                   (const char *)(uintptr_t)buffer->device);
  buffer->device = 0;
  buffer->device_interface = NULL;
  return 0;
}

void halide_device_free_as_destructor(void *context, void *buffer) {
  halide_device_free(context, buffer);
}

static int copy(void *context, void *to, const void *from, size_t bytes) {
  const heed_driver *driver = deviceOf(context)->base.driver;
  int32_t status =
      driver->copy(&deviceOf(context)->base, to, from, bytes, true);
  return status ? failed(context, driver->copyName, status) : 0;
}

/* Before and after a part of a pipeline that runs on the host. */
int halide_copy_to_device(void *context, struct halide_buffer_t *buffer,
                          const struct halide_device_interface_t *interface) {
  int result = halide_device_malloc(context, buffer, interface);
  if (result || !(buffer->flags & halide_buffer_flag_host_dirty))
    return result;
  buffer->flags &= ~(uint64_t)halide_buffer_flag_host_dirty;
  return copy(context, (void *)(uintptr_t)buffer->device, buffer->host,
              bytesOf(buffer));
}

int halide_copy_to_host(void *context, struct halide_buffer_t *buffer) {
  if (!buffer->device || !(buffer->flags & halide_buffer_flag_device_dirty))
    return 0;
  buffer->flags &= ~(uint64_t)halide_buffer_flag_device_dirty;
  return copy(context, buffer->host, (const void *)(uintptr_t)buffer->device,
              bytesOf(buffer));
}
