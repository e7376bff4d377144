/* A model with weights that opening computes with, and states, on a device
 * whose driver fails: at each call of each function in argv, once, and then as
 * one that is lost. The caller has a context of its own, and in one of its
 * calls a stream and arrays on the device. After a failure the same call goes
 * through, and gives what it gives without one. */
#include "runtime/heed.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const heed_model_desc failing_model;

enum { B = 2, C = 4, E = 16, Calls = 3, OnDevice = 2 };

static float weights[E * E], inputs[Calls][B * E], wanted[Calls + 1][B * E];
static void *driver;
static const char *function = "";
/* Of the caller's on the device, where the driver of the tests lets the host
 * look. */
static float *there[2];
static void *context, *stream;
static bool isFirst = true, isLost; /* nothing fails yet; all does */
static int failures, faults;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("FAILED: %s, line %d: %s\n", function, __LINE__, #condition);     \
      ++faults;                                                                \
    }                                                                          \
  } while (0)

static void fill(float *array, int count, int seed) {
  for (int k = 0; k < count; ++k)
    array[k] = (float)((k * 37 + seed * 11) % 64 - 32) / 64;
}

static int32_t findWeight(void *user, const char *name, heed_buffer *buffer) {
  (void)user;
  (void)name;
  *buffer = HEED_BUFFER(weights, HEED_F32, 2, E, E);
  return 1;
}

/* A context of somebody else's stays a thread's current one. */
static void checkContext(void) {
  int (*depth)(void) = (int (*)(void))dlsym(driver, "cuda_stub_depth");
  CHECK(depth() == 1);
}

/* HEED_OK, or a failure, which says where and is one more. */
static heed_status seen(heed_status status, const char *message) {
  checkContext();
  if (status == HEED_OK)
    return status;
  ++failures;
  bool isSaid =
      strstr(message, function) || strstr(message, "memory for") ||
      strstr(message, "finds no device") || strstr(message, "capability") ||
      (isLost && strstr(message, "(700, CUDA_ERROR_ILLEGAL_ADDRESS)"));
  if (!isSaid)
    printf("found: %s\n", message);
  CHECK(isSaid);
  CHECK(status == HEED_ERROR_DEVICE || status == HEED_ERROR_MEMORY);
  return status;
}

static heed_status openOne(heed_model **model) {
  heed_options options = {.size = sizeof options,
                          .findWeight = findWeight,
                          .threads = 1,
                          .target = "cuda",
                          .profile = 1};
  heed_status status = heed_open(&failing_model, &options, model);
  return seen(status, heed_last_error(*model));
}

static heed_status call(heed_model *model, heed_state *state, int number) {
  float result[B * E];
  heed_buffer x = HEED_BUFFER(inputs[number], HEED_F32, 3, B, 1, E),
              y = HEED_BUFFER(result, HEED_F32, 3, B, 1, E);
  heed_call with = {.size = sizeof with, .state = state};
  if (number == OnDevice) {
    memcpy(there[0], inputs[number], sizeof result);
    x.data = there[0];
    y.data = there[1];
    x.deviceType = y.deviceType = HEED_DEVICE_CUDA;
    with.stream = stream;
  }
  heed_status status = heed_run(model, NULL, &x, 1, &y, 1, &with);
  if (seen(status, heed_last_error(model)))
    return status;
  if (number == OnDevice)
    memcpy(result, there[1], sizeof result);
  if (isFirst)
    memcpy(wanted[number], result, sizeof result);
  CHECK(!memcmp(result, wanted[number], sizeof result));
  return status;
}

static heed_status look(heed_state *state) {
  float sum[B * E];
  heed_buffer buffer = HEED_BUFFER(sum, HEED_F32, 2, B, E);
  heed_status status = heed_state_get(state, "sum", &buffer);
  if (seen(status, heed_state_last_error(state)))
    return status;
  if (isFirst)
    memcpy(wanted[Calls], sum, sizeof sum);
  /* Of a device that is lost what the last call that stands has left. */
  CHECK(isLost || !memcmp(sum, wanted[Calls], sizeof sum));
  return status;
}

