/* Packed weights as a file: the same numbers from it, by handles that share it
 * and on several threads; every file that is not what was written is refused.
 * argv[1]: the model's weights; argv[2]: where to write. */
#include "runtime/io/Safetensors.h"
#include "test/runtime/Inputs/fake.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PageSize = 4096, MostBytes = 1 << 16 };
/* The sum of biases, the table, and the file's table of one slot and three
 * instances. */
enum { Blocks = 4, DataBytes = 128 + 128, TableBytes = Blocks * 18 * 8 };

/* The model with biases that no call reads, as heedc would describe them. */
static heed_model_desc packs;
static heed_param_info params[2];

static void describe(void) {
  packs = fake_model;
  memcpy(params, fake_model.params, sizeof params);
  params[1].isForOpening = 1;
  packs.params = params;
}

static char *readAll(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  *size = 0;
  if (!file)
    return NULL;
  char *bytes = malloc(MostBytes);
  *size = fread(bytes, 1, MostBytes, file);
  fclose(file);
  return bytes;
}

/* A new file: one that loses its content first is waited for by some disks. */
static void writeAll(const char *path, const char *bytes, size_t size) {
  unlink(path);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
    exit(3);
}

static heed_options from(const char *path) {
  return (heed_options){
      .size = sizeof(heed_options), .threads = 2, .packed = path};
}

/* The status of opening the file; *right: runs give what they should. */
static heed_status try(const heed_model_desc *desc, const char *path,
                       const char *text, int *right) {
  heed_model *model = NULL;
  heed_options options = from(path);
  arrays a;
  heed_status status = heed_open(desc, &options, &model);
  if (!status) {
    fill(&a, 2);
    *right = run(model, &a) == HEED_OK && isRight(&a);
  } else if (text && !says(model, text)) {
    printf("expected '%s', found '%s'\n", text, heed_last_error(model));
    status = HEED_OK;
  }
  heed_close(model);
  return status;
}

static int testRoundTrip(const char *weights, const char *path) {
  int failures = 0, right = 0;
  heed_model *model = NULL, *other = NULL;
  heed_options options = {.size = sizeof options,
                          .weights = &weights,
                          .numWeights = 1,
                          .threads = 2};
  CHECK(heed_open(&packs, &options, &model) == HEED_OK);
  CHECK(heed_save_packed(model, path) == HEED_OK);
  heed_close(model);
  size_t size, again;
  char *bytes = readAll(path, &size), *second;
  CHECK(bytes && size == PageSize + DataBytes + TableBytes);
  CHECK(try(&packs, path, NULL, &right) == HEED_OK && right);

  /* Mapped, and counted so; two handles on it, on a thread each. What one of
   * them saves is the same file. */
  options = from(path);
  CHECK(heed_open(&packs, &options, &model) == HEED_OK);
  heed_memory_use use = {.size = sizeof use};
  CHECK(heed_memory(model, &use) == HEED_OK &&
        use.weights == 4 * (5 * 4) + 4 * 4 && use.copies == 0);
  CHECK(heed_open_shared(model, 2, &other) == HEED_OK);
  CHECK(heed_save_packed(model, path) == HEED_OK);
  heed_model *handles[] = {model, other};
  pthread_t threads[2];
  for (int k = 0; k < 2; ++k)
    pthread_create(&threads[k], NULL, runOften, handles[k]);
  for (int k = 0; k < 2; ++k) {
    void *wrong;
    pthread_join(threads[k], &wrong);
    CHECK(!wrong);
  }
  heed_close(model);
  model = other;
  arrays a;
  fill(&a, 2);
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  heed_close(model);
  second = readAll(path, &again);
  CHECK(again == size && !memcmp(bytes, second, size));
  free(second);

  /* A copy outlives the file; memory for it may be limited. */
  options.copyWeights = 1;
  CHECK(heed_open(&packs, &options, &model) == HEED_OK);
  CHECK(truncate(path, 0) == 0);
  fill(&a, 3);
  CHECK(run(model, &a) == HEED_OK && isRight(&a));
  CHECK(heed_memory(model, &use) == HEED_OK && use.weights == 0 &&
        use.copies == 4 * (5 * 4) + 4 * 4);
  heed_close(model);
  writeAll(path, bytes, size);
  options.memoryLimit = 100;
  CHECK(heed_open(&packs, &options, &model) == HEED_ERROR_MEMORY);
  heed_close(model);
  free(bytes);
  return failures;
}

