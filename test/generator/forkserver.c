/* Preloaded into a tool: its process stays, loaded and relocated, and forks for
 * each command line that it is sent, since starting LLVM's libraries costs more
 * than compiling a small model.
 *
 * A request on descriptor REQUESTS is a 4-byte length and that many bytes: the
 * file for both streams, how many variables of the environment follow, they,
 * the arguments; each with a zero behind it. The answer on descriptor ANSWERS
 * is the child's wait status, 4 bytes. It ends with its requests.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUESTS = 198, ANSWERS = 199, MOST = 64, SECONDS = 60 };

typedef int (*Main)(int, char **, char **);
static Main toolMain;

static int readAll(void *to, size_t count) {
  for (char *at = to; count;) {
    ssize_t n = read(REQUESTS, at, count);
    if (n <= 0)
      return 0;
    at += n;
    count -= n;
  }
  return 1;
}

static int serve(int argc, char **argv, char **environment) {
  (void)argc, (void)environment;
  unsigned length;
  while (readAll(&length, sizeof length)) {
    char *text = malloc(length + 1), *arguments[MOST + 1];
    if (!text || !readAll(text, length))
      return 1;
    text[length] = 0;
    int count = 0;
    arguments[count++] = argv[0];
    char *at = text + strlen(text) + 1;
    int variables = atoi(at);
    char *first = at += strlen(at) + 1;
    for (int k = 0; k < variables; ++k)
      at += strlen(at) + 1;
    for (; at < text + length && count < MOST; at += strlen(at) + 1)
      arguments[count++] = at;
    arguments[count] = NULL;
    pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(REQUESTS);
      close(ANSWERS);
      int out = open(text, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
      dup2(out, 1);
      dup2(out, 2);
      close(out);
      struct rlimit limit = {SECONDS, SECONDS};
      setrlimit(RLIMIT_CPU, &limit);
      for (int k = 0; k < variables; ++k, first += strlen(first) + 1)
        putenv(first);
      exit(toolMain(count, arguments, environ));
    }
    int status = -1;
    if (child > 0)
      waitpid(child, &status, 0);
    if (write(ANSWERS, &status, sizeof status) != sizeof status)
      return 1;
    free(text);
  }
  return 0;
}

/* glibc's, which every program's _start calls. */
int __libc_start_main(Main program, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*end)(void), void *stack) {
  int (*start)(Main, int, char **, void (*)(void), void (*)(void),
               void (*)(void), void *) = dlsym(RTLD_NEXT, "__libc_start_main");
  toolMain = program;
  unsetenv("LD_PRELOAD"); /* not in what the tool starts */
  return start(serve, argc, argv, init, fini, end, stack);
}
