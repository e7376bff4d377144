/* generation_config.json of a checkpoint's folder. */
#include "runtime/ProgramGenerate.h"
#include "runtime/io/Json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct config {
  heed_json *json;
  heed_generate_arguments found; /* `set` says what */
  bool samples;                  /* do_sample */
  int32_t start, begin;          /* decoder_start_token_id, bos_token_id */
  char *notes;
  size_t notesSize;
} config;

/* Settings that change what is chosen, and are not applied here. */
static const char *const notApplied[] = {"no_repeat_ngram_size",
                                         "encoder_no_repeat_ngram_size",
                                         "min_length",
                                         "min_new_tokens",
                                         "forced_bos_token_id",
                                         "forced_eos_token_id",
                                         "suppress_tokens",
                                         "begin_suppress_tokens",
                                         "bad_words_ids",
                                         "sequence_bias",
                                         "exponential_decay_length_penalty",
                                         "encoder_repetition_penalty",
                                         "early_stopping",
                                         "num_beam_groups",
                                         "diversity_penalty",
                                         "penalty_alpha",
                                         "guidance_scale",
                                         "typical_p",
                                         "epsilon_cutoff",
                                         "eta_cutoff"};

static void note(config *c, const char *key) {
  size_t length = strlen(c->notes);
  snprintf(c->notes + length, c->notesSize - length, "%s'%s'",
           length ? ", " : "", key);
}

/* null, false, 0, 1 and [] mean that nothing is changed. */
static bool readNotApplied(config *c, const char *key) {
  char first = heed_json_peek(c->json);
  bool changes = first == 't' || first == '{' || first == '"';
  if (first == '[') {
    const char *inside = c->json->at + 1;
    while (inside < c->json->end && strchr(" \t\r\n", *inside))
      ++inside;
    changes = inside < c->json->end && *inside != ']';
  }
  if (first == '-' || (first >= '0' && first <= '9')) {
    double value;
    if (!heed_json_number(c->json, &value))
      return false;
    if (value != 0 && value != 1)
      note(c, key);
    return true;
  }
  if (changes)
    note(c, key);
  return heed_json_skip(c->json);
}

/* A number, or null: then `set` stays as it is. */
static bool readNumber(config *c, double *value, uint32_t set) {
  if (heed_json_peek(c->json) == 'n')
    return heed_json_skip(c->json);
  c->found.set |= set;
  return heed_json_number(c->json, value);
}

static bool readCount(config *c, int64_t *value, uint32_t set) {
  double number = (double)*value;
  if (!readNumber(c, &number, set))
    return false;
  if (!(number >= 0 && number <= HEED_MAX_EXTENT))
    return heed_json_fail(c->json, "a number that is not negative");
  *value = (int64_t)number;
  return true;
}

static bool addStop(config *c) {
  double id;
  if (!heed_json_number(c->json, &id))
    return false;
  if (!(id >= 0 && id <= INT32_MAX))
    return true;
  c->found.set |= HEED_SET_STOP;
  return heed_generate_add_stop(&c->found, (int32_t)id) ||
         heed_io_fail(c->json->error, "%s: no memory", c->json->where);
}

static bool readStop(config *c) {
  bool first = true, more;
  char kind = heed_json_peek(c->json);
  if (kind == 'n')
    return heed_json_skip(c->json);
  if (kind != '[')
    return addStop(c);
  if (!heed_json_open(c->json, '['))
    return false;
  for (;;) {
    if (!heed_json_next(c->json, '[', &first, &more))
      return false;
    if (!more)
      return true;
    if (!addStop(c))
      return false;
  }
}

static bool readToken(config *c, int32_t *token) {
  double id = -1;
  if (heed_json_peek(c->json) != 'n' && heed_json_peek(c->json) != '[') {
    if (!heed_json_number(c->json, &id))
      return false;
  } else if (!heed_json_skip(c->json))
    return false;
  if (id >= 0 && id <= INT32_MAX)
    *token = (int32_t)id;
  return true;
}

