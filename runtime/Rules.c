/* What may be chosen, by a row's history: generate.h says how. */
#include "runtime/Rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* A list of ids, as a field of heed_sampling. */
typedef struct list {
  const char *name;
  const int32_t **ids;
  size_t *count;
  bool isOfVocabulary; /* each id must be of it */
} list;

enum { NUM_LISTS = 6 };

static void listsOf(heed_sampling *s, list *lists) {
  const list all[NUM_LISTS] = {
      {"stop", &s->stop, &s->numStop, false},
      {"badWords", &s->badWords, &s->numBadWords, true},
      {"forcedBos", &s->forcedBos, &s->numForcedBos, true},
      {"forcedEos", &s->forcedEos, &s->numForcedEos, true},
      {"suppress", &s->suppress, &s->numSuppress, false},
      {"beginSuppress", &s->beginSuppress, &s->numBeginSuppress, false},
  };
  memcpy(lists, all, sizeof all);
}

static heed_status fail(char *message, const char *what, const char *expected,
                        double found) {
  snprintf(message, HEED_CHOICE_MESSAGE, "%s: expected %s, found %g", what,
           expected, found);
  return HEED_ERROR_ARGUMENT;
}

static heed_status checkNumbers(const heed_sampling *s, char *message) {
  const struct {
    const char *name, *expected;
    double value, least, most;
  } numbers[] = {
      {"temperature", "a number from 0 to 1e+30", s->temperature, 0, 1e30},
      {"topP", "a number from 0 to 1", s->topP, 0, 1},
      {"minP", "a number from 0 to 1", s->minP, 0, 1},
      {"repetitionPenalty", "a number from 1e-30 to 1e+30",
       s->repetitionPenalty, 1e-30, 1e30},
      {"topK", "a number that is not negative", (double)s->topK, 0, INFINITY},
      {"noRepeatNgram", "a number that is not negative",
       (double)s->noRepeatNgram, 0, INFINITY},
      {"minLength", "a number that is not negative", (double)s->minLength, 0,
       INFINITY},
      {"minNew", "a number that is not negative", (double)s->minNew, 0,
       INFINITY},
      {"maxNew", "a number that is not negative", (double)s->maxNew, 0,
       INFINITY},
  };
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; ++k)
    if (!(numbers[k].value >= numbers[k].least &&
          numbers[k].value <= numbers[k].most))
      return fail(message, numbers[k].name, numbers[k].expected,
                  numbers[k].value);
  if (s->numForcedEos && !s->maxNew)
    return fail(message, "maxNew", "the number of tokens that forcedEos ends",
                0);
  return HEED_OK;
}

/* -1 ends each of the bad words, which have at least one token. */
static heed_status checkWords(const heed_sampling *s, char *message) {
  for (size_t k = 0; k < s->numBadWords; ++k)
    if (s->badWords[k] == -1 && (k == 0 || s->badWords[k - 1] == -1))
      return fail(message, "badWords", "a token before each -1", -1);
  if (s->numBadWords && s->badWords[s->numBadWords - 1] != -1)
    return fail(message, "badWords", "-1 behind the last word",
                s->badWords[s->numBadWords - 1]);
  return HEED_OK;
}

static heed_status checkLists(heed_rules *rules, char *message) {
  list lists[NUM_LISTS];
  listsOf(&rules->s, lists);
  for (int n = 0; n < NUM_LISTS; ++n) {
    bool areWords = lists[n].ids == &rules->s.badWords;
    if (*lists[n].count && !*lists[n].ids) {
      snprintf(message, HEED_CHOICE_MESSAGE, "%s: no ids, expected %zu",
               lists[n].name, *lists[n].count);
      return HEED_ERROR_ARGUMENT;
    }
    for (size_t k = 0; lists[n].isOfVocabulary && k < *lists[n].count; ++k) {
      int32_t id = (*lists[n].ids)[k];
      if (id >= rules->vocabulary || (id < 0 && !(areWords && id == -1)))
        return fail(message, lists[n].name, "ids of the vocabulary", id);
    }
  }
  return checkWords(&rules->s, message);
}

/* The lists become the rules' own. */
static heed_status copyLists(heed_rules *rules, char *message) {
  list lists[NUM_LISTS];
  size_t all = 1;
  listsOf(&rules->s, lists);
  for (int n = 0; n < NUM_LISTS; ++n)
    if (__builtin_add_overflow(all, *lists[n].count, &all))
      all = SIZE_MAX;
  rules->memory = all > SIZE_MAX / sizeof *rules->memory
                      ? NULL
                      : malloc(all * sizeof *rules->memory);
  if (!rules->memory) {
    snprintf(message, HEED_CHOICE_MESSAGE, "no memory for lists of tokens");
    return HEED_ERROR_MEMORY;
  }
  int32_t *to = rules->memory;
  for (int n = 0; n < NUM_LISTS; ++n) {
    size_t count = *lists[n].count;
    if (count)
      memcpy(to, *lists[n].ids, count * sizeof *to);
    *lists[n].ids = to;
    to += count;
  }
  return HEED_OK;
}

