/* --generate of compiled programs: prompts, an encoder's run, steps, tokens as
 * text or as a file. */
#include "runtime/Program.h"
#include "runtime/io/Safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct run {
  const char *name; /* the program's */
  heed_arguments *a;
  heed_model *model;
  heed_state *state;
  heed_program_call calls[2]; /* the entry's, the encoder's */
  heed_buffer past;
  heed_generation *generation;
  heed_interrupt interrupt;
  int64_t rows, prompt; /* before beams are counted */
  int64_t steps, made;  /* tokens of all rows */
  double began, first;  /* seconds: the clock at the start, behind step one */
  bool streams, shows;  /* tokens to standard output, progress */
} run;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- what is given ---- */

/* A file, or a list of tokens: one row. */
static bool readTokens(const heed_tensor_info *info, const char *text,
                       bool convert, heed_buffer *buffer,
                       heed_io_error *error) {
  heed_ids list = {0};
  bool isList = false;
  if (access(text, F_OK) != 0 && !heed_ids_read(&list, text, false, &isList)) {
    free(list.ids);
    return heed_io_fail(error, "no memory for '%s'", info->name);
  }
  if (!isList) {
    free(list.ids);
    return heed_input_read(info, text, convert, buffer, error);
  }
  *buffer = (heed_buffer){.size = sizeof *buffer,
                          .data = list.ids,
                          .type = HEED_I32,
                          .rank = 2,
                          .shape = {1, (int64_t)list.count}};
  return true;
}

static bool startPrompt(run *r, heed_buffer *ids, const heed_tensor_info *info,
                        heed_io_error *error) {
  int64_t rows = 1;
  const heed_program_call *encoder = &r->calls[1];
  for (int k = 0; k < encoder->entry->numInputs; ++k)
    if (encoder->inputs[k].rank &&
        !strcmp(encoder->entry->inputs[k]->extents[0], info->extents[0]))
      rows = encoder->inputs[k].shape[0];
  const heed_generate_arguments *g = &r->a->generate;
  if (g->start < 0)
    return heed_io_fail(error, "expected a start token, --prompt ID or "
                               "decoder_start_token_id of a --weights folder");
  size_t width = 1 + g->behind.count, count;
  int32_t *data =
      __builtin_mul_overflow((size_t)rows + 1, width * sizeof *data, &count)
          ? NULL
          : malloc(count);
  if (!data)
    return heed_io_fail(error, "no memory for 'ids'");
  for (size_t row = 0; row < (size_t)rows; ++row) {
    data[row * width] = g->start;
    for (size_t k = 1; k < width; ++k)
      data[row * width + k] = g->behind.ids[k - 1];
  }
  *ids = (heed_buffer){.size = sizeof *ids,
                       .data = data,
                       .type = HEED_I32,
                       .rank = 2,
                       .shape = {rows, (int64_t)width}};
  return true;
}

/* Each row `times` times, one after the other: what beams begin with. */
static bool repeatRows(heed_program_call *call, const char *batch,
                       int64_t times, heed_io_error *error) {
  for (int k = 0; times > 1 && k < call->entry->numInputs; ++k) {
    const heed_tensor_info *info = call->entry->inputs[k];
    heed_buffer *buffer = &call->inputs[k];
    for (int32_t axis = 1; axis < info->rank; ++axis)
      if (!strcmp(info->extents[axis], batch))
        return heed_io_fail(error,
                            "option '--beams': expected '%s' as the first "
                            "axis of '%s' alone",
                            batch, info->name);
    if (!info->rank || !buffer->data || strcmp(info->extents[0], batch) != 0)
      continue;
    size_t bytes = heed_type_size(buffer->type);
    for (int32_t axis = 1; axis < buffer->rank; ++axis)
      bytes *= (size_t)buffer->shape[axis];
    size_t rows = (size_t)buffer->shape[0], all = 0;
    char *data = __builtin_mul_overflow(rows * bytes, (size_t)times, &all)
                     ? NULL
                     : malloc(all + 1);
    if (!data)
      return heed_io_fail(error, "no memory for beams of '%s'", info->name);
    for (size_t row = 0; row < rows * (size_t)times; ++row)
      memcpy(data + row * bytes,
             (char *)buffer->data + row / (size_t)times * bytes, bytes);
    free(buffer->data);
    buffer->data = data;
    buffer->shape[0] *= times;
  }
  return true;
}

static bool readPrompts(run *r, heed_io_error *error) {
  heed_arguments *a = r->a;
  const heed_generate_arguments *g = &a->generate;
  int ids = heed_find_input(a->entry, "ids");
  const heed_tensor_info *info = a->entry->inputs[ids];
  heed_buffer *prompt = &r->calls[0].inputs[ids];
  const char *text = a->inputs[ids];
  if (g->prompt && (text || !a->encoder))
    return heed_io_fail(error, "option '--prompt' goes with a model that has "
                               "an entry 'encode': expected --ids");
  text = text ? text : g->prompt;
  if (!(text ? readTokens(info, text, a->convert, prompt, error)
             : startPrompt(r, prompt, info, error)))
    return false;
  r->rows = prompt->shape[0];
  r->prompt = prompt->shape[1];
  if (g->past && !readTokens(info, g->past, a->convert, &r->past, error))
    return false;
  heed_program_call past = {&(heed_signature){.size = sizeof(heed_signature),
                                              .numInputs = 1,
                                              .inputs = &info},
                            &r->past, NULL};
  return repeatRows(&r->calls[0], info->extents[0], g->beams, error) &&
         (!a->encoder ||
          repeatRows(&r->calls[1], info->extents[0], g->beams, error)) &&
         (!g->past || repeatRows(&past, info->extents[0], g->beams, error));
}