static bool readMember(void *context, const char *key) {
  config *c = context;
  heed_generate_arguments *f = &c->found;
  if (!strcmp(key, "temperature"))
    return readNumber(c, &f->temperature, HEED_SET_TEMPERATURE);
  if (!strcmp(key, "top_k"))
    return readCount(c, &f->topK, HEED_SET_TOP_K);
  if (!strcmp(key, "top_p"))
    return readNumber(c, &f->topP, HEED_SET_TOP_P);
  if (!strcmp(key, "min_p"))
    return readNumber(c, &f->minP, HEED_SET_MIN_P);
  if (!strcmp(key, "repetition_penalty"))
    return readNumber(c, &f->repetitionPenalty, HEED_SET_REPETITION_PENALTY);
  if (!strcmp(key, "num_beams"))
    return readCount(c, &f->beams, HEED_SET_BEAMS);
  if (!strcmp(key, "length_penalty"))
    return readNumber(c, &f->lengthPenalty, HEED_SET_LENGTH_PENALTY);
  if (!strcmp(key, "eos_token_id"))
    return readStop(c);
  if (!strcmp(key, "decoder_start_token_id"))
    return readToken(c, &c->start);
  if (!strcmp(key, "bos_token_id"))
    return readToken(c, &c->begin);
  if (!strcmp(key, "do_sample"))
    c->samples = heed_json_peek(c->json) == 't';
  for (size_t k = 0; k < sizeof notApplied / sizeof *notApplied; ++k)
    if (!strcmp(key, notApplied[k]))
      return readNotApplied(c, key);
  return heed_json_skip(c->json);
}

/* *found is false where there is no such file. */
static bool readFile(const char *folder, const char *name, config *c,
                     bool *found, heed_io_error *error) {
  char path[4096];
  heed_bytes bytes = {0};
  heed_json json;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  *found = access(path, F_OK) == 0;
  if (!*found)
    return true;
  if (!heed_bytes_read(path, &bytes, error))
    return false;
  bool good = heed_json_start(&json, bytes.data, bytes.size, path, error);
  if (good) {
    char *strings = json.strings;
    c->json = &json;
    good = heed_json_members(&json, readMember, c) && heed_json_end(&json);
    free(strings);
  }
  heed_bytes_release(&bytes);
  return good;
}

/* The command line's own stays. */
static void apply(const config *c, heed_generate_arguments *g) {
  const heed_generate_arguments *f = &c->found;
  uint32_t added = f->set & ~g->set;
  if (added & HEED_SET_REPETITION_PENALTY)
    g->repetitionPenalty = f->repetitionPenalty;
  if (added & HEED_SET_LENGTH_PENALTY)
    g->lengthPenalty = f->lengthPenalty;
  /* Who asks for beams does not want draws, and the other way round. */
  bool beams = (g->set & HEED_SET_BEAMS) && g->beams > 1;
  if (!(g->set & HEED_SET_TEMPERATURE) && c->samples && !beams)
    g->temperature = f->set & HEED_SET_TEMPERATURE ? f->temperature : 1;
  if ((added & HEED_SET_BEAMS) && g->temperature == 0 && f->beams)
    g->beams = f->beams;
  if (g->temperature == 0)
    return;
  if (added & HEED_SET_TOP_K)
    g->topK = f->topK;
  else if (!(g->set & HEED_SET_TOP_K) && c->samples)
    g->topK = 50; /* what transformers takes where the file is silent */
  if (added & HEED_SET_TOP_P)
    g->topP = f->topP;
  if (added & HEED_SET_MIN_P)
    g->minP = f->minP;
}

bool heed_generation_config_read(const char *folder, heed_generate_arguments *g,
                                 char *notes, size_t notesSize,
                                 heed_io_error *error) {
  config c = {.start = -1, .begin = -1, .notes = notes, .notesSize = notesSize};
  notes[0] = 0;
  heed_generate_defaults(&c.found);
  bool found, other;
  bool good = readFile(folder, "generation_config.json", &c, &found, error) &&
              (found || readFile(folder, "config.json", &c, &other, error));
  if (good && found && c.start < 0) {
    char ignored[2048] = "";
    config more = {.start = -1,
                   .begin = -1,
                   .notes = ignored,
                   .notesSize = sizeof ignored};
    heed_generate_defaults(&more.found);
    good = readFile(folder, "config.json", &more, &other, error);
    c.start = more.start;
    c.begin = c.begin < 0 ? more.begin : c.begin;
    heed_generate_release(&more.found);
  }
  if (good)
    apply(&c, g);
  g->start = c.start >= 0 ? c.start : c.begin;
  if (good && !(g->set & HEED_SET_STOP)) {
    free(g->stop);
    g->stop = c.found.stop;
    g->numStop = c.found.numStop;
    c.found.stop = NULL;
  }
  heed_generate_release(&c.found);
  return good;
}
