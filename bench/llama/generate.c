#include "generate.h"

#include <ggml-backend.h>
#include <llama.h>
#include <stdlib.h>
#include <string.h>

struct generation {
  struct llama_context *context;
  struct llama_batch batch;
  int rows, length, at, vocabulary;
  int32_t *chosen;
  const float **logits;
};

static void quiet(enum ggml_log_level level, const char *text, void *user) {
  (void)level, (void)text, (void)user;
}

void *generate_load(const char *path) {
  llama_log_set(quiet, NULL);
  llama_backend_init();
  return llama_model_load_from_file(path, llama_model_default_params());
}

void generate_unload(void *model) { llama_model_free(model); }

int32_t generate_vocabulary(const void *model) {
  return llama_vocab_n_tokens(llama_model_get_vocab(model));
}

generation *generate_open(void *model, int rows, int length, int most,
                          int cache, int threads) {
  struct llama_context_params p = llama_context_default_params();
  /* a sequence's part of the context is a multiple of 256 */
  p.n_ctx = (uint32_t)(rows * ((length + most + 255) / 256 * 256));
  p.n_batch = (uint32_t)(rows * length);
  p.n_seq_max = (uint32_t)rows;
  p.n_threads = p.n_threads_batch = threads;
  p.type_k = p.type_v = cache ? GGML_TYPE_F16 : GGML_TYPE_F32;
  generation *g = calloc(1, sizeof *g);
  if (!g || !(g->context = llama_init_from_model(model, p))) {
    free(g);
    return NULL;
  }
  g->batch = llama_batch_init(rows * length, 0, 1);
  g->rows = rows;
  g->length = length;
  g->vocabulary = generate_vocabulary(model);
  g->chosen = calloc((size_t)rows, sizeof *g->chosen);
  g->logits = calloc((size_t)rows, sizeof *g->logits);
  return g;
}

void generate_close(generation *g) {
  llama_batch_free(g->batch);
  llama_free(g->context);
  free(g->chosen);
  free(g->logits);
  free(g);
}

static int32_t largest(const float *logits, int count) {
  int32_t best = 0;
  for (int32_t k = 1; k < count; ++k)
    if (logits[k] > logits[best])
      best = k;
  return best;
}

/* Runs `count` tokens of each row; each row's last one has logits. */
static int run(generation *g, const int32_t *ids, int count) {
  struct llama_batch *b = &g->batch;
  b->n_tokens = 0;
  for (int row = 0; row < g->rows; ++row)
    for (int n = 0; n < count; ++n) {
      int k = b->n_tokens++;
      b->token[k] = ids[row * count + n];
      b->pos[k] = g->at + n;
      b->n_seq_id[k] = 1;
      b->seq_id[k][0] = row;
      b->logits[k] = n + 1 == count;
    }
  if (llama_decode(g->context, *b))
    return 1;
  g->at += count;
  for (int row = 0; row < g->rows; ++row) {
    g->logits[row] = llama_get_logits_ith(g->context, (row + 1) * count - 1);
    if (!g->logits[row])
      return 1;
    g->chosen[row] = largest(g->logits[row], g->vocabulary);
  }
  return 0;
}

int generate_prefill(generation *g, const int32_t *ids) {
  llama_memory_clear(llama_get_memory(g->context), false);
  g->at = 0;
  return run(g, ids, g->length);
}

int generate_step(generation *g) { return run(g, g->chosen, 1); }

int generate_back(generation *g, const int32_t *chosen) {
  for (int row = 0; row < g->rows; ++row)
    if (!llama_memory_seq_rm(llama_get_memory(g->context), row, g->length, -1))
      return 1;
  g->at = g->length;
  memcpy(g->chosen, chosen, (size_t)g->rows * sizeof *chosen);
  return 0;
}

const int32_t *generate_chosen(const generation *g) { return g->chosen; }

const float *generate_logits(const generation *g, int row) {
  return g->logits[row];
}
