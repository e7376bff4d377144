/* What generation is opened with: an entry, prompts, options. */
#include "runtime/Generation.h"
#include "runtime/Sampler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the entry ---- */

static heed_status findEntry(heed_generation *g) {
  const heed_model_desc *desc = g->model->desc;
  for (int32_t k = 0; !g->o.entry && k < desc->numEntries; ++k)
    if (heed_can_generate(&desc->entries[k].signature))
      g->o.entry = desc->entries[k].signature.entry;
  const heed_entry_desc *entry =
      g->o.entry ? heed_find_entry(desc, g->o.entry) : NULL;
  g->entry = entry ? &entry->signature : NULL;
  if (!g->entry || !heed_can_generate(g->entry))
    return heed_generation_fail(
        g, HEED_ERROR_ARGUMENT,
        "%s%s%s: expected ids: i32[B, N] and perhaps count: i32[B], "
        "and a result logits: f32[B, V]",
        g->o.entry ? "entry '" : "no entry can generate",
        g->o.entry ? g->o.entry : "", g->o.entry ? "'" : "");
  g->idsAt = heed_find_input(g->entry, "ids");
  g->countAt = heed_find_input(g->entry, "count");
  g->logitsAt = heed_find_output(g->entry, "logits");
  g->hasStates = desc->numStates != 0;
  if (g->hasStates && !g->o.state)
    return heed_generation_fail(g, HEED_ERROR_ARGUMENT,
                                "entry '%s' needs a state", g->entry->entry);
  return HEED_OK;
}

/* ---- what is given ---- */

static heed_status checkDense(heed_generation *g, const heed_buffer *buffer,
                              const char *name, int32_t rank) {
  if (buffer->type != HEED_I32)
    return heed_generation_fail(g, HEED_ERROR_TYPE,
                                "'%s': expected i32, found %s", name,
                                heed_type_name(buffer->type));
  if (buffer->rank != rank)
    return heed_generation_fail(g, HEED_ERROR_SHAPE,
                                "'%s': expected %d axes, found %d", name, rank,
                                buffer->rank);
  if (buffer->strides || !buffer->data)
    return heed_generation_fail(g, HEED_ERROR_ARGUMENT,
                                "'%s': expected dense memory", name);
  return HEED_OK;
}

static const int32_t *dataOf(const heed_buffer *buffer) {
  return (const int32_t *)((const char *)buffer->data + buffer->byteOffset);
}

static heed_status readLengths(heed_generation *g, const heed_buffer *count) {
  for (int64_t row = 0; row < g->rows; ++row)
    g->lengths[row] = (int32_t)g->longest;
  if (!count || !count->data)
    return HEED_OK;
  heed_status status = checkDense(g, count, "count", 1);
  if (!status && count->shape[0] != g->rows)
    status = heed_generation_fail(
        g, HEED_ERROR_SHAPE, "'count' has %" PRId64 " rows, 'ids' %" PRId64,
        count->shape[0], g->rows);
  if (status)
    return status;
  memcpy(g->lengths, dataOf(count), (size_t)g->rows * sizeof *g->lengths);
  for (int64_t row = 0; row < g->rows; ++row)
    if (g->lengths[row] < (g->o.beams > 1) || g->lengths[row] > g->longest)
      return heed_generation_fail(
          g, HEED_ERROR_RANGE,
          "count[%" PRId64 "] = %d: expected %d to %" PRId64, row,
          g->lengths[row], g->o.beams > 1, g->longest);
  return HEED_OK;
}

static heed_status readPrompts(heed_generation *g, const heed_buffer *inputs) {
  const heed_buffer *ids = &inputs[g->idsAt];
  heed_status status = checkDense(g, ids, "ids", 2);
  if (status)
    return status;
  g->rows = ids->shape[0];
  g->longest = ids->shape[1];
  if (g->longest < 1 || g->rows < 0 || g->longest > HEED_MAX_EXTENT ||
      g->rows > HEED_MAX_EXTENT)
    return heed_generation_fail(
        g, HEED_ERROR_SHAPE, "'ids': expected prompts of at least one token");
  if (g->rows % g->o.beams)
    return heed_generation_fail(g, HEED_ERROR_SHAPE,
                                "%" PRId64 " rows are no prompts of %" PRId64
                                " beams each",
                                g->rows, g->o.beams);
  size_t rows = (size_t)g->rows, longest = (size_t)g->longest, all;
  if (__builtin_mul_overflow(rows * 2 * sizeof(int32_t),
                             longest + (size_t)g->o.maxNew, &all))
    return heed_generation_no_memory(g);
  /* Without states a run is given all tokens. */
  int64_t width = g->hasStates ? g->longest : g->longest + g->o.maxNew;
  g->prompts = malloc((rows * longest + 1) * sizeof *g->prompts);
  g->ids = malloc((rows * (size_t)width + 1) * sizeof *g->ids);
  g->lengths = malloc((rows + 1) * sizeof *g->lengths);
  g->counts = malloc((rows + 1) * sizeof *g->counts);
  g->next = malloc((rows + 1) * sizeof *g->next);
  g->parents = malloc((rows + 1) * sizeof *g->parents);
  g->tokens = malloc((rows * (size_t)g->o.maxNew + 1) * sizeof *g->tokens);
  if (!g->prompts || !g->ids || !g->lengths || !g->counts || !g->next ||
      !g->parents || !g->tokens)
    return heed_generation_no_memory(g);
  memcpy(g->prompts, dataOf(ids), rows * longest * sizeof *g->prompts);
  return readLengths(g, g->countAt < 0 ? NULL : &inputs[g->countAt]);
}

