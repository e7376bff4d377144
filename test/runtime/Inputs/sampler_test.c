/* Chooses tokens by logits of a file, for sampler.py; then what is refused.
 *
 * sampler-test FILE.npy TEMPERATURE TOP_K TOP_P MIN_P PENALTY SEED [ID..]
 * Logits are [T, R, V]: T calls for R rows, whose ids follow (0, 1, ..). The
 * tokens of each call go to a line. A type of f32, f16 or bf16 is taken as it
 * is. STOP in the environment is a stop id. */
#include "runtime/generate.h"
#include "runtime/io/Npy.h"
#include "test/runtime/Inputs/check.h"

extern const heed_model_desc fake_model;

#include <fenv.h>
#include <math.h>
#include <string.h>

static void runFile(int argc, char **argv) {
  heed_io_error error;
  heed_bytes bytes;
  heed_array array;
  CHECK(heed_bytes_read(argv[1], &bytes, &error));
  CHECK(heed_npy_parse(bytes.data, bytes.size, argv[1], &array, &error));
  const char *stop = getenv("STOP");
  int32_t stopId = stop ? atoi(stop) : 0;
  heed_sampling sampling = {.size = sizeof sampling,
                            .temperature = atof(argv[2]),
                            .topK = atoll(argv[3]),
                            .topP = atof(argv[4]),
                            .minP = atof(argv[5]),
                            .repetitionPenalty = atof(argv[6]),
                            .seed = strtoull(argv[7], NULL, 10),
                            .stop = &stopId,
                            .numStop = stop != NULL};
  int64_t rows = array.shape[1], vocabulary = array.shape[2];
  heed_sampler *sampler;
  CHECK(heed_sampler_open(&fake_model, &sampling, rows, vocabulary, &sampler) ==
        HEED_OK);
  for (int64_t row = 0; row < rows && 8 + row < argc; ++row)
    CHECK(heed_sampler_begin(sampler, row, strtoull(argv[8 + row], NULL, 10)) ==
          HEED_OK);
  int32_t *ids = malloc((size_t)rows * sizeof *ids);
  for (int64_t t = 0; t < array.shape[0]; ++t) {
    size_t size = heed_type_size(array.type);
    heed_buffer logits = HEED_BUFFER((void *)(uintptr_t)array.data, array.type,
                                     2, rows, vocabulary);
    logits.byteOffset = (size_t)(t * rows * vocabulary) * size;
    heed_status status = heed_sampler_choose(sampler, &logits, ids);
    if (status) {
      printf("%s: %s\n", heed_status_name(status),
             heed_sampler_last_error(sampler));
      continue;
    }
    for (int64_t row = 0; row < rows; ++row)
      printf("%s%d", row ? " " : "", ids[row]);
    printf("\n");
  }
  free(ids);
  heed_sampler_close(sampler);
  heed_bytes_release(&bytes);
}

static heed_status tryOpen(heed_sampling sampling, const char *text) {
  heed_sampler *sampler;
  sampling.size = sampling.size ? sampling.size : sizeof sampling;
  heed_status status =
      heed_sampler_open(&fake_model, &sampling, 2, 5, &sampler);
  CHECK(!status || strstr(heed_sampler_last_error(sampler), text));
  /* One that did not open refuses everything, and closes. */
  int32_t ids[2];
  float data[10] = {0};
  heed_buffer logits = HEED_BUFFER(data, HEED_F32, 2, 2, 5);
  CHECK(!status || heed_sampler_choose(sampler, &logits, ids) != HEED_OK);
  heed_sampler_close(sampler);
  return status;
}

