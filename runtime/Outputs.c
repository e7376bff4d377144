/* Results of compiled programs: files that appear whole or not at all, or a
 * summary.
 *
 * While temporary files exist, the signals that end a program are held back:
 * they are looked at between pieces, and the files removed before the signal is
 * let through. No handler, so no global state; a library's threads block all
 * signals. */
#include "runtime/Program.h"
#include "runtime/io/Convert.h"
#include "runtime/io/Npy.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One file that is being written. */
typedef struct target {
  char *path;      /* what it will be called, links followed */
  char *temporary; /* what it is called; null: written in place (a pipe, a
                      device) */
  char *old;       /* what the file that it replaces is called until all are
                      written; null: there was none */
  bool renamed;
} target;

/* The folder of a path, "." if it names none. */
static char *folderOf(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash)
    return strdup(".");
  return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* The file behind a link is replaced, not the link; it need not exist yet. Null
 * if there is no memory. */
static char *behindLinks(const char *path) {
  char *real = realpath(path, NULL);
  char *at = real ? real : strdup(path);
  for (int links = 0; !real && at && links < 40; ++links) {
    char next[PATH_MAX];
    ssize_t length = readlink(at, next, sizeof next - 1);
    if (length < 0)
      break;
    next[length] = 0;
    char *folder = folderOf(at), *joined = NULL;
    if (next[0] == '/')
      joined = strdup(next);
    else if (folder && (joined = malloc(strlen(folder) + (size_t)length + 2)))
      sprintf(joined, "%s/%s", folder, next);
    free(folder);
    free(at);
    at = joined;
  }
  return at;
}

static bool isSpecial(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* Whether both names mean one file, which need not exist yet. */
static bool isSameFile(const char *a, const char *b) {
  struct stat left, right;
  if (stat(a, &left) == 0 && stat(b, &right) == 0)
    return left.st_dev == right.st_dev && left.st_ino == right.st_ino;
  const char *slashA = strrchr(a, '/'), *slashB = strrchr(b, '/');
  if (strcmp(slashA ? slashA + 1 : a, slashB ? slashB + 1 : b) != 0)
    return false;
  char *folderA = folderOf(a), *folderB = folderOf(b);
  bool same = folderA && folderB && stat(folderA, &left) == 0 &&
              stat(folderB, &right) == 0 && left.st_dev == right.st_dev &&
              left.st_ino == right.st_ino;
  free(folderA);
  free(folderB);
  return same;
}

bool heed_outputs_check(const heed_signature *entry, const char *const *paths,
                        heed_io_error *error) {
  for (int k = 0; k < entry->numOutputs; ++k) {
    if (!paths[k])
      continue;
    struct stat status;
    if (stat(paths[k], &status) == 0 && S_ISDIR(status.st_mode))
      return heed_io_fail(error, "%s: expected a file's name, found a folder",
                          paths[k]);
    for (int other = 0; other < k; ++other)
      if (paths[other] && isSameFile(paths[k], paths[other]) &&
          !isSpecial(paths[k]))
        return heed_io_fail(error, "%s: two results for one file", paths[k]);
    char *file = behindLinks(paths[k]);
    char *folder = file ? folderOf(file) : NULL;
    bool good = folder && (isSpecial(paths[k]) || access(folder, W_OK) == 0);
    int reason = errno;
    free(folder);
    free(file);
    if (!good)
      return heed_io_fail(error, "%s: cannot be written: %s", paths[k],
                          strerror(reason));
  }
  return true;
}

/* Whether a signal that would end the program waits. */
static bool isInterrupted(const sigset_t *signals) {
  sigset_t pending;
  sigpending(&pending);
  return (sigismember(&pending, SIGINT) && sigismember(signals, SIGINT)) ||
         (sigismember(&pending, SIGTERM) && sigismember(signals, SIGTERM)) ||
         (sigismember(&pending, SIGHUP) && sigismember(signals, SIGHUP));
}

static FILE *openTarget(const char *path, target *t, heed_io_error *error) {
  if (isSpecial(path)) {
    t->path = strdup(path);
    FILE *file = fopen(path, "wb");
    if (!file)
      heed_io_fail(error, "%s: cannot be written: %s", path, strerror(errno));
    return file;
  }
  t->path = behindLinks(path);
  char *folder = t->path ? folderOf(t->path) : NULL;
  size_t size = folder ? strlen(folder) + 32 : 0;
  char *temporary = folder ? malloc(size) : NULL;
  if (!temporary) {
    free(folder);
    heed_io_fail(error, "%s: no memory to write it", path);
    return NULL;
  }
  snprintf(temporary, size, "%s/.heed-output-XXXXXX", folder);
  free(folder);
  int descriptor = mkstemp(temporary);
  if (descriptor < 0) {
    heed_io_fail(error, "%s: cannot be written: %s", path, strerror(errno));
    free(temporary);
    return NULL;
  }
  t->temporary = temporary;
  mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);
  FILE *file = fdopen(descriptor, "wb");
  if (!file) {
    heed_io_fail(error, "%s: cannot be written: %s", path, strerror(errno));
    close(descriptor);
  }
  return file;
}

