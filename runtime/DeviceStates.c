/* States on a device: they stay there from call to call, rows are written
 * there, and what stood in them before comes back where a call fails. The host
 * gets them when somebody asks for them. */
#include "runtime/Device.h"
#include "runtime/State.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a failed call has done ---- */

static void dropRows(const heed_door *door, heed_device_state *state) {
  for (size_t k = 0; k < state->numBlocks; ++k)
    heed_device_give(door, state->blocks[k]);
  state->numBlocks = state->numRows = state->left = 0;
}

static int undo(heed_door *door, heed_device_state *state) {
  while (state->numRows) {
    const heed_device_row *row = &state->rows[state->numRows - 1];
    uintptr_t end = row->at + row->bytes;
    heed_mirror *mirror = heed_mirror_find(&state->mirrors, row->at, end);
    if (!heed_mirror_reserve(mirror, 1))
      return heed_door_says(door, halide_error_code_out_of_memory,
                            "no memory to undo what a call did to a state");
    int code = heed_device_move(door, heed_device_at(mirror, row->at),
                                row->before, row->bytes);
    if (code)
      return code;
    heed_mirror_mark(mirror, row->at, end, HEED_ON_DEVICE);
    --state->numRows;
  }
  dropRows(door, state);
  return 0;
}

heed_device_state *heed_device_state_enter(heed_model *model) {
  heed_state *state = model->state;
  if (!state->device)
    state->device = calloc(1, sizeof *state->device);
  if (!state->device)
    heed_door_says(&model->memory->door, 0, "no memory for a call");
  return state->device && !undo(&model->memory->door, state->device)
             ? state->device
             : NULL;
}

void heed_device_state_leave(heed_model *model) {
  dropRows(&model->memory->door, model->state->device);
}

/* ---- rows ---- */

/* Memory of the device for what stood in rows; blocks hold many. */
static char *roomFor(heed_door *door, heed_device_state *state, size_t bytes) {
  enum { Block = 64 << 10 };
  if (bytes > state->left) {
    if (state->numBlocks == state->blockCapacity) {
      size_t capacity = 2 * state->blockCapacity + 8;
      char **grown = realloc(state->blocks, capacity * sizeof *grown);
      if (!grown) {
        heed_door_says(door, 0, "no memory to write a state");
        return NULL;
      }
      state->blocks = grown;
      state->blockCapacity = capacity;
    }
    size_t size = bytes > Block ? bytes : Block;
    char *block = heed_device_take(door, size);
    if (!block)
      return NULL;
    state->blocks[state->numBlocks++] = block;
    state->used = 0;
    state->left = size;
  }
  char *room = state->blocks[state->numBlocks - 1] + state->used;
  state->used += bytes;
  state->left -= bytes;
  return room;
}

static bool remember(heed_device_state *state, heed_device_row row) {
  if (state->numRows == state->capacity) {
    size_t capacity = 2 * state->capacity + 16;
    heed_device_row *grown = realloc(state->rows, capacity * sizeof *grown);
    if (!grown)
      return false;
    state->rows = grown;
    state->capacity = capacity;
  }
  state->rows[state->numRows++] = row;
  return true;
}

/* What stands at the place of rows, for undo(). */
static int keep(heed_door *door, heed_device_state *state,
                const heed_mirror *to, heed_device_run run) {
  heed_device_row row = {run.to, roomFor(door, state, run.bytes), run.bytes};
  if (!row.before)
    return halide_error_code_out_of_memory;
  int code =
      heed_device_move(door, row.before, heed_device_at(to, run.to), run.bytes);
  if (!code && !remember(state, row))
    code = heed_door_says(door, halide_error_code_out_of_memory,
                          "no memory for what a state was before the call");
  return code;
}

