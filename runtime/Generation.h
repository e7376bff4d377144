/* The inside of a heed_generation, shared by the files that know it. */
#ifndef HEED_GENERATION_H
#define HEED_GENERATION_H

#include "runtime/Beams.h"
#include "runtime/Logits.h"
#include "runtime/Model.h"

struct heed_generation {
  heed_object object;
  heed_model *model;
  const heed_signature *entry;
  heed_generation_options o;
  bool hasStates;
  heed_buffer *inputs, *outputs;
  size_t *room;                     /* bytes of each output's memory */
  int32_t idsAt, countAt, logitsAt; /* countAt: -1 if there is none */
  int64_t rows, longest, made;      /* longest: of the prompts */
  int32_t *prompts, *lengths;       /* rows x longest; per row */
  int32_t *ids, *counts;            /* of the next run; ids: `width` a row */
  int64_t width, shapesFor; /* shapesFor: the outputs are of that width */
  int32_t *next, *tokens;   /* next: rows; tokens: rows x maxNew */
  int64_t *parents;
  heed_sampler *sampler; /* null: beams */
  heed_beams *beams;
  heed_status failed; /* what ended it for good */
  char message[1024];
};

/** Writes the message; returns `status`. */
heed_status heed_generation_fail(heed_generation *g, heed_status status,
                                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));
heed_status heed_generation_no_memory(heed_generation *g);

/** Memory for the results of a first run on the prompts, and their shapes. */
heed_status heed_generation_prepare(heed_generation *g);

#endif