heed_status heed_rules_read(heed_rules *rules, const heed_sampling *given,
                            int64_t vocabulary, char *message) {
  heed_sampling *s = &rules->s;
  *rules = (heed_rules){.vocabulary = vocabulary};
  if (given && !heed_read_options(s, sizeof *s, given, HEED_LEAST_SAMPLING)) {
    snprintf(message, HEED_CHOICE_MESSAGE,
             "a heed_sampling of %zu bytes, expected %zu", given->size,
             sizeof *s);
    return HEED_ERROR_VERSION;
  }
  s->topP = s->topP == 0 ? 1 : s->topP;
  s->repetitionPenalty = s->repetitionPenalty == 0 ? 1 : s->repetitionPenalty;
  heed_status status = checkNumbers(s, message);
  if (!status)
    status = checkLists(rules, message);
  if (!status)
    status = copyLists(rules, message);
  if (status)
    return status;
  rules->needsTokens = s->noRepeatNgram > 0;
  for (size_t k = 1; k < s->numBadWords; ++k)
    rules->needsTokens |= s->badWords[k] >= 0 && s->badWords[k - 1] >= 0;
  return HEED_OK;
}

void heed_rules_release(heed_rules *rules) { free(rules->memory); }

/* ---- applying ---- */

static void forbid(const heed_rules *rules, const int32_t *ids, size_t count,
                   double *scores) {
  for (size_t k = 0; k < count; ++k)
    if (ids[k] >= 0 && ids[k] < rules->vocabulary)
      scores[ids[k]] = -INFINITY;
}

/* The last tokens and the next one would be n tokens that the row has seen. */
static void forbidNgrams(const heed_rules *rules, heed_history row,
                         double *scores) {
  int64_t n = rules->s.noRepeatNgram;
  if (!n || row.count < n)
    return;
  const int32_t *last = row.tokens + row.count + 1 - n;
  for (int64_t k = 0; k + n <= row.count; ++k)
    if (!memcmp(row.tokens + k, last, (size_t)(n - 1) * sizeof *last))
      scores[row.tokens[k + n - 1]] = -INFINITY;
}

/* The last token of a word whose other tokens are the row's last ones. A stop
 * id alone is no word, as transformers has it. */
static void forbidWords(const heed_rules *rules, heed_history row,
                        double *scores) {
  const heed_sampling *s = &rules->s;
  for (size_t first = 0, last; first < s->numBadWords; first = last + 2) {
    for (last = first; s->badWords[last + 1] >= 0;)
      ++last;
    int64_t before = (int64_t)(last - first);
    const int32_t *word = s->badWords + first;
    if (before ? before <= row.count &&
                     !memcmp(row.tokens + row.count - before, word,
                             (size_t)before * sizeof *word)
               : !heed_is_stop(s->stop, s->numStop, *word))
      scores[word[before]] = -INFINITY;
  }
}

static void force(const heed_rules *rules, const int32_t *ids, size_t count,
                  double *scores) {
  for (int64_t k = 0; k < rules->vocabulary; ++k)
    scores[k] = -INFINITY;
  for (size_t k = 0; k < count; ++k)
    scores[ids[k]] = 0;
}

void heed_rules_apply(const heed_rules *rules, const uint64_t *seen,
                      heed_history row, double *scores) {
  const heed_sampling *s = &rules->s;
  if (s->repetitionPenalty != 1)
    heed_seen_penalise(seen, rules->vocabulary, s->repetitionPenalty, scores);
  forbidNgrams(rules, row, scores);
  forbidWords(rules, row, scores);
  if (s->minNew ? row.made < s->minNew : row.count < s->minLength)
    forbid(rules, s->stop, s->numStop, scores);
  if (s->numForcedBos && row.count == 1)
    force(rules, s->forcedBos, s->numForcedBos, scores);
  if (s->numForcedEos && row.made == s->maxNew - 1)
    force(rules, s->forcedEos, s->numForcedEos, scores);
  forbid(rules, s->suppress, s->numSuppress, scores);
  /* A forced first token stands before the beginning. */
  bool isForced = s->numForcedBos && row.count - row.made == 1;
  if (row.made == isForced)
    forbid(rules, s->beginSuppress, s->numBeginSuppress, scores);
}
