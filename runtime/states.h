/* States: what lives from call to call. A part of heed.h, whose conventions
 * hold. */
#ifndef HEED_STATES_H
#define HEED_STATES_H

#include "heed.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What lives from call to call of a model: tensors that its entries read and
 * change. As many as wanted belong to one model, each with extents of its own.
 * One thread uses a state at a time; different ones are independent, also in
 * runs of handles on the same weights. A run that fails or is cancelled leaves
 * its state as it was. */
typedef struct heed_state heed_state;

/** The extent of a dim, by the name that the states' extents have. */
typedef struct heed_dim {
  const char *name;
  int64_t extent;
} heed_dim;

/** How many states a model has, and what they are. Null if there is no such.
 * A state of a single number has rank 0. */
HEED_API size_t heed_num_states(const heed_model_desc *desc);
HEED_API const heed_tensor_info *heed_state_info(const heed_model_desc *desc,
                                                 size_t state);

/** Opens a state for runs of this handle and of all on the same weights, which
 * live until it is closed: as the model starts it (zeros, where it does not
 * say), in memory of the model's allocator. dims
 * names each dim of the states once (those of parameters may be left away), and
 * no other. Returns HEED_OK, HEED_ERROR_ARGUMENT, _SHAPE, _MEMORY, _FORK;
 * heed_last_error() of the model says why. */
HEED_API heed_status heed_state_open(heed_model *model, const heed_dim *dims,
                                     size_t numDims, heed_state **state);
/** Null is allowed. */
HEED_API void heed_state_close(heed_state *state);
/** All is as it was at first. */
HEED_API heed_status heed_state_reset(heed_state *state);
/** to becomes what from is; both of one model and of the same dims. */
HEED_API heed_status heed_state_copy(heed_state *from, heed_state *to);
/** Copies the tensor of that name out, or in. buffer->type, rank and shape are
 * those of the state; heed_state_get() with data null fills them in. */
HEED_API heed_status heed_state_get(heed_state *state, const char *name,
                                    heed_buffer *buffer);
HEED_API heed_status heed_state_set(heed_state *state, const char *name,
                                    const heed_buffer *buffer);
/** Takes a count back, for tokens that a draft had and the model rejects:
 * `name` is a state of integers that entries count up and that says at which
 * positions they update others, as `len` does. values: of integers, shaped as
 * the state, or a single number for all its elements; none is negative or
 * greater than what it replaces. What lies at the positions behind stays until
 * it is written again: the model does not read it, as long as its masks end at
 * the count. A model that has several such counts has each set by a call of its
 * own. Returns HEED_ERROR_ARGUMENT where the model has no such count of that
 * name, or states that do not come back with it: those that calls assign or
 * update without a position that is counted (recurrences), and rings, whose
 * oldest positions are overwritten; use heed_state_copy() there.
 * HEED_ERROR_SHAPE, _TYPE, _RANGE; then nothing is changed. */
HEED_API heed_status heed_state_trim(heed_state *state, const char *name,
                                     const heed_buffer *values);
/** Along the axes that `dim` names, position k becomes what position from[k]
 * was: the beams of a search. count is the extent of dim. */
HEED_API heed_status heed_state_permute(heed_state *state, const char *dim,
                                        const int64_t *from, size_t count);
/** Writes it to a file, which appears whole or not at all: .safetensors, its
 * tensors by their names, with a checksum. */
HEED_API heed_status heed_state_save(heed_state *state, const char *path);
/** Becomes what heed_state_save() wrote; a file of another model, of other dims
 * or with other data than its checksum says is HEED_ERROR_FILE, _SHAPE or
 * _TYPE, and changes nothing. */
HEED_API heed_status heed_state_load(heed_state *state, const char *path);
/** Bytes that it holds. */
HEED_API int64_t heed_state_bytes(const heed_state *state);
/** What the last failed call on this state said; empty if none failed. Valid
 * until the next call on it. */
HEED_API const char *heed_state_last_error(const heed_state *state);

#ifdef __cplusplus
}
#endif
#endif