static heed_status copyBuffers(heed_generation *g, const heed_buffer *inputs,
                               size_t numInputs) {
  if (numInputs != (size_t)g->entry->numInputs || !inputs)
    return heed_generation_fail(
        g, HEED_ERROR_ARGUMENT, "entry '%s' has %d inputs, found %zu",
        g->entry->entry, g->entry->numInputs, inputs ? numInputs : 0);
  size_t numOutputs = (size_t)g->entry->numOutputs;
  g->inputs = calloc(numInputs + 1, sizeof *g->inputs);
  g->outputs = calloc(numOutputs + 1, sizeof *g->outputs);
  g->room = calloc(numOutputs + 1, sizeof *g->room);
  if (!g->inputs || !g->outputs || !g->room)
    return heed_generation_no_memory(g);
  for (size_t k = 0; k < numInputs; ++k) {
    const heed_buffer *from =
        (const heed_buffer *)((const char *)inputs + k * inputs->size);
    if (!heed_read_options(&g->inputs[k], sizeof *from, from,
                           offsetof(heed_buffer, shape) +
                               sizeof(int64_t) * HEED_MAX_RANK))
      return heed_generation_fail(g, HEED_ERROR_VERSION,
                                  "a heed_buffer of %zu bytes, expected %zu",
                                  from->size, sizeof *from);
    g->inputs[k].size = sizeof *from;
  }
  for (size_t k = 0; k < numOutputs; ++k)
    g->outputs[k].size = sizeof *g->outputs;
  return HEED_OK;
}

/* ---- opening ---- */

static heed_status readOptions(heed_generation *g,
                               const heed_generation_options *given) {
  size_t least = offsetof(heed_generation_options, cancel) + sizeof g->o.cancel;
  if (!given || !heed_read_options(&g->o, sizeof g->o, given, least))
    return heed_generation_fail(g, HEED_ERROR_VERSION,
                                "options of %zu bytes, expected %zu",
                                given ? given->size : 0, sizeof g->o);
  g->failed = HEED_ERROR_ARGUMENT; /* until it is open */
  g->shapesFor = -1;
  g->o.beams += g->o.beams == 0;
  if (g->o.maxNew < 1 || g->o.maxNew > HEED_MAX_EXTENT)
    return heed_generation_fail(g, HEED_ERROR_ARGUMENT,
                                "maxNew: expected 1 to %d, found %" PRId64,
                                HEED_MAX_EXTENT, g->o.maxNew);
  if (g->o.beams < 1 || g->o.beams > 4096)
    return heed_generation_fail(g, HEED_ERROR_ARGUMENT,
                                "beams: expected 1 to 4096, found %" PRId64,
                                g->o.beams);
  if (!(g->o.lengthPenalty >= -1e6 && g->o.lengthPenalty <= 1e6))
    return heed_generation_fail(g, HEED_ERROR_ARGUMENT,
                                "lengthPenalty: expected a number, found %g",
                                g->o.lengthPenalty);
  if (g->o.earlyStopping < HEED_EARLY_FALSE ||
      g->o.earlyStopping > HEED_EARLY_NEVER)
    return heed_generation_fail(g, HEED_ERROR_ARGUMENT,
                                "earlyStopping: expected 0 to 2, found %d",
                                g->o.earlyStopping);
  return HEED_OK;
}

/* Tokens that a row has seen count for penalties and positions. */
static heed_status see(heed_generation *g, int64_t row, const int32_t *ids,
                       int64_t count) {
  heed_status status = heed_see_tokens(g->sampler, row, ids, (size_t)count);
  for (int64_t k = 0; g->beams && !status && k < count; ++k)
    if (row % g->o.beams == 0)
      heed_beams_see(g->beams, row / g->o.beams, ids[k]);
  return status;
}

