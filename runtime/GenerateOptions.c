/* The options of --generate. */
#include "runtime/ProgramGenerate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(heed_generate_arguments, field)
const heed_setting heed_generate_settings[] = {
    {"generate", NULL, HEED_COUNT, AT(maxNew), 1, HEED_MAX_EXTENT, 0},
    {"temperature", "temperature", HEED_REAL, AT(temperature), 0, 1e30,
     HEED_SET_TEMPERATURE},
    {"top-k", "top_k", HEED_COUNT, AT(topK), 0, HEED_MAX_EXTENT,
     HEED_SET_TOP_K},
    {"top-p", "top_p", HEED_REAL, AT(topP), 0, 1, HEED_SET_TOP_P},
    {"min-p", "min_p", HEED_REAL, AT(minP), 0, 1, HEED_SET_MIN_P},
    {"repetition-penalty", "repetition_penalty", HEED_REAL,
     AT(repetitionPenalty), 1e-30, 1e30, HEED_SET_REPETITION_PENALTY},
    {"seed", NULL, HEED_SEED, AT(seed), 0, 0, 0},
    {"stop", "eos_token_id", HEED_IDS, AT(stop), 0, 0, HEED_SET_STOP},
    {"no-repeat-ngram-size", "no_repeat_ngram_size", HEED_COUNT,
     AT(noRepeatNgram), 0, HEED_MAX_EXTENT, HEED_SET_NO_REPEAT_NGRAM},
    {"bad-words-ids", "bad_words_ids", HEED_WORDS, AT(badWords), 0, 0,
     HEED_SET_BAD_WORDS},
    {"min-length", "min_length", HEED_COUNT, AT(minLength), 0, HEED_MAX_EXTENT,
     HEED_SET_MIN_LENGTH},
    {"min-new-tokens", "min_new_tokens", HEED_COUNT, AT(minNew), 0,
     HEED_MAX_EXTENT, HEED_SET_MIN_NEW},
    {"forced-bos-token-id", "forced_bos_token_id", HEED_IDS, AT(forcedBos), 0,
     0, HEED_SET_FORCED_BOS},
    {"forced-eos-token-id", "forced_eos_token_id", HEED_IDS, AT(forcedEos), 0,
     0, HEED_SET_FORCED_EOS},
    {"suppress-tokens", "suppress_tokens", HEED_IDS, AT(suppress), 0, 0,
     HEED_SET_SUPPRESS},
    {"begin-suppress-tokens", "begin_suppress_tokens", HEED_IDS,
     AT(beginSuppress), 0, 0, HEED_SET_BEGIN_SUPPRESS},
    {"beams", "num_beams", HEED_COUNT, AT(beams), 1, 4096, HEED_SET_BEAMS},
    {"length-penalty", "length_penalty", HEED_REAL, AT(lengthPenalty), -1e6,
     1e6, HEED_SET_LENGTH_PENALTY},
    {"early-stopping", "early_stopping", HEED_EARLY, AT(earlyStopping), 0, 0,
     HEED_SET_EARLY_STOPPING},
    {"prompt", NULL, HEED_FILE, AT(prompt), 0, 0, 0},
    {"past", NULL, HEED_FILE, AT(past), 0, 0, 0},
    {"", NULL, HEED_FILE, 0, 0, 0, 0},
};
#undef AT

static const heed_setting *find(const char *name, size_t length) {
  const heed_setting *s = heed_generate_settings;
  for (; *s->name; ++s)
    if (strlen(s->name) == length && !memcmp(s->name, name, length))
      return s;
  return NULL;
}

void heed_generate_defaults(heed_generate_arguments *g) {
  *g = (heed_generate_arguments){.topP = 1,
                                 .repetitionPenalty = 1,
                                 .lengthPenalty = 1,
                                 .beams = 1,
                                 .start = -1};
}

void heed_generate_release(heed_generate_arguments *g) {
  const heed_setting *s = heed_generate_settings;
  for (; *s->name; ++s)
    if (s->kind == HEED_IDS || s->kind == HEED_WORDS)
      free(((heed_ids *)(void *)((char *)g + s->offset))->ids);
  free(g->behind.ids);
}

bool heed_generate_knows(const char *name, size_t length) {
  return find(name, length) != NULL;
}

bool heed_ids_add(heed_ids *list, int32_t id) {
  /* Room grows where the count is a power of two. */
  if ((list->count & (list->count - 1)) == 0) {
    size_t room = list->count ? 2 * list->count : 1;
    int32_t *ids = room > SIZE_MAX / sizeof *ids
                       ? NULL
                       : realloc(list->ids, room * sizeof *ids);
    if (!ids)
      return false;
    list->ids = ids;
  }
  list->ids[list->count++] = id;
  return true;
}

bool heed_ids_read(heed_ids *list, const char *text, bool words, bool *good) {
  for (const char *at = text;; ++at) {
    char *end;
    errno = 0;
    long long id = strtoll(at, &end, 10);
    *good = *at >= '0' && *at <= '9' && !errno && id <= INT32_MAX &&
            (*end == ',' || !*end || (words && *end == ':'));
    if (!*good)
      return true;
    if (!heed_ids_add(list, (int32_t)id) ||
        (words && *end != ',' && !heed_ids_add(list, -1)))
      return false;
    if (!*end)
      return true;
    at = end;
  }
}

/* Nothing is no token, but for ends: those of a checkpoint are left out by an
 * id that there is not. */
