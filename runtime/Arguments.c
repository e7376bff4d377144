/* The command line of compiled programs, made from the model's signature. */
#include "runtime/Program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Splits "--NAME=VALUE" or takes the next argument as the value. */
typedef struct option {
  const char *name;
  size_t length;
  const char *value; /* null: none given with '=' */
} option;

static bool isOption(const option *o, const char *name) {
  return o->length == strlen(name) && !memcmp(o->name, name, o->length);
}

static bool takesNoValue(const option *o, heed_io_error *error) {
  return !o->value || heed_io_fail(error, "option '--%.*s' takes no value",
                                   (int)o->length, o->name);
}

static int findInput(const heed_signature *entry, const char *name,
                     size_t length) {
  for (int k = 0; k < entry->numInputs; ++k)
    if (strlen(entry->inputs[k]->name) == length &&
        !memcmp(entry->inputs[k]->name, name, length))
      return k;
  return -1;
}

static int findOutput(const heed_signature *entry, const char *name,
                      size_t length) {
  for (int k = 0; k < entry->numOutputs; ++k)
    if (strlen(entry->outputs[k]->name) == length &&
        !memcmp(entry->outputs[k]->name, name, length))
      return k;
  return -1;
}

static bool parseCount(const char *text, const char *what, int64_t most,
                       int64_t *value, heed_io_error *error) {
  char *stop;
  errno = 0;
  long long number = strtoll(text, &stop, 10);
  if (stop == text || *stop || errno || number < 1 || number > most)
    return heed_io_fail(
        error, "%s: expected a number from 1 to %" PRId64 ", found '%s'", what,
        most, text);
  *value = number;
  return true;
}

/* Where the value of an input goes: to the entry's, to that of the one that is
 * run before it, or to both; ids and count mean the first one's. */
static bool setInput(heed_arguments *a, const char *name, size_t length,
                     const char *value, heed_io_error *error) {
  int before = a->encoder ? findInput(a->encoder, name, length) : -1;
  int input = findInput(a->entry, name, length);
  if (before >= 0 && input >= 0 &&
      (!strcmp(a->entry->inputs[input]->name, "ids") ||
       !strcmp(a->entry->inputs[input]->name, "count")))
    input = -1;
  if ((before >= 0 && a->encoderInputs[before]) ||
      (input >= 0 && a->inputs[input]))
    return heed_io_fail(error, "input '%.*s' is given twice", (int)length,
                        name);
  if (before >= 0)
    a->encoderInputs[before] = value;
  if (input >= 0)
    a->inputs[input] = value;
  return true;
}

static bool isInput(const heed_arguments *a, const char *name, size_t length) {
  return findInput(a->entry, name, length) >= 0 ||
         (a->encoder && findInput(a->encoder, name, length) >= 0);
}

static bool setOutput(heed_arguments *a, const char *value,
                      heed_io_error *error) {
  const heed_signature *entry = a->entry;
  if (a->generate.wanted) { /* the tokens */
    if (a->generate.output || !*value)
      return heed_io_fail(error, "option '--output': expected one file's name");
    a->generate.output = value;
    return true;
  }
  const char *equals = strchr(value, '=');
  int output = equals ? findOutput(entry, value, (size_t)(equals - value)) : -1;
  const char *path = output >= 0 ? equals + 1 : value;
  if (output < 0 && entry->numOutputs == 1)
    output = 0;
  if (output < 0)
    return heed_io_fail(error,
                        "option '--output': expected NAME=FILE with one of the "
                        "%d results' names, found '%s'",
                        entry->numOutputs, value);
  if (a->outputs[output])
    return heed_io_fail(error, "output '%s' is given twice",
                        entry->outputs[output]->name);
  if (!*path)
    return heed_io_fail(error, "output '%s': expected a file's name",
                        entry->outputs[output]->name);
  a->outputs[output] = path;
  return true;
}

/* The option's value: after '=', or the next argument. */
static bool takeValue(option *o, int argc, char **argv, int *k,
                      heed_io_error *error) {
  if (o->value)
    return true;
  if (*k + 1 >= argc)
    return heed_io_fail(error, "option '--%.*s' expects a value",
                        (int)o->length, o->name);
  o->value = argv[++*k];
  return true;
}

static bool parseInput(heed_arguments *a, option *o, heed_io_error *error) {
  const char *equals = strchr(o->value, '=');
  size_t length = equals ? (size_t)(equals - o->value) : 0;
  if (!equals || !isInput(a, o->value, length))
    return heed_io_fail(error,
                        "option '--input': expected NAME=VALUE with an input's "
                        "name, found '%s'",
                        o->value);
  return setInput(a, o->value, length, equals + 1, error);
}

