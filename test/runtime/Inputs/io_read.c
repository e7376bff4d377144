/* Reads one array as a type and writes it back as .npy, so that a test in
 * Python can compare. io-read npy|npz|safetensors FILE KEY TYPE convert|exact
 * OUT.npy io-read weights NAME FILE...      prints the file that holds the
 * tensor, its dtype and shape */
#include "runtime/io/Convert.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const heed_io_error *error) {
  fprintf(stderr, "error: %s\n", error->text);
  return 1;
}

static int32_t typeNamed(const char *name) {
  for (int32_t type = HEED_F32; type <= HEED_F64; ++type)
    if (!strcmp(heed_type_name(type), name))
      return type;
  return 0;
}

static int showWeights(int argc, char **argv) {
  heed_weights *weights;
  heed_io_error error;
  if (!heed_weights_open((const char *const *)argv + 3, (size_t)argc - 3, 0,
                         &weights, &error))
    return fail(&error);
  const char *path = NULL;
  const heed_safetensor *tensor = heed_weights_find(weights, argv[2], &path);
  printf("%zu tensors\n", heed_weights_count(weights));
  if (tensor) {
    char shape[256];
    heed_io_format_shape(shape, sizeof shape, tensor->array.rank,
                         tensor->array.shape);
    printf("%s %s %s\n", path, tensor->dtype, shape);
  } else {
    printf("absent\n");
  }
  heed_weights_close(weights);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 3 && !strcmp(argv[1], "weights"))
    return showWeights(argc, argv);
  if (argc != 7)
    return 2;
  const char *kind = argv[1], *path = argv[2], *key = *argv[3] ? argv[3] : NULL;
  heed_io_error error;
  heed_bytes bytes;
  heed_array array;
  heed_safetensors file = {0};
  if (!heed_bytes_read(path, &bytes, &error))
    return fail(&error);
  bool good;
  if (!strcmp(kind, "npy"))
    good = heed_npy_parse(bytes.data, bytes.size, path, &array, &error);
  else if (!strcmp(kind, "npz"))
    good = heed_npz_parse(bytes.data, bytes.size, key, path, &array, &error);
  else {
    good = heed_safetensors_parse(bytes.data, bytes.size, path, &file, &error);
    const heed_safetensor *tensor =
        good && key ? heed_safetensors_find(&file, key) : NULL;
    if (good && !tensor)
      good = heed_io_fail(&error, "%s: no tensor '%s'", path, key ? key : "");
    if (good)
      array = tensor->array;
  }
  int32_t type = typeNamed(argv[4]);
  void *out = NULL;
  if (good) {
    out = malloc((size_t)array.count * 8 + 1);
    good = out &&
           heed_convert_array(&array, type,
                              !strcmp(argv[5], "convert") ? HEED_ROUND_F64
                                                          : HEED_ROUND_NOTHING,
                              out, path, &error);
  }
  if (good) {
    FILE *stream = fopen(argv[6], "wb");
    good = stream &&
           heed_npy_write(stream, type, array.rank, array.shape, out) &&
           !fclose(stream);
    if (!good)
      heed_io_fail(&error, "%s: not written", argv[6]);
  }
  free(out);
  heed_safetensors_release(&file);
  heed_bytes_release(&bytes);
  return good ? 0 : fail(&error);
}
