/* Sets of .safetensors files, and the index of a sharded checkpoint. */
#include "runtime/io/Json.h"
#include "runtime/io/Safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool addEntry(heed_json *json, heed_shard_index *index, size_t *capacity,
                     const char *name) {
  if (!heed_json_grow(json, &index->entries, index->numEntries, capacity,
                      sizeof *index->entries))
    return false;
  heed_shard_entry *entry = &index->entries[index->numEntries++];
  entry->name = name;
  if (!heed_json_string(json, &entry->file))
    return false;
  /* An index is untrusted: it must not reach outside its folder. */
  if (!entry->file[0] || strchr(entry->file, '/') || entry->file[0] == '.')
    return heed_io_fail(json->error,
                        "%s: '%s': expected a file beside the index, found "
                        "'%s'",
                        json->where, name, entry->file);
  return true;
}

static int byEntryName(const void *left, const void *right) {
  return strcmp(((const heed_shard_entry *)left)->name,
                ((const heed_shard_entry *)right)->name);
}

/* What has been read of an index. */
typedef struct {
  heed_json *json;
  heed_shard_index *index;
  size_t capacity;
  bool known;
} parser;

static bool addName(void *context, const char *name) {
  parser *p = context;
  return addEntry(p->json, p->index, &p->capacity, name);
}

static bool addMember(void *context, const char *key) {
  parser *p = context;
  if (strcmp(key, "weight_map") != 0)
    return heed_json_skip(p->json);
  if (p->known)
    return heed_io_fail(p->json->error, "%s: 'weight_map' stands twice",
                        p->json->where);
  p->known = true;
  return heed_json_members(p->json, addName, p);
}

static bool parseIndex(heed_json *json, heed_shard_index *index) {
  parser p = {.json = json, .index = index};
  if (!heed_json_members(json, addMember, &p) || !heed_json_end(json))
    return false;
  if (!p.known)
    return heed_io_fail(json->error, "%s: 'weight_map' is missing",
                        json->where);
  if (index->numEntries)
    qsort(index->entries, index->numEntries, sizeof *index->entries,
          byEntryName);
  for (size_t k = 1; k < index->numEntries; ++k)
    if (!strcmp(index->entries[k].name, index->entries[k - 1].name))
      return heed_io_fail(json->error, "%s: '%s' stands twice", json->where,
                          index->entries[k].name);
  return true;
}

bool heed_shard_index_parse(const uint8_t *data, size_t size, const char *where,
                            heed_shard_index *index, heed_io_error *error) {
  memset(index, 0, sizeof *index);
  heed_json json;
  if (!heed_json_start(&json, data, size, where, error))
    return false;
  index->strings = json.strings;
  if (parseIndex(&json, index))
    return true;
  heed_shard_index_release(index);
  return false;
}

void heed_shard_index_release(heed_shard_index *index) {
  free(index->entries);
  free(index->strings);
  memset(index, 0, sizeof *index);
}

typedef struct openFile {
  char *path;
  heed_bytes bytes;
  heed_safetensors content;
} openFile;

struct heed_weights {
  openFile *files;
  size_t numFiles;
  bool reads; /* files are read, not mapped */
};

/* Room for one more file, of that name; released with the rest. */
static openFile *newFile(heed_weights *weights, const char *path,
                         heed_io_error *error) {
  openFile *files =
      realloc(weights->files, (weights->numFiles + 1) * sizeof *files);
  char *copy = strdup(path);
  if (files)
    weights->files = files;
  if (!files || !copy) {
    free(copy);
    heed_io_fail(error, "%s: no memory to open it", path);
    return NULL;
  }
  openFile *file = &files[weights->numFiles++];
  memset(file, 0, sizeof *file);
  file->path = copy;
  return file;
}

/* Opens one file, once. */
static openFile *addFile(heed_weights *weights, const char *path,
                         heed_io_error *error) {
  for (size_t k = 0; k < weights->numFiles; ++k)
    if (!strcmp(weights->files[k].path, path))
      return &weights->files[k];
  openFile *file = newFile(weights, path, error);
  if (!file ||
      !(weights->reads ? heed_bytes_read(path, &file->bytes, error)
                       : heed_bytes_map(path, &file->bytes, error)) ||
      !heed_safetensors_parse(file->bytes.data, file->bytes.size, path,
                              &file->content, error))
    return NULL;
  return file;
}

static bool addShards(heed_weights *weights, const char *path,
                      heed_io_error *error) {
  heed_bytes bytes;
  heed_shard_index index;
  if (!heed_bytes_read(path, &bytes, error))
    return false;
  bool good =
      heed_shard_index_parse(bytes.data, bytes.size, path, &index, error);
  heed_bytes_release(&bytes);
  if (!good)
    return false;
  const char *slash = strrchr(path, '/');
  size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
  for (size_t k = 0; good && k < index.numEntries; ++k) {
    size_t size = folder + strlen(index.entries[k].file) + 1;
    char *shard = malloc(size);
    if (!shard) {
      good = heed_io_fail(error, "%s: no memory to open it", path);
      break;
    }
    snprintf(shard, size, "%.*s%s", (int)folder, path, index.entries[k].file);
    openFile *file = addFile(weights, shard, error);
    good = file != NULL;
    if (file && !heed_safetensors_find(&file->content, index.entries[k].name))
      good = heed_io_fail(error, "%s: no tensor '%s', though %s names it",
                          shard, index.entries[k].name, path);
    free(shard);
  }
  heed_shard_index_release(&index);
  return good;
}