static bool parseBench(heed_arguments *a, option *o, int argc, char **argv,
                       int *k, heed_io_error *error) {
  a->bench = true;
  /* The count may be left away: it is only taken if it looks like one. */
  if (!o->value && *k + 1 < argc && argv[*k + 1][0] >= '0' &&
      argv[*k + 1][0] <= '9')
    o->value = argv[++*k];
  return !o->value || parseCount(o->value, "option '--bench'", INT64_MAX,
                                 &a->benchRuns, error);
}

/* NAME=N; the name stays where it is. */
static bool parseDim(heed_arguments *a, option *o, heed_io_error *error) {
  const char *equals = strchr(o->value, '=');
  heed_dim *dim = &a->dims[a->numDims++];
  dim->name = o->value;
  if (!equals || equals == o->value)
    return heed_io_fail(error, "option '--dim': expected NAME=N, found '%s'",
                        o->value);
  return parseCount(equals + 1, "option '--dim'", HEED_MAX_EXTENT, &dim->extent,
                    error);
}

static bool parseOption(heed_arguments *a, option *o, int argc, char **argv,
                        int *k, heed_io_error *error) {
  if (isOption(o, "bench"))
    return parseBench(a, o, argc, argv, k, error);
  if (isOption(o, "profile")) {
    a->profile = true;
    return takesNoValue(o, error);
  }
  if (isOption(o, "json")) {
    a->json = true;
    return takesNoValue(o, error);
  }
  if (isOption(o, "convert")) {
    a->convert = true;
    return takesNoValue(o, error);
  }
  bool weights = isOption(o, "weights"), output = isOption(o, "output"),
       threads = isOption(o, "threads"), named = isOption(o, "input"),
       entry = isOption(o, "entry"), dim = isOption(o, "dim"),
       in = isOption(o, "state-in"), out = isOption(o, "state-out"),
       packed = isOption(o, "packed"), save = isOption(o, "save-packed");
  bool generate = a->generate.wanted && heed_generate_knows(o->name, o->length);
  if (!weights && !output && !threads && !named && !entry && !dim && !in &&
      !out && !packed && !save && !generate && !isInput(a, o->name, o->length))
    return heed_io_fail(error, "unknown option '--%.*s' (see --help)",
                        (int)o->length, o->name);
  if (!takeValue(o, argc, argv, k, error))
    return false;
  if (weights)
    a->weights[a->numWeights++] = o->value;
  else if (generate)
    return heed_generate_set(&a->generate, o->name, o->length, o->value, error);
  else if (output)
    return setOutput(a, o->value, error);
  else if (named)
    return parseInput(a, o, error);
  else if (dim)
    return parseDim(a, o, error);
  else if (in)
    a->stateIn = o->value;
  else if (out)
    a->stateOut = o->value;
  else if (packed)
    a->packed = o->value;
  else if (save)
    a->savePacked = o->value;
  else if (threads) {
    int64_t count = 0;
    if (!parseCount(o->value, "option '--threads'", 4096, &count, error))
      return false;
    a->threads = (int32_t)count;
  } else if (!entry)
    return setInput(a, o->name, o->length, o->value, error);
  return true;
}

static bool sameInputs(const heed_signature *a, const heed_signature *b) {
  bool same = a->numInputs == b->numInputs;
  for (int k = 0; same && k < a->numInputs; ++k) {
    const heed_tensor_info *left = a->inputs[k], *right = b->inputs[k];
    same = !strcmp(left->name, right->name) && left->rank == right->rank &&
           left->type == right->type;
    for (int32_t axis = 0; same && axis < left->rank; ++axis)
      same = !strcmp(left->extents[axis], right->extents[axis]);
  }
  return same;
}

/* The entry that --generate runs, and an encoder that goes before it. */
static bool chooseGenerating(const heed_model_desc *desc, heed_arguments *a,
                             const char *name, heed_io_error *error) {
  for (size_t k = 0; !name && k < heed_num_entries(desc); ++k)
    if (heed_can_generate(heed_entry_signature(desc, k)))
      name = heed_entry_signature(desc, k)->entry;
  a->entry = name ? heed_find_signature(desc, name) : NULL;
  if (name && !a->entry)
    return heed_io_fail(error, "there is no entry '%s'", name);
  if (!a->entry || !heed_can_generate(a->entry))
    return heed_io_fail(error,
                        "option '--generate': %s%s%s ids: i32[B, N], perhaps "
                        "count: i32[B], and the result logits: f32[B, V]",
                        name ? "entry '" : "no entry takes", name ? name : "",
                        name ? "' does not take" : "");
  const heed_signature *encoder = heed_find_signature(desc, "encode");
  if (encoder && encoder != a->entry && !sameInputs(encoder, a->entry))
    a->encoder = encoder;
  return true;
}

/* --help and --version win over everything, --entry and --generate decide what
 * the other options mean. */
