/* Generation over a hand-written model: a step whose callback ends it, that is
 * cancelled, that fails; two threads on one model; what is refused. */
#include "runtime/Model.h"
#include "test/runtime/Inputs/check.h"

#include <math.h>
#include <string.h>

/* ---- the model: logits are a hash of all tokens that a row has seen ---- */

enum { Rows = 3, Longest = 4, Vocabulary = 50, New = 12, Poison = 13 };

static const char *const rowsAndLength[] = {"B", "N"},
                         *const rowsAlone[] = {"B"},
                         *const rowsAndTokens[] = {"B", "50"};
static const int64_t unknown[] = {-1, -1}, tokens[] = {-1, Vocabulary};
static const heed_tensor_info idsInfo = {.size = sizeof idsInfo,
                                         .name = "ids",
                                         .type = HEED_I32,
                                         .rank = 2,
                                         .extents = rowsAndLength,
                                         .sizes = unknown},
                              countInfo = {.size = sizeof countInfo,
                                           .name = "count",
                                           .type = HEED_I32,
                                           .rank = 1,
                                           .extents = rowsAlone,
                                           .sizes = unknown},
                              logitsInfo = {.size = sizeof logitsInfo,
                                            .name = "logits",
                                            .type = HEED_F32,
                                            .rank = 2,
                                            .extents = rowsAndTokens,
                                            .sizes = tokens},
                              hashInfo = {.size = sizeof hashInfo,
                                          .name = "hash",
                                          .type = HEED_I32,
                                          .rank = 1,
                                          .extents = rowsAlone,
                                          .sizes = unknown};
/* Only for permutations: the dim twice, and axes around. */
static const char *const crossed[] = {"2", "B", "3", "B", "1300"};
static const int64_t crossedSizes[] = {2, -1, 3, -1, 1300};
static const heed_tensor_info crossedInfo = {.size = sizeof crossedInfo,
                                             .name = "crossed",
                                             .type = HEED_I16,
                                             .rank = 5,
                                             .extents = crossed,
                                             .sizes = crossedSizes};
static const heed_tensor_info *const inputs[] = {&idsInfo, &countInfo},
                                     *const outputs[] = {&logitsInfo},
                                     *const states[] = {&hashInfo,
                                                        &crossedInfo};

static int32_t shapes(heed_model *model, const heed_argument *in,
                      heed_argument *out) {
  if (in[2].shape[0] != in[0].shape[0] || in[1].shape[0] != in[0].shape[0])
    heed_host_require_failed(model, "rows differ", 0, NULL);
  out[0] = (heed_argument){
      .type = HEED_F32, .rank = 2, .shape = {in[0].shape[0], Vocabulary}};
  return 0;
}

static uint32_t mix(uint32_t hash, uint32_t with) {
  hash = (hash ^ with) * 0x9E3779B1u;
  return hash ^ hash >> 15;
}

static int32_t run(heed_model *model, const heed_argument *in,
                   heed_argument *out) {
  int64_t numRows = in[0].shape[0], length = in[0].shape[1];
  const int32_t *ids = in[0].data, *count = in[1].data;
  const uint32_t *before = in[2].data;
  uint32_t *after = out[1].data;
  float *logits = out[0].data;
  for (int64_t b = 0; b < numRows; ++b) {
    after[b] = before[b];
    for (int64_t n = 0; n < count[b]; ++n)
      after[b] = mix(after[b], (uint32_t)ids[b * length + n]);
    for (int64_t v = 0; v < Vocabulary; ++v)
      logits[b * Vocabulary + v] =
          count[b] && length == Longest && ids[b * length] == Poison
              ? NAN
              : (float)(mix(after[b], (uint32_t)v + 99) % 4099) / 400;
  }
  heed_stop_check(model);
  return 0;
}

static const int64_t replaced[] = {0, -1};
static const heed_entry_desc entries[] = {
    {{sizeof(heed_signature), "forward", 2, 1, inputs, outputs},
     shapes,
     run,
     replaced}};
static const heed_model_desc hashing = {.abiVersion = HEED_ABI_VERSION,
                                        .numEntries = 1,
                                        .runtime = &heed_own_runtime,
                                        .name = "hashing",
                                        .cpuFeatures = "",
                                        .entries = entries,
                                        .numStates = 2,
                                        .states = states};

/* ---- prompts and what must follow them ---- */

