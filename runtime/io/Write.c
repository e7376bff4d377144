/* Files that appear whole or not at all, and the sum by which a reader sees
 * that one was damaged. */
#include "runtime/io/Io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written from one multiple of this to the next: the system then keeps the file
 * in pages as large, where it has them for files. */
enum { Piece = 2 << 20 };

/* Closes the file; with `lasts` it is on the disk then. Sets errno. */
static bool writeAndClose(FILE *file, heed_file_writer write, void *user,
                          bool lasts) {
  setvbuf(file, NULL, _IOFBF, Piece);
  errno = 0;
  bool good = write(user, file) && fflush(file) == 0 &&
              (!lasts || fsync(fileno(file)) == 0);
  int reason = errno;
  if (fclose(file) != 0 && good)
    return false;
  errno = reason;
  return good;
}

/* A pipe or a device keeps its name and its nature. */
static bool writeInPlace(const char *path, heed_file_writer write, void *user) {
  FILE *file = fopen(path, "wb");
  return file && writeAndClose(file, write, user, /*lasts=*/false);
}

static bool replace(const char *path, heed_file_writer write, void *user) {
  size_t length = strlen(path) + sizeof ".XXXXXX";
  char *temporary = malloc(length);
  if (!temporary)
    return false;
  snprintf(temporary, length, "%s.XXXXXX", path);
  int descriptor = mkstemp(temporary);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
  bool good = false;
  if (file) {
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
    good = writeAndClose(file, write, user, /*lasts=*/true) &&
           rename(temporary, path) == 0;
  }
  int reason = errno;
  if (!file && descriptor >= 0)
    close(descriptor);
  if (!good && descriptor >= 0)
    unlink(temporary);
  free(temporary);
  errno = reason;
  return good;
}

bool heed_file_write(const char *path, heed_file_writer write, void *user,
                     heed_io_error *error) {
  struct stat status;
  bool exists = stat(path, &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    return heed_io_fail(error, "%s: expected a file's name, found a folder",
                        path);
  char *real = exists ? realpath(path, NULL) : NULL; /* not a link to it */
  errno = 0;
  bool good = exists && !S_ISREG(status.st_mode)
                  ? writeInPlace(path, write, user)
                  : replace(real ? real : path, write, user);
  int reason = errno;
  free(real);
  return good || heed_io_fail(error, "%s: cannot be written: %s", path,
                              reason ? strerror(reason) : "unknown reason");
}

static uint64_t mix(uint64_t sum, uint64_t word) {
  sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return sum ^ sum >> 29;
}

/* Eight sums side by side, each of every eighth word. */
typedef uint64_t words __attribute__((vector_size(64)));

/* Fletcher's sums: additions alone, so that they keep up with the memory. */
uint64_t heed_checksum(uint64_t sum, const void *data, size_t bytes) {
  const char *at = data, *end = at + bytes / sizeof(words) * sizeof(words);
  words once = {1, 2, 3, 4, 5, 6, 7, 8}, twice = {0}; /* zeros count, too */
  for (; at < end; at += sizeof(words)) {
    words next;
    memcpy(&next, at, sizeof next);
    once += next;
    twice += once;
  }
  words rest = {0};
  if (bytes % sizeof rest) {
    memcpy(&rest, at, bytes % sizeof rest);
    once += rest;
    twice += once;
  }
  for (int k = 0; k < 8; ++k)
    sum = mix(mix(sum, once[k]), twice[k]);
  return sum;
}
