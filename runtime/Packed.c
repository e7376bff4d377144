/* Packed weights as a file: what init has computed and the parameters that
 * calls read. The next process maps it and computes none of that again.
 *
 * The file is .safetensors with two tensors: "data", and "table", of which a
 * row is a block of the data; first the slots of init, then the instances of
 * all parameters. Its metadata say what code it was packed for. */
#include "runtime/Model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A row of the table. */
typedef struct block {
  int64_t at, bytes; /* at is -1 where calls read nothing */
  int64_t shape[HEED_MAX_RANK];
} block;
enum { Words = sizeof(block) / sizeof(int64_t), Alignment = 128, Page = 4096 };

static size_t countBlocks(const heed_model_desc *desc) {
  size_t count = (size_t)desc->numKept;
  for (int32_t param = 0; param < desc->numParams; ++param)
    count += (size_t)heed_param_instances(&desc->params[param]);
  return count;
}

static const char *targetOf(const heed_model_desc *desc) {
  return desc->target ? desc->target : "";
}

static heed_status checkKey(heed_model *model) {
  if (model->desc->key && *model->desc->key)
    return HEED_OK;
  return heed_fail(model, HEED_ERROR_ARGUMENT,
                   "model '%s' was compiled without a key by which its packed "
                   "weights would be known",
                   model->desc->name);
}

/* ---- saving ---- */

/* What is written. */
typedef struct content {
  const heed_model_desc *desc;
  block *blocks;
  const void **data; /* of each block */
  size_t *first; /* the first block with these data: they are written once */
  size_t count;
  int64_t bytes; /* of the data */
  char *header;
  size_t headerSize;
} content;

static void collect(content *c, const heed_shared *shared) {
  size_t k = 0;
  for (; k < (size_t)c->desc->numKept; ++k) {
    c->data[k] = shared->kept[k].data;
    c->blocks[k].bytes = shared->kept[k].bytes;
  }
  for (int32_t param = 0; param < c->desc->numParams; ++param) {
    const heed_param_info *info = &c->desc->params[param];
    const heed_param_instance *instance = shared->params[param];
    for (int64_t n = heed_param_instances(info); n > 0; --n, ++k, ++instance) {
      memcpy(c->blocks[k].shape, instance->shape, sizeof instance->shape);
      if (info->isForOpening)
        continue;
      c->data[k] = instance->data;
      c->blocks[k].bytes = heed_param_bytes(info, instance);
    }
  }
}

static int byData(const void *left, const void *right, void *user) {
  const content *c = user;
  size_t a = *(const size_t *)left, b = *(const size_t *)right;
  uintptr_t x = (uintptr_t)c->data[a], y = (uintptr_t)c->data[b];
  int64_t m = c->blocks[a].bytes, n = c->blocks[b].bytes;
  return x != y   ? (x > y) - (x < y)
         : m != n ? (m > n) - (m < n)
                  : (a > b) - (a < b);
}

/* Places of all blocks in the file: in their order, so that two processes write
 * the same file. */
static bool place(content *c) {
  size_t *sorted = calloc(c->count + 1, sizeof *sorted);
  if (!sorted)
    return false;
  for (size_t k = 0; k < c->count; ++k)
    sorted[k] = k;
  qsort_r(sorted, c->count, sizeof *sorted, byData, c);
  for (size_t k = 0; k < c->count; ++k) {
    size_t own = sorted[k], before = sorted[k ? k - 1 : 0];
    bool same = k && c->data[own] == c->data[before] &&
                c->blocks[own].bytes == c->blocks[before].bytes;
    c->first[own] = same ? c->first[before] : own;
  }
  free(sorted);
  for (size_t k = 0; k < c->count; ++k) {
    block *b = &c->blocks[k];
    b->at = !c->data[k]        ? -1
            : c->first[k] == k ? c->bytes
                               : c->blocks[c->first[k]].at;
    if (b->at == c->bytes)
      c->bytes += (b->bytes + Alignment - 1) / Alignment * Alignment;
  }
  return true;
}

/* A model's name is an identifier: nothing to escape. Blanks at the end make
 * the data begin with a page. */
static bool makeHeader(content *c) {
  uint64_t sum = heed_checksum(0, c->blocks, c->count * sizeof *c->blocks);
  for (size_t k = 0; k < c->count; ++k)
    if (c->data[k] && c->first[k] == k)
      sum = heed_checksum(sum, c->data[k], (size_t)c->blocks[k].bytes);
  FILE *file = open_memstream(&c->header, &c->headerSize);
  if (!file)
    return false;
  int64_t end = c->bytes + (int64_t)(c->count * sizeof *c->blocks);
  fprintf(file,
          "{\"__metadata__\":{\"format\":\"heed packed\",\"model\":\"%s\","
          "\"target\":\"%s\",\"key\":\"%s\",\"checksum\":\"%016" PRIx64
          "\"},\"data\":{\"dtype\":\"U8\",\"shape\":[%" PRId64
          "],\"data_offsets\":[0,%" PRId64
          "]},\"table\":{\"dtype\":\"I64\",\"shape\":[%zu,%d],"
          "\"data_offsets\":[%" PRId64 ",%" PRId64 "]}}",
          c->desc->name, targetOf(c->desc), c->desc->key, sum, c->bytes,
          c->bytes, c->count, (int)Words, c->bytes, end);
  while (ftell(file) % Page != Page - 8)
    fputc(' ', file);
  bool good = !ferror(file);
  return fclose(file) == 0 && good;
}

