/* The inside of compiled programs: `main` over a model description. */
#ifndef HEED_PROGRAM_H
#define HEED_PROGRAM_H

#include "runtime/ProgramGenerate.h"
#include "runtime/heed.h"
#include "runtime/io/Io.h"

#include <stdbool.h>
#include <stdio.h>

/* ---- Arguments.c ---- */

typedef enum heed_action {
  HEED_ACTION_RUN,
  HEED_ACTION_HELP,
  HEED_ACTION_VERSION
} heed_action;

/** What the command line asks for. Strings are argv's own. */
typedef struct heed_arguments {
  heed_action action;
  const heed_signature *entry;
  const char **inputs; /**< per input of the entry: its value's text, or null */
  const char **outputs; /**< per output: the path to write, or null */
  const char **weights;
  size_t numWeights;
  const char *packed, *savePacked; /**< files, or null */
  int32_t threads;
  heed_dim *dims; /**< --dim: the names are "NAME=N" */
  size_t numDims;
  const char *stateIn, *stateOut; /**< files, or null */
  heed_generate_arguments generate;
  const heed_signature *encoder; /**< of --generate: an entry to run first, or
                                    null */
  const char **encoderInputs;    /**< as inputs */
  bool bench, json, profile, convert;
  int64_t benchRuns; /**< 0: as many as fit in about a second */
} heed_arguments;

bool heed_arguments_parse(const heed_model_desc *desc, int argc, char **argv,
                          heed_arguments *arguments, heed_io_error *error);
void heed_arguments_release(heed_arguments *arguments);
void heed_arguments_help(const heed_model_desc *desc, const char *program,
                         FILE *stream);

/* ---- Program.c ---- */

/** An entry with its buffers, whose data are from malloc. */
typedef struct heed_program_call {
  const heed_signature *entry;
  heed_buffer *inputs, *outputs;
} heed_program_call;

/** Reads the inputs from what texts name; with `draw` a text may be a shape. A
 * null text is a scalar's default. */
bool heed_program_read(heed_program_call *call, const heed_signature *entry,
                       const char *const *texts, bool convert, bool draw,
                       heed_io_error *error);
bool heed_program_open(const heed_model_desc *desc,
                       const heed_arguments *arguments, heed_model **model,
                       heed_io_error *error);
/** Memory for the outputs, as large as the inputs want it. */
bool heed_program_allocate(heed_program_call *call, heed_model *model,
                           heed_state *state, heed_io_error *error);
void heed_program_release(heed_program_call *call);
/** The handle's message, which the next call would overwrite. */
bool heed_program_failed(const heed_model *model, heed_status status,
                         heed_io_error *error);

/* ---- ProgramState.c ---- */

/** Opens a state, if the model has any: dims as the command line or the inputs
 * of the calls, parameters or the state's file say; if one is left, it is
 * `capacity` (0: it is missing).
 * Zeros or what its file holds. */
bool heed_program_state_open(heed_model *model, const heed_model_desc *desc,
                             const heed_arguments *arguments,
                             const heed_program_call *calls, size_t numCalls,
                             int64_t capacity, heed_state **state,
                             heed_io_error *error);
/** Writes it, if the command line asks for that. */
bool heed_program_state_save(const heed_arguments *arguments, heed_state *state,
                             heed_io_error *error);

/* ---- ProgramGenerate.c ---- */

/** --generate. *interrupted: by SIGINT; what there was then is written. */
bool heed_program_generate(const heed_model_desc *desc, const char *program,
                           heed_arguments *arguments, bool *interrupted,
                           heed_io_error *error);

/* ---- Inputs.c ---- */

/** Reads the value of one input, a file or a scalar's text, into buffer (data
 * from malloc). */
bool heed_input_read(const heed_tensor_info *info, const char *value,
                     bool convert, heed_buffer *buffer, heed_io_error *error);

/* ---- Draw.c ---- */

/** Whether the text is a shape, "8x128" or "8x128:30000", and no file's name.
 */
bool heed_input_is_shape(const char *text);
/** An array of that shape: floating-point numbers from -1 to 1, integers below
 * what stands behind the colon, or else 0 and 1. The same in every run. */
bool heed_input_draw(const heed_tensor_info *info, const char *text,
                     heed_buffer *buffer, heed_io_error *error);

/* ---- Outputs.c ---- */

/** Writes every output that has a path as .npy: first all under temporary names
 * in the target folders, then renamed. On failure, or when SIGINT, SIGTERM or
 * SIGHUP comes, nothing is left behind. */
bool heed_outputs_write(const heed_signature *entry, const char *const *paths,
                        const heed_buffer *outputs, heed_io_error *error);

/** Fails early where a path's folder does not exist or may not be written. */
bool heed_outputs_check(const heed_signature *entry, const char *const *paths,
                        heed_io_error *error);

/** "o: f32[1, 2, 3] 0.1 0.2 ..." */
void heed_output_print(const heed_tensor_info *info, const heed_buffer *buffer,
                       FILE *stream);

/* ---- Bench.c ---- */

/** Runs the entry again and again, with states[1] made states[0] before each
 * (null: there is none), first some times that do not count, and prints the
 * times: a line, or an object of JSON. Returns the status of the run that
 * failed, or HEED_OK. */
heed_status heed_bench(heed_model *model, const heed_arguments *arguments,
                       const heed_buffer *inputs, heed_buffer *outputs,
                       heed_state *const states[2], FILE *stream);
/** Time, GFLOP/s and GB/s of each kernel, and what share of its limit it
 * reaches. The limit of a call is the time that its operations take at the peak
 * of f32 multiply-adds, or its bytes at the speed of reading memory, whichever
 * is longer; both are measured now. */
void heed_profile_print(heed_model *model, FILE *stream);

/* ---- Limits.c ---- */

typedef struct heed_limits {
  double flops, bytes; /* a second; 0 if it could not be measured */
} heed_limits;

/** Takes about a tenth of a second. */
heed_limits heed_measure_limits(heed_model *model);

#endif