typedef struct job {
  heed_model *model;
  heed_state *state;
  int32_t ids[Rows * Longest], count[Rows], cancel;
  heed_buffer in[2];
  heed_sampling sampling;
  heed_generation_options options;
  heed_generation *generation;
} job;

static void prepare(job *j, heed_model *model, int64_t rows) {
  memset(j, 0, sizeof *j);
  heed_dim dim = {"B", rows};
  j->model = model;
  CHECK(heed_state_open(model, &dim, 1, &j->state) == HEED_OK);
  for (int k = 0; k < Rows * Longest; ++k)
    j->ids[k] = k + 1;
  for (int row = 0; row < Rows; ++row)
    j->count[row] = 1 + row;
  j->in[0] = HEED_BUFFER(j->ids, HEED_I32, 2, rows, Longest);
  j->in[1] = HEED_BUFFER(j->count, HEED_I32, 1, rows);
  j->sampling = (heed_sampling){.size = sizeof(heed_sampling)};
  j->options = (heed_generation_options){.size = sizeof j->options,
                                         .state = j->state,
                                         .maxNew = New,
                                         .sampling = &j->sampling,
                                         .lengthPenalty = 1,
                                         .cancel = &j->cancel};
}

static heed_status begin(job *j) {
  return heed_generation_open(j->model, &j->options, j->in, 2, &j->generation);
}

static void end(job *j) {
  heed_generation_close(j->generation);
  heed_state_close(j->state);
}

/* The first largest logit each time. */
static void follow(const job *j, int row, int32_t *made) {
  uint32_t hash = 0;
  for (int n = 0; n < j->count[row]; ++n)
    hash = mix(hash, (uint32_t)j->ids[row * Longest + n]);
  for (int t = 0; t < New; ++t) {
    int32_t best = 0;
    for (int v = 1; v < Vocabulary; ++v)
      if (mix(hash, (uint32_t)v + 99) % 4099 >
          mix(hash, (uint32_t)best + 99) % 4099)
        best = v;
    made[t] = best;
    hash = mix(hash, (uint32_t)best);
  }
}

static void checkTokens(job *j, int steps) {
  int32_t found[Rows * New], wanted[New];
  CHECK(heed_generation_tokens(j->generation, New, found, NULL) == HEED_OK);
  for (int row = 0; row < Rows; ++row) {
    follow(j, row, wanted);
    for (int t = 0; t < New; ++t)
      CHECK(found[row * New + t] == (t < steps ? wanted[t] : -1));
  }
}

/* ---- steps ---- */

static int32_t endAtThree(void *user, const int32_t *ids, int64_t rows) {
  CHECK(rows == Rows && ids[0] >= 0);
  return ++*(int *)user == 3;
}

static void checkSteps(heed_model *model) {
  job j;
  prepare(&j, model, Rows);
  CHECK(begin(&j) == HEED_OK);
  int calls = 0;
  CHECK(heed_generate(j.generation, endAtThree, &calls) == HEED_OK);
  checkTokens(&j, 3);
  /* A cancelled step has changed nothing. */
  int32_t ids[Rows], before[Rows], after[Rows];
  heed_buffer hash = HEED_BUFFER(before, HEED_I32, 1, Rows);
  CHECK(heed_state_get(j.state, "hash", &hash) == HEED_OK);
  j.cancel = 1;
  int64_t running = 0;
  CHECK(heed_generation_step(j.generation, ids, &running) ==
        HEED_ERROR_CANCELLED);
  CHECK(running == Rows && *heed_generation_last_error(j.generation));
  hash.data = after;
  CHECK(heed_state_get(j.state, "hash", &hash) == HEED_OK &&
        !memcmp(before, after, sizeof after));
  j.cancel = 0;
  CHECK(heed_generation_step(j.generation, ids, &running) == HEED_OK);
  checkTokens(&j, 4);
  CHECK(heed_generate(j.generation, NULL, NULL) == HEED_OK);
  checkTokens(&j, New);
  CHECK(heed_generation_step(j.generation, ids, &running) == HEED_OK &&
        running == 0 && ids[0] == -1);
  end(&j);
}

/* A logit that is NaN ends it for good; rows that stopped before do not count.
 */
