/* A strict reader of JSON text (RFC 8259, UTF-8), pulled value by value. For
 * headers of weight files and settings: objects, arrays, strings and numbers
 * can be read; anything can be skipped. */
#ifndef HEED_IO_JSON_H
#define HEED_IO_JSON_H

#include "runtime/io/Io.h"

typedef struct heed_json {
  const char *start, *at, *end;
  const char *where; /**< the file's name, for messages */
  heed_io_error *error;
  char *strings; /**< where decoded strings go; as many bytes as the text has
                    are enough */
} heed_json;

/** Starts at the first of size bytes. The strings it decodes live in memory
 * that the caller frees: json->strings, right after this call. */
bool heed_json_start(heed_json *json, const uint8_t *data, size_t size,
                     const char *where, heed_io_error *error);

/** Makes room for one element more at the end of *array, which is NULL at first
 * and belongs to the caller. */
bool heed_json_grow(heed_json *json, void *array, size_t count,
                    size_t *capacity, size_t elementSize);

/** Consumes '{' or '['. */
bool heed_json_open(heed_json *json, char bracket);

/** Before each member or element: sets *more, and consumes the ',' before it or
 * the closing bracket after the last. *first is true before the first call and
 * belongs to this object or array. */
bool heed_json_next(heed_json *json, char bracket, bool *first, bool *more);

/** A string, decoded, NUL-terminated, without NUL inside, in json->strings.
 * Fails on invalid UTF-8 and escapes. */
bool heed_json_string(heed_json *json, const char **string);

/** A member's key and the ':' after it. */
bool heed_json_key(heed_json *json, const char **key);

/** An object: visit(context, key) consumes each member's value. */
bool heed_json_members(heed_json *json,
                       bool (*visit)(void *context, const char *key),
                       void *context);

/** A whole number from 0 to INT64_MAX, without fraction or exponent. */
bool heed_json_integer(heed_json *json, int64_t *value);

/** What the next value begins with: '{', '[', '"', 't', 'f', 'n', a digit or
 * '-'; 0 at the end of the text. */
char heed_json_peek(heed_json *json);

/** Any number. */
bool heed_json_number(heed_json *json, double *value);

/** Any value; nesting beyond 64 is an error. */
bool heed_json_skip(heed_json *json);

/** Nothing but white space may follow. */
bool heed_json_end(heed_json *json);

/** Fails with the offset in the text. */
bool heed_json_fail(heed_json *json, const char *expected);

#endif
