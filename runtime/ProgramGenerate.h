/* The inside of --generate: its options, the settings of a checkpoint, Ctrl-C.
 */
#ifndef HEED_PROGRAM_GENERATE_H
#define HEED_PROGRAM_GENERATE_H

#include "runtime/generate.h"
#include "runtime/io/Io.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

/* ---- GenerateOptions.c ---- */

/** Options that a checkpoint's settings may give, too. */
enum {
  HEED_SET_TEMPERATURE = 1,
  HEED_SET_TOP_K = 2,
  HEED_SET_TOP_P = 4,
  HEED_SET_MIN_P = 8,
  HEED_SET_REPETITION_PENALTY = 16,
  HEED_SET_BEAMS = 32,
  HEED_SET_LENGTH_PENALTY = 64,
  HEED_SET_STOP = 128
};

/** What the command line asks for, then with the checkpoint's settings. */
typedef struct heed_generate_arguments {
  bool wanted; /**< --generate is given */
  int64_t maxNew;
  double temperature, topP, minP, repetitionPenalty, lengthPenalty;
  int64_t topK, beams;
  uint64_t seed;
  uint32_t set; /**< HEED_SET_..: what is not the default */
  int32_t *stop;
  size_t numStop;
  int32_t start;                      /**< a decoder's first token, or -1 */
  const char *prompt, *past, *output; /**< files, or null */
} heed_generate_arguments;

void heed_generate_defaults(heed_generate_arguments *g);
void heed_generate_release(heed_generate_arguments *g);
/** Whether the option is one of --generate's (but --generate's companions that
 * other runs have, --output and --state-in, are not). */
bool heed_generate_knows(const char *name, size_t length);
/** Takes the value of one. */
bool heed_generate_set(heed_generate_arguments *g, const char *name,
                       size_t length, const char *value, heed_io_error *error);
/** What does not go together. */
bool heed_generate_check(const heed_generate_arguments *g,
                         heed_io_error *error);
void heed_generate_help(FILE *stream);
/** Adds a stop id; false if there is no memory. */
bool heed_generate_add_stop(heed_generate_arguments *g, int32_t id);
/** "17,4": integers from 0 to 2^31 - 1. *count is 0 where the text is no such
 * list; false if there is no memory. */
bool heed_generate_list(const char *text, int32_t **ids, size_t *count);

/* ---- GenerationConfig.c ---- */

/** Fills what is not set from the folder's generation_config.json or, where
 * there is none, its config.json, as transformers does; `notes` gets a line on
 * settings that are not applied, or stays empty. */
bool heed_generation_config_read(const char *folder, heed_generate_arguments *g,
                                 char *notes, size_t notesSize,
                                 heed_io_error *error);

/* ---- Interrupt.c ---- */

/** While it is on, the first SIGINT sets `cancel`, and the second ends the
 * process. No handler, so no global state: a thread waits for the signal. */
typedef struct heed_interrupt {
  pthread_t thread;
  sigset_t before;
  bool on;
  int32_t cancel;
} heed_interrupt;

/** A process that ignores SIGINT goes on doing so. */
void heed_interrupt_start(heed_interrupt *interrupt);
void heed_interrupt_stop(heed_interrupt *interrupt);
bool heed_interrupt_came(const heed_interrupt *interrupt);

#endif