static bool writeContent(void *user, FILE *file) {
  static const char zeros[Alignment];
  const content *c = user;
  uint64_t size = c->headerSize;
  bool good = fwrite(&size, sizeof size, 1, file) == 1 &&
              fwrite(c->header, 1, size, file) == size;
  for (size_t k = 0; good && k < c->count; ++k) {
    if (!c->data[k] || c->first[k] != k)
      continue;
    size_t bytes = (size_t)c->blocks[k].bytes,
           padding = (Alignment - bytes % Alignment) % Alignment;
    good = fwrite(c->data[k], 1, bytes, file) == bytes &&
           fwrite(zeros, 1, padding, file) == padding;
  }
  return good &&
         fwrite(c->blocks, sizeof *c->blocks, c->count, file) == c->count;
}

static heed_status save(heed_model *model, const char *path) {
  content c = {.desc = model->desc, .count = countBlocks(model->desc)};
  c.blocks = calloc(c.count + 1, sizeof *c.blocks);
  c.data = calloc(c.count + 1, sizeof *c.data);
  c.first = calloc(c.count + 1, sizeof *c.first);
  heed_status status = HEED_OK;
  if (c.blocks && c.data && c.first)
    collect(&c, model->shared);
  heed_io_error error;
  if (!c.blocks || !c.data || !c.first || !place(&c) || !makeHeader(&c))
    status =
        heed_fail(model, HEED_ERROR_MEMORY, "%s: no memory to write it", path);
  else if (!heed_file_write(path, writeContent, &c, &error))
    status = heed_fail(model, HEED_ERROR_FILE, "%s", error.text);
  free(c.header);
  free(c.first);
  free(c.data);
  free(c.blocks);
  return status;
}

heed_status heed_packed_save(heed_model *model, const char *path) {
  if (!model->ready)
    return heed_fail(model, HEED_ERROR_ARGUMENT, "the model did not open");
  if (heed_mark_is_foreign(&model->mark))
    return heed_fail(model, HEED_ERROR_FORK,
                     "the handle belongs to the process that this one is a "
                     "fork of: open the model again");
  if (atomic_flag_test_and_set(&model->busy))
    return HEED_ERROR_BUSY;
  heed_status status =
      path ? checkKey(model) : heed_fail(model, HEED_ERROR_ARGUMENT, "no path");
  if (!status && model->device)
    status = model->desc->gpu->keepWhole(model);
  if (!status)
    status = save(model, path);
  atomic_flag_clear(&model->busy);
  return status;
}

/* ---- opening ---- */

/* A file of packed weights that is being opened. */
typedef struct source {
  const char *path;
  const uint8_t *data;
  int64_t bytes;
  const char *table; /* rows may lie anywhere */
  size_t count;
} source;

static block rowOf(const source *s, size_t k) {
  block row;
  memcpy(&row, s->table + k * sizeof row, sizeof row);
  return row;
}

static heed_status damaged(heed_model *model, const char *path,
                           const char *what) {
  return heed_fail(model, HEED_ERROR_FILE, "%s: it is damaged: %s", path, what);
}

/* Whether it was packed by this code. */
static heed_status checkOrigin(heed_model *model, const char *path,
                               const heed_bytes *bytes) {
  const heed_model_desc *desc = model->desc;
  if (!heed_safetensors_says(bytes, "format", "heed packed"))
    return heed_fail(model, HEED_ERROR_FILE,
                     "%s: it is not a file of packed weights", path);
  if (!heed_safetensors_says(bytes, "model", desc->name))
    return heed_fail(model, HEED_ERROR_WEIGHTS,
                     "%s: it holds packed weights of another model than '%s'",
                     path, desc->name);
  size_t length;
  const char *target = heed_safetensors_metadata(bytes, "target", &length);
  if (!heed_safetensors_says(bytes, "target", targetOf(desc)))
    return heed_fail(model, HEED_ERROR_WEIGHTS,
                     "%s: its weights are packed for the target %.*s, but the "
                     "code that runs here is for %s",
                     path, (int)length, target, targetOf(desc));
  if (!heed_safetensors_says(bytes, "key", desc->key))
    return heed_fail(model, HEED_ERROR_WEIGHTS,
                     "%s: its weights are packed for another compilation of "
                     "'%s': they must be packed again",
                     path, desc->name);
  return HEED_OK;
}

/* Pages that are read from the disk are large where the system has such for
 * files: a step reads all of them, and of 4 KiB each it reads a fifth slower
 * (24.6 GB/s instead of 31.5, one thread of a Zen 4). */
static void askForLargePages(const heed_bytes *bytes) {
#ifdef MADV_HUGEPAGE
  (void)madvise((void *)(uintptr_t)bytes->data, bytes->size, MADV_HUGEPAGE);
#else
  (void)bytes;
#endif
}

