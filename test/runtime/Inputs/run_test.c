/* What goes with a call: sizes of structs and versions, strides, devices,
 * names, cancel and deadline, the mode of floating-point numbers. argv[1]: the
 * model's weights. */
#include "test/runtime/Inputs/fake.h"

#include <fenv.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static heed_status with(heed_model *model, arrays *a, const heed_call *call) {
  return heed_run(model, NULL, a->in, 3, a->out, 2, call);
}

/* ---- versions and sizes ---- */

/* In old_caller.c. */
int openAsBefore(const void *desc, void **model);

static int testVersions(const char *weights) {
  int failures = 0;
  heed_model *model = NULL;
  struct {
    heed_options known;
    int64_t later;
  } options = {.known = {.size = sizeof options,
                         .weights = &weights,
                         .numWeights = 1,
                         .threads = 1}};
  CHECK(heed_open_version(HEED_ABI_VERSION + 1, &fake_model, &options.known,
                          &model) == HEED_ERROR_VERSION);
  CHECK(says(model, "ABI version 4") && says(model, "version 3"));
  arrays a;
  fill(&a, 1);
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT); /* it did not open */
  heed_close(model);
  CHECK(openAsBefore(&fake_model, (void **)&model) == HEED_ERROR_VERSION);
  CHECK(says(model, "ABI version 2") && says(model, "version 3"));
  heed_close(model);
  /* A newer caller of this version: what it adds is 0, or not understood. */
  CHECK(heed_open(&fake_model, &options.known, &model) == HEED_OK);
  heed_close(model);
  options.later = 1;
  CHECK(heed_open(&fake_model, &options.known, &model) == HEED_ERROR_VERSION);
  CHECK(says(model, "options of "));
  heed_close(model);
  options.known.size = 8;
  CHECK(heed_open(&fake_model, &options.known, &model) == HEED_ERROR_VERSION);
  heed_close(model);
  options.known.size = 0;
  CHECK(heed_open(&fake_model, &options.known, &model) == HEED_ERROR_VERSION);
  heed_close(model);
  return failures;
}

static int testSizes(heed_model *model) {
  int failures = 0;
  arrays a;
  fill(&a, 1);
  a.in[1].size = 0;
  CHECK(run(model, &a) == HEED_ERROR_VERSION && says(model, "input 1: "));
  fill(&a, 1);
  a.out[0].size -= 8;
  CHECK(run(model, &a) == HEED_ERROR_VERSION && says(model, "output 0: "));
  fill(&a, 1);
  heed_call call = {.size = offsetof(heed_call, deadline)};
  CHECK(with(model, &a, &call) == HEED_ERROR_VERSION);
  call = (heed_call){.size = sizeof call, .state = (heed_state *)&a};
  CHECK(with(model, &a, &call) == HEED_ERROR_ARGUMENT &&
        says(model, "call.state"));
  call = (heed_call){.size = sizeof call, .stream = &a};
  CHECK(with(model, &a, &call) == HEED_ERROR_DEVICE &&
        says(model, "call.stream"));
  /* Buffers of a caller that knows more than the library. */
  struct {
    heed_buffer known;
    int64_t later;
  } in[3], out[2];
  memset(in, 0, sizeof in);
  memset(out, 0, sizeof out);
  for (int k = 0; k < 5; ++k) {
    heed_buffer *to = k < 3 ? &in[k].known : &out[k - 3].known;
    *to = k < 3 ? a.in[k] : a.out[k - 3];
    to->size = sizeof *in;
  }
  CHECK(heed_run(model, NULL, &in->known, 3, &out->known, 2, NULL) == HEED_OK &&
        isRight(&a));
  in[2].later = 1;
  CHECK(heed_run(model, NULL, &in->known, 3, &out->known, 2, NULL) ==
        HEED_ERROR_VERSION);
  return failures;
}

/* ---- buffers ---- */

static int testDevices(heed_model *model) {
  int failures = 0;
  arrays a;
  fill(&a, 2);
  a.in[0].deviceType = a.out[0].deviceType = HEED_DEVICE_CPU;
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  a.in[0].deviceType = 2;
  CHECK(run(model, &a) == HEED_ERROR_DEVICE &&
        says(model, "input 'x': expected memory of the CPU"));
  fill(&a, 2);
  a.out[0].deviceNumber = 1;
  CHECK(run(model, &a) == HEED_ERROR_DEVICE && says(model, "output 'y'"));
  fill(&a, 2);
  a.out[0].deviceType = 2;
  CHECK(heed_output_shapes(model, NULL, a.in, 3, a.out, 2) == HEED_OK &&
        a.out[0].deviceType == HEED_DEVICE_CPU);
  return failures;
}

/* x and y as other strides have them, in memory where every element that is not
 * theirs holds -1 and must keep it. */
