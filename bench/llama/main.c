/* llama-generate MODEL.gguf IDS ROWS LENGTH NEW CACHE THREADS: IDS is a file of
 * int32. Prints a line of tokens for each step, as they come. */
#include "generate.h"

#include <stdio.h>
#include <stdlib.h>

static void print(const generation *g, int rows) {
  for (int row = 0; row < rows; ++row)
    printf("%d ", generate_chosen(g)[row]);
  puts("");
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc != 8)
    return 2;
  int rows = atoi(argv[3]), length = atoi(argv[4]), most = atoi(argv[5]);
  size_t count = (size_t)rows * (size_t)length;
  int32_t *ids = malloc(count * sizeof *ids);
  FILE *file = fopen(argv[2], "rb");
  if (!ids || !file || fread(ids, sizeof *ids, count, file) != count)
    return 2;
  fclose(file);
  void *model = generate_load(argv[1]);
  generation *g = model ? generate_open(model, rows, length, most,
                                        atoi(argv[6]), atoi(argv[7]))
                        : NULL;
  if (!g || generate_prefill(g, ids))
    return 1;
  print(g, rows);
  for (int k = 1; k < most; ++k) {
    if (generate_step(g))
      return 1;
    print(g, rows);
  }
  generate_close(g);
  generate_unload(model);
  free(ids);
  return 0;
}
