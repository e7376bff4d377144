/* Generation: an entry that is run again and again on what was chosen of its
 * logits. */
#include "runtime/Generation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

heed_status heed_generation_fail(heed_generation *g, heed_status status,
                                 const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(g->message, sizeof g->message, format, arguments);
  va_end(arguments);
  return status;
}

heed_status heed_generation_no_memory(heed_generation *g) {
  return heed_generation_fail(g, HEED_ERROR_MEMORY, "no memory to generate");
}

static heed_status modelFailed(heed_generation *g, heed_status status) {
  const char *text = g->model->message;
  return heed_generation_fail(
      g, status, "%s",
      status == HEED_ERROR_BUSY || !*text ? heed_status_name(status) : text);
}

/* ---- a run ---- */

/* What the next run is given: a prompt, then the tokens chosen last, or all
 * tokens where the model has no states. */
static void layTokens(heed_generation *g) {
  bool whole = !g->hasStates || !g->made;
  int64_t added = whole ? g->made : 1;
  g->width = (whole ? g->longest : 0) + added;
  for (int64_t row = 0; row < g->rows; ++row) {
    int32_t *ids = g->ids + row * g->width;
    int64_t length = whole ? g->lengths[row] : 0;
    const int32_t *made = g->beams ? heed_beams_row(g->beams, row)
                                   : g->tokens + row * g->o.maxNew;
    bool stopped = g->beams ? g->made && g->next[row] < 0
                            : g->sampler && heed_row_stopped(g->sampler, row);
    memset(ids, 0, (size_t)g->width * sizeof *ids);
    if (whole)
      memcpy(ids, g->prompts + row * g->longest, (size_t)length * sizeof *ids);
    for (int64_t k = 0; k < added; ++k) {
      int32_t id = made[whole ? k : g->made - 1];
      ids[length + k] = id < 0 ? 0 : id;
    }
    g->counts[row] = stopped ? 0 : (int32_t)(length + added);
  }
  heed_buffer *buffer = &g->inputs[g->idsAt];
  buffer->data = g->ids;
  buffer->byteOffset = 0;
  buffer->shape[1] = g->width;
  if (g->countAt < 0)
    return;
  buffer = &g->inputs[g->countAt];
  *buffer = (heed_buffer){.size = sizeof *buffer,
                          .data = g->counts,
                          .type = HEED_I32,
                          .rank = 1,
                          .shape = {g->rows}};
}

/* Memory for the outputs of a run of this width. */
static heed_status layOutputs(heed_generation *g) {
  if (g->shapesFor == g->width)
    return HEED_OK;
  heed_call call = {.size = sizeof call, .state = g->o.state};
  int32_t count = g->entry->numOutputs;
  heed_status status = heed_run_shapes_in(g->model, g->entry->entry, g->inputs,
                                          (size_t)g->entry->numInputs,
                                          g->outputs, (size_t)count, &call);
  if (status)
    return modelFailed(g, status);
  for (int32_t k = 0; k < count; ++k) {
    heed_buffer *output = &g->outputs[k];
    size_t bytes = heed_type_size(output->type);
    bool good = true;
    for (int32_t axis = 0; good && axis < output->rank; ++axis)
      good =
          !__builtin_mul_overflow(bytes, (size_t)output->shape[axis], &bytes);
    if (good && bytes <= g->room[k] && output->data)
      continue;
    free(output->data);
    output->data = NULL;
    /* Without states each run is a token longer: room for the next ones. */
    size_t room = g->hasStates ? bytes : bytes + bytes / 2;
    if (!good || posix_memalign(&output->data, 64, room ? room : 1) != 0)
      return heed_generation_no_memory(g);
    g->room[k] = room;
  }
  g->shapesFor = g->width;
  return HEED_OK;
}

heed_status heed_generation_prepare(heed_generation *g) {
  layTokens(g);
  return layOutputs(g);
}