/* What is not given on the command line a checkpoint's folder may say. */
static bool readSettings(run *r, heed_io_error *error) {
  heed_arguments *a = r->a;
  char notes[2048] = "";
  for (size_t k = 0; k < a->numWeights; ++k)
    if (heed_is_folder(a->weights[k])) {
      if (!heed_generation_config_read(a->weights[k], &a->generate, notes,
                                       sizeof notes, error))
        return false;
      break;
    }
  if (*notes)
    fprintf(stderr,
            "%s: note: settings of the checkpoint that are not "
            "applied: %s\n",
            r->name, notes);
  return heed_generate_check(&a->generate, error);
}

static bool readAll(run *r, heed_io_error *error) {
  heed_arguments *a = r->a;
  int ids = heed_find_input(a->entry, "ids");
  const char *text = a->inputs[ids];
  a->inputs[ids] = NULL; /* read by itself */
  bool good = heed_program_read(&r->calls[0], a->entry, a->inputs, a->convert,
                                false, error) &&
              (!a->encoder ||
               heed_program_read(&r->calls[1], a->encoder, a->encoderInputs,
                                 a->convert, false, error));
  a->inputs[ids] = text;
  return good && readPrompts(r, error);
}

/* ---- results ---- */

static bool writeTokens(const run *r, const int32_t *tokens, int64_t width,
                        const char *const *path, heed_io_error *error) {
  static const heed_tensor_info info = {
      .size = sizeof info, .name = "ids", .type = HEED_I32, .rank = 2};
  const heed_tensor_info *const outputs[] = {&info};
  heed_signature entry = {.size = sizeof entry,
                          .entry = "generate",
                          .numOutputs = 1,
                          .outputs = outputs};
  if (!tokens)
    return heed_outputs_check(&entry, path, error);
  heed_buffer buffer = {.size = sizeof buffer,
                        .data = (void *)(uintptr_t)tokens,
                        .type = HEED_I32,
                        .rank = 2,
                        .shape = {r->rows, width}};
  return heed_outputs_write(&entry, path, &buffer, error);
}

/* The tokens of all rows, as wide as the longest one. */
static bool writeResult(run *r, heed_io_error *error) {
  int64_t most = r->steps, width = 0;
  int32_t *tokens = malloc((size_t)(r->rows * most + 1) * sizeof *tokens);
  double *scores = malloc((size_t)(r->rows + 1) * sizeof *scores);
  bool good = tokens && scores;
  if (!good)
    heed_io_fail(error, "no memory for the tokens");
  else
    heed_generation_tokens(r->generation, most, tokens, scores);
  free(scores);
  r->made = 0;
  for (int64_t row = 0; good && row < r->rows; ++row)
    for (int64_t k = 0; k < most && tokens[row * most + k] >= 0; ++k) {
      ++r->made;
      width = k + 1 > width ? k + 1 : width;
    }
  const char *path = r->a->generate.output;
  for (int64_t row = 0; good && !path && !r->streams && row < r->rows; ++row) {
    for (int64_t k = 0; k < most && tokens[row * most + k] >= 0; ++k)
      printf("%s%" PRId32, k ? " " : "", tokens[row * most + k]);
    putchar('\n');
  }
  for (int64_t row = 0; good && path && row < r->rows; ++row)
    memmove(tokens + row * width, tokens + row * most,
            (size_t)width * sizeof *tokens);
  good = good && (!path || writeTokens(r, tokens, width, &path, error));
  free(tokens);
  return good;
}

static void say(const run *r, double end) {
  double steps = end - r->first;
  int64_t later = r->made - r->rows;
  fprintf(stderr,
          "%s%s: %" PRId64 " tokens of prompt in %.3f s, %" PRId64
          " new in %.3f s",
          r->shows ? "\r" : "", r->name, r->rows * r->prompt,
          r->first - r->began, r->made, end - r->began);
  if (later > 0 && steps > 0)
    fprintf(stderr, ", %.1f tokens/s", (double)later / steps);
  fputs(heed_interrupt_came(&r->interrupt) ? ", interrupted\n" : "\n", stderr);
}

/* ---- running ---- */

