/* Rows of logits, and tokens that a row has seen. */
#include "runtime/Logits.h"
#include "runtime/io/Convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool heed_read_options(void *to, size_t known, const void *from, size_t least) {
  size_t size = *(const size_t *)from;
  if (size < least)
    return false;
  for (size_t k = known; k < size; ++k)
    if (((const char *)from)[k])
      return false;
  memcpy(to, from, size < known ? size : known);
  return true;
}

static bool isDense(const heed_buffer *logits) {
  const int64_t *strides = logits->strides, *shape = logits->shape;
  return !strides || ((shape[1] <= 1 || strides[1] == 1) &&
                      (shape[0] <= 1 || strides[0] == shape[1]));
}

heed_status heed_logits_check(const heed_buffer *logits, int64_t rows,
                              int64_t vocabulary, char *message) {
  size_t least = offsetof(heed_buffer, shape) + sizeof(int64_t) * HEED_MAX_RANK;
  const char *problem = NULL;
  heed_status status = HEED_ERROR_ARGUMENT;
  if (!logits)
    problem = "no buffer";
  else if (logits->size < least) {
    problem = "a heed_buffer of another version";
    status = HEED_ERROR_VERSION;
  } else if (logits->type != HEED_F32 && logits->type != HEED_F16 &&
             logits->type != HEED_BF16) {
    problem = "expected f32, f16 or bf16";
    status = HEED_ERROR_TYPE;
  } else if (logits->deviceType != 0 && logits->deviceType != HEED_DEVICE_CPU) {
    problem = "expected memory of the CPU";
    status = HEED_ERROR_DEVICE;
  } else if (logits->rank == 2 && !isDense(logits))
    problem = "expected dense memory";
  else if (!logits->data)
    problem = "no data";
  if (problem) {
    snprintf(message, HEED_CHOICE_MESSAGE, "logits: %s", problem);
    return status;
  }
  if (logits->rank == 2 && logits->shape[0] == rows &&
      logits->shape[1] == vocabulary)
    return HEED_OK;
  snprintf(message, HEED_CHOICE_MESSAGE,
           "logits: expected shape [%" PRId64 ", %" PRId64
           "], found %d axes, the first %" PRId64 " and %" PRId64,
           rows, vocabulary, logits->rank, logits->shape[0], logits->shape[1]);
  return HEED_ERROR_SHAPE;
}

heed_status heed_logits_load(const heed_buffer *logits, int64_t row,
                             int64_t vocabulary, double *scores,
                             double *largest, char *message) {
  size_t size = heed_type_size(logits->type);
  const char *data = (const char *)logits->data + logits->byteOffset +
                     (size_t)(row * vocabulary) * size;
  if (logits->type == HEED_F32)
    for (int64_t k = 0; k < vocabulary; ++k)
      scores[k] = ((const float *)data)[k];
  else
    for (int64_t k = 0; k < vocabulary; ++k) {
      uint16_t bits = ((const uint16_t *)data)[k];
      scores[k] = logits->type == HEED_F16 ? heed_f16_to_f32(bits)
                                           : heed_bf16_to_f32(bits);
    }
  double most = -INFINITY;
  for (int64_t k = 0; k < vocabulary; ++k) {
    if (!(scores[k] < INFINITY)) {
      snprintf(message, HEED_CHOICE_MESSAGE,
               "logits of row %" PRId64 ": that of token %" PRId64 " is %s",
               row, k, scores[k] > 0 ? "inf" : "NaN");
      return HEED_ERROR_RANGE;
    }
    most = scores[k] > most ? scores[k] : most;
  }
  *largest = most;
  if (most > -INFINITY)
    return HEED_OK;
  snprintf(message, HEED_CHOICE_MESSAGE,
           "logits of row %" PRId64 ": all are -inf, no token is left", row);
  return HEED_ERROR_RANGE;
}

size_t heed_seen_words(int64_t vocabulary) {
  return ((size_t)vocabulary + 63) / 64;
}

void heed_seen_penalise(const uint64_t *seen, int64_t vocabulary,
                        double penalty, double *scores) {
  for (size_t word = 0; word < heed_seen_words(vocabulary); ++word)
    for (uint64_t bits = seen[word]; bits; bits &= bits - 1) {
      double *score = &scores[word * 64 + (size_t)__builtin_ctzll(bits)];
      *score = *score < 0 ? *score * penalty : *score / penalty;
    }
}

bool heed_is_stop(const int32_t *stop, size_t numStop, int32_t id) {
  for (size_t k = 0; k < numStop; ++k)
    if (stop[k] == id)
      return true;
  return false;
}