static void checkPoison(heed_model *model) {
  job j;
  prepare(&j, model, Rows);
  int32_t made[New];
  follow(&j, 1, made);
  j.ids[Longest] = Poison;
  CHECK(begin(&j) == HEED_OK);
  CHECK(heed_generation_step(j.generation, NULL, NULL) == HEED_ERROR_RANGE);
  CHECK(strstr(heed_generation_last_error(j.generation),
               "logits of row 1: that of token 0 is NaN"));
  CHECK(heed_generate(j.generation, NULL, NULL) == HEED_ERROR_RANGE);
  end(&j);
  prepare(&j, model, Rows);
  j.ids[Longest] = Poison;
  j.count[1] = 0;
  CHECK(begin(&j) == HEED_OK);
  CHECK(heed_generate(j.generation, NULL, NULL) == HEED_OK);
  end(&j);
}

static void checkBeams(heed_model *model) {
  job j;
  prepare(&j, model, Rows);
  j.options.beams = 3;
  for (int row = 1; row < Rows; ++row) {
    memcpy(j.ids + row * Longest, j.ids, sizeof(int32_t) * Longest);
    j.count[row] = j.count[0];
  }
  int32_t found[New], stop[] = {4, 9, 20};
  j.sampling.stop = stop;
  j.sampling.numStop = 3;
  double score = 1;
  CHECK(begin(&j) == HEED_OK);
  CHECK(heed_generate(j.generation, NULL, NULL) == HEED_OK);
  CHECK(heed_generation_tokens(j.generation, New, found, &score) == HEED_OK);
  CHECK(found[0] >= 0 && score < 0);
  end(&j);
}

/* A caller from before there were rules: what lies behind its structs is not
 * read. */
static void checkOlder(heed_model *model) {
  job j;
  prepare(&j, model, Rows);
  int32_t all[Vocabulary];
  for (int v = 0; v < Vocabulary; ++v)
    all[v] = v;
  j.sampling.size = offsetof(heed_sampling, noRepeatNgram);
  j.sampling.noRepeatNgram = -7;
  j.sampling.suppress = all;
  j.sampling.numSuppress = Vocabulary;
  j.options.size = offsetof(heed_generation_options, earlyStopping);
  j.options.earlyStopping = 99;
  CHECK(begin(&j) == HEED_OK);
  CHECK(heed_generate(j.generation, NULL, NULL) == HEED_OK);
  checkTokens(&j, New);
  end(&j);
}

/* Rules look at what each row has seen: a word's start in its prompt, the
 * lengths; where no token is left, the step fails for good. */
static void checkRules(heed_model *model) {
  job j;
  prepare(&j, model, Rows);
  int32_t wanted[Rows][New], found[Rows * New];
  for (int row = 0; row < Rows; ++row)
    follow(&j, row, wanted[row]);
  /* Row 1 ends its prompt with these two tokens, row 0 and 2 do not. */
  int32_t words[] = {j.ids[Longest], j.ids[Longest + 1], wanted[1][0], -1};
  j.sampling.badWords = words;
  j.sampling.numBadWords = 4;
  CHECK(begin(&j) == HEED_OK);
  CHECK(heed_generate(j.generation, NULL, NULL) == HEED_OK);
  CHECK(heed_generation_tokens(j.generation, New, found, NULL) == HEED_OK);
  CHECK(found[0] == wanted[0][0] && found[2 * New] == wanted[2][0]);
  CHECK(found[New] != wanted[1][0]);
  end(&j);
  prepare(&j, model, Rows);
  int32_t all[Vocabulary];
  for (int v = 0; v < Vocabulary; ++v)
    all[v] = v;
  j.sampling.beginSuppress = all;
  j.sampling.numBeginSuppress = Vocabulary;
  for (int beams = 1; beams <= Rows; beams += Rows - 1) {
    j.options.beams = beams;
    CHECK(begin(&j) == HEED_OK);
    int64_t running = 5;
    CHECK(heed_generation_step(j.generation, NULL, &running) ==
          HEED_ERROR_RANGE);
    CHECK(running == 0 && strstr(heed_generation_last_error(j.generation),
                                 beams > 1 ? "prompt 0: the rules leave"
                                           : "row 0: the rules leave"));
    CHECK(heed_generate(j.generation, NULL, NULL) == HEED_ERROR_RANGE);
    heed_generation_close(j.generation);
    CHECK(heed_state_reset(j.state) == HEED_OK);
  }
  j.generation = NULL;
  end(&j);
}

