/* A program's part that was compiled with a heed.h of ABI version 2: what it
 * declares stands here, and heed.h is not included. */
#include <stddef.h>
#include <stdint.h>

typedef struct heed_options {
  const char *const *weights;
  size_t numWeights;
  int32_t threads, convert, profile;
  const char *target;
} heed_options;

int heed_open(const void *desc, const heed_options *options, void **model);

int openAsBefore(const void *desc, void **model) {
  heed_options options = {.threads = 2};
  return heed_open(desc, &options, model);
}
