/* States that change where they lie: elements at positions, and a journal of
 * what stood there before. */
#include "runtime/Model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the journal ---- */

/* Stands behind its bytes, so that the last is found first. */
typedef struct record {
  void *at;
  size_t bytes;
  size_t kept; /* 0: they were all zero, as in a state that is new */
} record;

static bool isZero(const char *at, size_t bytes) {
  return !bytes || (!at[0] && !memcmp(at, at + 1, bytes - 1));
}

/* Whole records alone, so that they lie aligned. */
static size_t padded(size_t bytes) {
  return (bytes + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t);
}

static bool remember(heed_journal *journal, void *at, size_t bytes) {
  record one = {at, bytes, isZero(at, bytes) ? 0 : bytes};
  size_t needed = journal->used + padded(one.kept) + sizeof one;
  if (needed > journal->capacity) {
    size_t capacity =
        needed > 2 * journal->capacity ? needed + 4096 : 2 * journal->capacity;
    char *data = realloc(journal->data, capacity);
    if (!data)
      return false;
    journal->data = data;
    journal->capacity = capacity;
  }
  memcpy(journal->data + journal->used, at, one.kept);
  memcpy(journal->data + needed - sizeof one, &one, sizeof one);
  journal->used = needed;
  return true;
}

void heed_journal_undo(heed_journal *journal) {
  while (journal->used) {
    record one;
    journal->used -= sizeof one;
    memcpy(&one, journal->data + journal->used, sizeof one);
    journal->used -= padded(one.kept);
    if (one.kept)
      memcpy(one.at, journal->data + journal->used, one.kept);
    else
      memset(one.at, 0, one.bytes);
  }
}

/* ---- updates ---- */

/* Positions of one axis of the state, as heed_host_update() has them. */
typedef struct position {
  const int64_t *table; /* null: `number` */
  int64_t number;
  const int64_t *strides;
} position;

typedef struct update {
  heed_model *model;
  char *state;
  const char *values;
  size_t elementSize,
      rowBytes;        /* a row of consecutive elements on both sides */
  int32_t rank, loops; /* loops: axes outside of rows */
  const int64_t *sizes, *strides;
  int32_t stateRank;
  const int64_t *stateSizes, *stateStrides, *axes;
  position positions[HEED_MAX_RANK];
  const uint8_t *mask; /* null: all rows */
  const int64_t *maskStrides;
  int64_t
      *places; /* where rows go, to be told apart; null: they are distinct */
  int64_t numPlaces;
} update;

static bool isMeant(const update *u, const int64_t *x) {
  int64_t at = 0;
  for (int32_t d = 0; u->mask && d < u->loops; ++d)
    at += u->maskStrides[d] * x[d];
  return !u->mask || u->mask[at];
}

/* Where the row of the values at x[] goes; false: outside. */
static bool find(const update *u, const int64_t *x, int64_t *offset) {
  *offset = 0;
  for (int32_t k = 0; k < u->stateRank; ++k) {
    int64_t axis = u->axes[k], p;
    if (axis >= 0) {
      p = axis < u->loops ? x[axis] : 0;
    } else {
      const position *at = &u->positions[k];
      p = at->number;
      if (at->table) {
        int64_t place = 0;
        for (int32_t d = 0; d < u->loops; ++d)
          place += at->strides[d] * x[d];
        p = at->table[place];
      }
      if (p < 0 || p >= u->stateSizes[k])
        return false;
    }
    *offset += p * u->stateStrides[k];
  }
  return true;
}

static heed_status visit(update *u, const int64_t *x, bool writes) {
  int64_t to, from = 0;
  if (!isMeant(u, x))
    return HEED_OK;
  if (!find(u, x, &to))
    return HEED_ERROR_RANGE;
  if (!writes) {
    if (u->places)
      u->places[u->numPlaces++] = to;
    return HEED_OK;
  }
  for (int32_t d = 0; d < u->loops; ++d)
    from += u->strides[d] * x[d];
  char *at = u->state + to * (int64_t)u->elementSize;
  const char *value = u->values + from * (int64_t)u->elementSize;
  if (u->model->device)
    return u->model->desc->gpu->writeRow(u->model, at, value, u->rowBytes);
  if (!remember(&u->model->journal, at, u->rowBytes))
    return HEED_ERROR_MEMORY;
  memcpy(at, value, u->rowBytes);
  return HEED_OK;
}

/* Do the positions and the condition say the same along axis `d` of the values,
 * which the state has, too? Then one place of it stands for all. */
