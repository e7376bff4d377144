/* A condition of a test of the runtime: the program ends where one is not
 * true. */
#ifndef HEED_TEST_RUNTIME_CHECK_H
#define HEED_TEST_RUNTIME_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,             \
              #condition);                                                     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#endif
