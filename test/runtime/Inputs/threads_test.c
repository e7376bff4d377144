/* The team of threads: every task runs once, whatever the sizes, whoever
 * sleeps; a failure ends the loop; a loop inside a loop is serial. */
#include "runtime/Model.h"
#include "test/runtime/Inputs/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { Most = 1000, From = -3, Every = -2 };

typedef struct loop {
  heed_team *team;
  atomic_int runs[Most];
  int size, fails; /* the task that fails; -1: none, Every: each */
  atomic_int seen;
} loop;

static int count(void *context, int index, uint8_t *closure) {
  (void)closure;
  loop *l = context;
  CHECK(index >= From && index < From + l->size);
  atomic_fetch_add(&l->runs[index - From], 1);
  CHECK(heed_thread_index() >= 0 &&
        heed_thread_index() < heed_team_size(l->team));
  atomic_fetch_or(&l->seen, 1 << heed_thread_index());
  return l->fails == Every || index - From == l->fails ? 7 : 0;
}

/* A task that is a loop; both levels use the same team. */
static int nested(void *context, int index, uint8_t *closure) {
  (void)index;
  (void)closure;
  loop *l = context;
  return heed_team_run(l->team, count, l, From, l->size, NULL);
}

static void rest(long microseconds) {
  struct timespec time = {0, microseconds * 1000};
  nanosleep(&time, NULL);
}

static int slow(void *context, int index, uint8_t *closure) {
  rest(2000);
  return count(context, index, closure);
}

static void once(loop *l, int size) {
  memset(l->runs, 0, sizeof l->runs);
  l->size = size;
  l->fails = -1;
  CHECK(heed_team_run(l->team, count, l, From, size, NULL) == 0);
  for (int k = 0; k < Most; ++k)
    CHECK(atomic_load(&l->runs[k]) == (k < size));
}

static void checkTeam(int32_t threads) {
  loop *l = calloc(1, sizeof *l);
  CHECK(l && (l->team = heed_team_open(threads, threads % 2)));
  CHECK(heed_team_size(l->team) == threads);
  for (int size = 0; size < 40; ++size)
    once(l, size);
  /* Workers that watch, that have just stopped to, and that sleep. */
  for (int k = 0; k < 60; ++k) {
    once(l, 1 + 16 * k);
    rest(k % 3 == 0 ? 0 : k % 3 == 1 ? 1000 : 3000);
  }
  for (int k = 0; k < 5000; ++k)
    once(l, 2 + k % 7);

  memset(l->runs, 0, sizeof l->runs);
  l->size = 50;
  CHECK(heed_team_run(l->team, nested, l, 0, 20, NULL) == 0);
  for (int k = 0; k < l->size; ++k)
    CHECK(atomic_load(&l->runs[k]) == 20);

  /* No task runs twice; the one that fails says so; the team lives on. */
  for (int fails = 0; fails < 30; fails += 7) {
    memset(l->runs, 0, sizeof l->runs);
    l->size = 30;
    l->fails = fails;
    CHECK(heed_team_run(l->team, count, l, From, l->size, NULL) == 7);
    CHECK(atomic_load(&l->runs[fails]) == 1);
    for (int k = 0; k < l->size; ++k)
      CHECK(atomic_load(&l->runs[k]) <= 1);
    once(l, 30);
  }

  /* Nobody begins another task after a failure. */
  memset(l->runs, 0, sizeof l->runs);
  l->size = Most;
  l->fails = Every;
  CHECK(heed_team_run(l->team, count, l, From, l->size, NULL) == 7);
  int begun = 0;
  for (int k = 0; k < l->size; ++k)
    begun += atomic_load(&l->runs[k]);
  CHECK(begun >= 1 && begun <= threads);

  /* Slow tasks: the caller sleeps until the last worker is done. Every thread
   * takes part, if not at once. */
  atomic_store(&l->seen, 0);
  for (int k = 0; k < 500 && atomic_load(&l->seen) != (1 << threads) - 1; ++k) {
    memset(l->runs, 0, sizeof l->runs);
    l->size = 3 * threads;
    l->fails = -1;
    CHECK(heed_team_run(l->team, slow, l, From, l->size, NULL) == 0);
    for (int task = 0; task < l->size; ++task)
      CHECK(atomic_load(&l->runs[task]) == 1);
  }
  CHECK(atomic_load(&l->seen) == (1 << threads) - 1);
  heed_team_close(l->team);
  free(l);
}

int main(void) {
  for (int32_t threads = 1; threads <= 5; ++threads)
    checkTeam(threads);
  heed_team_close(heed_team_open(4, false)); /* never started */
  puts("every task ran once");
}