static int testView(heed_model *model, int64_t row, int64_t column,
                    int64_t first) {
  enum { Room = Rows * 4 * 6 };
  int failures = 0;
  static float from[Room], to[Room];
  static char taken[Room];
  const int64_t strides[] = {row, column}, idStrides[] = {-3};
  int32_t ids[Rows * 3];
  arrays a;
  fill(&a, 3);
  for (int k = 0; k < Room; ++k) {
    from[k] = to[k] = -1;
    taken[k] = 0;
  }
  for (int n = 0; n < Rows; ++n)
    for (int m = 0; m < 4; ++m)
      from[first + n * row + m * column] = a.x[4 * n + m];
  for (int n = 0; n < Rows; ++n)
    ids[3 * (Rows - 1 - n)] = a.ids[n];
  a.in[0].data = from;
  a.in[0].byteOffset = (uint64_t)first * sizeof *from;
  a.in[1].data = &ids[3 * (Rows - 1)];
  a.in[0].strides = strides;
  a.in[1].strides = idStrides;
  CHECK(run(model, &a) == HEED_OK && isRight(&a)); /* strided inputs alone */
  memset(a.y, 0, sizeof a.y);
  a.out[0].data = to;
  a.out[0].byteOffset = (uint64_t)first * sizeof *to;
  a.out[0].strides = strides;
  CHECK(run(model, &a) == HEED_OK);
  for (int n = 0; n < Rows; ++n)
    for (int m = 0; m < 4; ++m) {
      a.y[4 * n + m] = to[first + n * row + m * column];
      taken[first + n * row + m * column] = 1;
    }
  CHECK(isRight(&a));
  for (int k = 0; k < Room; ++k)
    if (!taken[k])
      CHECK(to[k] == -1);
  return failures;
}

static int testStrides(heed_model *model) {
  int failures = 0;
  failures += testView(model, 4, 1, 0);          /* dense, said so */
  failures += testView(model, 5, 1, 3);          /* rows apart */
  failures += testView(model, 1, Rows, 0);       /* transposed */
  failures += testView(model, 8, 2, 1);          /* every second element */
  failures += testView(model, -7, 1, 7 * Rows);  /* the last row first */
  failures += testView(model, 4, -1, 3);         /* mirrored */
  failures += testView(model, -4, -1, 4 * Rows); /* both */
  arrays a;
  /* One row for all. */
  const int64_t same[] = {0, 1}, apart[] = {4, 1}, far[] = {INT64_MAX / 8, 1},
                over[] = {3, 1};
  float row[4] = {4, 5, 6, 7};
  fill(&a, 1);
  a.in[0].data = row;
  a.in[0].strides = same;
  CHECK(run(model, &a) == HEED_OK && a.y[0] == 4 + 100 &&
        a.y[4 * 36 + 3] == 7 + 13 + 100);
  /* No output over itself; memory beyond all. */
  fill(&a, 1);
  a.out[0].strides = same;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT &&
        says(model, "elements may share memory"));
  a.out[0].strides = over;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT);
  a.out[0].strides = apart;
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  fill(&a, 1);
  a.in[0].strides = far;
  CHECK(run(model, &a) == HEED_ERROR_MEMORY);
  /* The memory of an output is what its strides reach. */
  fill(&a, 1);
  const int64_t back[] = {-4, 1};
  a.out[0].data = &a.x[4 * Rows];
  a.out[0].strides = back;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT && says(model, "overlaps"));
  fill(&a, 1);
  a.in[0].byteOffset = 2;
  CHECK(run(model, &a) == HEED_ERROR_ARGUMENT && says(model, "not aligned"));
  return failures;
}

/* Known before the first run; the model copies x. */
static int testPlan(heed_model *model) {
  int failures = 0;
  arrays a;
  int64_t bytes = -1;
  heed_memory_use use = {.size = sizeof use};
  CHECK(heed_memory(model, &use) == HEED_OK && use.buffers == 0);
  fill(&a, 1);
  CHECK(heed_plan_memory(model, NULL, a.in, 3, &bytes) == HEED_OK &&
        bytes == 16 * Rows);
  CHECK(heed_memory(model, &use) == HEED_OK && use.buffers == 0 &&
        a.count == 0 && a.y[0] == 0);
  static const int64_t transposed[] = {1, Rows};
  a.in[0].strides = transposed;
  CHECK(heed_plan_memory(model, "fake", a.in, 3, &bytes) == HEED_OK &&
        bytes == 32 * Rows);
  /* More than there is. */
  fill(&a, 15);
  CHECK(heed_plan_memory(model, NULL, a.in, 3, &bytes) == HEED_ERROR_MEMORY);
  fill(&a, 1);
  a.in[1].shape[0] = 36;
  CHECK(heed_plan_memory(model, NULL, a.in, 3, &bytes) == HEED_ERROR_SHAPE);
  CHECK(heed_plan_memory(model, NULL, a.in, 3, NULL) == HEED_ERROR_ARGUMENT);
  fill(&a, 1);
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  return failures;
}

