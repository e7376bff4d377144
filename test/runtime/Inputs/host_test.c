/* What the host brings itself: weights in memory and by name, an allocator and
 * a limit, threads of its own or shared ones, a log, signals, fork. argv[1]:
 * the model's weights; argv[2]: a copy of them that may be spoilt. */
#include "runtime/Model.h"
#include "test/runtime/Inputs/fake.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int says(const heed_model *model, const char *text) {
  return strstr(heed_last_error(model), text) != NULL;
}

/* Opens, runs, closes; the status of opening. */
static heed_status once(const heed_options *options, int *failures) {
  heed_model *model = NULL;
  arrays a;
  heed_status status = heed_open(&fake_model, options, &model);
  if (!status) {
    fill(&a, 2);
    *failures += check(run(model, &a) == HEED_OK && isRight(&a),
                       "a right result", __LINE__, model);
  }
  heed_close(model);
  return status;
}

static char *readAll(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  char *bytes = malloc(1 << 16);
  *size = fread(bytes, 1, 1 << 16, file);
  fclose(file);
  return bytes;
}

/* ---- weights ---- */

static int testMemory(const char *weights) {
  int failures = 0;
  heed_model *model = NULL;
  size_t size;
  char *bytes = readAll(weights, &size);
  CHECK(bytes && size > 100);
  /* Not aligned: tensors are copied. */
  char *odd = malloc(size + 1);
  memcpy(odd + 1, bytes, size);
  for (int k = 0; k < 2; ++k) {
    heed_weights_data data = {.size = sizeof data,
                              .data = k ? odd + 1 : bytes,
                              .numBytes = size,
                              .name = "mine"};
    heed_options options = {.size = sizeof options,
                            .weightsData = &data,
                            .numWeightsData = 1,
                            .threads = 2};
    CHECK(once(&options, &failures) == HEED_OK);
    /* A copy outlives the memory. */
    options.copyWeights = 1;
    arrays a;
    CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
    char *kept = malloc(size);
    memcpy(kept, data.data, size);
    memset((char *)(uintptr_t)data.data, 0x55, size);
    fill(&a, 1);
    CHECK(run(model, &a) == HEED_OK && isRight(&a));
    memcpy((char *)(uintptr_t)data.data, kept, size);
    free(kept);
    heed_memory_use use = {.size = sizeof use};
    CHECK(heed_memory(model, &use) == HEED_OK && use.weights == 0 &&
          use.copies == 4 * (5 * 4 + 2 * 4) + 4 * 4);
    heed_close(model);
    data.numBytes = size - 1;
    CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_FILE &&
          says(model, "mine: "));
    heed_close(model);
    /* The same tensor twice. */
    data.numBytes = size;
    options.weights = &weights;
    options.numWeights = 1;
    CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_FILE &&
          says(model, "is in both"));
    heed_close(model);
  }
  free(odd);
  free(bytes);
  return failures;
}

/* The table is transposed in the host's memory, and one bias is of another
 * type.
 */
static float table[4][5];
static const int64_t tableStrides[] = {1, 5};
static float bias1[] = {60, 60, 60, 60};
static const uint16_t bias2[] = {0x4220, 0x4220, 0x4220, 0x4220}; /* bf16: 40 */
static int what; /* goes wrong */

static int32_t findWeight(void *user, const char *name, heed_buffer *buffer) {
  if (user != &what)
    return 0;
  if (!strcmp(name, "table")) {
    *buffer = HEED_BUFFER(table, HEED_F32, 2, 5, 4);
    buffer->strides = tableStrides;
    if (what == 1)
      buffer->shape[1] = 3;
    if (what == 2)
      buffer->type = 77;
    if (what == 3)
      buffer->deviceType = 2;
    if (what == 4)
      buffer->rank = 20;
    return what != 5;
  }
  if (!strcmp(name, "layer.1.bias"))
    *buffer = HEED_BUFFER(bias1, HEED_F32, 1, 4);
  else if (!strcmp(name, "layer.2.bias"))
    *buffer = HEED_BUFFER((void *)(uintptr_t)bias2, HEED_BF16, 1, 4);
  else
    return 0;
  return 1;
}

