/* Generation: tokens chosen by a model's logits, one after another.
 *
 * An entry can generate if it has an input `ids: i32[B, N]` and a result
 * `logits: f32[B, V]` (or f16, bf16), the logits of the token after the last
 * one of each row. If it also has an input `count: i32[B]`, the first count[b]
 * of a row's ids are meant: prompts of different lengths, 0 for a row that has
 * stopped. Conventions as in heed.h: structs begin with their size. */
#ifndef HEED_GENERATE_H
#define HEED_GENERATE_H

#include "heed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sampling ---- */

/** How a token is chosen. All zero but `size`: the largest logit, the first of
 * equal ones.
 *
 * In this order, on logits as doubles: of tokens that a row has seen, l becomes
 * l / repetitionPenalty, or l * repetitionPenalty where l < 0; all are divided
 * by the temperature; all less than the topK-th largest are left out; in the
 * order of their logits those before which the probabilities have reached topP;
 * those less probable than minP of the most probable one. A token of what
 * remains is drawn.
 *
 * The draw depends on the bits of the row's logits, the seed, the row's id and
 * its position (how many tokens the row has seen), and on nothing else: Philox
 * 4x32-10 (Salmon et al. 2011) gives 53 bits, exp() is computed here from
 * additions and products of doubles, sums run in the order of tokens. So it is
 * the same in any batch and on any machine. */
typedef struct heed_sampling {
  size_t size;        /**< sizeof(heed_sampling) */
  double temperature; /**< 0: the largest logit, after the penalty; what follows
                         it means nothing then */
  int64_t topK;       /**< 0: all */
  double topP;        /**< from 0 to 1; 0: all, as 1 */
  double minP;        /**< from 0 to 1 */
  double repetitionPenalty; /**< 0: none, as 1 */
  uint64_t seed;
  const int32_t *stop; /**< ids after which a row has stopped */
  size_t numStop;
} heed_sampling;

/** Chooses the next token of each row of a batch. One thread at a time. */
typedef struct heed_sampler heed_sampler;

/** A sampler of `rows` rows, whose ids are 0, 1, ..; nothing is seen. desc is
 * any model's: its library chooses. sampling is copied, null: the default. On
 * failure *sampler is null (no memory) or good for heed_sampler_last_error()
 * and heed_sampler_close(). Returns HEED_OK, HEED_ERROR_ARGUMENT, _VERSION,
 * _MEMORY. */
HEED_API heed_status heed_sampler_open(const heed_model_desc *desc,
                                       const heed_sampling *sampling,
                                       int64_t rows, int64_t vocabulary,
                                       heed_sampler **sampler);
/** Null is allowed. */
HEED_API void heed_sampler_close(heed_sampler *sampler);

/** The row begins anew, with that id and nothing seen. */
HEED_API heed_status heed_sampler_begin(heed_sampler *sampler, int64_t row,
                                        uint64_t id);
/** The row has seen these tokens, a prompt for example: they count for the
 * penalty and for the row's position. Returns HEED_ERROR_RANGE if one is not of
 * the vocabulary; nothing is changed then. */
HEED_API heed_status heed_sampler_see(heed_sampler *sampler, int64_t row,
                                      const int32_t *ids, size_t count);
/** The row has stopped. */
HEED_API heed_status heed_sampler_stop(heed_sampler *sampler, int64_t row);
/** Whether it has, and how many rows have not. */
HEED_API int32_t heed_sampler_stopped(const heed_sampler *sampler, int64_t row);
HEED_API int64_t heed_sampler_running(const heed_sampler *sampler);

/** ids[b] is the token that row b sees next, or -1 if the row has stopped; its
 * logits are not read then. logits: dense, [rows, vocabulary], of f32, f16 or
 * bf16. A logit that is NaN or +inf, or a row of -inf alone, is
 * HEED_ERROR_RANGE and named; then no row has seen anything. Takes no memory.
 * Returns HEED_OK, HEED_ERROR_ARGUMENT, _VERSION, _SHAPE, _TYPE, _DEVICE,
 * _RANGE. */
HEED_API heed_status heed_sampler_choose(heed_sampler *sampler,
                                         const heed_buffer *logits,
                                         int32_t *ids);
/** What the last failed call said. */
HEED_API const char *heed_sampler_last_error(const heed_sampler *sampler);

