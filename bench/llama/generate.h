/* Greedy generation with llama.cpp: a context of its own for each batch, whose
 * rows are sequences of equal lengths. Of functions that return int, 0 is
 * success. */
#ifndef BENCH_GENERATE_H
#define BENCH_GENERATE_H

#include <stdint.h>

typedef struct generation generation;

/** Maps the file; cache: 0 for keys and values in f32, 1 for f16. Null: it
 * cannot be read. */
void *generate_load(const char *path);
void generate_unload(void *model);
int32_t generate_vocabulary(const void *model);
generation *generate_open(void *model, int rows, int length, int most,
                          int cache, int threads);
void generate_close(generation *g);
/** Forgets what was there, runs the prompts, [rows, length], and chooses each
 * row's next token. */
int generate_prefill(generation *g, const int32_t *ids);
/** Runs the chosen tokens and chooses the next ones. */
int generate_step(generation *g);
/** Back to the prompt's end, with these tokens chosen. */
int generate_back(generation *g, const int32_t *chosen);
const int32_t *generate_chosen(const generation *g);
const float *generate_logits(const generation *g, int row);

#endif
