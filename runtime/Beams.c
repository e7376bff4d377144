/* Beam search: continuations, beams, hypotheses. Scores are sums of logarithms
 * of probabilities, in doubles. */
#include "runtime/Beams.h"
#include "runtime/Filters.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct continuation {
  double key;    /* the score, and a random number where they are drawn */
  int64_t place; /* beam * vocabulary + token */
  double score;
} continuation;

typedef struct hypothesis {
  double score; /* divided by the power of the length */
  int64_t length;
  int32_t *tokens;
} hypothesis;

typedef struct search {
  uint64_t id;
  hypothesis *found; /* the best first */
  int64_t numFound;
  int64_t before; /* tokens that were seen before the search */
  bool done;
} search;

struct heed_beams {
  heed_beams_options o;
  int64_t vocabulary, width;
  heed_filters filters; /* where continuations are drawn */
  int64_t length;       /* tokens of each beam */
  double *sums;         /* per row; -inf: there is no such beam */
  int32_t *tokens;      /* per row, `width`: those before, those of the beam */
  uint64_t *seen;       /* per row */
  void *spare;          /* of a prompt's rows of either */
  search *searches;     /* per prompt */
  hypothesis *found;    /* theirs */
  int32_t *foundTokens; /* theirs */
  double *scores;       /* of a row */
  continuation *heap;   /* the best ones, the worst of them on top */
  int64_t numWanted, numHeld;
};

/* ---- opening ---- */

static size_t wordsOf(const heed_beams *b) {
  return heed_seen_words(b->vocabulary);
}

static bool draws(const heed_beams *b) { return b->o.rules->s.temperature > 0; }

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static bool takeMemory(heed_beams *b) {
  size_t rows = (size_t)(b->o.prompts * b->o.beams),
         length = (size_t)b->o.maxNew, words = wordsOf(b),
         beams = (size_t)b->o.beams;
  b->sums = malloc((rows + 1) * sizeof *b->sums);
  b->tokens = calloc(rows * (size_t)b->width + 1, sizeof *b->tokens);
  b->seen = calloc(rows * words + 1, sizeof *b->seen);
  b->spare = malloc(
      beams * larger(length * sizeof *b->tokens, words * sizeof *b->seen));
  b->searches = calloc((size_t)b->o.prompts + 1, sizeof *b->searches);
  b->found = calloc(rows + 1, sizeof *b->found);
  b->foundTokens = malloc((rows * length + 1) * sizeof *b->foundTokens);
  b->scores = malloc((size_t)b->vocabulary * sizeof *b->scores);
  b->heap = malloc((size_t)b->numWanted * sizeof *b->heap);
  if (draws(b) &&
      !heed_filters_open(&b->filters, b->o.rules, heed_rules_kept(b->o.rules)))
    return false;
  return b->sums && b->tokens && b->seen && b->spare && b->searches &&
         b->found && b->foundTokens && b->scores && b->heap;
}

heed_beams *heed_beams_open(const heed_beams_options *options) {
  heed_beams *b = calloc(1, sizeof *b);
  if (!b)
    return NULL;
  b->o = *options;
  b->vocabulary = options->rules->vocabulary;
  b->width = options->before + options->maxNew;
  int64_t kept = heed_rules_kept(options->rules);
  b->numWanted = options->beams * (kept < b->vocabulary ? kept : b->vocabulary);
  if (!takeMemory(b)) {
    heed_beams_close(b);
    return NULL;
  }
  for (int64_t row = 0; row < b->o.prompts * b->o.beams; ++row) {
    /* At first all beams of a prompt are alike: one of them lives. */
    b->sums[row] = row % b->o.beams ? -INFINITY : 0;
    b->found[row].tokens = b->foundTokens + row * b->o.maxNew;
  }
  for (int64_t p = 0; p < b->o.prompts; ++p)
    b->searches[p] =
        (search){.id = (uint64_t)p, .found = b->found + p * b->o.beams};
  return b;
}

void heed_beams_close(heed_beams *b) {
  if (!b)
    return;
  heed_filters_close(&b->filters);
  free(b->sums);
  free(b->tokens);
  free(b->seen);
  free(b->spare);
  free(b->searches);
  free(b->found);
  free(b->foundTokens);
  free(b->scores);
  free(b->heap);
  free(b);
}

void heed_beams_begin(heed_beams *b, int64_t prompt, uint64_t id) {
  b->searches[prompt].id = id;
}

void heed_beams_see(heed_beams *b, int64_t prompt, int32_t id) {
  int64_t at = b->searches[prompt].before++;
  for (int64_t row = prompt * b->o.beams; row < (prompt + 1) * b->o.beams;
       ++row) {
    heed_seen_add(b->seen + (size_t)row * wordsOf(b), id);
    b->tokens[row * b->width + at] = id;
  }
}

/* ---- continuations ---- */

/* Whether a is worse than b; of equal ones the later place is. */
static bool isWorse(continuation a, continuation b) {
  return a.key != b.key ? a.key < b.key : a.place > b.place;
}