static bool parseFirst(const heed_model_desc *desc, int argc, char **argv,
                       heed_arguments *a, heed_io_error *error) {
  const char *entry = NULL;
  for (int k = 1; k < argc; ++k) {
    if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) {
      a->action = HEED_ACTION_HELP;
      return true;
    }
    if (!strcmp(argv[k], "--version")) {
      a->action = HEED_ACTION_VERSION;
      return true;
    }
    if (!strncmp(argv[k], "--entry=", 8))
      entry = argv[k] + 8;
    else if (!strcmp(argv[k], "--entry") && k + 1 < argc)
      entry = argv[k + 1];
    a->generate.wanted |=
        !strcmp(argv[k], "--generate") || !strncmp(argv[k], "--generate=", 11);
  }
  if (a->generate.wanted)
    return chooseGenerating(desc, a, entry, error);
  a->entry = heed_find_signature(desc, entry);
  return a->entry ||
         heed_io_fail(error, "there is no entry '%s'", entry ? entry : "");
}

/* Whether all inputs without a default are given. `generating` (or null): its
 * prompt may be left to the checkpoint, and its lengths. */
static bool checkGiven(const heed_signature *entry, const char *const *texts,
                       const heed_arguments *generating, heed_io_error *error) {
  for (int k = 0; k < entry->numInputs; ++k) {
    const heed_tensor_info *info = entry->inputs[k];
    bool generates = generating && generating->generate.wanted;
    if (texts[k] || (info->isScalar && info->hasDefault) ||
        (generates && !strcmp(info->name, "count")) ||
        (generates && generating->encoder && !strcmp(info->name, "ids")))
      continue;
    return heed_io_fail(error, "input '%s' is missing (--%s %s)", info->name,
                        info->name, info->isScalar ? "NUMBER" : "FILE.npy");
  }
  return true;
}

bool heed_arguments_parse(const heed_model_desc *desc, int argc, char **argv,
                          heed_arguments *a, heed_io_error *error) {
  memset(a, 0, sizeof *a);
  heed_generate_defaults(&a->generate);
  if (!parseFirst(desc, argc, argv, a, error))
    return false;
  if (a->action != HEED_ACTION_RUN)
    return true;
  a->inputs = calloc((size_t)a->entry->numInputs + 1, sizeof *a->inputs);
  a->outputs = calloc((size_t)a->entry->numOutputs + 1, sizeof *a->outputs);
  a->weights = calloc((size_t)argc, sizeof *a->weights);
  a->dims = calloc((size_t)argc, sizeof *a->dims);
  size_t before = a->encoder ? (size_t)a->encoder->numInputs : 0;
  a->encoderInputs = calloc(before + 1, sizeof *a->encoderInputs);
  if (!a->inputs || !a->outputs || !a->weights || !a->dims || !a->encoderInputs)
    return heed_io_fail(error, "no memory");
  for (int k = 1; k < argc; ++k) {
    if (strncmp(argv[k], "--", 2) != 0 || !argv[k][2])
      return heed_io_fail(error, "expected an option, found '%s' (see --help)",
                          argv[k]);
    option o = {argv[k] + 2, strcspn(argv[k] + 2, "="), NULL};
    if (o.name[o.length])
      o.value = o.name + o.length + 1;
    if (!parseOption(a, &o, argc, argv, &k, error))
      return false;
  }
  if (a->json && !a->bench)
    return heed_io_fail(error, "option '--json' goes with --bench");
  if (a->bench && a->generate.wanted)
    return heed_io_fail(error, "option '--bench' does not go with --generate");
  if (a->packed && a->numWeights && !a->generate.wanted)
    return heed_io_fail(error, "option '--packed' does not go with --weights");
  if (a->savePacked) /* nothing is run */
    return true;
  return checkGiven(a->entry, a->inputs, a, error) &&
         (!a->encoder || checkGiven(a->encoder, a->encoderInputs, NULL, error));
}

void heed_arguments_release(heed_arguments *a) {
  free(a->inputs);
  free(a->outputs);
  free(a->weights);
  free(a->dims);
  free(a->encoderInputs);
  heed_generate_release(&a->generate);
  memset(a, 0, sizeof *a);
}

/* "f32[B, H, N, E]" */
static void formatType(char *text, size_t size, const heed_tensor_info *info) {
  size_t length =
      (size_t)snprintf(text, size, "%s", heed_type_name(info->type));
  for (int32_t axis = 0; axis < info->rank && length < size; ++axis)
    length += (size_t)snprintf(text + length, size - length, "%s%s%s",
                               axis ? ", " : "[", info->extents[axis],
                               axis + 1 == info->rank ? "]" : "");
}