static int testCallback(void) {
  int failures = 0;
  heed_model *model = NULL;
  for (int v = 0; v < 5; ++v)
    for (int m = 0; m < 4; ++m)
      table[m][v] = (float)(10 * v + m);
  heed_options options = {.size = sizeof options,
                          .findWeight = findWeight,
                          .findWeightUser = &what,
                          .threads = 2};
  for (options.copyWeights = 0; options.copyWeights < 2; ++options.copyWeights)
    CHECK(once(&options, &failures) == HEED_OK);
  static const struct {
    heed_status status;
    const char *text;
  } wrong[] = {{HEED_ERROR_WEIGHTS, "'table': expected shape [V, 4], found"},
               {HEED_ERROR_TYPE, "77 is no element type"},
               {HEED_ERROR_DEVICE, "expected memory of the CPU"},
               {HEED_ERROR_WEIGHTS, "its rank, shape or strides are none"},
               {HEED_ERROR_WEIGHTS, "no tensor 'table' (nor 'alt.table')"}};
  for (what = 1; what <= 5; ++what) {
    CHECK(heed_open(&fake_model, &options, &model) == wrong[what - 1].status &&
          says(model, wrong[what - 1].text));
    heed_close(model);
  }
  what = 0;
  return failures;
}

/* A mapped file that loses its end would end the process. */
static int testTruncated(const char *path) {
  int failures = 0;
  heed_model *model = NULL;
  arrays a;
  heed_options options = {.size = sizeof options,
                          .weights = &path,
                          .numWeights = 1,
                          .copyWeights = 1,
                          .threads = 2};
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  CHECK(truncate(path, 0) == 0);
  fill(&a, 2);
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  heed_close(model);
  return failures;
}

/* What is copied is read, not mapped for a while: a pipe has it, too. */
static int testPipe(const char *weights) {
  int failures = 0, ends[2];
  heed_model *model = NULL;
  size_t size;
  char *bytes = readAll(weights, &size), path[64];
  const char *name = path;
  CHECK(bytes && pipe(ends) == 0 && size < 60000);
  CHECK(write(ends[1], bytes, size) == (ssize_t)size);
  close(ends[1]);
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  heed_options options = {.size = sizeof options,
                          .weights = &name,
                          .numWeights = 1,
                          .copyWeights = 1,
                          .threads = 2};
  CHECK(once(&options, &failures) == HEED_OK);
  close(ends[0]);
  free(bytes);
  return failures;
}

/* ---- memory ---- */

static atomic_llong held, most;
static atomic_int blocks, failing;

static void *allocate(void *user, size_t alignment, size_t bytes) {
  if (user != &held || failing)
    return NULL;
  void *memory;
  if (posix_memalign(&memory, alignment, bytes) != 0)
    return NULL;
  atomic_fetch_add(&blocks, 1);
  long long now = atomic_fetch_add(&held, (long long)bytes) + (long long)bytes;
  if (now > most)
    most = now;
  return memory;
}

static void release(void *user, void *memory, size_t bytes) {
  if (user != &held)
    return;
  atomic_fetch_sub(&held, (long long)bytes);
  free(memory);
}

static int testAllocator(const char *weights) {
  int failures = 0;
  heed_model *model = NULL;
  arrays a;
  heed_allocator allocator = {.size = sizeof allocator,
                              .allocate = allocate,
                              .release = release,
                              .user = &held};
  heed_options options = {.size = sizeof options,
                          .weights = &weights,
                          .numWeights = 1,
                          .allocator = &allocator,
                          .copyWeights = 1,
                          .threads = 2};
  CHECK(once(&options, &failures) == HEED_OK);
  CHECK(held == 0 && blocks >= 5); /* three tensors, a sum, a copy of x */
  CHECK(most >= 4 * (5 * 4 + 2 * 4) + 16 + 16 * Rows);
  /* None to be had: while opening, in a call. */
  failing = 1;
  CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_MEMORY);
  heed_close(model);
  failing = 0;
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  failing = 1;
  fill(&a, 2);
  CHECK(run(model, &a) == HEED_ERROR_MEMORY);
  failing = 0;
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  heed_close(model);
  CHECK(held == 0);
  /* A limit: enough, and one byte less than a first run takes. */
  long long needed = most;
  for (long long limit = 1; limit <= needed; limit = limit * 3 + 1) {
    options.memoryLimit = limit;
    most = 0;
    heed_status status = heed_open(&fake_model, &options, &model);
    fill(&a, 2);
    if (!status)
      status = run(model, &a);
    CHECK(status == HEED_OK || status == HEED_ERROR_MEMORY);
    CHECK(most <= limit && (status || isRight(&a)));
    heed_close(model);
    CHECK(held == 0);
  }
  options.memoryLimit = needed - 1;
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  fill(&a, 2);
  a.in[0].shape[0] = a.in[1].shape[0] = a.out[0].shape[0] = 1;
  CHECK(run(model, &a) == HEED_OK); /* less is needed here */
  heed_close(model);
  allocator.release = NULL;
  CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_ARGUMENT);
  heed_close(model);
  return failures;
}

