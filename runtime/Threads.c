/* A team of threads that runs one parallel loop at a time. Each handle has its
 * own, or shares one with others. */
#include "runtime/Model.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* Tasks of one thread, in order, from its share of a loop. The same share each
 * time: what one loop wrote, the next finds in the same core's cache. */
typedef struct share {
  _Alignas(64) atomic_int next;
  int end;
} share;

typedef struct loop {
  heed_task task;
  void *context;
  uint8_t *closure;
  atomic_int failure;
} loop;

typedef struct worker {
  heed_team *team;
  pthread_t thread;
  int index; /* of its share; 0 is the share of who runs the loop */
} worker;

/* Of `state`: a loop may be joined; the other bits count who has. */
enum { Open = 1u << 30 };

/* Threads join and leave a loop without the lock: it is for going to sleep and
 * for waking. Who goes to sleep says so first and looks again; who changes what
 * is waited for looks for sleepers afterwards: one of the two sees the other.
 */
struct heed_team {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  worker *workers;
  share *shares; /* of the current loop: one a thread */
  int32_t threads, numWorkers;
  bool started, watch;
  heed_mark mark;
  atomic_int calls;     /* that are under way: loops may come any moment */
  atomic_bool busy;     /* a loop runs: a loop inside it is serial */
  atomic_uint turn;     /* counts loops */
  atomic_uint state;    /* Open, and the workers inside the current loop */
  atomic_uint sleeping; /* workers that wait for `wake` */
  atomic_bool awaited;  /* heed_team_run waits for `done` */
  loop *current;        /* read by who has joined */
  atomic_bool closing;
};

/* How long a thread watches for a change before it sleeps, in nanoseconds. A
 * sleeping thread is back after 20 to 100 microseconds (a virtual machine's
 * idle processor wakes slowly), as long as many a kernel runs. It keeps its
 * processor to itself for the first part only. */
enum { Watched = 1000000, Kept = 50000 };

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/* Watches `*watched` while it is `value`; false after some time, and between
 * calls at once unless that is wanted. */
static bool changes(const heed_team *team, const atomic_uint *watched,
                    unsigned value) {
  int64_t start = nanoseconds(), passed = 0;
  while (passed < Watched && (team->watch || atomic_load(&team->calls))) {
    for (int k = 0; k < 32; ++k) {
      if (atomic_load(watched) != value)
        return true;
      relax();
    }
    passed = nanoseconds() - start;
    if (passed > Kept)
      sched_yield();
  }
  return false;
}

static bool runTask(loop *work, int k) {
  int result = work->task(work->context, k, work->closure);
  if (!result)
    return true;
  int none = 0;
  atomic_compare_exchange_strong(&work->failure, &none, result);
  return false;
}

/* Runs the tasks of the share `index`, then what others have left. */
static void takePart(heed_team *team, int index) {
  loop *work = team->current;
  for (int k = 0, count = team->numWorkers + 1; k < count; ++k) {
    share *from = &team->shares[(index + k) % count];
    for (;;) {
      int next =
          atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed);
      if (next >= from->end || atomic_load(&work->failure))
        break;
      runTask(work, next);
    }
  }
}

static _Thread_local int32_t threadIndex;

int32_t heed_thread_index(void) { return threadIndex; }

/* Numbers below 0 are nobody's: blocks of memory are taken under a lock then.
 * Threads differ in them, as far as shelves go. */
int32_t heed_thread_borrow(void) {
  int32_t before = threadIndex;
  uintptr_t self = (uintptr_t)pthread_self() >> 12;
  threadIndex = -1 - (int32_t)(self % (HEED_SHELVES - 1));
  return before;
}

void heed_thread_return(int32_t before) { threadIndex = before; }

static bool join(heed_team *team) {
  unsigned state = atomic_load(&team->state);
  while (state & Open)
    if (atomic_compare_exchange_weak(&team->state, &state, state + 1))
      return true;
  return false;
}

static void leave(heed_team *team) {
  if (atomic_fetch_sub(&team->state, 1) == 1 && atomic_load(&team->awaited)) {
    pthread_mutex_lock(&team->lock);
    pthread_cond_signal(&team->done);
    pthread_mutex_unlock(&team->lock);
  }
}

static void *work(void *argument) {
  const worker *self = argument;
  heed_team *team = self->team;
  threadIndex = self->index;
  unsigned seen = 0;
  for (;;) {
    if (!changes(team, &team->turn, seen)) {
      pthread_mutex_lock(&team->lock);
      atomic_fetch_add(&team->sleeping, 1);
      while (atomic_load(&team->turn) == seen)
        pthread_cond_wait(&team->wake, &team->lock);
      atomic_fetch_sub(&team->sleeping, 1);
      pthread_mutex_unlock(&team->lock);
    }
    if (atomic_load(&team->closing))
      return NULL;
    seen = atomic_load(&team->turn);
    if (join(team)) {
      takePart(team, self->index);
      leave(team);
    }
  }
}

