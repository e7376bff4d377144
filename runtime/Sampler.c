/* The next token of each row, by its logits: generate.h says how. Compiled
 * without contraction of products and sums, so that every machine computes the
 * same doubles. */
#include "runtime/Logits.h"
#include "runtime/Model.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct samplerRow {
  uint64_t id;
  uint64_t position; /* tokens that it has seen */
  bool stopped;
} samplerRow;

struct heed_sampler {
  heed_object object;
  heed_sampling sampling; /* zeros replaced by what they mean */
  int32_t *stop;
  int64_t numRows, vocabulary;
  samplerRow *rows;
  uint64_t *seen;  /* heed_seen_words() for each row */
  double *scores;  /* of the row at hand */
  double *weights; /* their exponentials: the largest is 1 */
  double *largest; /* a heap of topK scores */
  int32_t *ranked; /* a heap of tokens */
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

/* ---- draws ---- */

/* Philox 4x32-10: the first 53 bits as a number from 0 to 1, exclusive. */
static double drawUniform(uint64_t seed, uint64_t row, uint64_t position) {
  uint32_t x[4] = {(uint32_t)position, (uint32_t)(position >> 32),
                   (uint32_t)row, (uint32_t)(row >> 32)};
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = (uint64_t)x[0] * 0xD2511F53u, b = (uint64_t)x[2] * 0xCD9E8D57u;
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b,
                        (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
    memcpy(x, next, sizeof x);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  uint64_t bits = ((uint64_t)x[0] << 32 | x[1]) >> 11;
  return (double)bits * 0x1p-53;
}

/* e^x for x <= 0, within two units of the last place; 0 below -700. Taylor's
 * series around the nearest multiple of ln 2, whose upper 32 bits are a factor
 * of their own. */
static inline double exponential(double x) {
  const double shift = 0x1.8p52, high = 0x1.62e42feep-1,
               low = 0x1.a39ef35793c76p-33;
  double within = x < -700 ? -700 : x;
  double shifted = within * 0x1.71547652b82fep0 + shift;
  double turns = shifted - shift;
  double r = within - turns * high - turns * low;
  double sum = 1.0 / 6227020800;
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  sum = sum * r + 1;
  sum = sum * r + 1;
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return x < -700 ? 0 : sum * power;
}

/* ---- filters: what is left out becomes -inf ---- */

/* The value at `at` goes down to its place in a heap whose smallest is on top.
 */
static void siftValue(double *heap, int64_t count, int64_t at) {
  double value = heap[at];
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && heap[child + 1] < heap[child])
      ++child;
    if (value <= heap[child])
      break;
    heap[at] = heap[child];
  }
  heap[at] = value;
}

static void keepTopK(heed_sampler *sampler) {
  int64_t count = sampler->sampling.topK;
  double *scores = sampler->scores, *heap = sampler->largest;
  if (!count || count >= sampler->vocabulary)
    return;
  memcpy(heap, scores, (size_t)count * sizeof *heap);
  for (int64_t at = count / 2; at-- > 0;)
    siftValue(heap, count, at);
  for (int64_t k = count; k < sampler->vocabulary; ++k)
    if (scores[k] > heap[0]) {
      heap[0] = scores[k];
      siftValue(heap, count, 0);
    }
  for (int64_t k = 0; k < sampler->vocabulary; ++k)
    if (scores[k] < heap[0])
      scores[k] = -INFINITY;
}

/* Whether token a stands before b: by its logit, then by its number. */
static bool stands(const double *scores, int32_t a, int32_t b) {
  return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
}

static void siftToken(const double *scores, int32_t *heap, int64_t count,
                      int64_t at) {
  int32_t token = heap[at];
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && stands(scores, heap[child + 1], heap[child]))
      ++child;
    if (!stands(scores, heap[child], token))
      break;
    heap[at] = heap[child];
  }
  heap[at] = token;
}

/* In falling order, until the probabilities have reached topP; the weights of
 * the others become 0. */
static void keepTopP(heed_sampler *sampler) {
  const double *scores = sampler->scores;
  double *weights = sampler->weights, total = 0, before = 0;
  double topP = sampler->sampling.topP;
  int64_t count = 0, vocabulary = sampler->vocabulary;
  if (topP >= 1)
    return;
  for (int64_t k = 0; k < vocabulary; ++k)
    total += weights[k];
  /* All weights below this make up less than what is left out. */
  double small = (1 - topP) * total / (double)vocabulary;
  for (int64_t k = 0; k < vocabulary; ++k)
    if (weights[k] >= small)
      sampler->ranked[count++] = (int32_t)k;
  for (int64_t at = count / 2; at-- > 0;)
    siftToken(scores, sampler->ranked, count, at);
  int32_t last = sampler->ranked[0];
  while (count > 0 && before < topP * total) {
    last = sampler->ranked[0];
    before += weights[last];
    sampler->ranked[0] = sampler->ranked[--count];
    siftToken(scores, sampler->ranked, count, 0);
  }
  double least = scores[last];
  for (int64_t k = 0; k < vocabulary; ++k)
    if (scores[k] < least || (scores[k] == least && k > last))
      weights[k] = 0;
}