static void printInput(const heed_tensor_info *info, FILE *stream) {
  char type[256], flag[128];
  formatType(type, sizeof type, info);
  snprintf(flag, sizeof flag, "--%s %s", info->name,
           info->isScalar ? "NUMBER" : "FILE");
  fprintf(stream, "  %-24s %s", flag, type);
  if (info->hasDefault && info->type == HEED_F32)
    fprintf(stream, " (default %g)", info->defaultReal);
  else if (info->hasDefault)
    fprintf(stream, " (default %" PRId64 ")", info->defaultInteger);
  fputc('\n', stream);
}

static void printUsage(const heed_model_desc *desc, const char *program,
                       FILE *stream) {
  fprintf(stream, "usage: %s", program);
  const heed_signature *entry =
      heed_num_entries(desc) == 1 ? heed_entry_signature(desc, 0) : NULL;
  for (int k = 0; entry && k < entry->numInputs; ++k) {
    bool optional = entry->inputs[k]->hasDefault != 0;
    fprintf(stream, " %s--%s %s%s", optional ? "[" : "", entry->inputs[k]->name,
            entry->inputs[k]->isScalar ? "NUMBER" : "FILE",
            optional ? "]" : "");
  }
  fprintf(stream, "%s [--output FILE] [options]\n",
          heed_num_params(desc) ? " --weights FILE" : "");
}

static void printStates(const heed_model_desc *desc, FILE *stream) {
  char type[256];
  if (heed_num_states(desc))
    fprintf(stream, "\nstate:\n");
  for (size_t k = 0; k < heed_num_states(desc); ++k) {
    formatType(type, sizeof type, heed_state_info(desc, k));
    fprintf(stream, "  %-24s %s\n", heed_state_info(desc, k)->name, type);
  }
}

static void printEntry(const heed_signature *entry, bool single, FILE *stream) {
  char type[256];
  if (!single)
    fprintf(stream, "\nentry %s (--entry %s)\n", entry->entry, entry->entry);
  fprintf(stream, "\ninputs (.npy, or .npz:NAME):\n");
  for (int k = 0; k < entry->numInputs; ++k)
    printInput(entry->inputs[k], stream);
  fprintf(stream, "\nresults:\n");
  for (int k = 0; k < entry->numOutputs; ++k) {
    formatType(type, sizeof type, entry->outputs[k]);
    fprintf(stream, "  %-24s %s\n", entry->outputs[k]->name, type);
  }
}

void heed_arguments_help(const heed_model_desc *desc, const char *program,
                         FILE *stream) {
  size_t entries = heed_num_entries(desc);
  printUsage(desc, program, stream);
  fprintf(stream, "\nRuns the model '%s'.\n", heed_model_name(desc));
  bool generates = false;
  for (size_t e = 0; e < entries; ++e) {
    printEntry(heed_entry_signature(desc, e), entries == 1, stream);
    generates |= heed_can_generate(heed_entry_signature(desc, e)) != 0;
  }
  printStates(desc, stream);
  fputs("\noptions:\n"
        "  --output FILE.npy        where the result goes; NAME=FILE.npy names "
        "one\n"
        "                           of several; without it a summary is "
        "printed\n",
        stream);
  if (heed_num_params(desc))
    fputs(
        "  --weights FILE           .safetensors, or .safetensors.index.json, "
        "or a\n"
        "                           checkpoint's folder; may be repeated\n"
        "  --save-packed FILE       write the weights as they are packed for "
        "this\n"
        "                           machine's code, and end\n"
        "  --packed FILE            such a file, instead of --weights\n",
        stream);
  if (heed_num_states(desc))
    fputs(
        "  --dim NAME=N             an extent of the state that no input has\n"
        "  --state-in FILE          the state to begin with; else all is zero\n"
        "  --state-out FILE         where it goes afterwards\n",
        stream);
  fputs(
      "  --threads N              default: all that the process may use\n"
      "  --convert                round inputs of a wider type, and f64 "
      "weights\n"
      "  --bench [N]              time N runs (default: about a second); an "
      "array\n"
      "                           may be given as its shape, 8x128, integers\n"
      "                           also with their bound, 8x128:30000\n"
      "  --json                   with --bench: its result as JSON\n"
      "  --profile                time per kernel, and its share of the limit\n"
      "  --input NAME=VALUE       an input whose name is also an option\n"
      "  --help, --version\n",
      stream);
  if (generates)
    heed_generate_help(stream);
  const char *target = heed_target_name(desc, 0);
  if (!target || !heed_target_name(desc, 1))
    return;
  fputs("\ncompiled for ", stream);
  for (size_t k = 0; (target = heed_target_name(desc, k)); ++k)
    fprintf(stream, "%s%s", k ? ", " : "", target);
  fputs("; the best that this machine runs is taken,\n"
        "or the one that HEED_TARGET names\n",
        stream);
}
