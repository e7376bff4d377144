/* What kernels ask of Halide's runtime for devices, whatever the device:
 * programs, launches, memory of their own. None of it is Halide's. The device's
 * lock is held: Device.c calls kernels. Programs and kernels are made once for
 * a device. */
#include "runtime/Device.h"

#include <stdlib.h>
#include <string.h>

static heed_door *doorOf(void *context) {
  return &((heed_model *)context)->memory->door;
}

static int noMemory(heed_door *door) {
  return heed_door_says(door, halide_error_code_out_of_memory,
                        "no memory for a program of the device");
}

/* ---- programs ---- */

static heed_gpu_program *findProgram(const heed_gpu_device *device,
                                     const char *code) {
  for (size_t k = 0; k < device->numPrograms; ++k)
    if (device->programs[k].code == code)
      return &device->programs[k];
  return NULL;
}

void heed_device_close_programs(heed_gpu_device *device) {
  const heed_driver *driver = device->driver;
  for (size_t k = 0; k < device->numPrograms; ++k) {
    heed_gpu_program *program = &device->programs[k];
    for (size_t n = 0; driver->dropKernel && n < program->numKernels; ++n)
      driver->dropKernel(device, program->kernels[n].function);
    driver->dropProgram(device, program->program);
    free(program->kernels);
  }
  free(device->programs);
}

int heed_device_build(void *context, void **state, const char *code, int size) {
  heed_door *door = doorOf(context);
  heed_gpu_device *device = door->device;
  *state = (void *)(uintptr_t)code;
  if (findProgram(device, code))
    return 0;
  if (device->numPrograms == device->programCapacity) {
    size_t capacity = 2 * device->programCapacity + 16;
    heed_gpu_program *grown =
        realloc(device->programs, capacity * sizeof *grown);
    if (!grown)
      return noMemory(door);
    device->programs = grown;
    device->programCapacity = capacity;
  }
  heed_gpu_program built = {.code = code};
  int result = device->driver->build(door, code, size < 0 ? 0 : (size_t)size,
                                     &built.program);
  if (!result)
    device->programs[device->numPrograms++] = built;
  return result;
}

static int findKernel(heed_door *door, const char *code, const char *name,
                      heed_gpu_kernel **kernel) {
  heed_gpu_program *program = findProgram(door->device, code);
  for (size_t k = 0; k < program->numKernels; ++k) {
    *kernel = &program->kernels[k];
    if (!strcmp((*kernel)->name, name))
      return 0;
  }
  heed_gpu_kernel *grown =
      realloc(program->kernels, (program->numKernels + 1) * sizeof *grown);
  if (!grown)
    return noMemory(door);
  program->kernels = grown;
  *kernel = &grown[program->numKernels];
  **kernel = (heed_gpu_kernel){.name = name};
  int result = door->device->driver->findKernel(door, program->program, name,
                                                &(*kernel)->function);
  program->numKernels += !result;
  return result;
}

int heed_device_launch(void *context, void *state, const char *name,
                       const heed_launch *launch) {
  heed_door *door = doorOf(context);
  heed_gpu_kernel *kernel;
  int result = findKernel(door, state, name, &kernel);
  /* Nothing to do, but an error of the drivers. */
  for (int k = 0; k < 3; ++k)
    if (launch->blocks[k] <= 0 || launch->threads[k] <= 0)
      return result;
  return result ? result : door->device->driver->launch(door, kernel, launch);
}

/* ---- memory between the parts of a kernel ---- */

/* Bytes from the first element to the last; at least one. Where nothing is
 * computed libHalide's extents may be negative, and strides with them. */
static size_t bytesOf(const struct halide_buffer_t *buffer) {
  int64_t last = 0;
  for (int32_t k = 0; k < buffer->dimensions; ++k)
    if (buffer->dim[k].extent > 1 && buffer->dim[k].stride > 0)
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
  heed_device_give(doorOf(context), (const char *)(uintptr_t)buffer->device);
  buffer->device = 0;
  buffer->device_interface = NULL;
  return 0;
}

void halide_device_free_as_destructor(void *context, void *buffer) {
  halide_device_free(context, buffer);
}

/* Before and after a part of a pipeline that runs on the host. */
int halide_copy_to_device(void *context, struct halide_buffer_t *buffer,
                          const struct halide_device_interface_t *interface) {
  heed_door *door = doorOf(context);
  int result = halide_device_malloc(context, buffer, interface);
  if (result || !(buffer->flags & halide_buffer_flag_host_dirty))
    return result;
  buffer->flags &= ~(uint64_t)halide_buffer_flag_host_dirty;
  return door->device->driver->copy(door, (void *)(uintptr_t)buffer->device,
                                    buffer->host, bytesOf(buffer),
                                    HEED_TO_DEVICE);
}

int halide_copy_to_host(void *context, struct halide_buffer_t *buffer) {
  heed_door *door = doorOf(context);
  if (!buffer->device || !(buffer->flags & halide_buffer_flag_device_dirty))
    return 0;
  buffer->flags &= ~(uint64_t)halide_buffer_flag_device_dirty;
  return door->device->driver->copy(door, buffer->host,
                                    (const void *)(uintptr_t)buffer->device,
                                    bytesOf(buffer), HEED_TO_HOST);
}
