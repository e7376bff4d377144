/* Memory of devices behind the host's, shared by the files of libheed_device
 * and of each kind of device.
 *
 * Compiled code and kernels know tensors by addresses of the host alone. A
 * mirror is a range of them that has memory on the device, and knows which
 * parts of it are newer there, and which on the host: a part is copied when the
 * side that has the older one reads it, and not before. Three tables hold
 * mirrors: a call's (inputs, outputs, what it allocates), a state's, and those
 * of weights, which all handles on them share. */
#ifndef HEED_DEVICE_H
#define HEED_DEVICE_H

#include "runtime/Model.h"

#include "HalideRuntime.h"

#include <stdio.h>

/* ---- what a kind of device can do: OpenCL.c, Cuda.c ---- */

/** Who copies: what is counted where, and what went wrong. */
typedef struct heed_door heed_door;

/** What a copy is between. */
typedef enum heed_way { HEED_TO_DEVICE, HEED_TO_HOST, HEED_WITHIN } heed_way;

/** A program that was built of a kernel's code, and what runs of it. */
typedef struct heed_gpu_kernel {
  const char *name;
  void *function;      /* the driver's */
  int32_t sharedBytes; /* that the driver has been told of; 0: none */
} heed_gpu_kernel;

typedef struct heed_gpu_program {
  const char *code;
  void *program; /* the driver's */
  heed_gpu_kernel *kernels;
  size_t numKernels;
} heed_gpu_program;

/** A grid of blocks of threads, as a kernel's host code asks for it. */
typedef struct heed_launch {
  int32_t blocks[3], threads[3];
  int32_t sharedBytes; /* of a block */
  void **args;         /* and a null behind the last */
  const size_t *sizes;
  const int8_t *isBuffer; /* args[k] is a halide_buffer_t */
} heed_launch;

/** Of a device, in the order of the calls, and all of them from one thread at a
 * time. Those that return an int return 0, or an error of Halide's and a text.
 */
typedef struct heed_driver {
  /** Memory of the device, whose parts are known by addresses inside it. Null
   * if there is none; with a text if that is not why. */
  void *(*take)(heed_door *door, size_t bytes);
  void (*give)(heed_gpu_device *device, void *memory);
  /** Where the host takes part it is over on return, but that what leaves
   * (door) may arrive with the next finish(). */
  int (*copy)(heed_door *door, void *to, const void *from, size_t bytes,
              heed_way way);
  /** Waits for all that was called by this door's stream. */
  int (*finish)(heed_door *door);
  /** Begins and ends a measurement by the device's own clock, for which the
   * end waits. Null: it has none. */
  int (*time)(heed_door *door, bool begins, double *seconds);
  int (*build)(heed_door *door, const char *code, size_t size, void **program);
  void (*dropProgram)(heed_gpu_device *device, void *program);
  int (*findKernel)(heed_door *door, void *program, const char *name,
                    void **function);
  /** Null: a kernel goes with its program. */
  void (*dropKernel)(heed_gpu_device *device, void *function);
  /** Blocks and threads are at least one. */
  int (*launch)(heed_door *door, heed_gpu_kernel *kernel,
                const heed_launch *launch);
} heed_driver;

/* ---- Mirrors.c ---- */

typedef struct heed_span {
  uintptr_t begin, end;
  bool onDevice; /* where it is newer */
} heed_span;

typedef struct heed_mirror {
  uintptr_t begin, end;
  char *device;     /* null before something needs it */
  bool kept;        /* of weights: made by init */
  heed_span *spans; /* parts that are not the same on both sides, in order */
  size_t numSpans, capacity;
} heed_mirror;

/** Disjoint, in order. All zero: empty. */
typedef struct heed_mirrors {
  heed_mirror *list;
  size_t count, capacity;
} heed_mirrors;

/** The mirror that holds all of the range; null if there is none. */
heed_mirror *heed_mirror_find(const heed_mirrors *mirrors, uintptr_t begin,
                              uintptr_t end);
/** Whether some mirror holds a part of it; the first one's number. */
bool heed_mirror_touches(const heed_mirrors *mirrors, uintptr_t begin,
                         uintptr_t end, size_t *which);
/** A mirror of a range that no other touches; null if there is no memory. */
heed_mirror *heed_mirror_add(heed_mirrors *mirrors, uintptr_t begin,
                             uintptr_t end);
