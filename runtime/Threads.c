/* A team of threads that runs one parallel loop at a time. Each handle has its
 * own. */
#include "runtime/Model.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

typedef struct loop {
  heed_task task;
  void *context;
  uint8_t *closure;
  int min, size;
  atomic_int next;
  atomic_int failure;
} loop;

struct heed_team {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  pthread_t *workers;
  int32_t threads, numWorkers;
  bool started;
  atomic_bool busy; /* a loop runs: a loop inside it is serial */
  atomic_uint turn; /* counts loops; changes under the lock, and is read without
                       it by waiting workers */
  atomic_int
      active;    /* workers inside the current loop; changes under the lock */
  loop *current; /* null: no loop may be joined */
  bool closing;
};

/* How long to watch for the next loop before sleeping: about 20 microseconds,
 * the time that waking costs. */
enum { Spins = 500 };

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void takePart(loop *work) {
  for (;;) {
    int k = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
    if (k >= work->size)
      return;
    int result = work->task(work->context, work->min + k, work->closure);
    if (result) {
      int none = 0;
      atomic_compare_exchange_strong(&work->failure, &none, result);
      atomic_store(&work->next, work->size);
      return;
    }
  }
}

static void *work(void *argument) {
  heed_team *team = argument;
  unsigned seen = 0;
  for (;;) {
    for (int k = 0; k < Spins && atomic_load(&team->turn) == seen; ++k)
      relax();
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->turn) == seen && !team->closing)
      pthread_cond_wait(&team->wake, &team->lock);
    if (team->closing) {
      pthread_mutex_unlock(&team->lock);
      return NULL;
    }
    seen = atomic_load(&team->turn);
    loop *joined = team->current;
    if (joined)
      atomic_fetch_add(&team->active, 1);
    pthread_mutex_unlock(&team->lock);
    if (!joined)
      continue;
    takePart(joined);
    pthread_mutex_lock(&team->lock);
    if (atomic_fetch_sub(&team->active, 1) == 1)
      pthread_cond_signal(&team->done);
    pthread_mutex_unlock(&team->lock);
  }
}

int32_t heed_available_threads(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

heed_team *heed_team_open(int32_t threads) {
  heed_team *team = calloc(1, sizeof *team);
  if (!team)
    return NULL;
  team->threads = threads;
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->wake, NULL);
  pthread_cond_init(&team->done, NULL);
  return team;
}

/* Starts as many workers as the system gives; fewer only cost speed. */
static void start(heed_team *team) {
  team->started = true;
  if (team->threads < 2)
    return;
  team->workers = calloc((size_t)team->threads - 1, sizeof *team->workers);
  if (!team->workers)
    return;
  /* Signals belong to the application's own threads. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (team->numWorkers < team->threads - 1 &&
         pthread_create(&team->workers[team->numWorkers], NULL, work, team) ==
             0)
    ++team->numWorkers;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int heed_team_run(heed_team *team, heed_task task, void *context, int min,
                  int size, uint8_t *closure) {
  loop now = {.task = task,
              .context = context,
              .closure = closure,
              .min = min,
              .size = size};
  if (size <= 1 || team->threads < 2 || atomic_exchange(&team->busy, true)) {
    takePart(&now);
    return atomic_load(&now.failure);
  }
  if (!team->started)
    start(team);
  pthread_mutex_lock(&team->lock);
  team->current = &now;
  atomic_fetch_add(&team->turn, 1);
  pthread_cond_broadcast(&team->wake);
  pthread_mutex_unlock(&team->lock);

  takePart(&now);

  for (int k = 0; k < Spins && atomic_load(&team->active); ++k)
    relax();
  pthread_mutex_lock(&team->lock);
  team->current = NULL; /* who comes late finds nothing */
  while (atomic_load(&team->active))
    pthread_cond_wait(&team->done, &team->lock);
  pthread_mutex_unlock(&team->lock);
  atomic_store(&team->busy, false);
  return atomic_load(&now.failure);
}

int32_t heed_team_size(const heed_team *team) { return team->threads; }

void heed_team_close(heed_team *team) {
  if (!team)
    return;
  pthread_mutex_lock(&team->lock);
  team->closing = true;
  pthread_cond_broadcast(&team->wake);
  pthread_mutex_unlock(&team->lock);
  for (int32_t k = 0; k < team->numWorkers; ++k)
    pthread_join(team->workers[k], NULL);
  pthread_cond_destroy(&team->wake);
  pthread_cond_destroy(&team->done);
  pthread_mutex_destroy(&team->lock);
  free(team->workers);
  free(team);
}
