/* States permuted along a dim, where they lie: of the beams of a search most
 * stay where they are, and a second copy of a cache would be dear. */
#include "runtime/State.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Room for `count` positions: pairs and cycles together hold each twice at
 * most, and how often each is read stands behind them. */
static bool makeRoom(heed_moves *moves, size_t count) {
  size_t wanted = 4 * count + 1;
  if (wanted <= moves->capacity)
    return true;
  int64_t *list = realloc(moves->list, wanted * sizeof *list);
  if (!list)
    return false;
  moves->list = list;
  moves->capacity = wanted;
  return true;
}

/* The positions of a cycle: each becomes what the next one was. */
static void addCycle(heed_moves *moves, const int64_t *from, int64_t *readers,
                     int64_t first) {
  int64_t *length = &moves->list[moves->end++];
  *length = 0;
  for (int64_t k = first; readers[k]; k = from[k]) {
    readers[k] = 0;
    moves->list[moves->end++] = k;
    ++*length;
  }
}

/* Position k becomes what from[k] was. One that nobody else has to read is
 * written first; that may set free the one that it reads. What is left are
 * cycles. */
static void plan(heed_moves *moves, const int64_t *from, int64_t count) {
  int64_t *readers = moves->list + 3 * count + 1;
  memset(readers, 0, (size_t)count * sizeof *readers);
  moves->end = 0;
  for (int64_t k = 0; k < count; ++k)
    readers[from[k]] += from[k] != k;
  for (int64_t first = 0; first < count; ++first)
    for (int64_t k = first; !readers[k] && from[k] != k;) {
      int64_t source = from[k];
      moves->list[moves->end++] = source;
      moves->list[moves->end++] = k;
      readers[k] = -1; /* done */
      if (--readers[source] || source > first)
        break; /* not free, or its turn comes */
      k = source;
    }
  moves->numPairs = moves->end / 2;
  for (int64_t k = 0; k < count; ++k)
    if (readers[k] > 0 && from[k] != k)
      addCycle(moves, from, readers, k);
}

/* Turns a cycle, a piece of its rows at a time. */
static void turn(char *rows, size_t bytes, const int64_t *cycle,
                 int64_t length) {
  char piece[4096];
  for (size_t at = 0; at < bytes; at += sizeof piece) {
    size_t part = bytes - at < sizeof piece ? bytes - at : sizeof piece;
    memcpy(piece, rows + (size_t)cycle[0] * bytes + at, part);
    for (int64_t k = 0; k + 1 < length; ++k)
      memcpy(rows + (size_t)cycle[k] * bytes + at,
             rows + (size_t)cycle[k + 1] * bytes + at, part);
    memcpy(rows + (size_t)cycle[length - 1] * bytes + at, piece, part);
  }
}

static void permuteAxis(const heed_state_tensor *tensor, int32_t rank,
                        int32_t axis, size_t elementSize,
                        const heed_moves *moves) {
  int64_t outer = 1, inner = (int64_t)elementSize;
  for (int32_t d = 0; d < axis; ++d)
    outer *= tensor->shape[d];
  for (int32_t d = axis + 1; d < rank; ++d)
    inner *= tensor->shape[d];
  size_t bytes = (size_t)inner;
  for (int64_t o = 0; o < outer; ++o) {
    char *rows = (char *)tensor->data + o * tensor->shape[axis] * inner;
    for (size_t p = 0; p < moves->numPairs; ++p)
      memcpy(rows + (size_t)moves->list[2 * p + 1] * bytes,
             rows + (size_t)moves->list[2 * p] * bytes, bytes);
    for (size_t at = 2 * moves->numPairs; at < moves->end;
         at += 1 + (size_t)moves->list[at])
      turn(rows, bytes, moves->list + at + 1, moves->list[at]);
  }
}

static heed_status permute(heed_state *state, const char *dim,
                           const int64_t *from, size_t numFrom) {
  const heed_model_desc *desc = state->shared->desc;
  if (!dim || !heed_states_have_dim(desc, dim))
    return heed_state_fail(state, HEED_ERROR_ARGUMENT,
                           "no state of the model has a dim '%s'",
                           dim ? dim : "");
  /* All is checked, and all memory is there, before anything changes. All axes
   * of a dim have one extent. */
  for (int32_t k = 0; k < desc->numStates; ++k)
    for (int32_t axis = 0; axis < desc->states[k]->rank; ++axis) {
      int64_t extent = state->tensors[k].shape[axis];
      if (desc->states[k]->sizes[axis] >= 0 ||
          strcmp(desc->states[k]->extents[axis], dim) != 0)
        continue;
      if (extent != (int64_t)numFrom || (numFrom && !from))
        return heed_state_fail(state, HEED_ERROR_SHAPE,
                               "expected %" PRId64
                               " positions of dim '%s', found %zu",
                               extent, dim, from ? numFrom : 0);
      for (size_t p = 0; p < numFrom; ++p)
        if (from[p] < 0 || from[p] >= extent)
          return heed_state_fail(
              state, HEED_ERROR_RANGE,
              "position %zu is to become %" PRId64
              " of dim '%s', expected 0 <= position < %" PRId64,
              p, from[p], dim, extent);
    }
  if (!makeRoom(&state->moves, numFrom))
    return heed_state_fail(state, HEED_ERROR_MEMORY,
                           "no memory to permute %zu positions", numFrom);
  plan(&state->moves, from, (int64_t)numFrom);
  for (int32_t k = 0; k < desc->numStates; ++k)
    for (int32_t axis = 0; axis < desc->states[k]->rank; ++axis)
      if (desc->states[k]->sizes[axis] < 0 &&
          !strcmp(desc->states[k]->extents[axis], dim))
        permuteAxis(&state->tensors[k], desc->states[k]->rank, axis,
                    heed_type_size(desc->states[k]->type), &state->moves);
  return HEED_OK;
}

heed_status heed_permute_state(heed_state *state, const char *dim,
                               const int64_t *from, size_t numFrom) {
  heed_status status = heed_state_begin(state);
  return status ? status
                : heed_state_end(state, permute(state, dim, from, numFrom));
}