static int32_t draw(const heed_sampler *sampler, const samplerRow *row) {
  const double *weights = sampler->weights;
  double total = 0, sum = 0;
  for (int64_t k = 0; k < sampler->vocabulary; ++k)
    total += weights[k];
  double wanted =
      total * drawUniform(sampler->sampling.seed, row->id, row->position);
  int32_t chosen = 0;
  for (int64_t k = 0; k < sampler->vocabulary && sum <= wanted; ++k)
    if (weights[k] > 0) {
      sum += weights[k];
      chosen = (int32_t)k;
    }
  return chosen;
}

static heed_status chooseRow(heed_sampler *sampler, const heed_buffer *logits,
                             int64_t number, int32_t *id) {
  const heed_sampling *sampling = &sampler->sampling;
  samplerRow *row = &sampler->rows[number];
  double *scores = sampler->scores, largest;
  int64_t vocabulary = sampler->vocabulary;
  heed_status status = heed_logits_load(logits, number, vocabulary, scores,
                                        &largest, sampler->message);
  if (status)
    return status;
  if (sampling->repetitionPenalty != 1)
    heed_seen_penalise(sampler->seen +
                           (size_t)number * heed_seen_words(vocabulary),
                       vocabulary, sampling->repetitionPenalty, scores);
  int64_t first = 0;
  for (int64_t k = 1; k < vocabulary; ++k)
    if (scores[k] > scores[first])
      first = k;
  *id = (int32_t)first;
  if (sampling->temperature == 0)
    return HEED_OK;
  largest = scores[first];
  for (int64_t k = 0; k < vocabulary; ++k)
    scores[k] = (scores[k] - largest) / sampling->temperature;
  keepTopK(sampler);
  for (int64_t k = 0; k < vocabulary; ++k)
    sampler->weights[k] = exponential(scores[k]);
  keepTopP(sampler);
  /* The most probable one has the weight 1. */
  for (int64_t k = 0; sampling->minP > 0 && k < vocabulary; ++k)
    if (sampler->weights[k] < sampling->minP)
      sampler->weights[k] = 0;
  *id = draw(sampler, row);
  return HEED_OK;
}

