/* Ctrl-C as a wish to end: generation stops with what there is. */
#include "runtime/ProgramGenerate.h"

#include <string.h>

static void *watch(void *argument) {
  heed_interrupt *interrupt = argument;
  sigset_t signals;
  int number;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  if (sigwait(&signals, &number) != 0)
    return NULL;
  __atomic_store_n(&interrupt->cancel, 1, __ATOMIC_RELAXED);
  if (sigwait(&signals, &number) != 0)
    return NULL;
  /* Once more: nobody wants to wait. */
  signal(SIGINT, SIG_DFL);
  raise(SIGINT);
  pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
  return NULL;
}

void heed_interrupt_start(heed_interrupt *interrupt) {
  struct sigaction action;
  sigset_t signals;
  memset(interrupt, 0, sizeof *interrupt);
  if (sigaction(SIGINT, NULL, &action) != 0 || action.sa_handler == SIG_IGN)
    return;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, &interrupt->before);
  interrupt->on =
      pthread_create(&interrupt->thread, NULL, watch, interrupt) == 0;
  if (!interrupt->on)
    pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
}

void heed_interrupt_stop(heed_interrupt *interrupt) {
  if (!interrupt->on)
    return;
  pthread_cancel(interrupt->thread);
  pthread_join(interrupt->thread, NULL);
  pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
  interrupt->on = false;
}

bool heed_interrupt_came(const heed_interrupt *interrupt) {
  return __atomic_load_n(&interrupt->cancel, __ATOMIC_RELAXED) != 0;
}