static int32_t onTokens(void *user, const int32_t *ids, int64_t rows) {
  run *r = user;
  if (!r->steps)
    r->first = now();
  if (r->streams && rows) {
    printf("%s%" PRId32, r->steps ? " " : "", ids[0]);
    fflush(stdout);
  }
  ++r->steps;
  if (r->shows) {
    double seconds = now() - r->first;
    fprintf(stderr, "\r%s: %" PRId64 " of %" PRId64 " tokens", r->name,
            r->steps, r->a->generate.maxNew);
    if (r->steps > 1 && seconds > 0)
      fprintf(stderr, ", %.1f tokens/s ",
              (double)(r->rows * (r->steps - 1)) / seconds);
  }
  return heed_interrupt_came(&r->interrupt) || ferror(stdout);
}

static bool encode(run *r, heed_io_error *error) {
  heed_program_call *c = &r->calls[1];
  if (!r->a->encoder)
    return true;
  if (!heed_program_allocate(c, r->model, r->state, error))
    return false;
  heed_call call = {
      .size = sizeof call, .state = r->state, .cancel = &r->interrupt.cancel};
  heed_status status = heed_run(r->model, c->entry->entry, c->inputs,
                                (size_t)c->entry->numInputs, c->outputs,
                                (size_t)c->entry->numOutputs, &call);
  return !status || status == HEED_ERROR_CANCELLED ||
         heed_program_failed(r->model, status, error);
}

static bool openGeneration(run *r, heed_io_error *error) {
  const heed_generate_arguments *g = &r->a->generate;
  heed_sampling sampling = {.size = sizeof sampling,
                            .temperature = g->temperature,
                            .topK = g->topK,
                            /* 0 is the most probable one, not all. */
                            .topP = g->topP == 0 ? 1e-300 : g->topP,
                            .minP = g->minP,
                            .repetitionPenalty = g->repetitionPenalty,
                            .seed = g->seed,
                            .stop = g->stop.ids,
                            .numStop = g->stop.count,
                            .noRepeatNgram = g->noRepeatNgram,
                            .badWords = g->badWords.ids,
                            .numBadWords = g->badWords.count,
                            .minLength = g->minLength,
                            .minNew = g->minNew,
                            .forcedBos = g->forcedBos.ids,
                            .numForcedBos = g->forcedBos.count,
                            .forcedEos = g->forcedEos.ids,
                            .numForcedEos = g->forcedEos.count,
                            .suppress = g->suppress.ids,
                            .numSuppress = g->suppress.count,
                            .beginSuppress = g->beginSuppress.ids,
                            .numBeginSuppress = g->beginSuppress.count};
  heed_generation_options options = {.size = sizeof options,
                                     .entry = r->a->entry->entry,
                                     .state = r->state,
                                     .maxNew = g->maxNew,
                                     .sampling = &sampling,
                                     .past = g->past ? &r->past : NULL,
                                     .beams = g->beams,
                                     .lengthPenalty = g->lengthPenalty,
                                     .cancel = &r->interrupt.cancel,
                                     .earlyStopping =
                                         (int32_t)g->earlyStopping};
  const heed_program_call *c = &r->calls[0];
  return heed_generation_open(r->model, &options, c->inputs,
                              (size_t)c->entry->numInputs,
                              &r->generation) == HEED_OK ||
         heed_io_fail(error, "%s", heed_generation_last_error(r->generation));
}

static bool generate(run *r, heed_io_error *error) {
  const char *path = r->a->generate.output;
  r->streams = !path && r->rows == 1 && r->a->generate.beams == 1;
  r->shows = isatty(2) && !(r->streams && isatty(1));
  r->began = r->first = now();
  if (!encode(r, error) || !openGeneration(r, error))
    return false;
  heed_status status = heed_generate(r->generation, onTokens, r);
  double end = now();
  if (r->streams && r->steps)
    putchar('\n');
  if (status && status != HEED_ERROR_CANCELLED) {
    if (r->shows)
      fputc('\n', stderr);
    return heed_io_fail(error, "%s", heed_generation_last_error(r->generation));
  }
  bool good = writeResult(r, error);
  fflush(stdout); /* before the line on standard error */
  if (good)
    say(r, end);
  if (good && r->a->profile)
    heed_profile_print(r->model, stderr);
  return good && heed_program_state_save(r->a, r->state, error);
}

bool heed_program_generate(const heed_model_desc *desc, const char *program,
                           heed_arguments *a, bool *interrupted,
                           heed_io_error *error) {
  run r = {.name = program, .a = a};
  const char *path = a->generate.output;
  bool good = readSettings(&r, error) &&
              (!path || writeTokens(&r, NULL, 0, &path, error)) &&
              readAll(&r, error) && heed_program_open(desc, a, &r.model, error);
  int64_t capacity = r.prompt + a->generate.maxNew;
  good = good && heed_program_state_open(
                     r.model, desc, a, r.calls, a->encoder ? 2 : 1,
                     capacity > HEED_MAX_EXTENT ? HEED_MAX_EXTENT : capacity,
                     &r.state, error);
  heed_interrupt_start(&r.interrupt);
  good = good && generate(&r, error);
  *interrupted = heed_interrupt_came(&r.interrupt);
  heed_interrupt_stop(&r.interrupt);
  heed_generation_close(r.generation);
  heed_program_release(&r.calls[0]);
  heed_program_release(&r.calls[1]);
  free(r.past.data);
  heed_state_close(r.state);
  heed_close(r.model);
  return good;
}
