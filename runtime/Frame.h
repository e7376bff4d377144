/* The buffers of one call: the caller's checked and made arguments of compiled
 * code. */
#ifndef HEED_FRAME_H
#define HEED_FRAME_H

#include "runtime/Model.h"

/* Storage for a default that stands in for an absent scalar. */
typedef union heed_scalar {
  int64_t integer;
  float real;
  int32_t narrow;
  uint8_t byte;
} heed_scalar;

/* Where a buffer's elements are. */
typedef struct heed_place {
  char *first;
  uintptr_t begin, end;
  const int64_t *strides; /* null: they lie dense */
  bool onDevice;          /* the handle's; the addresses are its, too */
} heed_place;

/* One call: rows of the handle's `arguments`, one element an input or output.
 */
typedef struct heed_frame {
  const heed_signature *signature;
  heed_argument *in, *out;
  heed_place *inPlaces, *outPlaces;
  heed_scalar *defaults;
} heed_frame;

heed_frame heed_frame_of(const heed_model *model,
                         const heed_signature *signature);
/** Fails unless the k-th of the buffers is a struct that can be read. */
heed_status heed_frame_check_size(heed_model *model, const heed_buffer *buffers,
                                  size_t k, const char *kind);
/** Checks the inputs and makes them arguments; defaults for absent scalars. */
heed_status heed_frame_take_inputs(heed_model *model, const heed_frame *f,
                                   const heed_buffer *inputs, bool needData);
/** Makes the states of the call's heed_state arguments, and memory for those
 * that are replaced (numbers, then -1; may be null) results. */
heed_status heed_frame_take_states(heed_model *model, const heed_frame *f,
                                   const int64_t *replaced, bool needData);
/** Checks the outputs against the shapes that f->out has, gives them their
 * data, and fails where memory overlaps. */
heed_status heed_frame_take_outputs(heed_model *model, const heed_frame *f,
                                    const heed_buffer *outputs);
/** Writes the shapes that f->out has. */
void heed_frame_tell_shapes(const heed_frame *f, heed_buffer *outputs);
/** Dense memory for what has strides, filled for inputs; and back to outputs.
 * What lies on the device has such memory, too, which stands for it. */
heed_status heed_frame_gather(heed_model *model, const heed_frame *f);
void heed_frame_scatter(const heed_frame *f);

#endif
