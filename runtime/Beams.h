/* Beam search over the rows of a batch; generate.h says how it scores. */
#ifndef HEED_BEAMS_H
#define HEED_BEAMS_H

#include "runtime/Rules.h"

typedef struct heed_beams_options {
  int64_t prompts, beams, maxNew;
  int64_t before; /* tokens that a prompt has at most, with its past */
  double lengthPenalty;
  int32_t earlyStopping;   /* HEED_EARLY_.. */
  const heed_rules *rules; /* borrowed */
} heed_beams_options;

/** Row p * beams + k is the k-th beam of prompt p, the best first. */
typedef struct heed_beams heed_beams;

/** Null if there is no memory. */
heed_beams *heed_beams_open(const heed_beams_options *options);
void heed_beams_close(heed_beams *beams);

/** The id of a prompt, for its draws; at first 0, 1, .. */
void heed_beams_begin(heed_beams *beams, int64_t prompt, uint64_t id);
/** All beams of the prompt have seen the token, which is of the vocabulary; at
 * most `before` times. */
void heed_beams_see(heed_beams *beams, int64_t prompt, int32_t id);

/** One step: row r goes on from what row parents[r] was, with tokens[r]; rows
 * of a prompt that is done are their own parents, with -1. Fails as
 * heed_sampler_choose(); then the search cannot go on. */
heed_status heed_beams_step(heed_beams *beams, const heed_buffer *logits,
                            int64_t *parents, int32_t *tokens, char *message);

/** Prompts that are not done. */
int64_t heed_beams_running(const heed_beams *beams);

/** The tokens of a row so far; a row that is not live repeats another's. */
const int32_t *heed_beams_row(const heed_beams *beams, int64_t row);

/** The best hypothesis, or the best beam where there is none: its first `width`
 * tokens, -1 behind the end. Returns its score. */
double heed_beams_best(const heed_beams *beams, int64_t prompt, int32_t *tokens,
                       int64_t width);

#endif