static void *generate(void *argument) {
  job *j = argument;
  for (int k = 0; k < 20; ++k) {
    CHECK(heed_state_reset(j->state) == HEED_OK);
    CHECK(begin(j) == HEED_OK);
    CHECK(heed_generate(j->generation, NULL, NULL) == HEED_OK);
    checkTokens(j, New);
    heed_generation_close(j->generation);
    j->generation = NULL;
  }
  return NULL;
}

static void checkThreads(heed_model *model) {
  heed_model *other;
  job jobs[2];
  pthread_t threads[2];
  CHECK(heed_open_shared(model, 1, &other) == HEED_OK);
  for (int k = 0; k < 2; ++k) {
    prepare(&jobs[k], k ? other : model, Rows);
    jobs[k].ids[0] += k;
  }
  for (int k = 0; k < 2; ++k)
    pthread_create(&threads[k], NULL, generate, &jobs[k]);
  for (int k = 0; k < 2; ++k) {
    pthread_join(threads[k], NULL);
    end(&jobs[k]);
  }
  heed_close(other);
}

/* ---- permutations ---- */

/* All maps of four positions, and drawn ones of many. */
static void checkMap(heed_model *model, int64_t rows, const int64_t *from) {
  heed_state *state;
  heed_dim dim = {"B", rows};
  size_t count = (size_t)(2 * rows * 3 * rows * 1300);
  int32_t *hash = malloc((size_t)rows * sizeof *hash);
  int16_t *before = malloc(count * sizeof *before),
          *after = malloc(count * sizeof *after);
  heed_buffer hashes = HEED_BUFFER(hash, HEED_I32, 1, rows);
  heed_buffer all = HEED_BUFFER(before, HEED_I16, 5, 2, rows, 3, rows, 1300);
  for (int64_t b = 0; b < rows; ++b)
    hash[b] = (int32_t)(b + 100);
  for (size_t k = 0; k < count; ++k)
    before[k] = (int16_t)(mix(3, (uint32_t)k) >> 16);
  CHECK(heed_state_open(model, &dim, 1, &state) == HEED_OK);
  CHECK(heed_state_set(state, "hash", &hashes) == HEED_OK &&
        heed_state_set(state, "crossed", &all) == HEED_OK);
  CHECK(heed_state_permute(state, "B", from, (size_t)rows) == HEED_OK);
  all.data = after;
  CHECK(heed_state_get(state, "hash", &hashes) == HEED_OK &&
        heed_state_get(state, "crossed", &all) == HEED_OK);
  for (int64_t b = 0; b < rows; ++b)
    CHECK(hash[b] == from[b] + 100);
  for (int64_t o = 0, k = 0; o < 2; ++o)
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t m = 0; m < 3; ++m)
        for (int64_t c = 0; c < rows; ++c)
          for (int64_t e = 0; e < 1300; ++e, ++k)
            CHECK(after[k] ==
                  before[(((o * rows + from[b]) * 3 + m) * rows + from[c]) *
                             1300 +
                         e]);
  /* It has no count; a library from before there was heed_state_trim(). */
  int32_t none = 0;
  heed_buffer zero = HEED_BUFFER(&none, HEED_I32, 0, 0);
  CHECK(heed_state_trim(state, "hash", &zero) == HEED_ERROR_ARGUMENT &&
        strstr(heed_state_last_error(state), "'hash' is no count"));
  heed_runtime older = heed_own_runtime;
  older.size = offsetof(heed_runtime, stateTrim);
  ((heed_object *)state)->runtime = &older;
  CHECK(heed_state_trim(state, "hash", &zero) == HEED_ERROR_VERSION);
  ((heed_object *)state)->runtime = &heed_own_runtime;
  heed_state_close(state);
  free(hash);
  free(before);
  free(after);
}

static void checkPermutations(heed_model *model) {
  int64_t from[12];
  for (int map = 0; map < 256; ++map) {
    for (int k = 0; k < 4; ++k)
      from[k] = map >> 2 * k & 3;
    checkMap(model, 4, from);
  }
  for (int map = 0; map < 40; ++map) {
    for (int k = 0; k < 12; ++k)
      from[k] = mix((uint32_t)map, (uint32_t)k) % 12;
    checkMap(model, 12, from);
  }
  checkMap(model, 0, from);
}

/* ---- what is refused ---- */