/* Writes one result under its temporary name, down to the disk. */
static bool writeTarget(const char *path, const heed_buffer *buffer, target *t,
                        heed_io_error *error) {
  FILE *file = openTarget(path, t, error);
  if (!file)
    return false;
  errno = 0;
  bool good = heed_npy_write(file, buffer->type, buffer->rank, buffer->shape,
                             buffer->data) &&
              fflush(file) == 0 && (!t->temporary || fsync(fileno(file)) == 0);
  int reason = errno;
  if (fclose(file) != 0 && good) {
    good = false;
    reason = errno;
  }
  return good || heed_io_fail(error, "%s: cannot be written: %s", path,
                              reason ? strerror(reason) : "unknown reason");
}

/* Gives the file that a target replaces a second name or, on a disk that has
 * no links, another one. */
static bool keepOld(target *t) {
  struct stat status;
  if (lstat(t->path, &status) != 0)
    return errno == ENOENT;
  size_t size = strlen(t->temporary) + sizeof "-old";
  char *old = malloc(size);
  if (!old)
    return false;
  snprintf(old, size, "%s-old", t->temporary);
  if (link(t->path, old) != 0 &&
      (!S_ISREG(status.st_mode) || rename(t->path, old) != 0)) {
    int reason = errno;
    free(old);
    errno = reason;
    return false;
  }
  t->old = old;
  return true;
}

/* Removes what a target has left beside it; on failure its file is again what
 * it was. */
static void settle(target *t, bool good) {
  if (!good && t->old)
    rename(t->old, t->path);
  else if (!good && t->renamed)
    unlink(t->path);
  if (t->old)
    unlink(t->old);
  if (!t->renamed)
    unlink(t->temporary);
}

static bool writeAll(const heed_signature *entry, const char *const *paths,
                     const heed_buffer *outputs, target *targets,
                     const sigset_t *signals, heed_io_error *error) {
  for (int k = 0; k < entry->numOutputs; ++k) {
    if (paths[k] && !writeTarget(paths[k], &outputs[k], &targets[k], error))
      return false;
    if (isInterrupted(signals))
      return heed_io_fail(error, "interrupted");
  }
  for (int k = 0; k < entry->numOutputs; ++k) {
    if (!targets[k].temporary)
      continue;
    if (!keepOld(&targets[k]) ||
        rename(targets[k].temporary, targets[k].path) != 0)
      return heed_io_fail(error, "%s: cannot be written: %s", paths[k],
                          strerror(errno));
    targets[k].renamed = true;
  }
  return true;
}

bool heed_outputs_write(const heed_signature *entry, const char *const *paths,
                        const heed_buffer *outputs, heed_io_error *error) {
  target *targets = calloc((size_t)entry->numOutputs + 1, sizeof *targets);
  if (!targets)
    return heed_io_fail(error, "no memory to write results");
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, &before);
  bool good = writeAll(entry, paths, outputs, targets, &signals, error);
  for (int k = 0; k < entry->numOutputs; ++k) {
    if (targets[k].temporary)
      settle(&targets[k], good);
    free(targets[k].old);
    free(targets[k].temporary);
    free(targets[k].path);
  }
  free(targets);
  sigprocmask(SIG_SETMASK, &before, NULL); /* a waiting signal ends us here */
  return good;
}

/* ---- summary ---- */

void heed_output_print(const heed_tensor_info *info, const heed_buffer *buffer,
                       FILE *stream) {
  char shape[256];
  int64_t count = 1;
  bool isFloat = buffer->type == HEED_F32 || buffer->type == HEED_F16 ||
                 buffer->type == HEED_BF16;
  for (int32_t axis = 0; axis < buffer->rank; ++axis)
    count *= buffer->shape[axis];
  heed_io_format_shape(shape, sizeof shape, buffer->rank, buffer->shape);
  fprintf(stream, "%s: %s%s", info->name, heed_type_name(buffer->type),
          buffer->rank ? shape : "");
  for (int64_t k = 0; k < count && k < 6; ++k) {
    if (isFloat)
      fprintf(stream, " %.7g", heed_load_float(buffer->data, k, buffer->type));
    else
      fprintf(stream, " %" PRId64,
              heed_load_integer(buffer->data, k, buffer->type));
  }
  fputs(count > 6 ? " ...\n" : "\n", stream);
}
