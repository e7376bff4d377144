/* What the host brings itself: an allocator and a limit, threads of its own or
 * shared ones, a log, signals, fork. argv[1]: the model's weights. */
#include "runtime/Model.h"
#include "test/runtime/Inputs/fake.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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
  if (pthread_equal(pthread_self(), mainThread)) {
    usleep(100); /* a row is left for a worker, on a busy machine too */
    return;
  }
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
  if (argc < 2)
    return 2;
  const char *weights = argv[1];
  int failures = testAllocator(weights) + testParallelFor(weights) +
                 testPool(weights) + testLog(weights) + testSignals(weights) +
                 testFork(weights);
  printf(failures ? "%d failures\n" : "all right\n", failures);
  return failures != 0;
}
