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
  bool stamps;                   /* return_timestamps */
  int32_t start, begin;          /* decoder_start_token_id, bos_token_id */
  int32_t noStamps;              /* no_timestamps_token_id */
  char *notes;
  size_t notesSize;
} config;

/* Settings that change what is chosen, and are not applied here. */
static const char *const notApplied[] = {"encoder_no_repeat_ngram_size",
                                         "sequence_bias",
                                         "exponential_decay_length_penalty",
                                         "encoder_repetition_penalty",
                                         "num_beam_groups",
                                         "diversity_penalty",
                                         "penalty_alpha",
                                         "guidance_scale",
                                         "typical_p",
                                         "top_h",
                                         "epsilon_cutoff",
                                         "eta_cutoff",
                                         "renormalize_logits",
                                         "watermarking_config",
                                         "stop_strings",
                                         "token_healing",
                                         "dola_layers",
                                         "force_words_ids",
                                         "constraints",
                                         "num_return_sequences",
                                         "language",
                                         "task"};

static void note(config *c, const char *key) {
  size_t length = strlen(c->notes);
  snprintf(c->notes + length, c->notesSize - length, "%s'%s'",
           length ? ", " : "", key);
}

/* null, false, [], 0 and 1 mean that nothing is changed. */
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

static bool noMemory(config *c) {
  return heed_io_fail(c->json->error, "%s: no memory", c->json->where);
}

/* A whole number that an int64_t has without rounding. */
static bool readWhole(config *c, int64_t *value) {
  double number;
  if (!heed_json_number(c->json, &number))
    return false;
  if (!(number >= -0x1p53 && number <= 0x1p53) ||
      number != (double)(int64_t)number)
    return heed_json_fail(c->json, "an integer before this,");
  *value = (int64_t)number;
  return true;
}

/* Ids that no vocabulary has, -1 for example, are none. */
static bool readId(config *c, heed_ids *list) {
  int64_t id;
  if (!readWhole(c, &id))
    return false;
  return id < 0 || id > INT32_MAX || heed_ids_add(list, (int32_t)id) ||
         noMemory(c);
}

static bool readEach(config *c, heed_ids *list,
                     bool (*readOne)(config *, heed_ids *)) {
  bool first = true, more;
  if (!heed_json_open(c->json, '['))
    return false;
  for (;;) {
    if (!heed_json_next(c->json, '[', &first, &more))
      return false;
    if (!more)
      return true;
    if (!readOne(c, list))
      return false;
  }
}

static bool readIds(config *c, heed_ids *list) {
  return heed_json_peek(c->json) == '[' ? readEach(c, list, readId)
                                        : readId(c, list);
}

static bool readWord(config *c, heed_ids *list) {
  size_t before = list->count;
  if (!readIds(c, list))
    return false;
  if (list->count == before)
    return heed_json_fail(c->json, "a token in each word before this,");
  return heed_ids_add(list, -1) || noMemory(c);
}

static bool readWords(config *c, heed_ids *list) {
  return readEach(c, list, readWord);
}

static bool readEarly(config *c, int64_t *early) {
  const char *word;
  char first = heed_json_peek(c->json);
  if (first == 't' || first == 'f') {
    *early = first == 't' ? HEED_EARLY_TRUE : HEED_EARLY_FALSE;
    return heed_json_skip(c->json);
  }
  if (!heed_json_string(c->json, &word))
    return false;
  *early = HEED_EARLY_NEVER;
  return !strcmp(word, "never") ||
         heed_json_fail(c->json, "true, false or \"never\" before this,");
}

/* What stands last in the file is meant; null is nothing. */
static bool readSetting(config *c, const heed_setting *s) {
  void *field = (char *)&c->found + s->offset;
  bool areIds = s->kind == HEED_IDS || s->kind == HEED_WORDS;
  c->found.set &= ~s->set;
  if (areIds)
    ((heed_ids *)field)->count = 0;
  if (heed_json_peek(c->json) == 'n')
    return heed_json_skip(c->json);
  c->found.set |= s->set;
  switch (s->kind) {
  case HEED_COUNT:
    return readWhole(c, field);
  case HEED_IDS:
    return readIds(c, field);
  case HEED_WORDS:
    return readWords(c, field);
  case HEED_EARLY:
    return readEarly(c, field);
  default:
    return heed_json_number(c->json, field);
  }
}

