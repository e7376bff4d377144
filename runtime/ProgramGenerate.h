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
  HEED_SET_STOP = 128,
  HEED_SET_NO_REPEAT_NGRAM = 256,
  HEED_SET_BAD_WORDS = 512,
  HEED_SET_MIN_LENGTH = 1024,
  HEED_SET_MIN_NEW = 2048,
  HEED_SET_FORCED_BOS = 4096,
  HEED_SET_FORCED_EOS = 8192,
  HEED_SET_SUPPRESS = 16384,
  HEED_SET_BEGIN_SUPPRESS = 32768,
  HEED_SET_EARLY_STOPPING = 65536
};

/** Tokens; of bad words with -1 behind each. */
typedef struct heed_ids {
  int32_t *ids;
  size_t count;
} heed_ids;

/** What the command line asks for, then with the checkpoint's settings. */
typedef struct heed_generate_arguments {
  bool wanted; /**< --generate is given */
  int64_t maxNew;
  double temperature, topP, minP, repetitionPenalty, lengthPenalty;
  int64_t topK, beams;
  uint64_t seed;
  uint32_t set; /**< HEED_SET_..: what is not the default */
  int64_t noRepeatNgram, minLength, minNew, earlyStopping;
  heed_ids stop, badWords, forcedBos, forcedEos, suppress, beginSuppress;
  int32_t start;   /**< a decoder's first token, or -1 */
  heed_ids behind; /**< what follows it in a decoder's prompt */
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
/** Adds an id; false if there is no memory. */
bool heed_ids_add(heed_ids *list, int32_t id);

enum heed_setting_kind {
  HEED_COUNT,
  HEED_SEED,
  HEED_REAL,
  HEED_IDS,
  HEED_WORDS,
  HEED_EARLY,
  HEED_FILE
};

/** An option, and what a checkpoint calls it. */
typedef struct heed_setting {
  const char *name;
  const char *key; /**< of generation_config.json, or null */
  enum heed_setting_kind kind;
  size_t offset; /**< in heed_generate_arguments */
  double least, most;
  uint32_t set; /**< HEED_SET_.. */
} heed_setting;

/** All of them; an empty name ends them. */
extern const heed_setting heed_generate_settings[];

/** Adds "17,4", integers from 0 to 2^31 - 1; words are lists with ':' between
 * them. *good says whether the text is one, and not empty; false if there is no
 * memory. */
bool heed_ids_read(heed_ids *list, const char *text, bool words, bool *good);

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
