/* Errors as text, bytes of a file, products of extents. */
#include "runtime/io/Io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool heed_io_fail(heed_io_error *error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  heed_io_clean(error->text);
  return false;
}

void heed_io_clean(char *text) {
  for (; *text; ++text)
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
      *text = '?';
}

/* Opens for reading; a folder is refused here because read() would only say so
 * later. */
static int openFile(const char *path, struct stat *status,
                    heed_io_error *error) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, status) != 0) {
    heed_io_fail(error, "%s: cannot be opened: %s", path, strerror(errno));
    if (file >= 0)
      close(file);
    return -1;
  }
  if (S_ISDIR(status->st_mode)) {
    heed_io_fail(error, "%s: expected a file, found a folder", path);
    close(file);
    return -1;
  }
  /* /dev/zero has no end. */
  if (S_ISCHR(status->st_mode) || S_ISBLK(status->st_mode)) {
    heed_io_fail(error, "%s: expected a file or a pipe, found a device", path);
    close(file);
    return -1;
  }
  return file;
}

bool heed_bytes_read(const char *path, heed_bytes *bytes,
                     heed_io_error *error) {
  memset(bytes, 0, sizeof *bytes);
  struct stat status;
  int file = openFile(path, &status, error);
  if (file < 0)
    return false;
  /* One byte more than the file says, so that its end is seen without growing.
   */
  size_t capacity =
      S_ISREG(status.st_mode) ? (size_t)status.st_size + 1 : 1 << 16;
  size_t size = 0;
  uint8_t *data = NULL;
  if (posix_memalign((void **)&data, 64, capacity) != 0) {
    close(file);
    return heed_io_fail(error, "%s: no memory for its %zu bytes", path,
                        capacity - 1);
  }
  for (;;) {
    if (size == capacity) {
      uint8_t *larger = NULL;
      if (capacity > SIZE_MAX / 2 ||
          posix_memalign((void **)&larger, 64, capacity * 2) != 0) {
        heed_io_fail(error, "%s: no memory for more than %zu bytes", path,
                     size);
        break;
      }
      memcpy(larger, data, size);
      free(data);
      data = larger;
      capacity *= 2;
    }
    ssize_t got = read(file, data + size, capacity - size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0) {
      heed_io_fail(error, "%s: cannot be read: %s", path, strerror(errno));
      break;
    }
    if (got == 0) {
      close(file);
      bytes->data = data;
      bytes->size = size;
      return true;
    }
    size += (size_t)got;
  }
  close(file);
  free(data);
  return false;
}

bool heed_bytes_map(const char *path, heed_bytes *bytes, heed_io_error *error) {
  memset(bytes, 0, sizeof *bytes);
  struct stat status;
  int file = openFile(path, &status, error);
  if (file < 0)
    return false;
  if (!S_ISREG(status.st_mode)) {
    close(file);
    return heed_io_fail(error, "%s: expected a regular file", path);
  }
  if (status.st_size == 0) {
    close(file);
    return heed_io_fail(error, "%s: the file is empty", path);
  }
  void *data =
      mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  int reason = errno;
  close(file);
  if (data == MAP_FAILED)
    return heed_io_fail(error, "%s: cannot be mapped: %s", path,
                        strerror(reason));
  bytes->data = data;
  bytes->size = (size_t)status.st_size;
  bytes->mapped = true;
  return true;
}

void heed_bytes_release(heed_bytes *bytes) {
  if (bytes->mapped)
    munmap((void *)(uintptr_t)bytes->data, bytes->size);
  else
    free((void *)(uintptr_t)bytes->data);
  memset(bytes, 0, sizeof *bytes);
}

bool heed_io_byte_count(int32_t rank, const int64_t *shape, int64_t elementSize,
                        int64_t *bytes) {
  /* An extent of 0 makes the product 0 whatever the others are; they must still
   * be extents. */
  bool empty = false, overflow = false;
  int64_t product = elementSize;
  for (int32_t axis = 0; axis < rank; ++axis) {
    if (shape[axis] < 0)
      return false;
    if (shape[axis] == 0)
      empty = true;
    else if (__builtin_mul_overflow(product, shape[axis], &product)) {
      overflow = true;
      product = 1;
    }
  }
  *bytes = empty ? 0 : product;
  return empty || !overflow;
}

void heed_io_format_shape(char *text, size_t size, int32_t rank,
                          const int64_t *shape) {
  size_t length = 0;
  if (size == 0)
    return;
  text[0] = 0;
  for (int32_t axis = 0; axis <= rank && length < size; ++axis) {
    int wrote = axis == rank
                    ? snprintf(text + length, size - length, rank ? "]" : "[]")
                    : snprintf(text + length, size - length, "%s%lld",
                               axis ? ", " : "[", (long long)shape[axis]);
    length += (size_t)wrote;
  }
}