static bool readToken(config *c, const char *key, int32_t *token) {
  int64_t id;
  char first = heed_json_peek(c->json);
  *token = -1;
  if (first == '[')
    note(c, key);
  if (first == 'n' || first == '[')
    return heed_json_skip(c->json);
  if (!readWhole(c, &id))
    return false;
  if (id >= 0 && id <= INT32_MAX)
    *token = (int32_t)id;
  return true;
}

/* Whisper's [[1, 50259], [2, 50359]]: tokens behind the decoder's first one. An
 * id that is null would be found by the model. */
static bool readForced(config *c, const char *key) {
  bool first = true, more;
  heed_ids *list = &c->found.behind;
  list->count = 0;
  if (heed_json_peek(c->json) != '[')
    return heed_json_skip(c->json);
  if (!heed_json_open(c->json, '['))
    return false;
  for (int64_t position = 1;; ++position) {
    int64_t at, id = 0;
    bool inner = true;
    if (!heed_json_next(c->json, '[', &first, &more))
      return false;
    if (!more)
      return true;
    if (!heed_json_open(c->json, '[') ||
        !heed_json_next(c->json, '[', &inner, &more) || !readWhole(c, &at) ||
        !heed_json_next(c->json, '[', &inner, &more))
      return false;
    if (!more || at != position)
      return heed_json_fail(c->json, "positions 1, 2, .. and ids before this,");
    bool isNull = heed_json_peek(c->json) == 'n';
    if (isNull)
      note(c, key);
    if (isNull ? !heed_json_skip(c->json) : !readWhole(c, &id))
      return false;
    if (id < 0 || id > INT32_MAX)
      return heed_json_fail(c->json, "an id before this,");
    if (!isNull && !heed_ids_add(list, (int32_t)id))
      return noMemory(c);
    if (!heed_json_next(c->json, '[', &inner, &more))
      return false;
    if (more)
      return heed_json_fail(c->json, "']'");
  }
}