/** Removes the k-th, whose memory on the device is the caller's. */
void heed_mirror_remove(heed_mirrors *mirrors, size_t k);
/** Room for `more` calls of heed_mirror_mark. */
bool heed_mirror_reserve(heed_mirror *mirror, size_t more);

/** Which side has the newer data. */
typedef enum heed_side { HEED_SAME, HEED_ON_HOST, HEED_ON_DEVICE } heed_side;

/** From now on the part is newer on that side. There is room for it. */
void heed_mirror_mark(heed_mirror *mirror, uintptr_t begin, uintptr_t end,
                      heed_side newer);
/** The first part of the range that is newer on that side; false: none. */
bool heed_mirror_newer(const heed_mirror *mirror, uintptr_t begin,
                       uintptr_t end, bool onDevice, heed_span *part);

/* ---- DeviceMemory.c ---- */

/** Memory of the device that is taken and given back from call to call. */
typedef struct heed_device_block {
  char *memory;
  size_t bytes;
  bool used;
  bool isBusy;  /* kernels on `stream` may use it, even if nobody has it */
  void *stream; /* of who has or had it, as in heed_door */
  int64_t lastCall;
} heed_device_block;

/** What devices of all kinds begin with. */
struct heed_gpu_device {
  const heed_driver *driver;
  pthread_mutex_t lock; /* of all below, and of the driver */
  heed_device_block *blocks;
  size_t numBlocks, capacity;
  int64_t bytes, calls;
  heed_mirrors weights;
  heed_gpu_program *programs;
  size_t numPrograms, programCapacity;
  int32_t ahead;        /* kernels that were called since somebody waited */
  int32_t type, number; /* of its memory, as in heed_buffer; type 0: buffers
                           cannot be there, the context is nobody else's */
};

/** What has been copied. */
typedef struct heed_traffic {
  int64_t copies, bytes;
} heed_traffic;

struct heed_door {
  heed_gpu_device *device;
  void *stream; /* the caller's; null: the device's own */
  heed_traffic toDevice, results, between; /* between: to the host, in a call */
  bool leaving;                            /* results are being copied */
  bool failed; /* the device, where it is not memory that is missing */
  char text[256];
};

/** A row of a state before the call that changed it. */
typedef struct heed_device_row {
  uintptr_t at;
  char *before; /* on the device */
  size_t bytes;
} heed_device_row;

/** What a state has on the device. */
struct heed_device_state {
  heed_mirrors mirrors;
  heed_device_row *rows; /* of the call that runs, or that has failed */
  size_t numRows, capacity;
  char **blocks; /* that hold them */
  size_t numBlocks, blockCapacity;
  size_t used, left; /* of the last block */
};

/** Rows of an update that follow one another on both sides. */
typedef struct heed_device_run {
  uintptr_t to, from;
  size_t bytes;
} heed_device_run;

/** What a handle has on the device. */
struct heed_device_memory {
  heed_door door;
  heed_mirrors mirrors;           /* of the call */
  struct halide_buffer_t **noted; /* buffers of the kernel called next */
  size_t numNoted, capacity;
  int32_t (*function)(void **args);
  int32_t kernel, numArgs, numOutputs;
  int64_t calls;
  double seconds; /* of the kernel called last, with --profile; below 0: none */
  heed_device_run run;
};

/** 128-byte aligned; null and a text if there is none. */
char *heed_device_take(heed_door *door, size_t bytes);
/** Null and what was not taken so are allowed. What was launched on the door's
 * stream may still use it. */
void heed_device_give(const heed_door *door, const char *memory);
/** Waits for the door's stream: what was given back to it is anybody's. */
int heed_device_finish(heed_door *door);
/** The same where nothing runs there. */
void heed_device_settled(const heed_door *door);
/** Gives back what calls have not used for a while; `all`: whatever nobody
 * uses, for which it waits for the door's stream and the device's. */
void heed_device_trim(const heed_door *door, bool all);
/** Gives back all that it has. */
void heed_device_close_memory(heed_gpu_device *device);
/** Gives back the mirrors of a table and their memory. */
void heed_device_drop(const heed_door *door, heed_mirrors *mirrors);
void heed_device_drop_one(const heed_door *door, heed_mirrors *mirrors,
                          size_t k);