/* All of it once more where `again`; what fails twice has failed. */
static void useAll(bool again) {
  heed_model *model = NULL;
  heed_state *state = NULL;
  if (openOne(&model)) {
    heed_close(model);
    if (!again || openOne(&model))
      return;
  }
  heed_dim dims[] = {{"B", B}, {"C", C}};
  CHECK(heed_state_open(model, dims, 2, &state) == HEED_OK);
  for (int number = 0; number < Calls; ++number)
    if (call(model, state, number) && again)
      CHECK(call(model, state, number) == HEED_OK);
  if (look(state) && again)
    CHECK(look(state) == HEED_OK);
  heed_state_close(state);
  heed_close(model);
  checkContext();
}

/* ---- calls that are stopped, handles on the same weights ---- */

static int *counter(const char *name) { return (int *)dlsym(driver, name); }

static long copied(void) {
  return ((long (*)(void))dlsym(driver, "cuda_stub_copied"))();
}

/* Between two kernels of a call it is cancelled: none follows, and the state is
 * what it was. */
static void testCancel(void) {
  heed_model *model = NULL;
  heed_state *state = NULL;
  heed_dim dims[] = {{"B", B}, {"C", C}};
  float result[B * E];
  heed_buffer x = HEED_BUFFER(inputs[1], HEED_F32, 3, B, 1, E),
              y = HEED_BUFFER(result, HEED_F32, 3, B, 1, E);
  int32_t flag = 0;
  heed_call with = {.size = sizeof with, .cancel = &flag};
  CHECK(openOne(&model) == HEED_OK);
  CHECK(heed_state_open(model, dims, 2, &state) == HEED_OK);
  with.state = state;
  int *launches = counter("calls_cuLaunchKernel"), before = *launches;
  CHECK(call(model, state, 0) == HEED_OK);
  int all = *launches - before;
  CHECK(all > 3);
  int cancelled = 0;
  for (int at = 1; at < all; ++at) {
    heed_state_reset(state);
    CHECK(call(model, state, 0) == HEED_OK);
    *(int32_t **)dlsym(driver, "cuda_stub_flag") = &flag;
    before = *launches;
    *counter("cuda_stub_flag_at") = before + at;
    flag = 0;
    heed_status status = heed_run(model, NULL, &x, 1, &y, 1, &with);
    *(int32_t **)dlsym(driver, "cuda_stub_flag") = NULL;
    /* The last kernel may have several launches. */
    if (status == HEED_OK)
      continue;
    CHECK(status == HEED_ERROR_CANCELLED && *launches - before < all);
    CHECK(call(model, state, 1) == HEED_OK);
    ++cancelled;
  }
  CHECK(cancelled > 1);
  with.cancel = NULL;
  with.deadline = 1;
  CHECK(heed_run(model, NULL, &x, 1, &y, 1, &with) == HEED_ERROR_DEADLINE);
  heed_state_close(state);
  heed_close(model);
}

/* A second handle brings no weights, and a second call no state. */
static void testHandles(void) {
  heed_model *models[2];
  heed_state *states[2];
  heed_dim dims[] = {{"B", B}, {"C", C}};
  long first[2], later[2], before = copied();
  CHECK(openOne(&models[0]) == HEED_OK);
  CHECK(copied() - before == sizeof weights);
  before = copied();
  CHECK(heed_open_shared(models[0], 0, &models[1]) == HEED_OK);
  CHECK(copied() == before);
  for (int k = 0; k < 2; ++k) {
    CHECK(heed_state_open(models[k], dims, 2, &states[k]) == HEED_OK);
    before = copied();
    CHECK(call(models[k], states[k], 0) == HEED_OK);
    first[k] = copied() - before;
    before = copied();
    CHECK(call(models[k], states[k], 1) == HEED_OK);
    later[k] = copied() - before;
  }
  /* All but the counts, which are positions and so the host's. */
  long state = (long)sizeof(float) * (B * C * E + B * E);
  CHECK(first[0] == first[1] && later[0] == later[1]);
  CHECK(first[0] == later[0] + state);
  for (int k = 0; k < 2; ++k) {
    heed_close(models[k]);
    heed_state_close(states[k]);
  }
}

