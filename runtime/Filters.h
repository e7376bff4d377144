/* What is drawn from: temperature, topK, topP, minP; and random numbers. */
#ifndef HEED_FILTERS_H
#define HEED_FILTERS_H

#include "runtime/Rules.h"

typedef struct heed_filters {
  const heed_sampling *s; /* borrowed */
  int64_t vocabulary;
  int64_t topK, least; /* each filter leaves `least` tokens */
  double *weights;     /* exponentials of scores: the largest is 1 */
  double *largest;     /* a heap of topK or `least` numbers */
  int32_t *ranked;     /* a heap of tokens */
} heed_filters;

/** False if there is no memory; to be closed in any case. */
bool heed_filters_open(heed_filters *filters, const heed_rules *rules,
                       int64_t least);
void heed_filters_close(heed_filters *filters);

/** Scores, of which `largest` is the largest, become (score - largest) /
 * temperature; filters->weights are their exponentials, 0 for what is left out.
 */
void heed_filters_apply(heed_filters *filters, double *scores, double largest);

/** Philox 4x32-10: the first 53 bits as a number from 0 to 1, exclusive. */
double heed_draw_uniform(uint64_t seed, uint64_t row, uint64_t position);

#endif