static int testNames(heed_model *model) {
  int failures = 0;
  const heed_signature *entry = heed_find_signature(&fake_model, NULL);
  CHECK(heed_find_input(entry, "ids") == 1 &&
        heed_find_output(entry, "y") == 0);
  CHECK(heed_find_input(entry, "y") == -1 &&
        heed_find_input(entry, NULL) == -1);
  CHECK(heed_find_output(NULL, "y") == -1 &&
        entry->size == sizeof(heed_signature) &&
        entry->inputs[2]->size == sizeof(heed_tensor_info) &&
        heed_param(&fake_model, 1)->size == sizeof(heed_param_info));
  return failures;
}

/* ---- cancel, deadline ---- */

static int32_t cancel;
static atomic_int begun;

static void cancelAtThree(int row) {
  (void)row;
  if (atomic_fetch_add(&begun, 1) == 2)
    __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
}

static void sleepInRow(int row) {
  (void)row;
  atomic_fetch_add(&begun, 1);
  struct timespec time = {0, 20000000};
  nanosleep(&time, NULL);
}

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int testStops(heed_model *model, int threads) {
  int failures = 0;
  arrays a;
  heed_call call = {.size = sizeof call, .cancel = &cancel};
  for (int turn = 0; turn < 20; ++turn) {
    fill(&a, 1);
    cancel = begun = 0;
    fake_row_hook = cancelAtThree;
    CHECK(with(model, &a, &call) == HEED_ERROR_CANCELLED);
    CHECK(says(model, "the call was cancelled") && a.count == 0);
    /* Who had begun a row when the third did, finishes it. */
    CHECK(begun >= 3 && begun < 3 + threads);
    begun = 0;
    CHECK(with(model, &a, &call) == HEED_ERROR_CANCELLED && begun == 0);
    fake_row_hook = NULL;
    cancel = 0;
    CHECK(with(model, &a, &call) == HEED_OK && isRight(&a));
  }
  fake_row_hook = sleepInRow;
  begun = 0;
  call = (heed_call){.size = sizeof call, .deadline = 1};
  CHECK(with(model, &a, &call) == HEED_ERROR_DEADLINE && begun == 0);
  call.deadline = nanoseconds() + 50000000;
  CHECK(with(model, &a, &call) == HEED_ERROR_DEADLINE);
  CHECK(says(model, "deadline has passed") && begun > 0 && begun < Rows);
  fake_row_hook = NULL;
  call.deadline = INT64_MAX;
  fill(&a, 1);
  CHECK(with(model, &a, &call) == HEED_OK && isRight(&a));
  return failures;
}

/* ---- the mode of floating-point numbers ---- */

static atomic_int wrongModes;

static void lookAtMode(int row) {
  (void)row;
  volatile float one = 1, tiny = 0x1p-60f, least = 0x1p-126f, half = 0.5f;
  wrongModes += one + tiny != 1 || one - tiny != 1 || least * half == 0;
}

static int testModes(heed_model *model) {
  int failures = 0;
  arrays a;
  fake_row_hook = lookAtMode;
  static const int modes[] = {FE_UPWARD, FE_TOWARDZERO, FE_TONEAREST,
                              FE_DOWNWARD};
  for (int k = 0; k < 4; ++k) {
    fill(&a, 1);
    fesetround(modes[k]);
#if defined(__x86_64__)
    unsigned control = __builtin_ia32_stmxcsr() | 0x8040; /* FTZ and DAZ */
    __builtin_ia32_ldmxcsr(control);
#endif
    heed_status status = run(model, &a);
    int kept = fegetround() == modes[k];
#if defined(__x86_64__)
    kept = kept && (__builtin_ia32_stmxcsr() & 0xffc0) == (control & 0xffc0);
    __builtin_ia32_ldmxcsr(0x1f80);
#endif
    fesetround(FE_TONEAREST);
    CHECK(status == HEED_OK && kept && isRight(&a));
  }
  CHECK(wrongModes == 0);
  /* Unless the caller wants its own. */
  if (heed_num_threads(model) == 1) {
    heed_call call = {.size = sizeof call, .keepFloatMode = 1};
    fill(&a, 1);
    fesetround(FE_UPWARD);
    heed_status status = with(model, &a, &call);
    fesetround(FE_TONEAREST);
    CHECK(status == HEED_OK && wrongModes > 0);
    wrongModes = 0;
  }
  fake_row_hook = NULL;
  return failures;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  const char *weights = argv[1];
  int failures = testVersions(weights);
  for (int threads = 1; threads < 4; ++threads) {
    heed_options options = {.size = sizeof options,
                            .weights = &weights,
                            .numWeights = 1,
                            .threads = threads};
    heed_model *model;
    /* Workers start in the first loop: those of this handle with another mode.
     */
    CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
    if (failures)
      break;
    failures += testPlan(model) + testModes(model) + testSizes(model) +
                testDevices(model) + testStrides(model) + testNames(model) +
                testStops(model, threads);
    heed_close(model);
  }
  printf(failures ? "%d failures\n" : "all right\n", failures);
  return failures != 0;
}