/* ---- threads ---- */

typedef struct part {
  void (*task)(void *argument, int32_t k);
  void *argument;
  int32_t first, count, step;
} part;

static void *runPart(void *argument) {
  const part *p = argument;
  for (int32_t k = p->first; k < p->count; k += p->step)
    p->task(p->argument, k);
  return NULL;
}

static atomic_int loops, forgets;

/* Three new threads a loop, and the caller. */
static void parallelFor(void *user, int32_t count,
                        void (*task)(void *argument, int32_t k),
                        void *argument) {
  if (user != &loops)
    return;
  atomic_fetch_add(&loops, 1);
  part parts[4];
  pthread_t threads[4];
  for (int k = 0; k < 4; ++k) {
    parts[k] = (part){task, argument, k, count - forgets, 4};
    if (k)
      pthread_create(&threads[k], NULL, runPart, &parts[k]);
  }
  runPart(&parts[0]);
  for (int k = 1; k < 4; ++k)
    pthread_join(threads[k], NULL);
}

/* Blocks of memory without a lock are for the threads of teams alone. */
static atomic_int numbered;

static void lookAtNumber(int row) {
  (void)row;
  numbered += heed_thread_index() >= 0;
}

static int testParallelFor(const char *weights) {
  int failures = 0;
  heed_model *model = NULL, *other = NULL;
  arrays a;
  heed_options options = {.size = sizeof options,
                          .weights = &weights,
                          .numWeights = 1,
                          .threads = 4,
                          .parallelFor = parallelFor,
                          .parallelForUser = &loops};
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  CHECK(heed_num_threads(model) == 4);
  fake_row_hook = lookAtNumber;
  for (int k = 0; k < 50; ++k) {
    fill(&a, (float)(k % 7));
    CHECK(run(model, &a) == HEED_OK && isRight(&a));
  }
  CHECK(loops == 50 && numbered == 0);
  fake_row_hook = NULL;
  fill(&a, 13); /* a task fails */
  CHECK(run(model, &a) == HEED_ERROR_INTERNAL && says(model, "the number 13"));
  forgets = 1; /* no wrong numbers where a task is left out */
  fill(&a, 2);
  CHECK(run(model, &a) == HEED_ERROR_INTERNAL &&
        says(model, "ran 36 tasks, expected 37"));
  forgets = 0;
  CHECK(heed_open_shared(model, 0, &other) == HEED_OK);
  CHECK(run(other, &a) == HEED_OK && isRight(&a) && loops == 53);
  heed_close(other);
  heed_close(model);
  return failures;
}

static void *runOften(void *argument) {
  heed_model *model = argument;
  arrays *a = malloc(sizeof *a);
  intptr_t wrong = 0;
  for (int k = 0; k < 300; ++k) {
    fill(a, (float)(k % 7));
    wrong += run(model, a) != HEED_OK || !isRight(a);
  }
  free(a);
  return (void *)wrong;
}

/* Handles in several threads on one team. */
static int testPool(const char *weights) {
  int failures = 0;
  heed_model *model = NULL, *models[4];
  pthread_t threads[4];
  CHECK(!heed_threads_open(NULL, 1, 0) &&
        !heed_threads_open(&fake_model, -1, 0) &&
        !heed_threads_open(&fake_model, 1, 7));
  heed_threads_close(NULL);
  heed_threads *pool = heed_threads_open(&fake_model, 3, HEED_WAIT_WATCH);
  CHECK(pool != NULL);
  heed_options options = {.size = sizeof options,
                          .weights = &weights,
                          .numWeights = 1,
                          .pool = pool};
  for (int k = 0; k < 4; ++k)
    CHECK((k == 3 ? heed_open_shared(models[0], 2, &models[k])
                  : heed_open(&fake_model, &options, &models[k])) == HEED_OK &&
          heed_num_threads(models[k]) == 3);
  for (int k = 0; k < 4; ++k)
    pthread_create(&threads[k], NULL, runOften, models[k]);
  for (int k = 0; k < 4; ++k) {
    void *wrong;
    pthread_join(threads[k], &wrong);
    CHECK(wrong == NULL);
    heed_close(models[k]);
  }
  options.parallelFor = parallelFor;
  CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_ARGUMENT);
  heed_close(model);
  heed_threads_close(pool);
  return failures;
}

/* ---- the log ---- */

static int logged[4];
static char lastLine[1024];

static void note(void *user, int32_t level, const char *text) {
  if (user == &logged && level >= 1 && level <= 3)
    ++logged[level];
  snprintf(lastLine, sizeof lastLine, "%s", text);
}

