/* `main` of compiled programs: read inputs, open the model, run it, write
 * results. */
#include "runtime/Program.h"
#include "runtime/host.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
  const heed_model_desc *desc;
  heed_arguments arguments;
  heed_model *model;
  heed_state *state, *start; /* start: what each run of --bench begins with */
  heed_buffer *inputs, *outputs;
} program;

/* Copies the handle's message, which the next call would overwrite. */
static bool modelFailed(const program *p, heed_status status,
                        heed_io_error *error) {
  const char *text = heed_last_error(p->model);
  return heed_io_fail(error, "%s", *text ? text : heed_status_name(status));
}

static bool readInputs(program *p, heed_io_error *error) {
  const heed_signature *entry = p->arguments.entry;
  for (int k = 0; k < entry->numInputs; ++k) {
    const heed_tensor_info *info = entry->inputs[k];
    p->inputs[k].size = sizeof *p->inputs;
    p->inputs[k].type = info->type; /* left away: the default */
    const char *text = p->arguments.inputs[k];
    if (text && p->arguments.bench && !info->isScalar &&
        heed_input_is_shape(text)) {
      if (!heed_input_draw(info, text, &p->inputs[k], error))
        return false;
      continue;
    }
    if (text && !heed_input_read(info, text, p->arguments.convert,
                                 &p->inputs[k], error))
      return false;
  }
  return true;
}

static bool allocateOutputs(program *p, heed_io_error *error) {
  const heed_signature *entry = p->arguments.entry;
  for (int k = 0; k < entry->numOutputs; ++k)
    p->outputs[k].size = sizeof *p->outputs;
  heed_call call = {.size = sizeof call, .state = p->state};
  heed_status status = heed_output_shapes_in(
      p->model, entry->entry, p->inputs, (size_t)entry->numInputs, p->outputs,
      (size_t)entry->numOutputs, &call);
  if (status)
    return modelFailed(p, status, error);
  for (int k = 0; k < entry->numOutputs; ++k) {
    heed_buffer *output = &p->outputs[k];
    char shape[256];
    int64_t bytes;
    heed_io_format_shape(shape, sizeof shape, output->rank, output->shape);
    if (!heed_io_byte_count(output->rank, output->shape,
                            (int64_t)heed_type_size(output->type), &bytes) ||
        posix_memalign(&output->data, 64, bytes ? (size_t)bytes : 1) != 0)
      return heed_io_fail(error, "no memory for output '%s' of shape %s",
                          entry->outputs[k]->name, shape);
  }
  return true;
}

static bool execute(program *p, heed_io_error *error) {
  const heed_arguments *a = &p->arguments;
  const heed_signature *entry = a->entry;
  if (!heed_outputs_check(entry, a->outputs, error))
    return false;
  p->inputs = calloc((size_t)entry->numInputs + 1, sizeof *p->inputs);
  p->outputs = calloc((size_t)entry->numOutputs + 1, sizeof *p->outputs);
  if (!p->inputs || !p->outputs)
    return heed_io_fail(error, "no memory");
  if (!readInputs(p, error))
    return false;
  heed_options options = {.size = sizeof options,
                          .weights = a->weights,
                          .numWeights = a->numWeights,
                          .threads = a->threads,
                          .convert = a->convert,
                          .profile = a->profile,
                          .wait = a->bench ? HEED_WAIT_WATCH : HEED_WAIT_SLEEP};
  heed_status status = heed_open(p->desc, &options, &p->model);
  if (status)
    return modelFailed(p, status, error);
  if (!heed_program_state_open(p->model, p->desc, a, p->inputs, &p->state,
                               error) ||
      (a->bench && !heed_program_state_open(p->model, p->desc, a, p->inputs,
                                            &p->start, error)) ||
      !allocateOutputs(p, error))
    return false;
  heed_call call = {.size = sizeof call, .state = p->state};
  status = heed_run(p->model, entry->entry, p->inputs, (size_t)entry->numInputs,
                    p->outputs, (size_t)entry->numOutputs, &call);
  if (!status && a->bench)
    status = heed_bench(p->model, a, p->inputs, p->outputs,
                        (heed_state *const[]){p->start, p->state}, stdout);
  if (status)
    return modelFailed(p, status, error);
  if (a->profile)
    heed_profile_print(p->model, a->json ? stderr : stdout);
  bool written = false;
  for (int k = 0; k < entry->numOutputs; ++k)
    written |= a->outputs[k] != NULL;
  for (int k = 0; !written && !a->bench && k < entry->numOutputs; ++k)
    heed_output_print(entry->outputs[k], &p->outputs[k], stdout);
  return heed_outputs_write(entry, a->outputs, p->outputs, error) &&
         heed_program_state_save(a, p->state, error);
}

static void release(program *p) {
  const heed_signature *entry = p->arguments.entry;
  for (int k = 0; p->inputs && k < entry->numInputs; ++k)
    free(p->inputs[k].data);
  for (int k = 0; p->outputs && k < entry->numOutputs; ++k)
    free(p->outputs[k].data);
  free(p->inputs);
  free(p->outputs);
  heed_state_close(p->state);
  heed_state_close(p->start);
  heed_close(p->model);
  heed_arguments_release(&p->arguments);
}

int heed_program_main(const heed_model_desc *desc, int argc, char **argv) {
  const char *path = argc > 0 ? argv[0] : heed_model_name(desc);
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  program p = {.desc = desc};
  /* A file that is opened later must not take the place of a closed standard
   * output. A folder's descriptor can be neither read nor written, like none.
   */
  for (int stream = 0; stream < 3; ++stream)
    if (fcntl(stream, F_GETFD) < 0)
      (void)!open("/", O_RDONLY | O_DIRECTORY);
  /* A write beyond the limit on file sizes is an error, as on a full disk. */
  signal(SIGXFSZ, SIG_IGN);
  heed_io_error error;
  bool good = heed_arguments_parse(desc, argc, argv, &p.arguments, &error);
  if (good && p.arguments.action == HEED_ACTION_HELP)
    heed_arguments_help(desc, name, stdout);
  else if (good && p.arguments.action == HEED_ACTION_VERSION)
    printf("%s (heed %s)\n", heed_model_name(desc), heed_version());
  else if (good)
    good = execute(&p, &error);
  release(&p);
  if (good && (fflush(stdout) != 0 || ferror(stdout)))
    good = heed_io_fail(&error, "standard output cannot be written");
  if (!good)
    fprintf(stderr, "%s: error: %s\n", name, error.text);
  return good ? 0 : 1;
}
