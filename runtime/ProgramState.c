/* The state of a program's run: opened with dims of the command line and of the
 * inputs, read from a file and written to one. */
#include "runtime/Model.h"
#include "runtime/Program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The extent that --dim gives to `name`: NAME=N. */
static bool given(const heed_arguments *a, const char *name, int64_t *extent) {
  size_t length = strlen(name);
  for (size_t k = 0; k < a->numDims; ++k)
    if (!strncmp(a->dims[k].name, name, length) &&
        a->dims[k].name[length] == '=') {
      *extent = a->dims[k].extent;
      return true;
    }
  return false;
}

/* What a dim `name` is where an axis of extent `found` is written "name" or
 * "2*name"; -1 if it is written otherwise. */
static int64_t solve(const char *written, const char *name, int64_t found) {
  char *end;
  long long factor = strtoll(written, &end, 10);
  bool isProduct = end != written && *end == '*';
  if (strcmp(isProduct ? end + 1 : written, name) != 0)
    return -1;
  if (!isProduct)
    return found;
  return factor > 0 && found % factor == 0 ? found / factor : -1;
}

/* Or the inputs, where one of their axes has that name. */
static bool ofInputs(const heed_signature *entry, const heed_buffer *inputs,
                     const char *name, int64_t *extent) {
  for (int k = 0; k < entry->numInputs; ++k)
    for (int32_t axis = 0;
         axis < entry->inputs[k]->rank && axis < inputs[k].rank; ++axis) {
      *extent =
          solve(entry->inputs[k]->extents[axis], name, inputs[k].shape[axis]);
      if (*extent >= 0)
        return true;
    }
  return false;
}

static bool contains(const heed_dim *dims, size_t numDims, const char *name) {
  for (size_t k = 0; k < numDims; ++k)
    if (!strcmp(dims[k].name, name))
      return true;
  return false;
}

/* Each dim of the states once. */
static bool collect(const heed_model *model, const heed_arguments *a,
                    const heed_program_call *calls, size_t numCalls,
                    int64_t capacity, heed_dim *dims, size_t *numDims,
                    heed_io_error *error) {
  const heed_model_desc *desc = model->desc;
  heed_dim *open = NULL; /* whose extent is the capacity */
  *numDims = 0;
  for (size_t k = 0; k < heed_num_states(desc); ++k) {
    const heed_tensor_info *info = heed_state_info(desc, k);
    for (int32_t axis = 0; axis < info->rank; ++axis) {
      const char *name = info->extents[axis];
      heed_dim dim = {name, 0};
      if (info->sizes[axis] >= 0 || contains(dims, *numDims, name))
        continue;
      bool known = given(a, name, &dim.extent);
      for (size_t c = 0; c < numCalls && !known; ++c)
        known = ofInputs(calls[c].entry, calls[c].inputs, name, &dim.extent);
      known = known || heed_params_extent(model->shared, name, &dim.extent);
      if (!known && (!capacity || open))
        return heed_io_fail(error, "the state '%s' needs dim '%s' (--dim %s=N)",
                            info->name, name, name);
      if (!known) {
        dim.extent = capacity;
        open = &dims[*numDims];
      }
      dims[(*numDims)++] = dim;
    }
  }
  for (size_t k = 0; k < a->numDims; ++k) {
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(a->dims[k].name, "="),
             a->dims[k].name);
    if (!contains(dims, *numDims, name))
      return heed_io_fail(error, "no state has a dim '%s' (--dim %s)", name,
                          a->dims[k].name);
  }
  return true;
}

bool heed_program_state_open(heed_model *model, const heed_model_desc *desc,
                             const heed_arguments *a,
                             const heed_program_call *calls, size_t numCalls,
                             int64_t capacity, heed_state **state,
                             heed_io_error *error) {
  *state = NULL;
  size_t numStates = heed_num_states(desc), numDims = 0;
  if (!numStates && (a->stateIn || a->stateOut || a->numDims))
    return heed_io_fail(error, "the model has no state");
  if (!numStates)
    return true;
  heed_dim *dims = calloc(numStates * HEED_MAX_RANK, sizeof *dims);
  if (!dims)
    return heed_io_fail(error, "no memory");
  bool good =
      collect(model, a, calls, numCalls, capacity, dims, &numDims, error);
  if (good && heed_state_open(model, dims, numDims, state) != HEED_OK)
    good = heed_io_fail(error, "%s", heed_last_error(model));
  free(dims);
  if (good && a->stateIn && heed_state_load(*state, a->stateIn) != HEED_OK)
    good = heed_io_fail(error, "%s", heed_state_last_error(*state));
  return good;
}

bool heed_program_state_save(const heed_arguments *a, heed_state *state,
                             heed_io_error *error) {
  return !a->stateOut || heed_state_save(state, a->stateOut) == HEED_OK ||
         heed_io_fail(error, "%s", heed_state_last_error(state));
}