static int testLog(const char *weights) {
  int failures = 0;
  heed_model *model = NULL;
  arrays a;
  heed_options options = {.size = sizeof options,
                          .weights = &weights,
                          .numWeights = 1,
                          .threads = 2,
                          .log = note,
                          .logUser = &logged};
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  CHECK(logged[HEED_LOG_INFO] == 1 && strstr(lastLine, "model 'fake' opened"));
  fill(&a, 13);
  CHECK(run(model, &a) == HEED_ERROR_INTERNAL);
  CHECK(logged[HEED_LOG_ERROR] == 1 &&
        !strcmp(lastLine, heed_last_error(model)));
  heed_close(model);
  return failures;
}

/* ---- signals ---- */

static char *page;
static atomic_int faults, outside;
static pthread_t mainThread;

static void onFault(int number) {
  (void)number;
  ++faults;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void faultInWorker(int row) {
  (void)row;
  if (pthread_equal(pthread_self(), mainThread))
    return;
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  outside += !sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGUSR1);
  *(volatile char *)page = 1;
}

/* The host's handler runs where the fault is, also on a worker. */
static int testSignals(const char *weights) {
  int failures = 0;
  heed_model *model = NULL;
  arrays a;
  heed_options options = {.size = sizeof options,
                          .weights = &weights,
                          .numWeights = 1,
                          .threads = 3};
  struct sigaction handler = {.sa_handler = onFault}, before;
  mainThread = pthread_self();
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaction(SIGSEGV, &handler, &before);
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  fake_row_hook = faultInWorker;
  for (int k = 0; k < 10000 && !faults; ++k) {
    fill(&a, 2);
    CHECK(run(model, &a) == HEED_OK && isRight(&a));
  }
  fake_row_hook = NULL;
  CHECK(faults >= 1 && outside == 0);
  sigaction(SIGSEGV, &before, NULL);
  heed_close(model);
  munmap(page, 4096);
  return failures;
}

/* ---- fork ---- */

static int inChild(heed_model *model, const heed_options *options,
                   heed_threads *pool, const heed_options *pooled) {
  int failures = 0;
  heed_model *other = NULL;
  arrays a;
  fill(&a, 2);
  CHECK(run(model, &a) == HEED_ERROR_FORK && says(model, "fork of"));
  CHECK(a.count == 0);
  CHECK(heed_output_shapes(model, NULL, a.in, 3, a.out, 2) == HEED_ERROR_FORK);
  CHECK(heed_open_shared(model, 1, &other) == HEED_ERROR_FORK && !other);
  heed_memory_use use = {.size = sizeof use};
  CHECK(heed_memory(model, &use) == HEED_ERROR_FORK);
  CHECK(heed_open(&fake_model, pooled, &other) == HEED_ERROR_FORK);
  heed_close(other);
  heed_close(model);
  heed_threads_close(pool);
  CHECK(once(options, &failures) == HEED_OK);
  return failures;
}

static atomic_int going;

static void *keepRunning(void *argument) {
  arrays a;
  while (going) {
    fill(&a, 2);
    run(argument, &a);
  }
  return NULL;
}

/* Handles at rest and handles in a call of another thread, whose locks may be
 * taken. */
static int testFork(const char *weights) {
  int failures = 0;
  heed_model *model = NULL;
  arrays a;
  heed_threads *pool = heed_threads_open(&fake_model, 3, HEED_WAIT_SLEEP);
  heed_options options = {.size = sizeof options,
                          .weights = &weights,
                          .numWeights = 1,
                          .threads = 3},
               pooled = options;
  pooled.pool = pool;
  for (int turn = 0; turn < 20; ++turn) {
    pthread_t thread;
    CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
    fill(&a, 2);
    CHECK(run(model, &a) == HEED_OK);
    going = turn % 2;
    if (going)
      pthread_create(&thread, NULL, keepRunning, model);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(60); /* who hangs is ended */
      int failed = inChild(model, &options, pool, &pooled);
      fflush(stdout);
      _exit(failed != 0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (going) {
      going = 0;
      pthread_join(thread, NULL);
    }
    fill(&a, 2);
    CHECK(run(model, &a) == HEED_OK && isRight(&a)); /* the parent goes on */
    heed_close(model);
  }
  heed_threads_close(pool);
  return failures;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  const char *weights = argv[1];
  int failures = testMemory(weights) + testCallback() + testTruncated(argv[2]) +
                 testPipe(weights) + testAllocator(weights) +
                 testParallelFor(weights) + testPool(weights) +
                 testLog(weights) + testSignals(weights) + testFork(weights);
  printf(failures ? "%d failures\n" : "all right\n", failures);
  return failures != 0;
}