static int testOrigin(const char *weights, const char *path) {
  int failures = 0, right = 0;
  heed_model *model = NULL;
  heed_model_desc other = packs;
  other.name = "another";
  CHECK(try(&other, path, "packed weights of another model than 'another'",
            &right) == HEED_ERROR_WEIGHTS);
  other = packs;
  other.key = "fa4f";
  CHECK(try(&other, path, "packed for another compilation of 'fake'", &right) ==
        HEED_ERROR_WEIGHTS);
  other = packs;
  other.target = "x86-64-v9";
  CHECK(try(&other, path, "but the code that runs here is for x86-64-v9",
            &right) == HEED_ERROR_WEIGHTS);
  other.key = NULL;
  CHECK(try(&other, path, "compiled without a key", &right) ==
        HEED_ERROR_ARGUMENT);
  CHECK(try(&packs, weights, "it is not a file of packed weights", &right) ==
        HEED_ERROR_FILE);
  CHECK(try(&packs, "no/such", "cannot be opened", &right) == HEED_ERROR_FILE);
  heed_options options = from(path);
  options.weights = &weights;
  options.numWeights = 1;
  CHECK(heed_open(&packs, &options, &model) == HEED_ERROR_ARGUMENT &&
        says(model, "or other weights, found both"));
  /* A handle that did not open has nothing to save. */
  CHECK(heed_save_packed(model, path) == HEED_ERROR_ARGUMENT);
  heed_close(model);
  CHECK(heed_save_packed(NULL, path) == HEED_ERROR_ARGUMENT);
  options.packed = NULL;
  CHECK(heed_open(&other, &options, &model) == HEED_OK);
  CHECK(heed_save_packed(model, path) == HEED_ERROR_ARGUMENT &&
        says(model, "compiled without a key"));
  CHECK(heed_save_packed(model, NULL) == HEED_ERROR_ARGUMENT);
  heed_close(model);
  return failures;
}

/* Each bit of the file changed, one in each byte; its end missing or longer. */
static int testDamage(const char *path) {
  int failures = 0, right = 0, unread = 0;
  heed_model *model = NULL;
  size_t size;
  char *bytes = readAll(path, &size);
  for (size_t at = 0; at < size; ++at) {
    /* Blanks behind the header. */
    if (at > 700 && at < PageSize - 100)
      continue;
    bytes[at] ^= (char)(1 << at % 8);
    writeAll(path, bytes, size);
    heed_status status = try(&packs, path, NULL, &right);
    CHECK(status == HEED_ERROR_FILE || status == HEED_ERROR_WEIGHTS ||
          (status == HEED_OK && right));
    unread += status == HEED_OK;
    bytes[at] ^= (char)(1 << at % 8);
  }
  /* What fills the two blocks up to 128 bytes, and little of the header. */
  CHECK(unread >= DataBytes - 4 * 4 - 4 * 20 && unread < 400);
  for (size_t cut = 0; cut < size; cut += 8) {
    writeAll(path, bytes, cut);
    CHECK(try(&packs, path, NULL, &right) == HEED_ERROR_FILE);
  }
  bytes[size] = 0;
  writeAll(path, bytes, size + 1);
  CHECK(try(&packs, path, "bytes of data expected", &right) == HEED_ERROR_FILE);
  writeAll(path, bytes, size);
  CHECK(try(&packs, path, NULL, &right) == HEED_OK && right);
  free(bytes);
  return failures;
}

/* Makes the checksum right for what stands in the file's table. */
static void seal(char *bytes) {
  const char *table = bytes + PageSize + DataBytes;
  int64_t rows[Blocks][18], end = 0;
  memcpy(rows, table, sizeof rows);
  uint64_t sum = heed_checksum(0, table, TableBytes);
  for (int row = 0; row < Blocks; ++row) {
    int64_t at = rows[row][0], length = rows[row][1];
    if (at < end || at > DataBytes || length < 0 || length > DataBytes - at)
      continue;
    sum = heed_checksum(sum, bytes + PageSize + at, (size_t)length);
    end = at + length;
  }
  char *place = memmem(bytes, PageSize, "\"checksum\":\"", 12), text[17];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
  memcpy(place + 12, text, 16);
}

static void setWord(char *bytes, size_t row, size_t word, int64_t value) {
  memcpy(bytes + PageSize + DataBytes + 144 * row + 8 * word, &value, 8);
}

/* Somebody writes a file whose checksum is right: still nothing is read that
 * lies outside, and no run reads more of a slot than there is. */