static bool setIds(const heed_setting *s, heed_ids *list, const char *value,
                   heed_io_error *error) {
  bool words = s->kind == HEED_WORDS, good = true;
  if (!*value && s->set != HEED_SET_STOP)
    return true;
  if (!heed_ids_read(list, value, words, &good))
    return heed_io_fail(error, "option '--%s': no memory", s->name);
  return good || heed_io_fail(error,
                              "option '--%s': expected ids as in %s, found "
                              "'%s'",
                              s->name, words ? "2,17:5" : "2,17", value);
}

static bool setEarly(int64_t *early, const char *value, heed_io_error *error) {
  static const char *const words[] = {"false", "true", "never"};
  for (int k = HEED_EARLY_FALSE; k <= HEED_EARLY_NEVER; ++k)
    if (!strcmp(value, words[k])) {
      *early = k;
      return true;
    }
  return heed_io_fail(error,
                      "option '--early-stopping': expected true, false or "
                      "never, found '%s'",
                      value);
}

static bool setInteger(const heed_setting *s, void *field, const char *value,
                       heed_io_error *error) {
  char *end;
  errno = 0;
  bool digits = *value >= '0' && *value <= '9';
  if (s->kind == HEED_SEED) {
    unsigned long long seed = strtoull(value, &end, 10);
    *(uint64_t *)field = seed;
    return (digits && !*end && !errno) ||
           heed_io_fail(error,
                        "option '--seed': expected a number below 2^64, "
                        "found '%s'",
                        value);
  }
  long long count = strtoll(value, &end, 10);
  if (!digits || *end || errno || (double)count < s->least ||
      (double)count > s->most)
    return heed_io_fail(error,
                        "option '--%s': expected a number from %.0f to %.0f, "
                        "found '%s'",
                        s->name, s->least, s->most, value);
  *(int64_t *)field = count;
  return true;
}

static bool setReal(const heed_setting *s, double *field, const char *value,
                    heed_io_error *error) {
  char *end;
  double number = strtod(value, &end);
  if (end == value || *end || !(number >= s->least && number <= s->most))
    return heed_io_fail(error,
                        "option '--%s': expected a number from %g to %g, "
                        "found '%s'",
                        s->name, s->least, s->most, value);
  *field = number;
  return true;
}

bool heed_generate_set(heed_generate_arguments *g, const char *name,
                       size_t length, const char *value, heed_io_error *error) {
  const heed_setting *s = find(name, length);
  void *field = (char *)g + s->offset;
  g->set |= s->set;
  switch (s->kind) {
  case HEED_IDS:
  case HEED_WORDS:
    return setIds(s, field, value, error);
  case HEED_FILE:
    *(const char **)field = value;
    return true;
  case HEED_EARLY:
    return setEarly(field, value, error);
  case HEED_COUNT:
  case HEED_SEED:
    return setInteger(s, field, value, error);
  case HEED_REAL:
    break;
  }
  return setReal(s, field, value, error);
}

bool heed_generate_check(const heed_generate_arguments *g,
                         heed_io_error *error) {
  const char *name = g->set & HEED_SET_TOP_K   ? "top-k"
                     : g->set & HEED_SET_TOP_P ? "top-p"
                     : g->set & HEED_SET_MIN_P ? "min-p"
                                               : NULL;
  if (name && g->temperature == 0)
    return heed_io_fail(
        error, "option '--%s' goes with a --temperature above 0", name);
  return true;
}

void heed_generate_help(FILE *stream) {
  fputs(
      "\ngeneration:\n"
      "  --generate N             N tokens at most behind each row of ids\n"
      "                           (a file, or a list: 17,4); of rows that are\n"
      "                           not equally long, --count FILE has the\n"
      "                           lengths. Tokens go to standard output, a "
      "row\n"
      "                           a line; a single row's as they come. With\n"
      "                           --output FILE.npy they go there instead: "
      "i32,\n"
      "                           -1 behind a row's end. Ctrl-C ends it with\n"
      "                           what there is, and exit code 130\n"
      "  --temperature X          default 0: the largest logit\n"
      "  --top-k N, --top-p X, --min-p X\n"
      "                           what is drawn from, in this order\n"
      "  --repetition-penalty X   divides positive logits of tokens that a "
      "row\n"
      "                           has seen, multiplies negative ones\n"
      "  --seed N                 of the draws; default 0\n"
      "  --stop ID[,ID]           ends a row\n"
      "  --no-repeat-ngram-size N no N tokens in an order that the row has "
      "seen\n"
      "  --bad-words-ids W[:W]    words, each ID[,ID], that rows do not say\n"
      "  --min-length N, --min-new-tokens N\n"
      "                           no stop id while a row, or what is new of "
      "it,\n"
      "                           is shorter\n"
      "  --forced-bos-token-id ID[,ID]\n"
      "                           behind a prompt of one token: one of these\n"
      "  --forced-eos-token-id ID[,ID]\n"
      "                           the last of the N tokens\n"
      "  --suppress-tokens ID[,ID], --begin-suppress-tokens ID[,ID]\n"
      "                           never; not as the first new token\n"
      "  --beams K                beam search; beams are drawn where there is "
      "a\n"
      "                           temperature\n"
      "  --length-penalty X       a hypothesis has score / length^X; default "
      "1\n"
      "  --early-stopping W       true, false or never: when K hypotheses are\n"
      "                           enough; default false\n"
      "  --prompt FILE            of a model with an entry 'encode': what its\n"
      "                           decoder begins with, instead of the\n"
      "                           checkpoint's start token\n"
      "  --past FILE              tokens that --state-in has seen: where "
      "draws\n"
      "                           and the penalty go on\n"
      "                           Defaults are those of "
      "generation_config.json\n"
      "                           where --weights is a folder. States get "
      "room\n"
      "                           for the prompt and N tokens\n",
      stream);
}