/* A state that a call assigns whole may be written in memory of the call. */
int heed_device_end_rows(heed_model *model) {
  heed_device_memory *memory = model->memory;
  heed_door *door = &memory->door;
  heed_device_run run = memory->run;
  uintptr_t fromEnd = run.from + run.bytes, toEnd = run.to + run.bytes;
  memory->run.bytes = 0;
  if (!run.bytes)
    return 0;
  /* First both mirrors: a new one moves the others. */
  if (!heed_device_mirror(model, run.from, fromEnd, /*fromHost=*/true) ||
      !heed_device_mirror(model, run.to, toEnd, /*fromHost=*/true))
    return halide_error_code_out_of_memory;
  heed_mirror *from = heed_device_find(model, run.from, fromEnd);
  heed_mirror *to = heed_device_find(model, run.to, toEnd);
  heed_device_state *state = model->state ? model->state->device : NULL;
  bool isState =
      state && to == heed_mirror_find(&state->mirrors, run.to, toEnd);
  int code = heed_device_to_device(door, from, run.from, fromEnd);
  /* All of the state in one copy: it stays there. */
  if (!code)
    code = heed_device_to_device(door, to, isState ? to->begin : run.to,
                                 isState ? to->end : toEnd);
  if (!code && isState)
    code = keep(door, state, to, run);
  if (!code && !heed_mirror_reserve(to, 1))
    code = heed_door_says(door, halide_error_code_out_of_memory,
                          "no memory to write a state");
  if (!code)
    code = heed_device_move(door, heed_device_at(to, run.to),
                            heed_device_at(from, run.from), run.bytes);
  if (!code)
    heed_mirror_mark(to, run.to, toEnd, HEED_ON_DEVICE);
  return code;
}

heed_status heed_device_write_row(heed_model *model, void *at, const void *from,
                                  size_t bytes) {
  heed_device_run *run = &model->memory->run;
  uintptr_t to = (uintptr_t)at, source = (uintptr_t)from;
  if (run->bytes && to == run->to + run->bytes &&
      source == run->from + run->bytes) {
    run->bytes += bytes;
    return HEED_OK;
  }
  pthread_mutex_lock(&model->device->lock);
  heed_device_unlock(model, heed_device_end_rows(model));
  *run = (heed_device_run){to, source, bytes};
  return HEED_OK;
}

void heed_device_update(heed_model *model, void *state, int64_t elementSize,
                        int32_t stateRank, const int64_t *stateSizes,
                        const int64_t *stateStrides, const void *values,
                        int32_t rank, const int64_t *sizes,
                        const int64_t *strides, const int64_t *axes,
                        const int64_t *positions, int32_t where,
                        const char *twice) {
  if (model->plan)
    return;
  int64_t numPositions = where + 1;
  for (int32_t k = 0; k < stateRank; ++k)
    if (axes[k] < 0 && -axes[k] > numPositions)
      numPositions = -axes[k];
  /* The host finds the rows: it needs the positions, but no values. */
  for (int64_t m = 0; m < numPositions; ++m) {
    const int64_t *at = positions + m * (rank + 2);
    if (!at[0])
      heed_device_reads(model, (const void *)(uintptr_t)at[1],
                        m == where ? 1 : (int64_t)sizeof(int64_t), rank, sizes,
                        at + 2);
  }
  heed_host_update(model, state, elementSize, stateRank, stateSizes,
                   stateStrides, values, rank, sizes, strides, axes, positions,
                   where, twice);
  pthread_mutex_lock(&model->device->lock);
  heed_device_unlock(model, heed_device_end_rows(model));
}

/* ---- what others ask of a state ---- */

heed_status heed_device_settle(heed_state *state) {
  heed_device_state *device = state->device;
  heed_door door = {.device = state->shared->device};
  int code = 0;
  pthread_mutex_lock(&door.device->lock);
  code = undo(&door, device);
  for (size_t k = 0; k < device->mirrors.count && !code; ++k)
    code = heed_device_to_host(&door, &device->mirrors.list[k],
                               device->mirrors.list[k].begin,
                               device->mirrors.list[k].end);
  /* The next call brings it back: the host may write it now. */
  if (!code)
    heed_device_drop(&door, &device->mirrors);
  pthread_mutex_unlock(&door.device->lock);
  return code ? heed_state_fail(state, heed_door_status(&door, code), "%s",
                                door.text)
              : HEED_OK;
}

void heed_device_close_state(heed_state *state) {
  heed_device_state *device = state->device;
  heed_gpu_device *held = state->shared->device;
  /* A driver does not survive a fork, nor does a lock. */
  if (heed_mark_is_foreign(&state->mark)) {
    state->shared->device = NULL;
    for (size_t k = 0; k < device->mirrors.count; ++k)
      free(device->mirrors.list[k].spans);
  } else {
    pthread_mutex_lock(&held->lock);
    heed_door nobody = {.device = held};
    dropRows(&nobody, device);
    heed_device_drop(&nobody, &device->mirrors);
    pthread_mutex_unlock(&held->lock);
  }
  free(device->mirrors.list);
  free(device->rows);
  free(device->blocks);
  free(device);
}