static bool endsWith(const char *text, const char *suffix) {
  size_t length = strlen(text), wanted = strlen(suffix);
  return length >= wanted && !strcmp(text + length - wanted, suffix);
}

bool heed_is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The file of that name in a folder, if there is one; else null. */
static char *fileIn(const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 2;
  char *path = malloc(size);
  if (path)
    snprintf(path, size, "%s%s%s", folder, endsWith(folder, "/") ? "" : "/",
             name);
  if (path && access(path, F_OK) == 0)
    return path;
  free(path);
  return NULL;
}

/* What a checkpoint's folder has, one file or an index. */
static bool addFolder(heed_weights *weights, const char *folder,
                      heed_io_error *error) {
  static const char *const names[] = {
      "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
      "pytorch_model.bin.index.json"};
  for (int k = 0; k < 4; ++k) {
    char *path = fileIn(folder, names[k]);
    if (!path)
      continue;
    bool good = k == 0   ? addFile(weights, path, error) != NULL
                : k == 1 ? addShards(weights, path, error)
                         : heed_io_fail(error,
                                        "%s: pickled weights are not read: "
                                        "expected %s beside it (save the "
                                        "model as safetensors)",
                                        path, names[0]);
    free(path);
    return good;
  }
  return heed_io_fail(error, "%s: expected %s or %s in the folder", folder,
                      names[0], names[1]);
}

/* No tensor may stand in two files: which one counts would depend on the order.
 */
static bool checkUnique(const heed_weights *weights, heed_io_error *error) {
  for (size_t a = 0; a < weights->numFiles; ++a)
    for (size_t b = a + 1; b < weights->numFiles; ++b) {
      const heed_safetensors *content = &weights->files[a].content;
      for (size_t k = 0; k < content->numTensors; ++k)
        if (heed_safetensors_find(&weights->files[b].content,
                                  content->tensors[k].name))
          return heed_io_fail(error, "tensor '%s' is in both %s and %s",
                              content->tensors[k].name, weights->files[a].path,
                              weights->files[b].path);
    }
  return true;
}

bool heed_weights_open(const char *const *paths, size_t numPaths, bool reads,
                       heed_weights **weights, heed_io_error *error) {
  *weights = calloc(1, sizeof **weights);
  if (!*weights)
    return heed_io_fail(error, "no memory to open weights");
  (*weights)->reads = reads;
  bool good = true;
  for (size_t k = 0; good && k < numPaths; ++k)
    good = heed_is_folder(paths[k]) ? addFolder(*weights, paths[k], error)
           : endsWith(paths[k], ".json")
               ? addShards(*weights, paths[k], error)
               : addFile(*weights, paths[k], error) != NULL;
  if (good && checkUnique(*weights, error))
    return true;
  heed_weights_close(*weights);
  *weights = NULL;
  return false;
}

bool heed_weights_add(heed_weights *weights, const char *name, const void *data,
                      size_t size, heed_io_error *error) {
  openFile *file = newFile(weights, name, error);
  return file &&
         heed_safetensors_parse(data, size, name, &file->content, error) &&
         checkUnique(weights, error);
}

const heed_safetensor *heed_weights_find(const heed_weights *weights,
                                         const char *name, const char **path) {
  for (size_t k = 0; k < weights->numFiles; ++k) {
    const heed_safetensor *tensor =
        heed_safetensors_find(&weights->files[k].content, name);
    if (tensor) {
      if (path)
        *path = weights->files[k].path;
      return tensor;
    }
  }
  return NULL;
}

size_t heed_weights_count(const heed_weights *weights) {
  size_t count = 0;
  for (size_t k = 0; k < weights->numFiles; ++k)
    count += weights->files[k].content.numTensors;
  return count;
}

const heed_safetensor *heed_weights_at(const heed_weights *weights, size_t k) {
  for (size_t file = 0; file < weights->numFiles; ++file) {
    const heed_safetensors *content = &weights->files[file].content;
    if (k < content->numTensors)
      return &content->tensors[k];
    k -= content->numTensors;
  }
  return NULL;
}

void heed_weights_leave(const heed_weights *weights, const void *data,
                        size_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data;
  for (size_t k = 0; k < weights->numFiles; ++k) {
    const heed_bytes *file = &weights->files[k].bytes;
    uintptr_t begin = (uintptr_t)file->data;
    if (!file->mapped || first < begin || first - begin > file->size ||
        bytes > file->size - (first - begin))
      continue;
    /* Neighbours may be in use: their parts of a page stay. */
    uintptr_t low = (first + page - 1) / page * page,
              high = (first + bytes) / page * page;
    if (low < high)
      (void)madvise((void *)low, high - low, MADV_DONTNEED);
    return;
  }
}

void heed_weights_close(heed_weights *weights) {
  if (!weights)
    return;
  for (size_t k = 0; k < weights->numFiles; ++k) {
    heed_safetensors_release(&weights->files[k].content);
    heed_bytes_release(&weights->files[k].bytes);
    free(weights->files[k].path);
  }
  free(weights->files);
  free(weights);
}