int32_t heed_available_threads(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

heed_team *heed_team_open(int32_t threads, bool watch) {
  heed_team *team = calloc(1, sizeof *team);
  if (!team)
    return NULL;
  team->threads = threads;
  team->watch = watch;
  heed_mark_open(&team->mark);
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->wake, NULL);
  pthread_cond_init(&team->done, NULL);
  return team;
}

/* Starts as many workers as the system gives; fewer only cost speed. They
 * inherit the mode of floating-point numbers from the call that runs its first
 * loop. */
static void start(heed_team *team) {
  team->started = true;
  if (team->threads < 2)
    return;
  team->workers = calloc((size_t)team->threads - 1, sizeof *team->workers);
  team->shares =
      aligned_alloc(64, (size_t)team->threads * sizeof *team->shares);
  if (!team->workers || !team->shares)
    return;
  /* Signals belong to the application's own threads; but what an instruction
   * raises meets the application's handler on the thread that it stands in:
   * blocked, it would end the process. */
  static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL,
                                    SIGTRAP, SIGSYS, SIGABRT};
  sigset_t others, before;
  sigfillset(&others);
  for (size_t k = 0; k < sizeof synchronous / sizeof *synchronous; ++k)
    sigdelset(&others, synchronous[k]);
  pthread_sigmask(SIG_SETMASK, &others, &before);
  for (int32_t k = 0; k < team->threads - 1; ++k) {
    worker *next = &team->workers[k];
    next->team = team;
    next->index = k + 1;
    if (pthread_create(&next->thread, NULL, work, next) != 0)
      break;
    ++team->numWorkers;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void nextTurn(heed_team *team) {
  atomic_fetch_add(&team->turn, 1);
  if (atomic_load(&team->sleeping)) {
    pthread_mutex_lock(&team->lock);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->lock);
  }
}

/* Runs a loop of `size` tasks on all threads. */
static int runTogether(heed_team *team, loop *work, int min, int size) {
  int count = team->numWorkers + 1;
  for (int k = 0; k < count; ++k) {
    atomic_store(&team->shares[k].next, min + (int)((int64_t)size * k / count));
    team->shares[k].end = min + (int)((int64_t)size * (k + 1) / count);
  }
  team->current = work;
  atomic_store(&team->state, Open);
  nextTurn(team);

  takePart(team, 0);

  /* Who comes late finds nothing to join. */
  unsigned inside = atomic_fetch_and(&team->state, ~(unsigned)Open) & ~Open;
  while (inside && changes(team, &team->state, inside))
    inside = atomic_load(&team->state);
  if (inside) {
    pthread_mutex_lock(&team->lock);
    atomic_store(&team->awaited, true);
    while (atomic_load(&team->state))
      pthread_cond_wait(&team->done, &team->lock);
    atomic_store(&team->awaited, false);
    pthread_mutex_unlock(&team->lock);
  }
  atomic_store(&team->busy, false);
  return atomic_load(&work->failure);
}

int heed_team_run(heed_team *team, heed_task task, void *context, int min,
                  int size, uint8_t *closure) {
  loop now = {.task = task, .context = context, .closure = closure};
  bool alone = size <= 1 || team->threads < 2;
  if (!alone && !atomic_exchange(&team->busy, true)) {
    if (!team->started)
      start(team);
    if (team->numWorkers)
      return runTogether(team, &now, min, size);
    atomic_store(&team->busy, false);
  }
  for (int k = 0; k < size && runTask(&now, min + k); ++k)
    continue;
  return atomic_load(&now.failure);
}

int32_t heed_team_size(const heed_team *team) { return team->threads; }

bool heed_team_is_foreign(const heed_team *team) {
  return heed_mark_is_foreign(&team->mark);
}

void heed_team_begin_call(heed_team *team) {
  atomic_fetch_add(&team->calls, 1);
}

void heed_team_end_call(heed_team *team) { atomic_fetch_sub(&team->calls, 1); }

void heed_team_close(heed_team *team) {
  if (!team)
    return;
  /* In a child of fork there are no workers, and who had the lock is not known.
   */
  if (!heed_mark_is_foreign(&team->mark)) {
    atomic_store(&team->closing, true);
    nextTurn(team);
    for (int32_t k = 0; k < team->numWorkers; ++k)
      pthread_join(team->workers[k].thread, NULL);
    pthread_cond_destroy(&team->wake);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
  }
  heed_mark_close(&team->mark);
  free(team->workers);
  free(team->shares);
  free(team);
}