static bool isApart(const update *u, int32_t d) {
  bool hasAxis = false;
  for (int32_t k = 0; k < u->stateRank; ++k) {
    hasAxis |= u->axes[k] == d;
    if (u->axes[k] < 0 && u->positions[k].table && u->positions[k].strides[d])
      return false;
  }
  return hasAxis && !(u->mask && u->maskStrides[d]);
}

/* For each row: checks where it goes, or writes it. */
static heed_status eachRow(update *u, bool writes) {
  int64_t x[HEED_MAX_RANK] = {0}, sizes[HEED_MAX_RANK];
  for (int32_t d = 0; d < u->rank; ++d)
    if (u->sizes[d] == 0)
      return HEED_OK;
  for (int32_t d = 0; d < u->loops; ++d)
    sizes[d] = !writes && isApart(u, d) ? 1 : u->sizes[d];
  while (true) {
    heed_status status = visit(u, x, writes);
    if (status)
      return status;
    int32_t d = u->loops - 1;
    while (d >= 0 && ++x[d] == sizes[d])
      x[d--] = 0;
    if (d < 0)
      return HEED_OK;
  }
}

/* The last axis of the values is a row if it is that of the state, too, and
 * dense in both. */
static bool hasRows(const update *u) {
  int32_t last = u->rank - 1;
  if (last < 0 || u->axes[u->stateRank - 1] != last || u->strides[last] != 1 ||
      u->stateStrides[u->stateRank - 1] != 1)
    return false;
  if (u->mask && u->maskStrides[last])
    return false;
  for (int32_t k = 0; k < u->stateRank; ++k)
    if ((k + 1 < u->stateRank && u->axes[k] == last) ||
        (u->axes[k] < 0 && u->positions[k].table &&
         u->positions[k].strides[last]))
      return false;
  return true;
}

static int byPlace(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Fails where two rows go to one place. Rows are as long as the last axis: they
 * are apart or the same. */
static void tellApart(update *u, const char *twice) {
  bool isSorted = true, distinct = true;
  for (int64_t k = 1; k < u->numPlaces; ++k)
    isSorted &= u->places[k] > u->places[k - 1];
  if (!isSorted)
    qsort(u->places, (size_t)u->numPlaces, sizeof *u->places, byPlace);
  for (int64_t k = 1; k < u->numPlaces; ++k)
    distinct &= u->places[k] != u->places[k - 1];
  heed_pool_give(u->places);
  if (!distinct)
    heed_unwind(u->model, HEED_ERROR_RANGE, "%s", twice);
}

void heed_host_update(heed_model *model, void *state, int64_t elementSize,
                      int32_t stateRank, const int64_t *stateSizes,
                      const int64_t *stateStrides, const void *values,
                      int32_t rank, const int64_t *sizes,
                      const int64_t *strides, const int64_t *axes,
                      const int64_t *positions, int32_t where,
                      const char *twice) {
  if (model->plan)
    return;
  heed_stop_check(model);
  update u = {.model = model,
              .state = state,
              .values = values,
              .elementSize = (size_t)elementSize,
              .rowBytes = (size_t)elementSize,
              .rank = rank,
              .loops = rank,
              .sizes = sizes,
              .strides = strides,
              .stateRank = stateRank,
              .stateSizes = stateSizes,
              .stateStrides = stateStrides,
              .axes = axes};
  for (int32_t k = 0; k < stateRank; ++k) {
    if (axes[k] >= 0)
      continue;
    const int64_t *at = positions + (-1 - axes[k]) * (rank + 2);
    u.positions[k].strides = at + 2;
    if (at[0])
      u.positions[k].number = at[1];
    else
      u.positions[k].table = (const int64_t *)(uintptr_t)at[1];
  }
  if (where >= 0) {
    const int64_t *at = positions + where * (rank + 2);
    u.mask = (const uint8_t *)(uintptr_t)at[1];
    u.maskStrides = at + 2;
  }
  if (hasRows(&u)) {
    u.loops = rank - 1;
    u.rowBytes = (size_t)(elementSize * sizes[rank - 1]);
  }
  if (twice) {
    int64_t rows = heed_host_bytes(u.loops, sizes, sizeof *u.places);
    u.places = rows < 0 ? NULL : heed_pool_take(&model->pool, (size_t)rows);
    if (!u.places)
      heed_unwind(model, HEED_ERROR_MEMORY, "no memory for an update's places");
  }
  heed_status status = eachRow(&u, /*writes=*/false);
  if (!status && twice)
    tellApart(&u, twice);
  if (!status)
    status = eachRow(&u, /*writes=*/true);
  if (status == HEED_ERROR_RANGE)
    heed_unwind(model, status, "an update of a state outside of it");
  if (status)
    heed_unwind(model, status,
                "no memory for what a state was before the call");
}
