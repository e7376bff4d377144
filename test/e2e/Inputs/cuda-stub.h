/* What the files of the driver of the tests (cuda-stub.c) have in common. */
#ifndef CUDA_STUB_H
#define CUDA_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  INVALID_VALUE = 1,
  NO_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_CONTEXT = 201,
  NO_BINARY_FOR_GPU = 209,
  INVALID_PTX = 218,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  ILLEGAL_ADDRESS = 700,
  MOST_SHARED = 163 << 10
};

/* An environment variable's number. */
int numberOf(const char *name, int otherwise);

/* ---- what is made, and what fails: cuda-stub.c ---- */

/* Things that have not been given back. */
extern int made;
/* A status for a function's call of that number where it is to fail. */
int failure(const char *name, int call);
int lock(void);
void unlock(int *locked);

#define LOCKED __attribute__((cleanup(unlock))) int locked = lock()

/* Counts a call, and returns where it fails. */
#define COUNTED(name)                                                          \
  LOCKED;                                                                      \
  int status = failure(#name, ++calls_##name);                                 \
  if (status)                                                                  \
  return status

/* Whether a context is a thread's current one, and which. */
int isEntered(void);
void *current(void);

#define ENTERED(name)                                                          \
  COUNTED(name);                                                               \
  if (!isEntered())                                                            \
  return INVALID_CONTEXT

/* ---- memory and streams: cuda-stub-memory.c ---- */

typedef struct stub_stream {
  void *context; /* null: it is none */
  int launches;
} stub_stream;

/* Memory of the device, in the context that is current. */
bool isMemory(uint64_t address, size_t bytes);
/* Null for what is none in the context that is current. 1 and 2 stand for
 * default streams, of any context. */
stub_stream *streamOf(const void *on);
/* The next work of a stream begins, or what it has done has been waited for. */
void progress(const stub_stream *stream, bool isOver);

#endif
