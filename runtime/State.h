/* The inside of a state, shared by the files that know states. */
#ifndef HEED_STATE_H
#define HEED_STATE_H

#include "runtime/Model.h"

typedef struct heed_state_tensor {
  void *data, *spare; /* spare: of a state that is replaced; may be null */
  int64_t bytes;
  int64_t shape[HEED_MAX_RANK];
} heed_state_tensor;

/** Copies along an axis, one after the other, that permute it where it lies. A
 * cycle that nothing leads into is turned: its length, then its positions. */
typedef struct heed_moves {
  int64_t *list; /* pairs (from, to), then cycles */
  size_t capacity, numPairs, end;
} heed_moves;

struct heed_state {
  heed_object object;
  heed_shared *shared;
  heed_mark mark;
  atomic_flag busy;          /* a run or another call uses it */
  heed_device_state *device; /* null: it has never been on one */
  heed_moves moves;          /* of the last permutation */
  char message[1024];
  heed_state_tensor tensors[]; /* shared->desc->numStates */
};

/** Memory for what the k-th state is after a call; null if there is none. */
void *heed_state_spare(heed_state *state, int32_t k);
/** Whether a state has an axis whose extent is a dim of that name. */
bool heed_states_have_dim(const heed_model_desc *desc, const char *name);
/** Makes the state busy, and empties its message; a status if it is in use or
 * another process's. */
heed_status heed_state_begin(heed_state *state);
/** Ends that; returns `status`. */
heed_status heed_state_end(heed_state *state, heed_status status);
/** Writes the message; returns `status`. */
heed_status heed_state_fail(heed_state *state, heed_status status,
                            const char *format, ...);

#endif