/** Of weights those that init has read: it packs them, and reads them once. */
void heed_device_drop_read(const heed_door *door);
/** Makes a part equal on both sides, where that side has the older one. 0, or
 * an error of Halide's and a text. */
int heed_device_to_host(heed_door *door, heed_mirror *mirror, uintptr_t begin,
                        uintptr_t end);
int heed_device_to_device(heed_door *door, heed_mirror *mirror, uintptr_t begin,
                          uintptr_t end);
/** Where an address of the host is on the device. */
char *heed_device_at(const heed_mirror *mirror, uintptr_t at);
/** Copies within the device; 0, or as above. */
int heed_device_move(heed_door *door, char *to, const char *from, size_t bytes);
/** Writes the text; returns `code`. */
int heed_door_says(heed_door *door, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** What `code`, an error of Halide's, is to the caller. */
heed_status heed_door_status(const heed_door *door, int code);

/* ---- Device.c ---- */

/** The mirror that has all of the range, of whatever table; null: none. */
heed_mirror *heed_device_find(const heed_model *model, uintptr_t begin,
                              uintptr_t end);
/** The same, and if there is none, one of the call's, the host's side being
 * newer if `fromHost`. Null and a text if there is no memory. */
heed_mirror *heed_device_mirror(heed_model *model, uintptr_t begin,
                                uintptr_t end, bool fromHost);
/** Leaves the call where `code` is not 0; the lock is held, and given back. */
void heed_device_unlock(heed_model *model, int code);

/* ---- DeviceCalls.c ---- */

/** Before the host reads a range, or writes some of it: what is newer on the
 * device comes. May leave the call. */
void heed_device_to_hand(heed_model *model, uintptr_t begin, uintptr_t end,
                         bool writes);

/* ---- DeviceArguments.c ---- */

/** Inputs and outputs of the call become known; the lock is held. 0, or an
 * error of Halide's and a text. */
int heed_device_enter_arguments(heed_model *model, int32_t entry);
/** Results to where the caller wants them. As above. */
int heed_device_take_results(heed_model *model, int32_t entry);
/** For heed_gpu (Gpu.h). */
bool heed_device_is_shared(const heed_gpu_device *device);
bool heed_device_has(const heed_gpu_device *device, int32_t type,
                     int32_t number);
heed_status heed_device_fetch(heed_model *model, void *to, const void *from,
                              size_t bytes);

/* ---- DeviceStates.c ---- */

/** What `state` has on the device, made when it is first asked for; what a call
 * that failed has done to it is undone. Null and a text otherwise. */
heed_device_state *heed_device_state_enter(heed_model *model);
/** The call stands: it cannot be undone any more. */
void heed_device_state_leave(heed_model *model);
/** For heed_gpu (Gpu.h). */
heed_status heed_device_settle(heed_state *state);
void heed_device_close_state(heed_state *state);
heed_status heed_device_write_row(heed_model *model, void *at, const void *from,
                                  size_t bytes);
/** The last rows of an update. */
int heed_device_end_rows(heed_model *model);

/* ---- DevicePrograms.c ---- */

/** For the functions of a kind's own names that kernels call: makes the program
 * of `code` if there is none, and launches a kernel of one. */
int heed_device_build(void *context, void **state, const char *code, int size);
int heed_device_launch(void *context, void *state, const char *name,
                       const heed_launch *launch);
/** Gives back all programs. */
void heed_device_close_programs(heed_gpu_device *device);

/* ---- DeviceCalls.c ---- */

/** A range that becomes known in a table, whole. 0, or as above. */
int heed_device_know(heed_model *model, heed_mirrors *mirrors, const void *data,
                     int64_t bytes, bool fromHost, bool kept);

/* For heed_gpu: */

/** For `find`: which of the devices that will do. */
int32_t heed_device_number(const heed_model *model);
/** For `find`, when it has looked and written model->deviceText: `device`,
 * which may be null, becomes the model's. */
bool heed_device_found(heed_model *model, heed_gpu_device *device);

/** A call has failed: waits for what it has launched. */
void heed_device_abandon(heed_model *model);
void heed_device_close_model(heed_model *model);
heed_status heed_device_keep_whole(heed_model *model);
void heed_device_print(const heed_model *model, FILE *stream);

#endif
