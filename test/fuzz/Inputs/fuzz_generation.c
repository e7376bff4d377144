/* Feeds the reader of generation_config.json, which reads a folder: the file
 * lies in one of its own. What it accepts is within what options may be. */
#include "runtime/ProgramGenerate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/heed-fuzz-XXXXXX", path[64];

static void leave(void) {
  unlink(path);
  rmdir(folder);
}

static void writeFile(const uint8_t *data, size_t size) {
  if (!path[0]) {
    if (!mkdtemp(folder))
      abort();
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    atexit(leave);
  }
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heed_generate_arguments g;
  heed_io_error error;
  char notes[128];
  writeFile(data, size);
  heed_generate_defaults(&g);
  bool good =
      heed_generation_config_read(folder, &g, notes, sizeof notes, &error);
  if (memchr(notes, 0, sizeof notes) == NULL)
    __builtin_trap();
  if (good && (g.topK < 0 || g.beams < 1 || g.start < -1 || g.minNew < 0 ||
               g.earlyStopping < 0 || g.earlyStopping > 2))
    __builtin_trap();
  const heed_ids *const lists[] = {&g.stop, &g.forcedBos, &g.suppress,
                                   &g.behind};
  for (size_t n = 0; good && n < sizeof lists / sizeof *lists; ++n)
    for (size_t k = 0; k < lists[n]->count; ++k)
      if (lists[n]->ids[k] < 0)
        __builtin_trap();
  /* Each bad word has a token and an end. */
  for (size_t k = 0; good && k < g.badWords.count; ++k)
    if (g.badWords.ids[k] < 0 && (!k || g.badWords.ids[k - 1] < 0))
      __builtin_trap();
  heed_generate_release(&g);
  return 0;
}
