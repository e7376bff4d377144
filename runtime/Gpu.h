/* What the runtime asks of a kind of device that kernels run on. A kind is an
 * archive, libheed_opencl.a or libheed_cuda.a, beside libheed_device.a, which
 * all kinds have in common. Only models for it are linked with them: their
 * descriptions name its heed_gpu. */
#ifndef HEED_GPU_H
#define HEED_GPU_H

#include "runtime/host.h"

#include <stdbool.h>
#include <stdio.h>

/** A device that was opened for a model, what a handle and what a state have
 * there. */
typedef struct heed_gpu_device heed_gpu_device;
typedef struct heed_device_memory heed_device_memory;
typedef struct heed_device_state heed_device_state;

struct heed_gpu {
  /** Makes model->device the first device of type GPU; with `any`, else one of
   * another type; with `f64` it has to have that. False if there is none, and
   * the model's message says why. Either is model->deviceText. */
  bool (*find)(heed_model *model, bool any, bool f64);
  void (*close)(heed_gpu_device *device);
  /** What the handle has there; before its weights are released. */
  void (*closeModel)(heed_model *model);
  /** Brings what init has made to the host. */
  heed_status (*keepWhole)(heed_model *model);
  /** A state comes to the host, which may write it then. */
  heed_status (*settle)(heed_state *state);
  void (*closeState)(heed_state *state);
  /** A row of an update. */
  heed_status (*writeRow)(heed_model *model, void *at, const void *from,
                          size_t bytes);
  /** Whether callers have a part in its context: streams and memory. */
  bool (*isShared)(const heed_gpu_device *device);
  /** Whether memory of that type and number (as in heed_buffer) is the
   * device's. */
  bool (*has)(const heed_gpu_device *device, int32_t type, int32_t number);
  /** Copies from memory of the device to the host. */
  heed_status (*fetch)(heed_model *model, void *to, const void *from,
                       size_t bytes);
  /** A call has failed: waits for what it has launched. */
  void (*abandon)(heed_model *model);
  /** Lines: which device it is or why there is none, and what was copied. */
  void (*print)(const heed_model *model, FILE *stream);
};

#endif