static heed_status checkPast(heed_generation *g) {
  const heed_buffer *past = g->o.past;
  heed_status status = past ? checkDense(g, past, "past", 2) : HEED_OK;
  if (!status && past && past->shape[0] != g->rows)
    status = heed_generation_fail(g, HEED_ERROR_SHAPE,
                                  "'past' has %" PRId64 " rows, 'ids' %" PRId64,
                                  past->shape[0], g->rows);
  if (!status && past &&
      (past->shape[1] < 0 || past->shape[1] > HEED_MAX_EXTENT))
    status = heed_generation_fail(g, HEED_ERROR_SHAPE,
                                  "'past' has %" PRId64 " tokens a row",
                                  past->shape[1]);
  return status;
}

static heed_status seePast(heed_generation *g) {
  const heed_buffer *past = g->o.past;
  int64_t before = past ? past->shape[1] : 0;
  heed_status status = HEED_OK;
  for (int64_t row = 0; row < g->rows && !status; ++row) {
    if (g->o.rowIds)
      heed_begin_row(g->sampler, row, g->o.rowIds[row]);
    if (g->o.rowIds && g->beams && row % g->o.beams == 0)
      heed_beams_begin(g->beams, row / g->o.beams, g->o.rowIds[row]);
    /* All that comes, so that no step takes memory. */
    if (!g->beams)
      status = heed_reserve_tokens(
          g->sampler, row, (size_t)(before + g->lengths[row] + g->o.maxNew));
    for (int64_t k = 0; k < before && !status; ++k)
      if (dataOf(past)[row * before + k] >= 0)
        status = see(g, row, dataOf(past) + row * before + k, 1);
    if (!status)
      status = see(g, row, g->prompts + row * g->longest, g->lengths[row]);
    if (!status && !g->lengths[row])
      heed_stop_row(g->sampler, row);
    if (status)
      heed_generation_fail(g, status, "%s", heed_error_of_sampler(g->sampler));
  }
  return status;
}

/* The sampler of a search looks after the options and what is seen, too. */
static heed_status openChoice(heed_generation *g) {
  heed_sampling sampling = {.size = sizeof sampling};
  int64_t vocabulary = g->outputs[g->logitsAt].shape[1];
  if (g->o.sampling && !heed_read_options(&sampling, sizeof sampling,
                                          g->o.sampling, HEED_LEAST_SAMPLING))
    return heed_generation_fail(g, HEED_ERROR_VERSION,
                                "a heed_sampling of %zu bytes, expected %zu",
                                g->o.sampling->size, sizeof sampling);
  sampling.size = sizeof sampling;
  sampling.maxNew = g->o.maxNew;
  heed_status status =
      heed_open_sampler(&sampling, g->rows, vocabulary, &g->sampler);
  if (status)
    return g->sampler ? heed_generation_fail(g, status, "%s",
                                             heed_error_of_sampler(g->sampler))
                      : heed_generation_no_memory(g);
  status = checkPast(g);
  if (status)
    return status;
  if (g->o.beams > 1) {
    const heed_buffer *past = g->o.past;
    heed_beams_options options = {.prompts = g->rows / g->o.beams,
                                  .beams = g->o.beams,
                                  .maxNew = g->o.maxNew,
                                  .before =
                                      g->longest + (past ? past->shape[1] : 0),
                                  .lengthPenalty = g->o.lengthPenalty,
                                  .earlyStopping = g->o.earlyStopping,
                                  .rules = heed_rules_of_sampler(g->sampler)};
    g->beams = heed_beams_open(&options);
    if (!g->beams)
      return heed_generation_no_memory(g);
  }
  return seePast(g);
}

heed_status heed_open_generation(heed_model *model,
                                 const heed_generation_options *options,
                                 const heed_buffer *inputs, size_t numInputs,
                                 heed_generation **generation) {
  if (!model->ready)
    return HEED_ERROR_ARGUMENT;
  heed_generation *g = *generation = calloc(1, sizeof *g);
  if (!g)
    return HEED_ERROR_MEMORY;
  g->object.runtime = &heed_own_runtime;
  g->model = model;
  heed_status status = readOptions(g, options);
  if (!status)
    status = findEntry(g);
  if (!status)
    status = copyBuffers(g, inputs, numInputs);
  if (!status)
    status = readPrompts(g, g->inputs);
  if (!status)
    status = heed_generation_prepare(g);
  if (!status)
    status = openChoice(g);
  g->failed = status;
  return status;
}

void heed_close_generation(heed_generation *g) {
  for (int32_t k = 0; g->outputs && k < g->entry->numOutputs; ++k)
    free(g->outputs[k].data);
  if (g->sampler)
    heed_close_sampler(g->sampler);
  heed_beams_close(g->beams);
  free(g->inputs);
  free(g->outputs);
  free(g->room);
  free(g->prompts);
  free(g->lengths);
  free(g->ids);
  free(g->counts);
  free(g->next);
  free(g->tokens);
  free(g->parents);
  free(g);
}
