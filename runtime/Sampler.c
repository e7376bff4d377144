/* The next token of each row, by its logits: generate.h says how. Compiled
 * without contraction of products and sums, so that every machine computes the
 * same doubles. */
#include "runtime/Sampler.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct samplerRow {
  uint64_t id;
  uint64_t position; /* tokens that it has seen */
  int64_t made;      /* tokens that were chosen */
  int32_t *tokens;   /* those that it has seen, where the rules need them */
  size_t room;
  bool stopped;
} samplerRow;

struct heed_sampler {
  heed_object object;
  heed_rules rules;
  heed_filters filters;
  int64_t numRows;
  samplerRow *rows;
  uint64_t *seen; /* heed_seen_words() for each row */
  double *scores; /* of the row at hand */
  char message[HEED_CHOICE_MESSAGE];
};

static heed_status fail(heed_sampler *sampler, heed_status status,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static heed_status fail(heed_sampler *sampler, heed_status status,
                        const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sampler->message, sizeof sampler->message, format, arguments);
  va_end(arguments);
  return status;
}

/* ---- what rows have seen ---- */

static uint64_t *seenBy(const heed_sampler *sampler, int64_t row) {
  return sampler->seen +
         (size_t)row * heed_seen_words(sampler->rules.vocabulary);
}

heed_status heed_reserve_tokens(heed_sampler *sampler, int64_t row,
                                size_t more) {
  samplerRow *r = &sampler->rows[row];
  size_t wanted, bytes;
  bool good = !__builtin_add_overflow(r->position, more, &wanted);
  if (!sampler->rules.needsTokens || (good && wanted <= r->room))
    return HEED_OK;
  /* Twice as much where tokens come one by one. */
  wanted = wanted < r->room * 2 ? r->room * 2 : wanted;
  good = good && !__builtin_mul_overflow(wanted, sizeof *r->tokens, &bytes);
  int32_t *tokens = good ? realloc(r->tokens, bytes) : NULL;
  if (!tokens)
    return fail(sampler, HEED_ERROR_MEMORY,
                "no memory for what row %" PRId64 " has seen", row);
  r->tokens = tokens;
  r->room = wanted;
  return HEED_OK;
}

/* Within what is reserved. */
static void addToken(heed_sampler *sampler, int64_t row, int32_t id) {
  samplerRow *r = &sampler->rows[row];
  heed_seen_add(seenBy(sampler, row), id);
  if (sampler->rules.needsTokens)
    r->tokens[r->position] = id;
  ++r->position;
}

/* ---- choosing ---- */

static int32_t draw(const heed_sampler *sampler, const samplerRow *row) {
  const double *weights = sampler->filters.weights;
  double total = 0, sum = 0;
  for (int64_t k = 0; k < sampler->rules.vocabulary; ++k)
    total += weights[k];
  double wanted =
      total * heed_draw_uniform(sampler->rules.s.seed, row->id, row->position);
  int32_t chosen = 0;
  for (int64_t k = 0; k < sampler->rules.vocabulary && sum <= wanted; ++k)
    if (weights[k] > 0) {
      sum += weights[k];
      chosen = (int32_t)k;
    }
  return chosen;
}

static heed_status chooseRow(heed_sampler *sampler, const heed_buffer *logits,
                             int64_t number, int32_t *id) {
  const heed_rules *rules = &sampler->rules;
  const samplerRow *row = &sampler->rows[number];
  double *scores = sampler->scores, largest;
  int64_t vocabulary = rules->vocabulary, first = 0;
  heed_status status = heed_logits_load(logits, number, vocabulary, scores,
                                        &largest, sampler->message);
  if (status)
    return status;
  heed_history history = {row->tokens, (int64_t)row->position, row->made};
  heed_rules_apply(rules, seenBy(sampler, number), history, scores);
  for (int64_t k = 1; k < vocabulary; ++k)
    if (scores[k] > scores[first])
      first = k;
  *id = (int32_t)first;
  if (scores[first] == -INFINITY)
    return fail(sampler, HEED_ERROR_RANGE,
                "row %" PRId64 ": the rules leave no token", number);
  if (rules->s.temperature == 0)
    return HEED_OK;
  heed_filters_apply(&sampler->filters, scores, scores[first]);
  *id = draw(sampler, row);
  return HEED_OK;
}

heed_status heed_choose_tokens(heed_sampler *sampler, const heed_buffer *logits,
                               int32_t *ids) {
  if (!ids)
    return HEED_ERROR_ARGUMENT;
  heed_status status = heed_logits_check(
      logits, sampler->numRows, sampler->rules.vocabulary, sampler->message);
  uint64_t mode = heed_float_mode_enter();
  for (int64_t row = 0; row < sampler->numRows && !status; ++row) {
    ids[row] = -1;
    if (!sampler->rows[row].stopped)
      status = chooseRow(sampler, logits, row, &ids[row]);
  }
  heed_float_mode_leave(mode);
  for (int64_t row = 0; row < sampler->numRows && !status; ++row)
    if (ids[row] >= 0)
      status = heed_reserve_tokens(sampler, row, 1);
  const heed_sampling *s = &sampler->rules.s;
  for (int64_t row = 0; row < sampler->numRows && !status; ++row)
    if (ids[row] >= 0) {
      addToken(sampler, row, ids[row]);
      ++sampler->rows[row].made;
      sampler->rows[row].stopped = heed_is_stop(s->stop, s->numStop, ids[row]);
    }
  return status;
}