/* Finds both tensors; with copyWeights the data are copied. */
static heed_status findTensors(heed_model *model, bool copies,
                               const heed_safetensors *file, source *s) {
  const heed_safetensor *data = heed_safetensors_find(file, "data"),
                        *table = heed_safetensors_find(file, "table");
  s->count = countBlocks(model->desc);
  if (!data || data->array.type != HEED_U8 ||
      (uintptr_t)data->array.data % Alignment || !table ||
      table->array.type != HEED_I64 ||
      table->array.count != (int64_t)(s->count * Words))
    return damaged(model, s->path, "expected a table of its data, found none");
  s->data = data->array.data;
  s->bytes = data->array.count;
  s->table = table->array.data;
  if (!copies)
    return HEED_OK;
  heed_shared *shared = model->shared;
  void *memory = heed_arena_take(&shared->keptMemory, (size_t)s->bytes);
  if (!memory)
    return heed_fail(model, HEED_ERROR_MEMORY, "%s: no memory for a copy of it",
                     s->path);
  memcpy(memory, s->data, (size_t)s->bytes);
  s->data = memory;
  shared->packedIsCopied = true;
  return HEED_OK;
}

/* Every block lies within the data; a byte that is not what was written would
 * be a wrong number in each result. */
static heed_status checkBlocks(heed_model *model, const heed_bytes *bytes,
                               const source *s) {
  uint64_t sum = heed_checksum(0, s->table, s->count * sizeof(block));
  int64_t end = 0;
  for (size_t k = 0; k < s->count; ++k) {
    block row = rowOf(s, k);
    if (row.at == -1 && row.bytes == 0)
      continue;
    if (row.at < 0 || row.at % Alignment || row.bytes < 0 ||
        row.at > s->bytes || row.bytes > s->bytes - row.at)
      return damaged(model, s->path, "a block lies outside its data");
    if (row.at < end)
      continue; /* one that was met before */
    sum = heed_checksum(sum, s->data + row.at, (size_t)row.bytes);
    end = row.at + row.bytes;
  }
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, sum);
  return heed_safetensors_says(bytes, "checksum", text)
             ? HEED_OK
             : damaged(model, s->path, "its checksum does not fit its data");
}

static heed_status useParam(heed_model *model, int32_t param, const source *s,
                            size_t *k) {
  const heed_param_info *info = &model->desc->params[param];
  int64_t count;
  heed_status status = heed_param_room(model, param, &count);
  heed_param_instance *instance = model->shared->params[param];
  for (; !status && count > 0; --count, ++*k, ++instance) {
    block row = rowOf(s, *k);
    int64_t bytes = 0;
    bool fits = heed_io_byte_count(info->rank, row.shape,
                                   (int64_t)heed_type_size(info->type), &bytes);
    for (int32_t axis = 0; axis < info->rank; ++axis)
      fits &= info->sizes[axis] < 0 || info->sizes[axis] == row.shape[axis];
    if (!fits ||
        (info->isForOpening ? row.at != -1 : row.at < 0 || row.bytes != bytes))
      return damaged(model, s->path, "a parameter has another shape");
    memcpy(instance->shape, row.shape, sizeof row.shape);
    instance->data = info->isForOpening ? NULL : s->data + row.at;
  }
  return status;
}

static heed_status use(heed_model *model, const source *s) {
  heed_shared *shared = model->shared;
  size_t k = 0;
  for (; k < (size_t)model->desc->numKept; ++k) {
    block row = rowOf(s, k);
    if (row.at < 0)
      continue;
    shared->kept[k] =
        (heed_kept){(void *)(uintptr_t)(s->data + row.at), row.bytes};
    shared->keptBytes += row.bytes;
  }
  shared->params =
      calloc((size_t)model->desc->numParams + 1, sizeof *shared->params);
  if (!shared->params)
    return heed_fail(model, HEED_ERROR_MEMORY, "no memory for parameters");
  heed_status status = HEED_OK;
  for (int32_t param = 0; param < model->desc->numParams && !status; ++param)
    status = useParam(model, param, s, &k);
  return status;
}

heed_status heed_packed_open(heed_model *model, const heed_options *options) {
  heed_bytes *bytes = &model->shared->packed;
  source s = {.path = options->packed};
  if (options->numWeights || options->numWeightsData || options->findWeight)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "expected options.packed or other weights, found both");
  heed_status status = checkKey(model);
  if (status)
    return status;
  heed_io_error error;
  heed_safetensors file;
  if (!heed_bytes_map(s.path, bytes, &error) ||
      !heed_safetensors_parse(bytes->data, bytes->size, s.path, &file, &error))
    return heed_fail(model, HEED_ERROR_FILE, "%s", error.text);
  askForLargePages(bytes);
  status = checkOrigin(model, s.path, bytes);
  if (!status)
    status = findTensors(model, options->copyWeights != 0, &file, &s);
  if (!status)
    status = checkBlocks(model, bytes, &s);
  if (!status)
    status = use(model, &s);
  heed_safetensors_release(&file);
  if (model->shared->packedIsCopied)
    heed_bytes_release(bytes);
  return status;
}