static void sift(continuation *heap, int64_t count, int64_t at) {
  continuation value = heap[at];
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && isWorse(heap[child + 1], heap[child]))
      ++child;
    if (!isWorse(heap[child], value))
      break;
    heap[at] = heap[child];
  }
  heap[at] = value;
}

static void offer(heed_beams *b, continuation one) {
  if (b->numHeld == b->numWanted) {
    if (!isWorse(b->heap[0], one))
      return;
    b->heap[0] = one;
    sift(b->heap, b->numHeld, 0);
    return;
  }
  /* Up to its place. */
  int64_t at = b->numHeld++;
  for (; at && isWorse(one, b->heap[(at - 1) / 2]); at = (at - 1) / 2)
    b->heap[at] = b->heap[(at - 1) / 2];
  b->heap[at] = one;
}

/* The log probabilities of row's tokens, as the rules leave them. */
static heed_status scoreRow(heed_beams *b, const heed_buffer *logits,
                            int64_t row, char *message) {
  double *scores = b->scores, most, sum = 0;
  int64_t before = b->searches[row / b->o.beams].before;
  heed_status status =
      heed_logits_load(logits, row, b->vocabulary, scores, &most, message);
  if (status)
    return status;
  for (int64_t k = 0; k < b->vocabulary; ++k)
    sum += exp(scores[k] - most);
  double normaliser = most + log(sum);
  for (int64_t k = 0; k < b->vocabulary; ++k)
    scores[k] -= normaliser;
  heed_history history = {b->tokens + row * b->width, before + b->length,
                          b->length};
  heed_rules_apply(b->o.rules, b->seen + (size_t)row * wordsOf(b), history,
                   scores);
  return HEED_OK;
}

/* Draws without replacement are the largest of log probability + Gumbel's noise
 * (Kool et al. 2019). It depends on the prompt's id, its position and the
 * continuation alone. */
static double noise(const heed_beams *b, const search *s, int64_t place) {
  uint64_t position = (uint64_t)(s->before + b->length);
  double u = heed_draw_uniform(b->o.rules->s.seed, s->id,
                               position | (uint64_t)(place + 1) << 31);
  return -log(-log(u + 0x1p-54));
}

/* All that row's beam can go on with. */
static heed_status offerRow(heed_beams *b, const heed_buffer *logits,
                            int64_t row, char *message) {
  const search *s = &b->searches[row / b->o.beams];
  double *scores = b->scores, largest = -INFINITY;
  int64_t first = row % b->o.beams * b->vocabulary;
  heed_status status = scoreRow(b, logits, row, message);
  if (status)
    return status;
  for (int64_t k = 0; k < b->vocabulary; ++k)
    largest = scores[k] > largest ? scores[k] : largest;
  if (largest == -INFINITY)
    return HEED_OK;
  if (draws(b)) {
    heed_filters_apply(&b->filters, scores, largest);
    double shift = largest / b->o.rules->s.temperature;
    for (int64_t k = 0; k < b->vocabulary; ++k)
      scores[k] = b->filters.weights[k] > 0 ? scores[k] + shift : -INFINITY;
  }
  for (int64_t k = 0; k < b->vocabulary; ++k)
    if (scores[k] > -INFINITY) {
      double score = b->sums[row] + scores[k];
      double key = draws(b) ? score + noise(b, s, first + k) : score;
      offer(b, (continuation){key, first + k, score});
    }
  return HEED_OK;
}

static void sortHeap(heed_beams *b) {
  for (int64_t count = b->numHeld; count > 1;) {
    continuation worst = b->heap[0];
    b->heap[0] = b->heap[--count];
    sift(b->heap, count, 0);
    b->heap[count] = worst;
  }
}

/* The heap becomes a list, the best score first. */
static void sortByScore(heed_beams *b) {
  if (draws(b)) { /* a heap by keys: now by scores */
    for (int64_t k = 0; k < b->numHeld; ++k)
      b->heap[k].key = b->heap[k].score;
    for (int64_t at = b->numHeld / 2; at-- > 0;)
      sift(b->heap, b->numHeld, at);
  }
  sortHeap(b);
}

/* ---- hypotheses ---- */

/* A score as hypotheses have it. */
static double divided(const heed_beams *b, double sum, int64_t length) {
  return sum / pow((double)length, b->o.lengthPenalty);
}

/* How long a beam is thought to become, where it is compared with hypotheses.
 */
static int64_t hopedLength(const heed_beams *b) {
  bool isLong =
      b->o.earlyStopping == HEED_EARLY_NEVER && b->o.lengthPenalty > 0;
  return isLong ? b->o.maxNew : b->length + 1;
}

/* Keeps it if it is among the best. */
static void addHypothesis(heed_beams *b, search *s, double score,
                          const int32_t *tokens, int32_t last) {
  hypothesis *found = s->found;
  int64_t at = s->numFound;
  if (at == b->o.beams && score <= found[at - 1].score)
    return;
  at -= at == b->o.beams;
  s->numFound = at + 1;
  int32_t *memory = found[at].tokens;
  for (; at && found[at - 1].score < score; --at)
    found[at] = found[at - 1];
  found[at] = (hypothesis){score, b->length + 1, memory};
  memcpy(memory, tokens, (size_t)b->length * sizeof *tokens);
  memory[b->length] = last;
}