/* A child of fork closes what its parent has, and calls no driver. */
static void testFork(void) {
  heed_model *model = NULL;
  heed_state *state = NULL;
  heed_dim dims[] = {{"B", B}, {"C", C}};
  CHECK(openOne(&model) == HEED_OK);
  CHECK(heed_state_open(model, dims, 2, &state) == HEED_OK);
  CHECK(call(model, state, 0) == HEED_OK);
  pid_t child = fork();
  if (child == 0) {
    const char *const names[] = {"calls_cuCtxPushCurrent", "calls_cuMemFree",
                                 "calls_cuModuleUnload",
                                 "calls_cuStreamDestroy"};
    int before[4], faultsBefore = faults;
    for (int k = 0; k < 4; ++k)
      before[k] = *counter(names[k]);
    heed_buffer none = {.size = sizeof none};
    heed_call with = {.size = sizeof with, .state = state};
    CHECK(heed_run(model, NULL, &none, 1, &none, 1, &with) == HEED_ERROR_FORK);
    heed_state_close(state);
    heed_close(model);
    for (int k = 0; k < 4; ++k)
      CHECK(*counter(names[k]) == before[k]);
    fflush(stdout);
    _exit(faults != faultsBefore);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(call(model, state, 1) == HEED_OK);
  heed_state_close(state);
  heed_close(model);
}

/* Memory and a stream in the context that handles share with their caller. */
static void openThere(void) {
  void *ours;
  uint64_t memory = 0;
#define CALL(function, types, ...)                                             \
  CHECK(((int(*) types)dlsym(driver, #function))(__VA_ARGS__) == 0)
  CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
  CALL(cuCtxPushCurrent_v2, (void *), context);
  for (int k = 0; k < 2; ++k) {
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &memory, sizeof inputs[0]);
    there[k] = (float *)(uintptr_t)memory;
  }
  CALL(cuStreamCreate, (void **, unsigned), &stream, 1);
  CALL(cuCtxPopCurrent_v2, (void **), &ours);
}

/* Also of a device that is lost. */
static void closeThere(void) {
  void *ours;
  CALL(cuCtxPushCurrent_v2, (void *), context);
  for (int k = 0; k < 2; ++k)
    CALL(cuMemFree_v2, (uint64_t), (uint64_t)(uintptr_t)there[k]);
  CALL(cuStreamDestroy_v2, (void *), stream);
  CALL(cuCtxPopCurrent_v2, (void **), &ours);
  CALL(cuDevicePrimaryCtxRelease_v2, (int), 0);
#undef CALL
}

static void failAt(int number, const char *isLost) {
  char symbol[80], text[16];
  snprintf(symbol, sizeof symbol, "calls_%s", function);
  snprintf(text, sizeof text, "%d", *(int *)dlsym(driver, symbol) + number);
  setenv("AT", text, 1);
  setenv("LOST", isLost, 1);
  setenv("FAIL", function, 1);
  failures = 0;
}

int main(int argc, char **argv) {
  int mine;
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver)
    return puts("no driver"), 1;
  ((int (*)(void *))dlsym(driver, "cuCtxPushCurrent_v2"))(&mine);
  openThere();
  fill(weights, E * E, 1);
  for (int k = 0; k < Calls; ++k)
    fill(inputs[k], B * E, k + 2);
  useAll(true);
  CHECK(!failures);
  isFirst = false;
  testCancel();
  testHandles();
  testFork();
  for (int k = 1; k < argc && !faults; ++k) {
    function = argv[k];
    int at = 0;
    do {
      failAt(++at, "");
      useAll(true);
      CHECK(failures <= 1);
    } while (failures && !faults && at < 1000);
    printf("%s failed %d times\n", function, at - 1);
    CHECK(at > 1);
    if (k + 1 < argc)
      continue;
    /* Of the last one: nothing goes any more. */
    failAt(2, "yes");
    isLost = true;
    useAll(false);
    CHECK(failures > 1);
  }
  closeThere();
  printf("faults: %d\n", faults);
  return faults != 0;
}
