/* What is drawn from. Compiled without contraction of products and sums, so
 * that every machine computes the same doubles. */
#include "runtime/Filters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- draws ---- */

double heed_draw_uniform(uint64_t seed, uint64_t row, uint64_t position) {
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

/* The count-th largest of all values. */
static double largestOf(heed_filters *f, const double *values, int64_t count) {
  double *heap = f->largest;
  memcpy(heap, values, (size_t)count * sizeof *heap);
  for (int64_t at = count / 2; at-- > 0;)
    siftValue(heap, count, at);
  for (int64_t k = count; k < f->vocabulary; ++k)
    if (values[k] > heap[0]) {
      heap[0] = values[k];
      siftValue(heap, count, 0);
    }
  return heap[0];
}

static void keepTopK(heed_filters *f, double *scores) {
  if (!f->topK || f->topK >= f->vocabulary)
    return;
  double least = largestOf(f, scores, f->topK);
  for (int64_t k = 0; k < f->vocabulary; ++k)
    if (scores[k] < least)
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
static void keepTopP(heed_filters *f, const double *scores) {
  double *weights = f->weights, total = 0, before = 0, topP = f->s->topP;
  int64_t count = 0, vocabulary = f->vocabulary;
  if (topP >= 1)
    return;
  for (int64_t k = 0; k < vocabulary; ++k)
    total += weights[k];
  /* All weights below this make up less than what is left out. */
  double small = f->least > 1 ? 0 : (1 - topP) * total / (double)vocabulary;
  for (int64_t k = 0; k < vocabulary; ++k)
    if (weights[k] >= small)
      f->ranked[count++] = (int32_t)k;
  for (int64_t at = count / 2; at-- > 0;)
    siftToken(scores, f->ranked, count, at);
  int32_t last = f->ranked[0];
  for (int64_t kept = 0;
       count > 0 && (kept < f->least || before < topP * total); ++kept) {
    last = f->ranked[0];
    before += weights[last];
    f->ranked[0] = f->ranked[--count];
    siftToken(scores, f->ranked, count, 0);
  }
  double least = scores[last];
  for (int64_t k = 0; k < vocabulary; ++k)
    if (scores[k] < least || (scores[k] == least && k > last))
      weights[k] = 0;
}

/* The most probable one has the weight 1. */
static void keepMinP(heed_filters *f) {
  double most = f->s->minP;
  if (!(most > 0))
    return;
  if (f->least > 1) {
    double kept = largestOf(f, f->weights, f->least);
    most = kept < most ? kept : most;
  }
  for (int64_t k = 0; k < f->vocabulary; ++k)
    if (f->weights[k] < most)
      f->weights[k] = 0;
}

void heed_filters_apply(heed_filters *f, double *scores, double largest) {
  for (int64_t k = 0; k < f->vocabulary; ++k)
    scores[k] = (scores[k] - largest) / f->s->temperature;
  keepTopK(f, scores);
  for (int64_t k = 0; k < f->vocabulary; ++k)
    f->weights[k] = exponential(scores[k]);
  keepTopP(f, scores);
  keepMinP(f);
}

/* ---- opening ---- */

bool heed_filters_open(heed_filters *f, const heed_rules *rules,
                       int64_t least) {
  int64_t vocabulary = rules->vocabulary, topK = rules->s.topK;
  least = least < vocabulary ? least : vocabulary;
  topK = topK && topK < least ? least : topK;
  int64_t kept = topK < vocabulary && topK > least ? topK : least;
  *f = (heed_filters){
      .s = &rules->s, .vocabulary = vocabulary, .topK = topK, .least = least};
  f->weights = malloc((size_t)vocabulary * sizeof *f->weights);
  f->largest = malloc((size_t)(kept + 1) * sizeof *f->largest);
  f->ranked = malloc((size_t)vocabulary * sizeof *f->ranked);
  return f->weights && f->largest && f->ranked;
}

void heed_filters_close(heed_filters *f) {
  free(f->weights);
  free(f->largest);
  free(f->ranked);
}
