/* `main` of compiled programs: read inputs, open the model, run it, write
 * results. */
#include "runtime/Program.h"
#include "runtime/Model.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
  const heed_model_desc *desc;
  heed_arguments arguments;
  heed_model *model;
  heed_state *state, *start; /* start: what each run of --bench begins with */
  heed_program_call call;
} program;

bool heed_program_failed(const heed_model *model, heed_status status,
                         heed_io_error *error) {
  const char *text = heed_last_error(model);
  return heed_io_fail(error, "%s", *text ? text : heed_status_name(status));
}

bool heed_program_read(heed_program_call *call, const heed_signature *entry,
                       const char *const *texts, bool convert, bool draw,
                       heed_io_error *error) {
  call->entry = entry;
  call->inputs = calloc((size_t)entry->numInputs + 1, sizeof *call->inputs);
  call->outputs = calloc((size_t)entry->numOutputs + 1, sizeof *call->outputs);
  if (!call->inputs || !call->outputs)
    return heed_io_fail(error, "no memory");
  for (int k = 0; k < entry->numInputs; ++k) {
    const heed_tensor_info *info = entry->inputs[k];
    heed_buffer *input = &call->inputs[k];
    input->size = sizeof *input;
    input->type = info->type; /* left away: the default */
    if (!texts[k])
      continue;
    bool good = draw && !info->isScalar && heed_input_is_shape(texts[k])
                    ? heed_input_draw(info, texts[k], input, error)
                    : heed_input_read(info, texts[k], convert, input, error);
    if (!good)
      return false;
  }
  return true;
}

bool heed_program_allocate(heed_program_call *call, heed_model *model,
                           heed_state *state, heed_io_error *error) {
  const heed_signature *entry = call->entry;
  for (int k = 0; k < entry->numOutputs; ++k)
    call->outputs[k].size = sizeof *call->outputs;
  heed_call options = {.size = sizeof options, .state = state};
  heed_status status = heed_output_shapes_in(
      model, entry->entry, call->inputs, (size_t)entry->numInputs,
      call->outputs, (size_t)entry->numOutputs, &options);
  if (status)
    return heed_program_failed(model, status, error);
  for (int k = 0; k < entry->numOutputs; ++k) {
    heed_buffer *output = &call->outputs[k];
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

void heed_program_release(heed_program_call *call) {
  for (int k = 0; call->inputs && k < call->entry->numInputs; ++k)
    free(call->inputs[k].data);
  for (int k = 0; call->outputs && k < call->entry->numOutputs; ++k)
    free(call->outputs[k].data);
  free(call->inputs);
  free(call->outputs);
}

bool heed_program_open(const heed_model_desc *desc, const heed_arguments *a,
                       heed_model **model, heed_io_error *error) {
  heed_options options = {.size = sizeof options,
                          .weights = a->weights,
                          .numWeights = a->packed ? 0 : a->numWeights,
                          .packed = a->packed,
                          .threads = a->threads,
                          .convert = a->convert,
                          .profile = a->profile,
                          .wait = a->bench ? HEED_WAIT_WATCH : HEED_WAIT_SLEEP};
  heed_status status = heed_open(desc, &options, model);
  return !status || heed_program_failed(*model, status, error);
}

/* --save-packed. Signals wait until the file is whole. */
static bool savePacked(program *p, heed_io_error *error) {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  if (!heed_program_open(p->desc, &p->arguments, &p->model, error))
    return false;
  sigprocmask(SIG_BLOCK, &signals, &before);
  heed_status status = heed_save_packed(p->model, p->arguments.savePacked);
  sigprocmask(SIG_SETMASK, &before, NULL);
  return !status || heed_program_failed(p->model, status, error);
}

static bool execute(program *p, heed_io_error *error) {
  const heed_arguments *a = &p->arguments;
  const heed_signature *entry = a->entry;
  if (!heed_outputs_check(entry, a->outputs, error) ||
      !heed_program_read(&p->call, entry, a->inputs, a->convert, a->bench,
                         error) ||
      !heed_program_open(p->desc, a, &p->model, error) ||
      !heed_program_state_open(p->model, p->desc, a, &p->call, 1, 0, &p->state,
                               error) ||
      (a->bench && !heed_program_state_open(p->model, p->desc, a, &p->call, 1,
                                            0, &p->start, error)) ||
      !heed_program_allocate(&p->call, p->model, p->state, error))
    return false;
  heed_call call = {.size = sizeof call, .state = p->state};
  heed_buffer *inputs = p->call.inputs, *outputs = p->call.outputs;
  heed_status status =
      heed_run(p->model, entry->entry, inputs, (size_t)entry->numInputs,
               outputs, (size_t)entry->numOutputs, &call);
  if (!status && a->bench)
    status = heed_bench(p->model, a, inputs, outputs,
                        (heed_state *const[]){p->start, p->state}, stdout);
  if (status)
    return heed_program_failed(p->model, status, error);
  if ((a->profile || a->bench) && p->model->gpu)
    p->model->gpu->print(p->model, stderr);
  if (a->profile)
    heed_profile_print(p->model, a->json ? stderr : stdout);
  bool written = false;
  for (int k = 0; k < entry->numOutputs; ++k)
    written |= a->outputs[k] != NULL;
  for (int k = 0; !written && !a->bench && k < entry->numOutputs; ++k)
    heed_output_print(entry->outputs[k], &outputs[k], stdout);
  return heed_outputs_write(entry, a->outputs, outputs, error) &&
         heed_program_state_save(a, p->state, error);
}

static void release(program *p) {
  heed_program_release(&p->call);
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
  bool interrupted = false;
  bool good = heed_arguments_parse(desc, argc, argv, &p.arguments, &error);
  if (good && p.arguments.action == HEED_ACTION_HELP)
    heed_arguments_help(desc, name, stdout);
  else if (good && p.arguments.action == HEED_ACTION_VERSION)
    printf("%s (heed %s)\n", heed_model_name(desc), heed_version());
  else if (good && p.arguments.savePacked)
    good = savePacked(&p, &error);
  else if (good && p.arguments.generate.wanted)
    good =
        heed_program_generate(desc, name, &p.arguments, &interrupted, &error);
  else if (good)
    good = execute(&p, &error);
  release(&p);
  if (good && (fflush(stdout) != 0 || ferror(stdout)))
    good = heed_io_fail(&error, "standard output cannot be written");
  if (!good)
    fprintf(stderr, "%s: error: %s\n", name, error.text);
  /* As shells have it of a process that SIGINT ends. */
  return !good ? 1 : interrupted ? 128 + SIGINT : 0;
}