static void checkOptions(void) {
  CHECK(tryOpen((heed_sampling){0}, "") == HEED_OK);
  CHECK(tryOpen((heed_sampling){.temperature = -1}, "temperature") ==
        HEED_ERROR_ARGUMENT);
  CHECK(tryOpen((heed_sampling){.temperature = NAN}, "temperature") ==
        HEED_ERROR_ARGUMENT);
  CHECK(tryOpen((heed_sampling){.topK = -1}, "topK") == HEED_ERROR_ARGUMENT);
  CHECK(tryOpen((heed_sampling){.topP = 1.5},
                "topP: expected a number from 0 "
                "to 1, found 1.5") == HEED_ERROR_ARGUMENT);
  CHECK(tryOpen((heed_sampling){.minP = -0.5}, "minP") == HEED_ERROR_ARGUMENT);
  CHECK(tryOpen((heed_sampling){.repetitionPenalty = -2}, "repetition") ==
        HEED_ERROR_ARGUMENT);
  CHECK(tryOpen((heed_sampling){.numStop = 1}, "stop") == HEED_ERROR_ARGUMENT);
  CHECK(tryOpen((heed_sampling){.size = 8}, "heed_sampling") ==
        HEED_ERROR_VERSION);
  heed_sampler *sampler;
  CHECK(heed_sampler_open(&fake_model, NULL, 1, 0, &sampler) ==
        HEED_ERROR_ARGUMENT);
  heed_sampler_close(sampler);
  CHECK(heed_sampler_open(&fake_model, NULL, 1, 4, NULL) ==
        HEED_ERROR_ARGUMENT);
  heed_sampler_close(NULL);
}

static void checkRules(void) {
  int32_t ids[] = {1, -1, 4, 5, -7, 2};
#define REFUSED(text, ...)                                                     \
  CHECK(tryOpen((heed_sampling){__VA_ARGS__}, text) == HEED_ERROR_ARGUMENT)
  REFUSED("noRepeatNgram: expected a number that is not negative, found -2",
          .noRepeatNgram = -2);
  REFUSED("minLength", .minLength = -1);
  REFUSED("minNew", .minNew = -1);
  REFUSED("maxNew: expected a number that is not negative", .maxNew = -1);
  REFUSED("maxNew: expected the number of tokens that forcedEos ends",
          .forcedEos = ids, .numForcedEos = 1);
  REFUSED("forcedBos: no ids, expected 3", .numForcedBos = 3);
  REFUSED("forcedBos: expected ids of the vocabulary, found -1",
          .forcedBos = ids, .numForcedBos = 2);
  REFUSED("badWords: expected -1 behind the last word", .badWords = ids,
          .numBadWords = 3);
  REFUSED("badWords: expected a token before each -1", .badWords = ids + 1,
          .numBadWords = 1);
  REFUSED("badWords: expected ids of the vocabulary, found 5",
          .badWords = ids + 2, .numBadWords = 2);
  REFUSED("badWords: expected ids of the vocabulary, found -7",
          .badWords = ids + 4, .numBadWords = 1);
#undef REFUSED
  /* Ids that no vocabulary has do nothing in other lists. */
  CHECK(tryOpen((heed_sampling){.suppress = ids, .numSuppress = 6}, "") ==
        HEED_OK);
  /* A row that begins anew has seen nothing, and 300 tokens find room. */
  heed_sampler *sampler;
  heed_sampling sampling = {.size = sizeof sampling,
                            .noRepeatNgram = 3,
                            .minNew = 2,
                            .stop = ids,
                            .numStop = 1};
  float data[10] = {0, 9, 0, 0, 0, 0, 9, 0, 0, 0};
  int32_t next[2], many[300], two[2];
  heed_buffer logits = HEED_BUFFER(data, HEED_F32, 2, 2, 5);
  CHECK(heed_sampler_open(&fake_model, &sampling, 2, 5, &sampler) == HEED_OK);
  for (int k = 0; k < 300; ++k)
    many[k] = 2 + k % 3;
  CHECK(heed_sampler_see(sampler, 0, many, 300) == HEED_OK);
  CHECK(heed_sampler_choose(sampler, &logits, next) == HEED_OK);
  CHECK(next[0] == 0 && next[1] == 0); /* 1 is a stop id, 3 4 2 was seen */
  CHECK(heed_sampler_choose(sampler, &logits, two) == HEED_OK);
  CHECK(heed_sampler_choose(sampler, &logits, next) == HEED_OK);
  CHECK(two[0] == 0 && next[0] == 1 && heed_sampler_stopped(sampler, 0));
  CHECK(heed_sampler_begin(sampler, 0, 3) == HEED_OK);
  data[2] = 8; /* the largest but for 1 */
  for (int k = 0; k < 2; ++k) {
    CHECK(heed_sampler_choose(sampler, &logits, next) == HEED_OK);
    CHECK(next[0] == 2 && next[1] == -1);
  }
  CHECK(heed_sampler_choose(sampler, &logits, next) == HEED_OK && next[0] == 1);
  heed_sampler_close(sampler);
}

