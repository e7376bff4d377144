/* The C interface, call by call, over the hand-written model. argv[1]: its
 * weights; then files that are no weights for it. Prints what failed; exit code
 * 1 then. */
#include "runtime/Model.h"
#include "test/runtime/Inputs/fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two threads on one handle: a call computes, or does nothing and says so. */
static void *runShared(void *argument) {
  heed_model *model = argument;
  arrays *a = malloc(sizeof *a);
  intptr_t wrong = 0, done = 0;
  for (int k = 0; done < 300; ++k) {
    fill(a, (float)(k % 7));
    heed_status status =
        k % 3 ? run(model, a)
              : heed_output_shapes(model, NULL, a->in, 3, a->out, 2);
    wrong += status != HEED_OK && status != HEED_ERROR_BUSY;
    wrong += status == HEED_OK && k % 3 && !isRight(a);
    wrong += status == HEED_ERROR_BUSY && a->count != 0;
    done += status == HEED_OK;
  }
  free(a);
  return (void *)wrong;
}

static int testBusy(const heed_options *options) {
  int failures = 0;
  heed_model *model;
  pthread_t threads[3];
  CHECK(heed_open(&fake_model, options, &model) == HEED_OK);
  for (int k = 0; k < 3; ++k)
    pthread_create(&threads[k], NULL, runShared, model);
  for (int k = 0; k < 3; ++k) {
    void *wrong;
    pthread_join(threads[k], &wrong);
    CHECK(wrong == NULL);
  }
  heed_close(model);
  return failures;
}

static int testErrors(heed_model *model) {
  int failures = 0;
  arrays a;
  fill(&a, 1);
  CHECK(heed_run(model, "other", a.in, 3, a.out, 2, NULL) ==
        HEED_ERROR_ARGUMENT);
  CHECK(!strcmp(heed_last_error(model), "there is no entry 'other'"));
  CHECK(heed_run(model, NULL, a.in, 2, a.out, 2, NULL) == HEED_ERROR_ARGUMENT);
  a.in[0].type = HEED_F16;
  CHECK(run(model, &a) == HEED_ERROR_TYPE);
  CHECK(!strcmp(heed_last_error(model),
                "input 'x': expected element type f32, found f16"));
  fill(&a, 1);
  a.in[0].rank = 3;
  CHECK(run(model, &a) == HEED_ERROR_SHAPE);
  fill(&a, 1);
  a.in[0].shape[1] = 5;
  CHECK(run(model, &a) == HEED_ERROR_SHAPE);
  CHECK(!strcmp(heed_last_error(model),
                "input 'x': expected extent 4 on axis 1, found shape [37, 5]"));
  fill(&a, 1);
  a.in[1].shape[0] = 36;
  CHECK(run(model, &a) == HEED_ERROR_SHAPE);
  CHECK(!strcmp(heed_last_error(model),
                "extent of 'ids' (axis 0) is 36, expected N = 37"));
  fill(&a, 1);
  a.in[0].shape[0] = a.in[1].shape[0] = INT64_MAX / 4;
  CHECK(run(model, &a) == HEED_ERROR_SHAPE);
  fill(&a, 1);
  a.out[0].shape[0] = 36;
  CHECK(run(model, &a) == HEED_ERROR_SHAPE);
  CHECK(!strcmp(heed_last_error(model),
                "output 'y': expected shape [37, 4], found [36, 4]"));
  fill(&a, 1);
  a.in[1].data = NULL;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT);
  fill(&a, 1);
  a.in[0].data = (char *)a.x + 1;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT);
  /* Memory of an input, of another output, or a part of one. */
  fill(&a, 1);
  a.out[0].data = a.x;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT);
  CHECK(
      !strcmp(heed_last_error(model), "output 'y' overlaps the memory of 'x'"));
  fill(&a, 1);
  a.out[1].data = (char *)a.out[0].data + 16;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT);
  CHECK(!strcmp(heed_last_error(model),
                "output 'count' overlaps the memory of 'y'"));
  fill(&a, 1);
  a.ids[17] = 5;
  CHECK(run(model, &a) == HEED_ERROR_RANGE);
  CHECK(!strcmp(heed_last_error(model), "ids[17] = 5 is out of range for table "
                                        "(axis 0): expected 0 <= index < 5"));
  fill(&a, 13);
  CHECK(run(model, &a) == HEED_ERROR_INTERNAL);
  CHECK(!strcmp(heed_last_error(model),
                "kernel 'k_rows' failed (-77): the number 13"));
  fill(&a, 14);
  CHECK(run(model, &a) == HEED_ERROR_MEMORY);
  fill(&a, 15);
  CHECK(run(model, &a) == HEED_ERROR_MEMORY);
  /* After every failure the handle still works. */
  fill(&a, 3);
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  return failures;
}

