/* The options of --generate. */
#include "runtime/ProgramGenerate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { Count, Seed, Real, Stop, File };

typedef struct known {
  const char *name;
  enum kind kind;
  size_t offset; /* in heed_generate_arguments */
  double least, most;
  uint32_t set;
} known;

#define AT(field) offsetof(heed_generate_arguments, field)
static const known options[] = {
    {"generate", Count, AT(maxNew), 1, HEED_MAX_EXTENT, 0},
    {"temperature", Real, AT(temperature), 0, 1e30, HEED_SET_TEMPERATURE},
    {"top-k", Count, AT(topK), 0, HEED_MAX_EXTENT, HEED_SET_TOP_K},
    {"top-p", Real, AT(topP), 0, 1, HEED_SET_TOP_P},
    {"min-p", Real, AT(minP), 0, 1, HEED_SET_MIN_P},
    {"repetition-penalty", Real, AT(repetitionPenalty), 1e-30, 1e30,
     HEED_SET_REPETITION_PENALTY},
    {"seed", Seed, AT(seed), 0, 0, 0},
    {"stop", Stop, 0, 0, 0, HEED_SET_STOP},
    {"beams", Count, AT(beams), 1, 4096, HEED_SET_BEAMS},
    {"length-penalty", Real, AT(lengthPenalty), -1e6, 1e6,
     HEED_SET_LENGTH_PENALTY},
    {"prompt", File, AT(prompt), 0, 0, 0},
    {"past", File, AT(past), 0, 0, 0},
};
#undef AT

static const known *find(const char *name, size_t length) {
  for (size_t k = 0; k < sizeof options / sizeof *options; ++k)
    if (strlen(options[k].name) == length &&
        !memcmp(options[k].name, name, length))
      return &options[k];
  return NULL;
}

void heed_generate_defaults(heed_generate_arguments *g) {
  *g = (heed_generate_arguments){.topP = 1,
                                 .repetitionPenalty = 1,
                                 .lengthPenalty = 1,
                                 .beams = 1,
                                 .start = -1};
}

void heed_generate_release(heed_generate_arguments *g) { free(g->stop); }

bool heed_generate_knows(const char *name, size_t length) {
  return find(name, length) != NULL;
}

bool heed_generate_add_stop(heed_generate_arguments *g, int32_t id) {
  int32_t *stop = realloc(g->stop, (g->numStop + 1) * sizeof *stop);
  if (!stop)
    return false;
  g->stop = stop;
  stop[g->numStop++] = id;
  return true;
}

bool heed_generate_list(const char *text, int32_t **ids, size_t *count) {
  size_t commas = 0;
  for (const char *at = text; *at; ++at)
    commas += *at == ',';
  *count = 0;
  if (!(*ids = malloc((commas + 1) * sizeof **ids)))
    return false;
  for (const char *at = text;; ++at) {
    char *end;
    errno = 0;
    long long id = strtoll(at, &end, 10);
    bool good = *at >= '0' && *at <= '9' && !errno && id <= INT32_MAX &&
                (*end == ',' || !*end);
    if (!good) {
      *count = 0;
      return true;
    }
    (*ids)[(*count)++] = (int32_t)id;
    if (!*end)
      return true;
    at = end;
  }
}

static bool setStop(heed_generate_arguments *g, const char *value,
                    heed_io_error *error) {
  int32_t *ids;
  size_t count;
  bool good = heed_generate_list(value, &ids, &count);
  for (size_t k = 0; good && k < count; ++k)
    good = heed_generate_add_stop(g, ids[k]);
  free(ids);
  if (!good)
    return heed_io_fail(error, "no memory for stop ids");
  return count || heed_io_fail(error,
                               "option '--stop': expected ids as in 2,17, "
                               "found '%s'",
                               value);
}

static bool setInteger(heed_generate_arguments *g, const known *o,
                       const char *value, heed_io_error *error) {
  char *end;
  errno = 0;
  void *field = (char *)g + o->offset;
  bool digits = *value >= '0' && *value <= '9';
  if (o->kind == Seed) {
    unsigned long long seed = strtoull(value, &end, 10);
    *(uint64_t *)field = seed;
    return (digits && !*end && !errno) ||
           heed_io_fail(error,
                        "option '--seed': expected a number below 2^64, "
                        "found '%s'",
                        value);
  }
  long long count = strtoll(value, &end, 10);
  if (!digits || *end || errno || (double)count < o->least ||
      (double)count > o->most)
    return heed_io_fail(error,
                        "option '--%s': expected a number from %.0f to %.0f, "
                        "found '%s'",
                        o->name, o->least, o->most, value);
  *(int64_t *)field = count;
  return true;
}

bool heed_generate_set(heed_generate_arguments *g, const char *name,
                       size_t length, const char *value, heed_io_error *error) {
  const known *o = find(name, length);
  g->set |= o->set;
  switch (o->kind) {
  case Stop:
    return setStop(g, value, error);
  case File:
    *(const char **)(void *)((char *)g + o->offset) = value;
    return true;
  case Count:
  case Seed:
    return setInteger(g, o, value, error);
  case Real:
    break;
  }
  char *end;
  double number = strtod(value, &end);
  if (end == value || *end || !(number >= o->least && number <= o->most))
    return heed_io_fail(error,
                        "option '--%s': expected a number from %g to %g, "
                        "found '%s'",
                        o->name, o->least, o->most, value);
  *(double *)(void *)((char *)g + o->offset) = number;
  return true;
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
  if (g->beams > 1 && g->temperature > 0)
    return heed_io_fail(error,
                        "option '--beams' does not go with --temperature");
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
      "  --beams K                beam search\n"
      "  --length-penalty X       a hypothesis has score / length^X; default "
      "1\n"
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