heed_status heed_choose_tokens(heed_sampler *sampler, const heed_buffer *logits,
                               int32_t *ids) {
  if (!ids)
    return HEED_ERROR_ARGUMENT;
  heed_status status = heed_logits_check(logits, sampler->numRows,
                                         sampler->vocabulary, sampler->message);
  uint64_t mode = heed_float_mode_enter();
  for (int64_t row = 0; row < sampler->numRows && !status; ++row) {
    ids[row] = -1;
    if (!sampler->rows[row].stopped)
      status = chooseRow(sampler, logits, row, &ids[row]);
  }
  heed_float_mode_leave(mode);
  const heed_sampling *sampling = &sampler->sampling;
  for (int64_t row = 0; row < sampler->numRows && !status; ++row)
    if (ids[row] >= 0) {
      heed_see_tokens(sampler, row, &ids[row], 1);
      sampler->rows[row].stopped =
          heed_is_stop(sampling->stop, sampling->numStop, ids[row]);
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
  sampler->rows[row] = (samplerRow){.id = id};
  size_t words = heed_seen_words(sampler->vocabulary);
  memset(sampler->seen + (size_t)row * words, 0, words * sizeof(uint64_t));
  return HEED_OK;
}

heed_status heed_see_tokens(heed_sampler *sampler, int64_t row,
                            const int32_t *ids, size_t count) {
  heed_status status = checkRow(sampler, row);
  for (size_t k = 0; k < count && !status; ++k)
    if (ids[k] < 0 || ids[k] >= sampler->vocabulary)
      status = fail(sampler, HEED_ERROR_RANGE,
                    "token %zu of row %" PRId64 " is %d: expected 0 <= id < "
                    "%" PRId64,
                    k, row, ids[k], sampler->vocabulary);
  if (status)
    return status;
  uint64_t *seen =
      sampler->seen + (size_t)row * heed_seen_words(sampler->vocabulary);
  for (size_t k = 0; k < count; ++k)
    heed_seen_add(seen, ids[k]);
  sampler->rows[row].position += count;
  return HEED_OK;
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

static heed_status checkNumber(heed_sampler *sampler, const char *what,
                               double value, double least, double most) {
  if (value >= least && value <= most)
    return HEED_OK;
  return fail(sampler, HEED_ERROR_ARGUMENT,
              "%s: expected a number from %g to %g, found %g", what, least,
              most, value);
}

static heed_status readSampling(heed_sampler *sampler,
                                const heed_sampling *given) {
  heed_sampling *s = &sampler->sampling;
  size_t least = offsetof(heed_sampling, numStop) + sizeof s->numStop;
  if (given && !heed_read_options(s, sizeof *s, given, least))
    return fail(sampler, HEED_ERROR_VERSION,
                "a heed_sampling of %zu bytes, expected %zu", given->size,
                sizeof *s);
  s->topP = s->topP == 0 ? 1 : s->topP;
  s->repetitionPenalty = s->repetitionPenalty == 0 ? 1 : s->repetitionPenalty;
  heed_status status =
      checkNumber(sampler, "temperature", s->temperature, 0, 1e30);
  if (!status)
    status = checkNumber(sampler, "topP", s->topP, 0, 1);
  if (!status)
    status = checkNumber(sampler, "minP", s->minP, 0, 1);
  if (!status)
    status = checkNumber(sampler, "repetitionPenalty", s->repetitionPenalty,
                         1e-30, 1e30);
  if (!status && s->topK < 0)
    status = fail(sampler, HEED_ERROR_ARGUMENT,
                  "topK: expected a number that is not negative, found "
                  "%" PRId64,
                  s->topK);
  if (!status && s->numStop && !s->stop)
    status = fail(sampler, HEED_ERROR_ARGUMENT, "no stop ids");
  return status;
}

static heed_status takeMemory(heed_sampler *sampler) {
  heed_sampling *s = &sampler->sampling;
  size_t rows = (size_t)sampler->numRows,
         vocabulary = (size_t)sampler->vocabulary;
  size_t kept = s->topK && s->topK < sampler->vocabulary ? (size_t)s->topK : 0;
  sampler->rows = calloc(rows + 1, sizeof *sampler->rows);
  sampler->seen = calloc(rows * heed_seen_words(sampler->vocabulary) + 1,
                         sizeof *sampler->seen);
  sampler->scores = malloc(vocabulary * sizeof *sampler->scores);
  sampler->weights = malloc(vocabulary * sizeof *sampler->weights);
  sampler->largest = malloc((kept + 1) * sizeof *sampler->largest);
  sampler->ranked = malloc(vocabulary * sizeof *sampler->ranked);
  sampler->stop = malloc((s->numStop + 1) * sizeof *sampler->stop);
  if (!sampler->rows || !sampler->seen || !sampler->scores ||
      !sampler->weights || !sampler->largest || !sampler->ranked ||
      !sampler->stop)
    return fail(sampler, HEED_ERROR_MEMORY,
                "no memory to choose among %" PRId64 " tokens",
                sampler->vocabulary);
  if (s->numStop)
    memcpy(sampler->stop, s->stop, s->numStop * sizeof *s->stop);
  s->stop = sampler->stop;
  for (size_t row = 0; row < rows; ++row)
    sampler->rows[row].id = row;
  return HEED_OK;
}

heed_status heed_open_sampler(const heed_sampling *sampling, int64_t rows,
                              int64_t vocabulary, heed_sampler **opened) {
  heed_sampler *sampler = *opened = calloc(1, sizeof *sampler);
  if (!sampler)
    return HEED_ERROR_MEMORY;
  sampler->object.runtime = &heed_own_runtime;
  heed_status status = readSampling(sampler, sampling);
  if (!status && (rows < 0 || rows > HEED_MAX_EXTENT || vocabulary < 1 ||
                  vocabulary > HEED_MAX_EXTENT))
    status =
        fail(sampler, HEED_ERROR_ARGUMENT,
             "expected rows and a vocabulary, found %" PRId64 " and %" PRId64,
             rows, vocabulary);
  if (status)
    return status;
  sampler->numRows = rows;
  sampler->vocabulary = vocabulary;
  status = takeMemory(sampler);
  if (status) /* good for its message alone */
    sampler->numRows = 0;
  return status;
}

void heed_close_sampler(heed_sampler *sampler) {
  free(sampler->rows);
  free(sampler->seen);
  free(sampler->scores);
  free(sampler->weights);
  free(sampler->largest);
  free(sampler->ranked);
  free(sampler->stop);
  free(sampler);
}
