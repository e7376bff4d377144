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
 * l / repetitionPenalty, or l * repetitionPenalty where l < 0; the rules from
 * noRepeatNgram to beginSuppress, in the order of their fields; all are divided
 * by the temperature; all less than the topK-th largest are left out; in the
 * order of their logits those before which the probabilities have reached topP;
 * those less probable than minP of the most probable one. A token of what
 * remains is drawn.
 *
 * The rules are transformers' processors of these names. A row's length counts
 * all that it has seen, new tokens those that were chosen since it began.
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
  int64_t noRepeatNgram;   /**< n: no n tokens that the row has seen in this
                              order; 0: none of it */
  const int32_t *badWords; /**< rows of tokens that are not to be seen, -1
                              behind each; a stop id alone is none */
  size_t numBadWords;      /**< ids in it, with each -1 */
  int64_t minLength;       /**< no stop id while the row is shorter */
  int64_t minNew; /**< no stop id within so many new tokens; minLength means
                     nothing then */
  const int32_t *forcedBos; /**< behind a row of length 1: one of these */
  size_t numForcedBos;
  const int32_t *forcedEos; /**< the maxNew-th new token: one of these */
  size_t numForcedEos;
  const int32_t *suppress; /**< never chosen */
  size_t numSuppress;
  const int32_t *beginSuppress; /**< not the first new token, or not the second
                                   where forcedBos is the first */
  size_t numBeginSuppress;
  int64_t maxNew; /**< for forcedEos; heed_generation_open() sets its own */
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
 * the vocabulary, HEED_ERROR_MEMORY where noRepeatNgram or badWords want them
 * kept; nothing is changed then. */
HEED_API heed_status heed_sampler_see(heed_sampler *sampler, int64_t row,
                                      const int32_t *ids, size_t count);
/** The row has stopped. */
HEED_API heed_status heed_sampler_stop(heed_sampler *sampler, int64_t row);
/** Whether it has, and how many rows have not. */
HEED_API int32_t heed_sampler_stopped(const heed_sampler *sampler, int64_t row);
HEED_API int64_t heed_sampler_running(const heed_sampler *sampler);

/** ids[b] is the token that row b sees next, or -1 if the row has stopped; its
 * logits are not read then. logits: dense, [rows, vocabulary], of f32, f16 or
 * bf16. A logit that is NaN or +inf, or a row in which -inf and the rules leave
 * no token, is HEED_ERROR_RANGE and named; then no row has seen anything. Takes
 * no memory but where noRepeatNgram or badWords want tokens kept. Returns
 * HEED_OK, HEED_ERROR_ARGUMENT, _VERSION, _SHAPE, _TYPE, _DEVICE, _RANGE,
 * _MEMORY. */
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
  int32_t earlyStopping; /**< of beams: HEED_EARLY_.. */
} heed_generation_options;

/** When a prompt that has K hypotheses is done, as transformers'
 * early_stopping: */
enum {
  HEED_EARLY_FALSE = 0, /**< its best beam's score, divided by
                           length^lengthPenalty, is not above the worst */
  HEED_EARLY_TRUE = 1,  /**< at once */
  HEED_EARLY_NEVER = 2  /**< as FALSE, with maxNew for the length where
                           lengthPenalty is above 0 */
};

/** A model that generates. One thread at a time, the model's; the model and the
 * state live longer. */
typedef struct heed_generation heed_generation;

/** Whether the entry can generate. */
HEED_API int32_t heed_can_generate(const heed_signature *entry);

/** Prepares generation; nothing is run. inputs as for
 * heed_run() of the entry: `ids` the prompts (copied; dense, at least one
 * token), `count` their lengths (copied; null data: all of N), the others stay
 * the same for all steps and are borrowed until heed_generation_close(). A row
 * whose count is 0 has stopped from the beginning. All memory is taken here and
 * in the first steps. On failure *generation is null (no memory) or good
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
 * With beams it is a step of beam search, as transformers' generate() does it:
 * a beam's score is the sum of its tokens' log probabilities (after the penalty
 * and the rules, which make it -inf or 0). Of the K beams' max(2, 1 + numStop)
 * * K best continuations, those that end (a stop id, or maxNew tokens) and are
 * among the first K become hypotheses with score / length^lengthPenalty, of
 * which the best K are kept; the first K that do not end are the next beams. A
 * prompt is done when it has K hypotheses and earlyStopping says so, or no beam
 * can go on. The result is the best hypothesis, known at the end: ids may be
 * null and are not written; running counts prompts.
 *
 * With beams and a temperature above 0 the filters are applied to the log
 * probabilities of each beam (topK, topP and minP leave max(2, 1 + numStop)
 * tokens at least), and that many continuations are drawn without replacement,
 * by the exponentials of their scores. A prompt's draws depend on its logits,
 * the seed, the id of its first row (null: 0, 1, .. for each prompt), its
 * position and the machine's exp() and log().
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