static void checkBuffers(void) {
  heed_sampler *sampler;
  heed_sampling sampling = {.size = sizeof sampling, .repetitionPenalty = 4};
  float data[10] = {0, 1, 2, 3, 4, 4, 3, 2, 1, 0};
  int32_t ids[2], seen[2] = {4, 7};
  CHECK(heed_sampler_open(&fake_model, &sampling, 2, 5, &sampler) == HEED_OK);
  heed_buffer logits = HEED_BUFFER(data, HEED_F32, 2, 2, 5);
  logits.type = HEED_I32;
  CHECK(heed_sampler_choose(sampler, &logits, ids) == HEED_ERROR_TYPE);
  logits.type = HEED_F32;
  logits.shape[1] = 4;
  CHECK(heed_sampler_choose(sampler, &logits, ids) == HEED_ERROR_SHAPE);
  CHECK(strstr(heed_sampler_last_error(sampler), "expected shape [2, 5]"));
  logits.shape[1] = 5;
  int64_t strides[2] = {1, 2};
  logits.strides = strides;
  CHECK(heed_sampler_choose(sampler, &logits, ids) == HEED_ERROR_ARGUMENT);
  logits.strides = NULL;
  logits.size = 8;
  CHECK(heed_sampler_choose(sampler, &logits, ids) == HEED_ERROR_VERSION);
  logits.size = sizeof logits;
  CHECK(heed_sampler_choose(sampler, NULL, ids) == HEED_ERROR_ARGUMENT);
  CHECK(heed_sampler_begin(sampler, 2, 0) == HEED_ERROR_ARGUMENT);
  /* Of a prompt that does not fit nothing is seen. */
  CHECK(heed_sampler_see(sampler, 0, seen, 2) == HEED_ERROR_RANGE);
  CHECK(strstr(heed_sampler_last_error(sampler), "token 1 of row 0 is 7"));
  CHECK(heed_sampler_choose(sampler, &logits, ids) == HEED_OK);
  CHECK(ids[0] == 4 && ids[1] == 0);
  CHECK(heed_sampler_choose(sampler, &logits, ids) == HEED_OK);
  CHECK(ids[0] == 3 && ids[1] == 1);
  CHECK(heed_sampler_begin(sampler, 0, 0) == HEED_OK);
  CHECK(heed_sampler_stop(sampler, 1) == HEED_OK);
  CHECK(heed_sampler_running(sampler) == 1 && heed_sampler_stopped(sampler, 1));
  data[7] = NAN; /* of a row that has stopped */
  CHECK(heed_sampler_choose(sampler, &logits, ids) == HEED_OK);
  CHECK(ids[0] == 4 && ids[1] == -1);
  heed_sampler_close(sampler);
}

/* Whether the second of two tokens, which minP lets through or not, is drawn
 * within the first 40. */
static int isDrawn(float logit, double minP) {
  float data[2] = {0, logit};
  heed_sampling sampling = {
      .size = sizeof sampling, .temperature = 1, .minP = minP};
  heed_sampler *sampler;
  heed_buffer logits = HEED_BUFFER(data, HEED_F32, 2, 1, 2);
  int found = 0;
  CHECK(heed_sampler_open(&fake_model, &sampling, 1, 2, &sampler) == HEED_OK);
  for (int t = 0; t < 40; ++t) {
    int32_t id;
    CHECK(heed_sampler_choose(sampler, &logits, &id) == HEED_OK);
    found |= id;
  }
  heed_sampler_close(sampler);
  return found;
}

/* The caller's rounding changes nothing: minP is the second token's weight, to
 * some units of its last place. */
static void checkRounding(void) {
  int drawn = 0;
  for (int k = 1; k < 10; ++k)
    for (int units = -4; units <= 4; ++units) {
      float logit = (float)-k / 7;
      double minP = exp(logit) * (1 + units * 0x1p-53);
      int wanted = isDrawn(logit, minP);
      drawn += wanted;
      fesetround(FE_DOWNWARD);
      int found = isDrawn(logit, minP);
      CHECK(fegetround() == FE_DOWNWARD);
      fesetround(FE_TONEAREST);
      CHECK(found == wanted);
    }
  CHECK(drawn > 20 && drawn < 60); /* of 81: both happen */
}

int main(int argc, char **argv) {
  if (argc > 7) {
    runFile(argc, argv);
    return 0;
  }
  checkOptions();
  checkRules();
  checkBuffers();
  checkRounding();
  printf("every mistake was refused\n");
  return 0;
}