/* ---- generation ---- */

/** All zero but `size` and `maxNew` is the default. */
typedef struct heed_generation_options {
  size_t size;       /**< sizeof(heed_generation_options) */
  const char *entry; /**< null: the first that can generate */
  heed_state *state; /**< of a model that has states: with what it holds
                        generation begins; after it, the state has seen all
                        tokens but the last chosen one. A model without states
                        is given all tokens at each step */
  int64_t maxNew;    /**< tokens for each row at most, at least 1 */
  const heed_sampling *sampling; /**< null: the default */
  const uint64_t *rowIds;        /**< for the draws; null: 0, 1, .. */
  const heed_buffer *past; /**< i32[B, P], dense: what the state's rows have
                              seen before, where that is to count for penalties
                              and positions; -1 is no token. Null: nothing */
  int64_t beams; /**< 0, 1: none. K: each K rows belong to one prompt, which
                    stands in all of them; see heed_generation_step() */
  double lengthPenalty;  /**< of beams */
  const int32_t *cancel; /**< as in heed_call */
} heed_generation_options;

/** A model that generates. One thread at a time, the model's. */
typedef struct heed_generation heed_generation;

/** Whether the entry can generate. */
HEED_API int32_t heed_can_generate(const heed_signature *entry);

/** Prepares generation; nothing is run. inputs as for
 * heed_run() of the entry: `ids` the prompts (copied; dense, at least one
 * token), `count` their lengths (copied; null data: all of N), the others stay
 * the same for all steps and are borrowed until heed_generation_close(). A row
 * whose count is 0 has stopped from the beginning. All memory is taken here and
 * in the first two steps (of beams, the state's second copy when they first
 * change places). On failure *generation is null (no memory) or good
 * for heed_generation_last_error() and heed_generation_close(). Returns
 * HEED_OK, HEED_ERROR_ARGUMENT, _VERSION, _SHAPE, _TYPE, _RANGE, _MEMORY, and
 * what heed_output_shapes_in() does. */
HEED_API heed_status heed_generation_open(
    heed_model *model, const heed_generation_options *options,
    const heed_buffer *inputs, size_t numInputs, heed_generation **generation);
/** Null is allowed. */
HEED_API void heed_generation_close(heed_generation *generation);

/** Runs the entry once and chooses a token for each row that has not stopped:
 * ids[b], -1 for others. *running is how many rows go on; at 0 all have
 * stopped, or have maxNew tokens, and further calls do nothing.
 *
 * With beams it is a step of beam search, as transformers' generate() does it
 * with early_stopping=False: a beam's score is the sum of its tokens' log
 * probabilities (after the penalty). Of the K beams' max(2, 1 + numStop) * K
 * best continuations, those that end (a stop id, or maxNew tokens) and are
 * among the first K become hypotheses with score / length^lengthPenalty, of
 * which the best K are kept; the first K that do not end are the next beams. A
 * prompt is done when it has K hypotheses and its best beam's score, so
 * divided, is not above the worst of them. The result is the best hypothesis,
 * known at the end: ids may be null and are not written; running counts
 * prompts.
 *
 * Fails as heed_run() and heed_sampler_choose() do. After a failed run
 * (cancelled, for example) nothing has changed, and the step may be tried
 * again. */
HEED_API heed_status heed_generation_step(heed_generation *generation,
                                          int32_t *ids, int64_t *running);

/** Called after each step with one id for each row, -1 for rows that have
 * stopped (null with beams); nonzero ends generation. */
typedef int32_t (*heed_on_tokens)(void *user, const int32_t *ids, int64_t rows);

/** Steps until all rows have stopped or have maxNew tokens, or onTokens (which
 * may be null) ends it. */
HEED_API heed_status heed_generate(heed_generation *generation,
                                   heed_on_tokens onTokens, void *user);

/** What was made so far: tokens, [prompts, width], -1 behind each row's end.
 * With beams the best hypothesis, or the best beam where there is none yet, and
 * scores[k] its score; else scores are not written and may be null. */
HEED_API heed_status heed_generation_tokens(heed_generation *generation,
                                            int64_t width, int32_t *tokens,
                                            double *scores);
/** What the last failed call said. */
HEED_API const char *
heed_generation_last_error(const heed_generation *generation);

#ifdef __cplusplus
}
#endif
#endif
