/* Where a host's weights come from: memory, a callback, files that are copied,
 * pipes. argv[1]: the model's weights; argv[2]: a copy of them that may be
 * spoilt. */
#include "test/runtime/Inputs/fake.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static char *readAll(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  char *bytes = malloc(1 << 16);
  *size = fread(bytes, 1, 1 << 16, file);
  fclose(file);
  return bytes;
}

static int testMemory(const char *weights) {
  int failures = 0;
  heed_model *model = NULL;
  size_t size;
  char *bytes = readAll(weights, &size);
  CHECK(bytes && size > 100);
  /* Not aligned: tensors are copied. */
  char *odd = malloc(size + 1);
  memcpy(odd + 1, bytes, size);
  for (int k = 0; k < 2; ++k) {
    heed_weights_data data = {.size = sizeof data,
                              .data = k ? odd + 1 : bytes,
                              .numBytes = size,
                              .name = "mine"};
    heed_options options = {.size = sizeof options,
                            .weightsData = &data,
                            .numWeightsData = 1,
                            .threads = 2};
    CHECK(once(&options, &failures) == HEED_OK);
    /* A copy outlives the memory. */
    options.copyWeights = 1;
    arrays a;
    CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
    char *kept = malloc(size);
    memcpy(kept, data.data, size);
    memset((char *)(uintptr_t)data.data, 0x55, size);
    fill(&a, 1);
    CHECK(run(model, &a) == HEED_OK && isRight(&a));
    memcpy((char *)(uintptr_t)data.data, kept, size);
    free(kept);
    heed_memory_use use = {.size = sizeof use};
    CHECK(heed_memory(model, &use) == HEED_OK && use.weights == 0 &&
          use.copies == 4 * (5 * 4 + 2 * 4) + 4 * 4);
    heed_close(model);
    data.numBytes = size - 1;
    CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_FILE &&
          says(model, "mine: "));
    heed_close(model);
    /* The same tensor twice. */
    data.numBytes = size;
    options.weights = &weights;
    options.numWeights = 1;
    CHECK(heed_open(&fake_model, &options, &model) == HEED_ERROR_FILE &&
          says(model, "is in both"));
    heed_close(model);
  }
  free(odd);
  free(bytes);
  return failures;
}

/* The table is transposed in the host's memory, and one bias is of another
 * type.
 */
static float table[4][5];
static const int64_t tableStrides[] = {1, 5};
static float bias1[] = {60, 60, 60, 60};
static const uint16_t bias2[] = {0x4220, 0x4220, 0x4220, 0x4220}; /* bf16: 40 */
static int what; /* goes wrong */

static int32_t findWeight(void *user, const char *name, heed_buffer *buffer) {
  if (user != &what)
    return 0;
  if (!strcmp(name, "table")) {
    *buffer = HEED_BUFFER(table, HEED_F32, 2, 5, 4);
    buffer->strides = tableStrides;
    if (what == 1)
      buffer->shape[1] = 3;
    if (what == 2)
      buffer->type = 77;
    if (what == 3)
      buffer->deviceType = 2;
    if (what == 4)
      buffer->rank = 20;
    return what != 5;
  }
  if (!strcmp(name, "layer.1.bias"))
    *buffer = HEED_BUFFER(bias1, HEED_F32, 1, 4);
  else if (!strcmp(name, "layer.2.bias"))
    *buffer = HEED_BUFFER((void *)(uintptr_t)bias2, HEED_BF16, 1, 4);
  else
    return 0;
  return 1;
}

static int testCallback(void) {
  int failures = 0;
  heed_model *model = NULL;
  for (int v = 0; v < 5; ++v)
    for (int m = 0; m < 4; ++m)
      table[m][v] = (float)(10 * v + m);
  heed_options options = {.size = sizeof options,
                          .findWeight = findWeight,
                          .findWeightUser = &what,
                          .threads = 2};
  for (options.copyWeights = 0; options.copyWeights < 2; ++options.copyWeights)
    CHECK(once(&options, &failures) == HEED_OK);
  static const struct {
    heed_status status;
    const char *text;
  } wrong[] = {{HEED_ERROR_WEIGHTS, "'table': expected shape [V, 4], found"},
               {HEED_ERROR_TYPE, "77 is no element type"},
               {HEED_ERROR_DEVICE, "expected memory of the CPU"},
               {HEED_ERROR_WEIGHTS, "its rank, shape or strides are none"},
               {HEED_ERROR_WEIGHTS, "no tensor 'table' (nor 'alt.table')"}};
  for (what = 1; what <= 5; ++what) {
    CHECK(heed_open(&fake_model, &options, &model) == wrong[what - 1].status &&
          says(model, wrong[what - 1].text));
    heed_close(model);
  }
  what = 0;
  return failures;
}

/* A mapped file that loses its end would end the process. */
static int testTruncated(const char *path) {
  int failures = 0;
  heed_model *model = NULL;
  arrays a;
  heed_options options = {.size = sizeof options,
                          .weights = &path,
                          .numWeights = 1,
                          .copyWeights = 1,
                          .threads = 2};
  CHECK(heed_open(&fake_model, &options, &model) == HEED_OK);
  CHECK(truncate(path, 0) == 0);
  fill(&a, 2);
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  heed_close(model);
  return failures;
}

/* What is copied is read, not mapped for a while: a pipe has it, too. */
static int testPipe(const char *weights) {
  int failures = 0, ends[2];
  heed_model *model = NULL;
  size_t size;
  char *bytes = readAll(weights, &size), path[64];
  const char *name = path;
  CHECK(bytes && pipe(ends) == 0 && size < 60000);
  CHECK(write(ends[1], bytes, size) == (ssize_t)size);
  close(ends[1]);
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  heed_options options = {.size = sizeof options,
                          .weights = &name,
                          .numWeights = 1,
                          .copyWeights = 1,
                          .threads = 2};
  CHECK(once(&options, &failures) == HEED_OK);
  close(ends[0]);
  free(bytes);
  return failures;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  int failures = testMemory(argv[1]) + testCallback() + testTruncated(argv[2]) +
                 testPipe(argv[1]);
  printf(failures ? "%d failures\n" : "all right\n", failures);
  return failures != 0;
}