/* Whatever is missing is an error, with a handle or without. */
static int testMissing(heed_model *model, const char *weights) {
  int failures = 0;
  arrays a;
  heed_model *other = model;
  heed_options options = {
      .size = sizeof options, .weights = NULL, .numWeights = 1};
  CHECK(heed_open(NULL, NULL, &other) == HEED_ERROR_ARGUMENT && !other);
  CHECK(heed_open(&fake_model, NULL, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(heed_open(&fake_model, &options, &other) == HEED_ERROR_ARGUMENT);
  CHECK(!strcmp(heed_last_error(other), "weights file 1 of 1 has no name"));
  CHECK(heed_open_shared(other, 1, &model) == HEED_ERROR_ARGUMENT && !model);
  heed_close(other);
  const char *const names[] = {weights, NULL};
  options.weights = names;
  options.numWeights = 2;
  CHECK(heed_open(&fake_model, &options, &other) == HEED_ERROR_ARGUMENT);
  heed_close(other);
  options.numWeights = 1;
  CHECK(heed_open_shared(NULL, 1, &other) == HEED_ERROR_ARGUMENT);
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  CHECK(heed_open_shared(model, 1, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(heed_open_shared(model, 4097, &other) == HEED_ERROR_ARGUMENT);
  heed_close(other);

  fill(&a, 1);
  CHECK(heed_run(NULL, NULL, a.in, 3, a.out, 2, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(heed_run(model, NULL, NULL, 3, a.out, 2, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(heed_run(model, NULL, a.in, 3, NULL, 2, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(heed_run(model, NULL, a.in, 3, a.out, 1, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(heed_run(model, NULL, a.in, 4, a.out, 2, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(heed_run(model, NULL, a.in, 0, a.out, 0, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(!strcmp(heed_last_error(model),
                "entry 'fake' has 3 inputs and 2 outputs, found 0 and 0"));
  CHECK(heed_output_shapes(model, NULL, a.in, 3, NULL, 2) ==
        HEED_ERROR_ARGUMENT);
  CHECK(heed_output_shapes(NULL, NULL, a.in, 3, a.out, 2) ==
        HEED_ERROR_ARGUMENT);
  a.out[0].data = NULL;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT);
  fill(&a, 1);
  a.out[1].type = HEED_I64;
  CHECK(run(model, &a) == HEED_ERROR_TYPE);
  fill(&a, 1);
  a.out[1].rank = 1;
  CHECK(run(model, &a) == HEED_ERROR_SHAPE);
  /* Ranks and extents that no array has. */
  const int32_t ranks[] = {-1, 17, INT32_MAX, INT32_MIN};
  for (int k = 0; k < 4; ++k) {
    fill(&a, 1);
    a.in[0].rank = ranks[k];
    CHECK(run(model, &a) == HEED_ERROR_SHAPE);
  }
  const int64_t extents[] = {-1, INT64_MIN};
  for (int k = 0; k < 2; ++k) {
    fill(&a, 1);
    a.in[0].shape[0] = a.in[1].shape[0] = extents[k];
    CHECK(run(model, &a) == HEED_ERROR_SHAPE);
    CHECK(heed_output_shapes(model, NULL, a.in, 3, a.out, 2) ==
          HEED_ERROR_SHAPE);
  }
  fill(&a, 1);
  a.in[1].type = -7;
  CHECK(run(model, &a) == HEED_ERROR_TYPE);
  CHECK(!strcmp(heed_last_error(model),
                "input 'ids': expected element type i32, found no type"));
  fill(&a, 3);
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  heed_close(model);
  model = NULL;

  CHECK(heed_num_entries(NULL) == 0 && !heed_entry_signature(NULL, 0));
  CHECK(!heed_entry_signature(&fake_model, 1) && !heed_param(NULL, 0));
  CHECK(!heed_param(&fake_model, 2) && !heed_find_signature(NULL, NULL));
  CHECK(heed_num_params(NULL) == 0 && !strcmp(heed_model_name(NULL), ""));
  CHECK(heed_num_threads(NULL) == 0 && !strcmp(heed_last_error(NULL), ""));
  CHECK(heed_profile(NULL, NULL, 0) == 0);
  heed_profile_reset(NULL);
  CHECK(heed_memory(NULL, NULL) == HEED_ERROR_ARGUMENT);
  CHECK(!strcmp(heed_status_name(HEED_ERROR_BUSY), "busy"));
  CHECK(heed_type_size(0) == 0 && heed_type_size(-1) == 0);
  CHECK(!strcmp(heed_status_name((heed_status)99), "unknown"));
  return failures;
}

/* Handles that opened and handles that did not, again and again: a build with
 * sanitizers sees what they leave behind. */
static int testLoops(const char *weights, char **bad, int numBad) {
  int failures = 0;
  heed_model *model = NULL;
  arrays a;
  for (int k = 0; k < 20; ++k) {
    heed_options options = {.size = sizeof options,
                            .weights = &weights,
                            .numWeights = 1,
                            .threads = 1 + k % 3,
                            .profile = k % 2};
    CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
    fill(&a, 1);
    CHECK(run(model, &a) == HEED_OK);
    fill(&a, 13 + k % 3); /* kernels that fail */
    CHECK(run(model, &a) != HEED_OK);
    heed_close(model);
    for (int file = 0; file < numBad; ++file) {
      const char *path = bad[file];
      options.weights = &path;
      CHECK(heed_open(&fake_model, &options, &model) != HEED_OK);
      CHECK(*heed_last_error(model));
      heed_close(model);
    }
  }
  return failures;
}

static int testShapes(heed_model *model) {
  int failures = 0;
  arrays a;
  fill(&a, 1);
  heed_buffer out[2];
  memset(out, 0, sizeof out);
  out[0].size = out[1].size = sizeof *out;
  a.in[0].data = a.in[1].data = a.in[2].data =
      NULL; /* shapes need none; the scalar has a default */
  CHECK(heed_output_shapes(model, NULL, a.in, 3, out, 2) == HEED_OK);
  CHECK(out[0].type == HEED_F32 && out[0].rank == 2 &&
        out[0].shape[0] == Rows && out[0].shape[1] == 4);
  CHECK(out[1].type == HEED_I32 && out[1].rank == 0);
  /* An absent scalar takes its default, 2. */
  fill(&a, 2);
  a.in[2].data = NULL;
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  /* An extent of 0 is legal. */
  fill(&a, 2);
  a.in[0].shape[0] = a.in[1].shape[0] = a.out[0].shape[0] = 0;
  a.in[0].data = a.in[1].data = a.out[0].data = NULL;
  CHECK(run(model, &a) == HEED_OK && a.count == 0);
  return failures;
}

static int testHandles(const heed_options *options) {
  int failures = 0;
  heed_model *model, *other[3];
  pthread_t threads[3];
  CHECK(heed_open(&fake_model, options, &model) == HEED_OK);
  CHECK(heed_num_threads(model) == 3);
  for (int k = 0; k < 3; ++k)
    CHECK(heed_open_shared(model, 2, &other[k]) == HEED_OK);
  heed_close(model); /* the weights outlive the first handle */
  model = NULL;
  for (int k = 0; k < 3; ++k)
    pthread_create(&threads[k], NULL, runOften, other[k]);
  for (int k = 0; k < 3; ++k) {
    void *wrong;
    pthread_join(threads[k], &wrong);
    CHECK(wrong == NULL);
    heed_close(other[k]);
  }
  return failures;
}

static int testProfile(heed_options options) {
  int failures = 0;
  heed_model *model;
  heed_kernel_profile profile = {.size = sizeof profile};
  heed_memory_use memory = {.size = sizeof memory};
  arrays a;
  options.profile = 1;
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  fill(&a, 1);
  for (int k = 0; k < 4; ++k)
    CHECK(run(model, &a) == HEED_OK);
  CHECK(heed_profile(model, &profile, 1) == 1 && profile.calls == 4 &&
        profile.flops == 4 * 8 * Rows);
  CHECK(!strcmp(profile.kernel, "k_rows"));
  heed_profile_reset(model);
  CHECK(heed_profile(model, &profile, 1) == 1 && profile.calls == 0);
  /* A table of 5 by 4, two biases of 4 and their sum. */
  CHECK(heed_memory(model, &memory) == HEED_OK);
  CHECK(memory.weights == 4 * (5 * 4 + 2 * 4) && memory.copies == 4 * 4);
  CHECK(memory.buffers >= 4 * 4 * Rows && memory.buffers < 4 * 4 * Rows + 4096);
  heed_close(model);
  return failures;
}

static int testOpen(const char *weights) {
  int failures = 0;
  heed_model *model;
  heed_options options = {.size = sizeof options};
  CHECK(heed_open(&fake_alien_model, NULL, &model) == HEED_ERROR_CPU);
  CHECK(!strcmp(heed_last_error(model),
                "model 'alien' was compiled for a processor with "
                "'antigravity', which this one lacks"));
  heed_close(model);
  CHECK(heed_open(&fake_model, NULL, &model) == HEED_ERROR_WEIGHTS);
  arrays a;
  fill(&a, 1);
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT); /* a handle that did not open */
  heed_close(model);
  const char *const absent[] = {"no/such.safetensors"};
  options.weights = absent;
  options.numWeights = 1;
  CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_FILE);
  heed_close(model);
  heed_model_desc old = fake_model;
  old.abiVersion = 0;
  options.weights = &weights;
  CHECK(heed_open(&old, &options, &model) == HEED_ERROR_VERSION && !model);
  heed_close(model);
  options.threads = -1;
  CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_ARGUMENT);
  heed_close(model);
  heed_close(NULL);
  return failures;
}

/* Several targets in one model: the best that runs, or the one asked for. */
static int testTargets(heed_options options) {
  int failures = 0;
  heed_model *model, *other;
  arrays a;
  static const struct {
    const char *option, *environment, *target;
    int more;
  } cases[] = {{NULL, NULL, "better", 1000},
               {"plain", NULL, "plain", 0},
               {"better", "plain", "better", 1000},
               {NULL, "plain", "plain", 0},
               {NULL, "", "better", 1000}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    unsetenv("HEED_TARGET");
    if (cases[k].environment)
      setenv("HEED_TARGET", cases[k].environment, 1);
    options.target = cases[k].option;
    CHECK(heed_open(&fake_targets_model, &options, &model) == HEED_OK);
    CHECK(!strcmp(heed_target(model), cases[k].target));
    CHECK(heed_open_shared(model, 1, &other) == HEED_OK);
    CHECK(!strcmp(heed_target(other), cases[k].target));
    fill(&a, 1);
    CHECK(run(other, &a) == HEED_OK && a.count == Rows + cases[k].more);
    heed_close(other);
    heed_close(model);
  }
  CHECK(!strcmp(heed_target_name(&fake_targets_model, 1), "better"));
  CHECK(!strcmp(heed_target_name(&fake_targets_model, 2), "plain"));
  CHECK(!heed_target_name(&fake_targets_model, 3));
  CHECK(!heed_target_name(&fake_model, 0) && !heed_target_name(NULL, 0));
  unsetenv("HEED_TARGET");
  options.target = "alien";
  CHECK(heed_open(&fake_targets_model, &options, &model) == HEED_ERROR_CPU);
  CHECK(!strcmp(heed_last_error(model),
                "model 'fake' was compiled for a processor with "
                "'antigravity', which this one lacks"));
  CHECK(!strcmp(heed_target(model), "") && !strcmp(heed_target(NULL), ""));
  heed_close(model);
  options.target = "other";
  CHECK(heed_open(&fake_targets_model, &options, &model) ==
        HEED_ERROR_ARGUMENT);
  CHECK(!strcmp(heed_last_error(model),
                "model 'fake' was compiled for alien, better, plain, not for "
                "'other'"));
  heed_close(model);
  /* None that runs: what the least of them needs. */
  CHECK(heed_open(&fake_aliens_model, NULL, &model) == HEED_ERROR_CPU);
  CHECK(!strcmp(heed_last_error(model),
                "model 'aliens' was compiled for a processor with "
                "'telepathy', which this one lacks"));
  heed_close(model);
  return failures;
}

#if defined(__x86_64__) && defined(__clang__)
/* Of Bfloat16.c, or of the compiler's own library. */
__bf16 __truncsfbf2(float);
__bf16 __truncdfbf2(double);

static unsigned bitsOf(__bf16 x) {
  uint16_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* 1 is 0x3f80, whose next number is 1 + 2^-7. */
static int testBfloat16(void) {
  const heed_model *model = NULL;
  int failures = 0;
  CHECK(bitsOf(__truncsfbf2(0x1.01p0f)) == 0x3f80); /* ties go to even */
  CHECK(bitsOf(__truncsfbf2(0x1.03p0f)) == 0x3f82);
  CHECK(bitsOf(__truncsfbf2(0x1.010002p0f)) == 0x3f81);
  CHECK(bitsOf(__truncsfbf2(-0x1.fffffep127f)) == 0xff80);
  CHECK((bitsOf(__truncsfbf2(__builtin_nanf(""))) & 0x7fff) > 0x7f80);
  /* A tie for f32 alone: rounding twice would go to even. */
  CHECK(bitsOf(__truncdfbf2(0x1.0100000000001p0)) == 0x3f81);
  CHECK(bitsOf(__truncdfbf2(-0x1.02fffffffffffp0)) == 0xbf81);
  CHECK(bitsOf(__truncdfbf2(1e300)) == 0x7f80);
  CHECK((bitsOf(__truncdfbf2(__builtin_nan(""))) & 0x7fff) > 0x7f80);
  return failures;
}
#else
static int testBfloat16(void) { return 0; }
#endif

/* Blocks of every size, from none to several chunks, keep what is written. */
static int testArenas(void) {
  const heed_model *model = NULL;
  int failures = 0;
  static const size_t sizes[] = {0,       1,       4096,    130 << 10,
                                 3 << 20, 5 << 20, 9 << 20, 40 << 20,
                                 200000,  8 << 20};
  enum { Count = sizeof sizes / sizeof *sizes };
  unsigned char *blocks[Count];
  heed_arena arena = {0};
  for (int k = 0; k < Count; ++k) {
    blocks[k] = heed_arena_take(&arena, sizes[k]);
    CHECK(blocks[k] && (uintptr_t)blocks[k] % 128 == 0);
    if (!blocks[k])
      return failures;
    memset(blocks[k], k + 1, sizes[k]);
  }
  for (int k = 0; k < Count; ++k)
    for (size_t at = 0; at < sizes[k]; at += sizes[k] / 2 + 1)
      CHECK(blocks[k][at] == k + 1 && blocks[k][sizes[k] - 1 - at] == k + 1);
  CHECK(!heed_arena_take(&arena, SIZE_MAX - 5));
  heed_arena_close(&arena);
  return failures;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  const char *weights = argv[1];
  heed_options options = {.size = sizeof options,
                          .weights = &weights,
                          .numWeights = 1,
                          .threads = 3};
  heed_model *model;
  int failures = testOpen(weights) + testBfloat16() + testArenas();
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  if (failures == 0)
    failures += testErrors(model) + testShapes(model) + testHandles(&options) +
                testBusy(&options) + testProfile(options) +
                testTargets(options) + testMissing(model, weights) +
                testLoops(weights, argv + 2, argc - 2);
  const heed_signature *entry = heed_find_signature(&fake_model, "fake");
  CHECK(entry && entry->numInputs == 3 &&
        !strcmp(entry->inputs[1]->extents[0], "N"));
  CHECK(!heed_find_signature(&fake_model, "other") &&
        heed_num_entries(&fake_model) == 1);
  CHECK(heed_num_params(&fake_model) == 2 &&
        heed_param(&fake_model, 1)->numIndices == 1);
  heed_close(model);
  printf(failures ? "%d failures\n" : "all right\n", failures);
  return failures != 0;
}