/* ---- rows ---- */

static heed_status checkRow(heed_sampler *sampler, int64_t row) {
  if (row >= 0 && row < sampler->numRows)
    return HEED_OK;
  return fail(sampler, HEED_ERROR_ARGUMENT,
              "row %" PRId64 " is none of the %" PRId64 " rows", row,
              sampler->numRows);
}

heed_status heed_begin_row(heed_sampler *sampler, int64_t row, uint64_t id) {
  heed_status status = checkRow(sampler, row);
  if (status)
    return status;
  samplerRow *r = &sampler->rows[row];
  *r = (samplerRow){.id = id, .tokens = r->tokens, .room = r->room};
  memset(seenBy(sampler, row), 0,
         heed_seen_words(sampler->rules.vocabulary) * sizeof(uint64_t));
  return HEED_OK;
}

heed_status heed_see_tokens(heed_sampler *sampler, int64_t row,
                            const int32_t *ids, size_t count) {
  heed_status status = checkRow(sampler, row);
  for (size_t k = 0; k < count && !status; ++k)
    if (ids[k] < 0 || ids[k] >= sampler->rules.vocabulary)
      status = fail(sampler, HEED_ERROR_RANGE,
                    "token %zu of row %" PRId64 " is %d: expected 0 <= id < "
                    "%" PRId64,
                    k, row, ids[k], sampler->rules.vocabulary);
  if (!status)
    status = heed_reserve_tokens(sampler, row, count);
  for (size_t k = 0; k < count && !status; ++k)
    addToken(sampler, row, ids[k]);
  return status;
}

heed_status heed_stop_row(heed_sampler *sampler, int64_t row) {
  heed_status status = checkRow(sampler, row);
  if (!status)
    sampler->rows[row].stopped = true;
  return status;
}

int32_t heed_row_stopped(const heed_sampler *sampler, int64_t row) {
  return row < 0 || row >= sampler->numRows || sampler->rows[row].stopped;
}

int64_t heed_rows_running(const heed_sampler *sampler) {
  int64_t running = 0;
  for (int64_t row = 0; row < sampler->numRows; ++row)
    running += !sampler->rows[row].stopped;
  return running;
}

const char *heed_error_of_sampler(const heed_sampler *sampler) {
  return sampler->message;
}

/* ---- opening ---- */

static heed_status takeMemory(heed_sampler *sampler, int64_t numRows) {
  size_t rows = (size_t)numRows, vocabulary = (size_t)sampler->rules.vocabulary;
  sampler->rows = calloc(rows + 1, sizeof *sampler->rows);
  sampler->seen = calloc(rows * heed_seen_words((int64_t)vocabulary) + 1,
                         sizeof *sampler->seen);
  sampler->scores = malloc(vocabulary * sizeof *sampler->scores);
  if (!heed_filters_open(&sampler->filters, &sampler->rules, 1) ||
      !sampler->rows || !sampler->seen || !sampler->scores)
    return fail(sampler, HEED_ERROR_MEMORY,
                "no memory to choose among %zu tokens", vocabulary);
  for (size_t row = 0; row < rows; ++row)
    sampler->rows[row].id = row;
  sampler->numRows = numRows;
  return HEED_OK;
}

/* One that did not open has no rows and is good for its message alone. */
heed_status heed_open_sampler(const heed_sampling *sampling, int64_t rows,
                              int64_t vocabulary, heed_sampler **opened) {
  heed_sampler *sampler = *opened = calloc(1, sizeof *sampler);
  if (!sampler)
    return HEED_ERROR_MEMORY;
  sampler->object.runtime = &heed_own_runtime;
  if (rows < 0 || rows > HEED_MAX_EXTENT || vocabulary < 1 ||
      vocabulary > HEED_MAX_EXTENT)
    return fail(sampler, HEED_ERROR_ARGUMENT,
                "expected rows and a vocabulary, found %" PRId64
                " and %" PRId64,
                rows, vocabulary);
  heed_status status =
      heed_rules_read(&sampler->rules, sampling, vocabulary, sampler->message);
  return status ? status : takeMemory(sampler, rows);
}

const heed_rules *heed_rules_of_sampler(const heed_sampler *sampler) {
  return &sampler->rules;
}

void heed_close_sampler(heed_sampler *sampler) {
  for (int64_t row = 0; row < sampler->numRows; ++row)
    free(sampler->rows[row].tokens);
  free(sampler->rows);
  free(sampler->seen);
  free(sampler->scores);
  heed_filters_close(&sampler->filters);
  heed_rules_release(&sampler->rules);
  free(sampler);
}