static int testForged(const char *path) {
  int failures = 0, right = 0;
  heed_model *model = NULL;
  size_t size;
  char *bytes = readAll(path, &size), *kept = malloc(size);
  memcpy(kept, bytes, size);
  static const struct {
    size_t row, word;
    int64_t value;
    const char *text; /* null: the run says it */
  } forged[] = {{0, 0, 64, "a block lies outside its data"},
                {0, 0, -128, "a block lies outside its data"},
                {0, 0, -1, "a block lies outside its data"},
                {1, 0, 1 << 20, "a block lies outside its data"},
                {1, 1, INT64_MAX, "a block lies outside its data"},
                {1, 1, -1, "a block lies outside its data"},
                {1, 2, 6, "a parameter has another shape"},
                {1, 3, 5, "a parameter has another shape"},
                {2, 2, 5, "a parameter has another shape"},
                {2, 0, 0, "a parameter has another shape"},
                {0, 1, 8, NULL}};
  for (size_t k = 0; k < sizeof forged / sizeof *forged; ++k) {
    memcpy(bytes, kept, size);
    setWord(bytes, forged[k].row, forged[k].word, forged[k].value);
    seal(bytes);
    writeAll(path, bytes, size);
    heed_options options = from(path);
    heed_status status = heed_open(&packs, &options, &model);
    arrays a;
    fill(&a, 2);
    if (forged[k].text)
      CHECK(status == HEED_ERROR_FILE && says(model, forged[k].text));
    else
      CHECK(status == HEED_OK && run(model, &a) == HEED_ERROR_WEIGHTS &&
            says(model, "slot 0 of the packed weights: expected 16 bytes, "
                        "found 8"));
    heed_close(model);
  }
  writeAll(path, kept, size);
  CHECK(try(&packs, path, NULL, &right) == HEED_OK && right);
  free(kept);
  free(bytes);
  return failures;
}

/* The same with numbers by chance, for the sanitizers: opened or not, nothing
 * is read that is not there. */
static int testChance(const char *path) {
  static const int64_t values[] = {
      -129, -128, -1,        0,         1,         4,         5,       8,
      16,   20,   80,        127,       128,       129,       255,     256,
      257,  1024, 1LL << 32, 1LL << 61, INT64_MAX, INT64_MIN, -1 - 128};
  enum { Values = sizeof values / sizeof *values };
  int failures = 0, right = 0, opened = 0;
  heed_model *model = NULL;
  size_t size;
  char *bytes = readAll(path, &size), *kept = malloc(size);
  memcpy(kept, bytes, size);
  uint64_t state = 1;
  for (int turn = 0; turn < 1000; ++turn) {
    memcpy(bytes, kept, size);
    for (int k = 0; k <= turn % 3; ++k) {
      state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
      setWord(bytes, state >> 33 & 3, (state >> 35) % 5,
              values[(state >> 40) % Values]);
    }
    seal(bytes);
    writeAll(path, bytes, size);
    heed_status status = try(&packs, path, NULL, &right);
    CHECK(status == HEED_OK || status == HEED_ERROR_FILE);
    opened += status == HEED_OK;
  }
  CHECK(opened > 10 && opened < 500);
  writeAll(path, kept, size);
  free(kept);
  free(bytes);
  return failures;
}

/* A disk that is full in the midst of it: the file that was there stays. A
 * child of fork opens the file itself. */
static int testProcess(const char *path) {
  int failures = 0;
  heed_model *model = NULL;
  heed_options options = from(path);
  size_t size, again;
  char *before = readAll(path, &size);
  CHECK(heed_open(&packs, &options, &model) == HEED_OK);
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    int right = 0;
    struct rlimit limit = {4500, 4500};
    heed_model *own = NULL;
    signal(SIGXFSZ, SIG_IGN);
    bool good = heed_save_packed(model, path) == HEED_ERROR_FORK &&
                try(&packs, path, NULL, &right) == HEED_OK && right &&
                heed_open(&packs, &options, &own) == HEED_OK &&
                setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                heed_save_packed(own, path) == HEED_ERROR_FILE &&
                says(own, "cannot be written: File too large");
    heed_close(own);
    heed_close(model);
    _exit(!good);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(heed_save_packed(model, "no/such/folder") == HEED_ERROR_FILE &&
        says(model, "cannot be written: No such file"));
  char *after = readAll(path, &again);
  CHECK(again == size && !memcmp(before, after, size));
  heed_close(model);
  free(after);
  free(before);
  return failures;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  describe();
  int failures = testRoundTrip(argv[1], argv[2]);
  failures += testOrigin(argv[1], argv[2]) + testDamage(argv[2]) +
              testForged(argv[2]) + testChance(argv[2]) + testProcess(argv[2]);
  printf(failures ? "%d failures\n" : "all right\n", failures);
  return failures != 0;
}
