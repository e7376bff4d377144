/* A heed_sampling with memory of its own, and what it says of tokens before
 * any of them is drawn: the penalty, tokens that may not be chosen, tokens that
 * must be. Sampler and beam search share it. */
#ifndef HEED_RULES_H
#define HEED_RULES_H

#include "runtime/Logits.h"

typedef struct heed_rules {
  heed_sampling s; /* zeros replaced by what they mean, lists are own */
  int32_t *memory; /* of the lists */
  int64_t vocabulary;
  bool needsTokens; /* a history's tokens are looked at */
} heed_rules;

/** What a row has seen, in order; the last `made` tokens are those that were
 * chosen. `tokens` may be null where rules do not need it. */
typedef struct heed_history {
  const int32_t *tokens;
  int64_t count, made;
} heed_history;

/** Copies and checks; null is the default. HEED_ERROR_ARGUMENT, _VERSION,
 * _MEMORY with a message. To be released in any case. */
heed_status heed_rules_read(heed_rules *rules, const heed_sampling *given,
                            int64_t vocabulary, char *message);
void heed_rules_release(heed_rules *rules);

/** Scores of a row's tokens as the rules leave them: -inf for what may not be
 * chosen. seen: the row's set of tokens. */
void heed_rules_apply(const heed_rules *rules, const uint64_t *seen,
                      heed_history row, double *scores);

/** Continuations of each beam that a search looks at, and tokens that a
 * sampled beam keeps at least: one that goes on beside each that ends. */
static inline int64_t heed_rules_kept(const heed_rules *rules) {
  return rules->s.numStop > 1 ? (int64_t)rules->s.numStop + 1 : 2;
}

#endif