static bool readMember(void *context, const char *key) {
  config *c = context;
  const heed_setting *s = heed_generate_settings;
  for (; *s->name; ++s)
    if (s->key && !strcmp(key, s->key))
      return readSetting(c, s);
  if (!strcmp(key, "decoder_start_token_id"))
    return readToken(c, key, &c->start);
  if (!strcmp(key, "bos_token_id"))
    return readToken(c, key, &c->begin);
  if (!strcmp(key, "no_timestamps_token_id"))
    return readToken(c, key, &c->noStamps);
  if (!strcmp(key, "forced_decoder_ids"))
    return readForced(c, key);
  if (!strcmp(key, "do_sample"))
    c->samples = heed_json_peek(c->json) == 't';
  if (!strcmp(key, "return_timestamps"))
    c->stamps = heed_json_peek(c->json) == 't';
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

/* ---- applying ---- */

/* A setting of the file, which was not looked at until it is applied. */
static bool take(const config *c, heed_generate_arguments *g,
                 const heed_setting *s, const char *folder,
                 heed_io_error *error) {
  const void *from = (const char *)&c->found + s->offset;
  void *to = (char *)g + s->offset;
  double value = s->least;
  if (s->kind == HEED_COUNT)
    value = (double)*(const int64_t *)from;
  if (s->kind == HEED_REAL)
    value = *(const double *)from;
  if (!(value >= s->least && value <= s->most))
    return heed_io_fail(error,
                        "the settings in %s: '%s': expected a number from %g "
                        "to %g, found %g",
                        folder, s->key, s->least, s->most, value);
  if (s->kind == HEED_IDS || s->kind == HEED_WORDS) {
    heed_ids *list = to;
    list->count = 0;
    for (size_t k = 0; k < ((const heed_ids *)from)->count; ++k)
      if (!heed_ids_add(list, ((const heed_ids *)from)->ids[k]))
        return heed_io_fail(error, "no memory for '%s'", s->key);
    return true;
  }
  memcpy(to, from, sizeof(int64_t));
  return true;
}

/* What of the file's settings is meant: the command line's own stays. */
static uint32_t wanted(const config *c, heed_generate_arguments *g) {
  uint32_t added = c->found.set & ~g->set;
  /* Who asks for beams does not want draws, and the other way round. */
  bool beams = (g->set & HEED_SET_BEAMS) && g->beams > 1;
  bool draws = (g->set & HEED_SET_TEMPERATURE) && g->temperature > 0;
  bool filters = (g->set & HEED_SET_TEMPERATURE) ? g->temperature > 0
                                                 : c->samples && !beams;
  if (!filters)
    added &= ~(uint32_t)(HEED_SET_TOP_K | HEED_SET_TOP_P | HEED_SET_MIN_P);
  if (!c->samples || beams)
    added &= ~(uint32_t)HEED_SET_TEMPERATURE;
  if (draws && !c->samples)
    added &= ~(uint32_t)HEED_SET_BEAMS;
  if (g->set & HEED_SET_MIN_LENGTH)
    added &= ~(uint32_t)HEED_SET_MIN_NEW;
  if (filters && !(g->set & HEED_SET_TEMPERATURE))
    g->temperature = 1;
  if (filters && c->samples && !((g->set | added) & HEED_SET_TOP_K))
    g->topK = 50; /* what transformers takes where the file is silent */
  return added;
}

static bool apply(const config *c, heed_generate_arguments *g,
                  const char *folder, heed_io_error *error) {
  const heed_setting *s = heed_generate_settings;
  uint32_t added = wanted(c, g);
  for (; *s->name; ++s)
    if ((s->set & added) && !take(c, g, s, folder, error))
      return false;
  /* min_new_tokens counts, whatever it is. */
  if (((g->set | added) & HEED_SET_MIN_NEW) && !(g->set & HEED_SET_MIN_LENGTH))
    g->minLength = 0;
  g->start = c->start >= 0 ? c->start : c->begin;
  const heed_ids *behind = &c->found.behind;
  for (size_t k = 0; k < behind->count; ++k)
    if (!heed_ids_add(&g->behind, behind->ids[k]))
      return heed_io_fail(error, "no memory for the decoder's prompt");
  bool ends = behind->count && behind->ids[behind->count - 1] == c->noStamps;
  return c->noStamps < 0 || c->stamps || ends ||
         heed_ids_add(&g->behind, c->noStamps) ||
         heed_io_fail(error, "no memory for the decoder's prompt");
}

/* The decoder's first token that config.json has. */
static bool readStart(const char *folder, config *c, heed_io_error *error) {
  char ignored[2048] = "";
  bool found;
  config more = {.start = -1,
                 .begin = -1,
                 .noStamps = -1,
                 .notes = ignored,
                 .notesSize = sizeof ignored};
  heed_generate_defaults(&more.found);
  bool good = readFile(folder, "config.json", &more, &found, error);
  c->start = more.start;
  c->begin = c->begin < 0 ? more.begin : c->begin;
  heed_generate_release(&more.found);
  return good;
}

bool heed_generation_config_read(const char *folder, heed_generate_arguments *g,
                                 char *notes, size_t notesSize,
                                 heed_io_error *error) {
  config c = {.start = -1,
              .begin = -1,
              .noStamps = -1,
              .notes = notes,
              .notesSize = notesSize};
  notes[0] = 0;
  heed_generate_defaults(&c.found);
  bool found, other;
  bool good = readFile(folder, "generation_config.json", &c, &found, error) &&
              (found || readFile(folder, "config.json", &c, &other, error)) &&
              (!found || c.start >= 0 || readStart(folder, &c, error)) &&
              apply(&c, g, folder, error);
  heed_generate_release(&c.found);
  return good;
}