static void checkRefused(heed_model *model) {
  job j;
  float wrong[2] = {0};
  int32_t past[2] = {1, 50};
  heed_buffer pastBuffer = HEED_BUFFER(past, HEED_I32, 2, 1, 2);
#define REFUSED(wantedStatus, text, change)                                    \
  do {                                                                         \
    prepare(&j, model, Rows);                                                  \
    change;                                                                    \
    CHECK(begin(&j) == (wantedStatus));                                        \
    CHECK(strstr(heed_generation_last_error(j.generation), text));             \
    CHECK(heed_generation_step(j.generation, NULL, NULL) != HEED_OK);          \
    end(&j);                                                                   \
  } while (0)
  REFUSED(HEED_ERROR_VERSION, "options of 8 bytes", j.options.size = 8);
  REFUSED(HEED_ERROR_ARGUMENT, "maxNew", j.options.maxNew = 0);
  REFUSED(HEED_ERROR_ARGUMENT, "beams", j.options.beams = -1);
  REFUSED(HEED_ERROR_SHAPE, "3 rows are no prompts of 2 beams",
          j.options.beams = 2);
  REFUSED(HEED_ERROR_ARGUMENT, "lengthPenalty", j.options.lengthPenalty = NAN);
  REFUSED(HEED_ERROR_ARGUMENT, "entry 'none'", j.options.entry = "none");
  REFUSED(HEED_ERROR_ARGUMENT, "needs a state", j.options.state = NULL);
  REFUSED(HEED_ERROR_ARGUMENT, "temperature", j.sampling.temperature = -1);
  REFUSED(HEED_ERROR_VERSION, "heed_sampling", j.sampling.size = 8);
  REFUSED(HEED_ERROR_ARGUMENT, "earlyStopping: expected 0 to 2, found 3",
          j.options.earlyStopping = 3);
  REFUSED(HEED_ERROR_ARGUMENT, "noRepeatNgram", j.sampling.noRepeatNgram = -1);
  REFUSED(HEED_ERROR_SHAPE, "'past' has -1 tokens a row",
          (pastBuffer.shape[0] = Rows, pastBuffer.shape[1] = -1,
           j.options.past = &pastBuffer));
  pastBuffer.shape[0] = 1;
  pastBuffer.shape[1] = 2;
  REFUSED(HEED_ERROR_TYPE, "'ids': expected i32, found f32",
          (j.in[0].type = HEED_F32, j.in[0].data = wrong));
  REFUSED(HEED_ERROR_SHAPE, "at least one token", j.in[0].shape[1] = 0);
  REFUSED(HEED_ERROR_SHAPE, "'count' has 2 rows", j.in[1].shape[0] = 2);
  REFUSED(HEED_ERROR_RANGE, "count[1] = 5: expected 0 to 4", j.count[1] = 5);
  REFUSED(HEED_ERROR_RANGE, "count[0] = 0: expected 1 to 4",
          (j.count[0] = 0, j.options.beams = 3));
  REFUSED(HEED_ERROR_RANGE, "token 1 of row 2 is 50", j.ids[9] = 50);
  REFUSED(HEED_ERROR_SHAPE, "'past' has 1 rows", j.options.past = &pastBuffer);
#undef REFUSED
  prepare(&j, model, 2); /* a state of other rows */
  j.in[0].shape[0] = j.in[1].shape[0] = Rows;
  CHECK(begin(&j) == HEED_ERROR_SHAPE);
  end(&j);
  prepare(&j, model, Rows);
  CHECK(heed_generation_open(model, &j.options, j.in, 1, &j.generation) ==
        HEED_ERROR_ARGUMENT);
  heed_generation_close(j.generation);
  CHECK(heed_generation_open(NULL, &j.options, j.in, 2, &j.generation) ==
        HEED_ERROR_ARGUMENT);
  CHECK(!j.generation);
  end(&j);
  CHECK(heed_can_generate(&entries[0].signature));
}

int main(void) {
  heed_options options = {.size = sizeof options, .threads = 1};
  heed_model *model;
  CHECK(heed_open(&hashing, &options, &model) == HEED_OK);
  checkSteps(model);
  checkPoison(model);
  checkBeams(model);
  checkOlder(model);
  checkRules(model);
  checkThreads(model);
  checkPermutations(model);
  checkRefused(model);
  heed_close(model);
  printf("every step was right\n");
  return 0;
}