static heed_status runEntry(heed_generation *g) {
  layTokens(g);
  heed_status status = layOutputs(g);
  if (status)
    return status;
  heed_call call = {
      .size = sizeof call, .state = g->o.state, .cancel = g->o.cancel};
  status = heed_run_entry(g->model, g->entry->entry, g->inputs,
                          (size_t)g->entry->numInputs, g->outputs,
                          (size_t)g->entry->numOutputs, &call);
  return status ? modelFailed(g, status) : HEED_OK;
}

/* ---- a step ---- */

static heed_status chooseTokens(heed_generation *g) {
  heed_status status =
      heed_choose_tokens(g->sampler, &g->outputs[g->logitsAt], g->next);
  if (status)
    return g->failed = heed_generation_fail(g, status, "%s",
                                            heed_error_of_sampler(g->sampler));
  for (int64_t row = 0; row < g->rows; ++row)
    g->tokens[row * g->o.maxNew + g->made] = g->next[row];
  ++g->made;
  return HEED_OK;
}

static heed_status chooseBeams(heed_generation *g) {
  char message[HEED_CHOICE_MESSAGE];
  uint64_t mode = heed_float_mode_enter();
  heed_status status = heed_beams_step(g->beams, &g->outputs[g->logitsAt],
                                       g->parents, g->next, message);
  heed_float_mode_leave(mode);
  if (status)
    return g->failed = heed_generation_fail(g, status, "%s", message);
  ++g->made;
  bool moved = false;
  for (int64_t row = 0; row < g->rows; ++row)
    moved |= g->parents[row] != row;
  if (!moved || !g->hasStates || !heed_beams_running(g->beams))
    return HEED_OK;
  status =
      heed_permute_state(g->o.state, g->entry->inputs[g->idsAt]->extents[0],
                         g->parents, (size_t)g->rows);
  if (status)
    g->failed =
        heed_generation_fail(g, status, "%s", heed_error_of_state(g->o.state));
  return status;
}

static int64_t runningOf(const heed_generation *g) {
  if (g->failed || g->made == g->o.maxNew)
    return 0;
  return g->beams ? heed_beams_running(g->beams)
                  : heed_rows_running(g->sampler);
}

heed_status heed_step_generation(heed_generation *g, int32_t *ids,
                                 int64_t *running) {
  if (running)
    *running = 0;
  if (g->failed)
    return g->failed;
  for (int64_t row = 0; ids && !g->beams && row < g->rows; ++row)
    ids[row] = -1;
  if (!runningOf(g))
    return HEED_OK;
  heed_status status = runEntry(g);
  if (!status)
    status = g->beams ? chooseBeams(g) : chooseTokens(g);
  if (!status && ids && !g->beams)
    memcpy(ids, g->next, (size_t)g->rows * sizeof *ids);
  if (running)
    *running = runningOf(g);
  return status;
}

heed_status heed_run_generation(heed_generation *g, heed_on_tokens onTokens,
                                void *user) {
  while (!g->failed && runningOf(g)) {
    heed_status status = heed_step_generation(g, NULL, NULL);
    if (status)
      return status;
    if (onTokens && onTokens(user, g->beams ? NULL : g->next, g->rows))
      break;
  }
  return g->failed;
}

heed_status heed_tokens_of_generation(heed_generation *g, int64_t width,
                                      int32_t *tokens, double *scores) {
  if (!tokens || width < 0 || !g->sampler || (g->o.beams > 1 && !g->beams))
    return HEED_ERROR_ARGUMENT;
  for (int64_t p = 0; g->beams && p < g->rows / g->o.beams; ++p) {
    double score = heed_beams_best(g->beams, p, tokens + p * width, width);
    if (scores)
      scores[p] = score;
  }
  for (int64_t row = 0; !g->beams && row < g->rows; ++row)
    for (int64_t k = 0; k < width; ++k)
      tokens[row * width + k] =
          k < g->made ? g->tokens[row * g->o.maxNew + k] : -1;
  return HEED_OK;
}

const char *heed_error_of_generation(const heed_generation *g) {
  return g->message;
}
