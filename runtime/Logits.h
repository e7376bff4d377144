/* What sampling and beam search share: rows of logits, tokens that a row has
 * seen. */
#ifndef HEED_LOGITS_H
#define HEED_LOGITS_H

#include "runtime/generate.h"

#include <stdbool.h>

enum { HEED_CHOICE_MESSAGE = 256 };

/** Bytes of a heed_sampling that the first version had. */
#define HEED_LEAST_SAMPLING (offsetof(heed_sampling, numStop) + sizeof(size_t))

/** A caller's struct as this version's: fields that it does not have are 0.
 * False if it is older than `least` bytes, or has fields beyond `known` that
 * are not 0. */
bool heed_read_options(void *to, size_t known, const void *from, size_t least);

/** HEED_OK if the buffer is dense, [rows, vocabulary], of a type that logits
 * have. */
heed_status heed_logits_check(const heed_buffer *logits, int64_t rows,
                              int64_t vocabulary, char *message);
/** One row as doubles, and the largest of them. HEED_ERROR_RANGE for NaN, +inf,
 * and -inf alone. */
heed_status heed_logits_load(const heed_buffer *logits, int64_t row,
                             int64_t vocabulary, double *scores,
                             double *largest, char *message);

/** Sets of tokens, a bit for each: words of one set. */
size_t heed_seen_words(int64_t vocabulary);
static inline void heed_seen_add(uint64_t *seen, int32_t id) {
  seen[id / 64] |= UINT64_C(1) << (id % 64);
}
/** s becomes s / penalty, or s * penalty where it is negative, of what was
 * seen. */
void heed_seen_penalise(const uint64_t *seen, int64_t vocabulary,
                        double penalty, double *scores);

bool heed_is_stop(const int32_t *stop, size_t numStop, int32_t id);

#endif