/* ---- a step ---- */

/* The first `bytes` that rows of a prompt hold become what their parents had;
 * rows are `stride` apart. */
static void takeOver(heed_beams *b, void *rows, size_t stride, size_t bytes,
                     const int64_t *parents, int64_t first) {
  for (int64_t k = 0; k < b->o.beams; ++k)
    memcpy((char *)b->spare + (size_t)k * bytes,
           (char *)rows + (size_t)parents[first + k] * stride, bytes);
  for (int64_t k = 0; k < b->o.beams; ++k)
    memcpy((char *)rows + (size_t)(first + k) * stride,
           (char *)b->spare + (size_t)k * bytes, bytes);
}

/* The continuations at hand become hypotheses and the prompt's next beams. */
static void advance(heed_beams *b, int64_t prompt, int64_t *parents,
                    int32_t *tokens) {
  search *s = &b->searches[prompt];
  int64_t first = prompt * b->o.beams, live = 0, vocabulary = b->vocabulary;
  const heed_sampling *sampling = &b->o.rules->s;
  bool isLast = b->length + 1 == b->o.maxNew;
  double best = -INFINITY;
  for (int64_t rank = 0; rank < b->numHeld; ++rank) {
    continuation one = b->heap[rank];
    int32_t token = (int32_t)(one.place % vocabulary);
    int64_t parent = first + one.place / vocabulary;
    if (isLast || heed_is_stop(sampling->stop, sampling->numStop, token)) {
      if (rank < b->o.beams)
        addHypothesis(b, s, divided(b, one.score, b->length + 1),
                      heed_beams_row(b, parent), token);
      continue;
    }
    if (live == b->o.beams)
      continue;
    if (!live)
      best = divided(b, one.score, hopedLength(b));
    parents[first + live] = parent;
    tokens[first + live] = token;
    b->sums[first + live++] = one.score;
  }
  s->done = !live || (s->numFound == b->o.beams &&
                      (b->o.earlyStopping == HEED_EARLY_TRUE ||
                       best <= s->found[s->numFound - 1].score));
  for (int64_t k = s->done ? 0 : live; k < b->o.beams; ++k) {
    parents[first + k] = s->done ? first + k : parents[first];
    tokens[first + k] = s->done ? -1 : tokens[first];
    b->sums[first + k] = -INFINITY;
  }
  if (s->done)
    return;
  size_t size = sizeof *b->tokens, words = wordsOf(b) * sizeof *b->seen;
  takeOver(b, b->tokens + s->before, (size_t)b->width * size,
           (size_t)b->length * size, parents, first);
  takeOver(b, b->seen, words, words, parents, first);
  for (int64_t row = first; row < first + b->o.beams; ++row) {
    b->tokens[row * b->width + s->before + b->length] = tokens[row];
    heed_seen_add(b->seen + (size_t)row * wordsOf(b), tokens[row]);
  }
}

heed_status heed_beams_step(heed_beams *b, const heed_buffer *logits,
                            int64_t *parents, int32_t *tokens, char *message) {
  int64_t rows = b->o.prompts * b->o.beams;
  heed_status status = heed_logits_check(logits, rows, b->vocabulary, message);
  for (int64_t row = 0; row < rows; ++row) {
    parents[row] = row;
    tokens[row] = -1;
  }
  for (int64_t p = 0; p < b->o.prompts && !status; ++p) {
    if (b->searches[p].done)
      continue;
    b->numHeld = 0;
    for (int64_t row = p * b->o.beams; row < (p + 1) * b->o.beams && !status;
         ++row)
      if (b->sums[row] > -INFINITY)
        status = offerRow(b, logits, row, message);
    if (!status && !b->numHeld && !b->searches[p].numFound) {
      snprintf(message, HEED_CHOICE_MESSAGE,
               "prompt %" PRId64 ": the rules leave no token", p);
      status = HEED_ERROR_RANGE;
    }
    if (status)
      break;
    sortByScore(b);
    advance(b, p, parents, tokens);
  }
  b->length += !status;
  return status;
}

int64_t heed_beams_running(const heed_beams *b) {
  int64_t running = 0;
  for (int64_t p = 0; p < b->o.prompts; ++p)
    running += !b->searches[p].done;
  return running;
}

const int32_t *heed_beams_row(const heed_beams *b, int64_t row) {
  return b->tokens + row * b->width + b->searches[row / b->o.beams].before;
}

double heed_beams_best(const heed_beams *b, int64_t prompt, int32_t *tokens,
                       int64_t width) {
  const search *s = &b->searches[prompt];
  const int32_t *from = heed_beams_row(b, prompt * b->o.beams);
  int64_t length = b->length;
  double score = length ? divided(b, b->sums[prompt * b->o.beams], length) : 0;
  if (s->numFound) {
    from = s->found[0].tokens;
    length = s->found[0].length;
    score = s->found[0].score;
  }
  for (int64_t k = 0; k < width; ++k)
    tokens[k] = k < length ? from[k] : -1;
  return score;
}
