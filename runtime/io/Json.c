/* The strict JSON reader. */
#include "runtime/io/Json.h"

#include <stdlib.h>
#include <string.h>

bool heed_json_fail(heed_json *json, const char *expected) {
  if (json->at == json->end)
    return heed_io_fail(json->error,
                        "%s: expected %s, found the end of the text",
                        json->where, expected);
  return heed_io_fail(json->error, "%s: expected %s at byte %zu of the text",
                      json->where, expected, (size_t)(json->at - json->start));
}

bool heed_json_start(heed_json *json, const uint8_t *data, size_t size,
                     const char *where, heed_io_error *error) {
  const char *text = (const char *)data;
  *json = (heed_json){text, text, text + size, where, error, malloc(size + 1)};
  return json->strings ||
         heed_io_fail(error, "%s: no memory to read its names", where);
}

bool heed_json_grow(heed_json *json, void *array, size_t count,
                    size_t *capacity, size_t elementSize) {
  if (count < *capacity)
    return true;
  void *old;
  memcpy(&old, array, sizeof old);
  size_t larger = *capacity ? *capacity * 2 : 64;
  void *grown = larger > SIZE_MAX / elementSize
                    ? NULL
                    : realloc(old, larger * elementSize);
  if (!grown)
    return heed_io_fail(json->error, "%s: no memory for its entries",
                        json->where);
  memcpy(array, &grown, sizeof grown);
  *capacity = larger;
  return true;
}

static void skipSpace(heed_json *json) {
  while (json->at < json->end && (*json->at == ' ' || *json->at == '\n' ||
                                  *json->at == '\t' || *json->at == '\r'))
    ++json->at;
}

static bool accept(heed_json *json, char wanted) {
  skipSpace(json);
  if (json->at == json->end || *json->at != wanted)
    return false;
  ++json->at;
  return true;
}

bool heed_json_open(heed_json *json, char bracket) {
  return accept(json, bracket) ||
         heed_json_fail(json, bracket == '{' ? "'{'" : "'['");
}

bool heed_json_next(heed_json *json, char bracket, bool *first, bool *more) {
  char close = bracket == '{' ? '}' : ']';
  *more = false;
  if (accept(json, close))
    return true;
  if (!*first && !accept(json, ','))
    return heed_json_fail(json, bracket == '{' ? "',' or '}'" : "',' or ']'");
  *first = false;
  *more = true;
  return true;
}

static bool parseHex(heed_json *json, uint32_t *unit) {
  *unit = 0;
  for (int k = 0; k < 4; ++k, ++json->at) {
    if (json->at == json->end)
      return heed_json_fail(json, "four hexadecimal digits");
    char c = *json->at;
    unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                            : 16;
    if (digit == 16)
      return heed_json_fail(json, "four hexadecimal digits");
    *unit = *unit << 4 | digit;
  }
  return true;
}

/* After "\u": a code point, from one or two units. */
static bool parseCodePoint(heed_json *json, uint32_t *point) {
  if (!parseHex(json, point))
    return false;
  if (*point >= 0xd800 && *point < 0xdc00) {
    uint32_t low;
    if (json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u')
      return heed_json_fail(json, "the second half of a surrogate pair");
    json->at += 2;
    if (!parseHex(json, &low))
      return false;
    if (low < 0xdc00 || low >= 0xe000)
      return heed_json_fail(json, "the second half of a surrogate pair");
    *point = 0x10000 + ((*point - 0xd800) << 10) + (low - 0xdc00);
  } else if (*point >= 0xdc00 && *point < 0xe000) {
    return heed_json_fail(json, "the first half of a surrogate pair");
  }
  if (*point == 0)
    return heed_json_fail(json, "a string without NUL");
  return true;
}

static char *encode(char *out, uint32_t point) {
  if (point < 0x80) {
    *out++ = (char)point;
  } else if (point < 0x800) {
    *out++ = (char)(0xc0 | point >> 6);
    *out++ = (char)(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    *out++ = (char)(0xe0 | point >> 12);
    *out++ = (char)(0x80 | (point >> 6 & 0x3f));
    *out++ = (char)(0x80 | (point & 0x3f));
  } else {
    *out++ = (char)(0xf0 | point >> 18);
    *out++ = (char)(0x80 | (point >> 12 & 0x3f));
    *out++ = (char)(0x80 | (point >> 6 & 0x3f));
    *out++ = (char)(0x80 | (point & 0x3f));
  }
  return out;
}

/* Copies one UTF-8 sequence of two or more bytes; overlong forms and surrogates
 * are refused. */
static bool copySequence(heed_json *json, char **out) {
  const unsigned char *p = (const unsigned char *)json->at;
  int length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  if (p[0] < 0xc2 || p[0] > 0xf4 || json->end - json->at < length)
    return heed_json_fail(json, "UTF-8");
  uint32_t point = p[0] & (0x7fu >> length);
  for (int k = 1; k < length; ++k) {
    if ((p[k] & 0xc0) != 0x80)
      return heed_json_fail(json, "UTF-8");
    point = point << 6 | (p[k] & 0x3f);
  }
  const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < least[length] || point > 0x10ffff ||
      (point >= 0xd800 && point < 0xe000))
    return heed_json_fail(json, "UTF-8");
  memcpy(*out, json->at, (size_t)length);
  *out += length;
  json->at += length;
  return true;
}

static bool parseEscape(heed_json *json, char **out) {
  if (json->at == json->end)
    return heed_json_fail(json, "an escape");
  static const char escapes[] = "\"\\/bfnrt";
  static const char meanings[] = "\"\\/\b\f\n\r\t";
  char c = *json->at;
  const char *found = c ? strchr(escapes, c) : NULL;
  if (found) {
    ++json->at;
    *(*out)++ = meanings[found - escapes];
    return true;
  }
  if (c != 'u')
    return heed_json_fail(json, "an escape");
  ++json->at;
  uint32_t point;
  if (!parseCodePoint(json, &point))
    return false;
  *out = encode(*out, point);
  return true;
}

bool heed_json_string(heed_json *json, const char **string) {
  if (!accept(json, '"'))
    return heed_json_fail(json, "a string");
  char *out = json->strings;
  *string = out;
  /* What is decoded is never longer than its text, and the two quotes pay for
   * the NUL. */
  while (json->at < json->end && *json->at != '"') {
    unsigned char c = (unsigned char)*json->at;
    if (c < 0x20)
      return heed_json_fail(json, "a string without control characters");
    if (c == '\\') {
      ++json->at;
      if (!parseEscape(json, &out))
        return false;
    } else if (c < 0x80) {
      *out++ = (char)c;
      ++json->at;
    } else if (!copySequence(json, &out)) {
      return false;
    }
  }
  if (json->at == json->end)
    return heed_json_fail(json, "'\"'");
  ++json->at;
  *out++ = 0;
  json->strings = out;
  return true;
}

bool heed_json_key(heed_json *json, const char **key) {
  return heed_json_string(json, key) &&
         (accept(json, ':') || heed_json_fail(json, "':'"));
}

bool heed_json_members(heed_json *json,
                       bool (*visit)(void *context, const char *key),
                       void *context) {
  bool first = true, more;
  if (!heed_json_open(json, '{'))
    return false;
  for (;;) {
    const char *key;
    if (!heed_json_next(json, '{', &first, &more))
      return false;
    if (!more)
      return true;
    if (!heed_json_key(json, &key) || !visit(context, key))
      return false;
  }
}

bool heed_json_integer(heed_json *json, int64_t *value) {
  skipSpace(json);
  const char *digits = json->at;
  *value = 0;
  while (json->at < json->end && *json->at >= '0' && *json->at <= '9') {
    if (__builtin_mul_overflow(*value, 10, value) ||
        __builtin_add_overflow(*value, *json->at - '0', value))
      return heed_json_fail(json, "an integer below 2^63");
    ++json->at;
  }
  size_t length = (size_t)(json->at - digits);
  if (length == 0 || (length > 1 && *digits == '0'))
    return heed_json_fail(json, "a non-negative integer");
  if (json->at < json->end &&
      (*json->at == '.' || *json->at == 'e' || *json->at == 'E'))
    return heed_json_fail(json, "a non-negative integer");
  return true;
}

static bool skipDigits(heed_json *json) {
  const char *digits = json->at;
  while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
    ++json->at;
  return json->at > digits || heed_json_fail(json, "a digit");
}

static bool skipNumber(heed_json *json) {
  if (*json->at == '-')
    ++json->at;
  if (json->at < json->end && *json->at == '0')
    ++json->at;
  else if (!skipDigits(json))
    return false;
  if (json->at < json->end && *json->at == '.') {
    ++json->at;
    if (!skipDigits(json))
      return false;
  }
  if (json->at < json->end && (*json->at == 'e' || *json->at == 'E')) {
    ++json->at;
    if (json->at < json->end && (*json->at == '+' || *json->at == '-'))
      ++json->at;
    return skipDigits(json);
  }
  return true;
}

char heed_json_peek(heed_json *json) {
  skipSpace(json);
  return json->at < json->end ? *json->at : 0;
}

bool heed_json_number(heed_json *json, double *value) {
  char first = heed_json_peek(json), text[64];
  const char *start = json->at;
  if (first != '-' && (first < '0' || first > '9'))
    return heed_json_fail(json, "a number");
  if (!skipNumber(json))
    return false;
  size_t length = (size_t)(json->at - start);
  if (length >= sizeof text)
    return heed_json_fail(json, "a number of less than 64 characters");
  memcpy(text, start, length);
  text[length] = 0;
  *value = strtod(text, NULL);
  return true;
}

static bool skipWord(heed_json *json, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(json->end - json->at) < length ||
      memcmp(json->at, word, length) != 0)
    return heed_json_fail(json, "a value");
  json->at += length;
  return true;
}

static bool skipValue(heed_json *json, int depth) {
  skipSpace(json);
  if (json->at == json->end)
    return heed_json_fail(json, "a value");
  const char *string;
  bool first = true, more;
  char c = *json->at;
  switch (c) {
  case '"':
    return heed_json_string(json, &string);
  case 't':
    return skipWord(json, "true");
  case 'f':
    return skipWord(json, "false");
  case 'n':
    return skipWord(json, "null");
  case '{':
  case '[':
    if (depth == 64)
      return heed_json_fail(json, "nesting of at most 64");
    ++json->at;
    for (;;) {
      if (!heed_json_next(json, c, &first, &more))
        return false;
      if (!more)
        return true;
      if ((c == '{' && !heed_json_key(json, &string)) ||
          !skipValue(json, depth + 1))
        return false;
    }
  default:
    if (c != '-' && (c < '0' || c > '9'))
      return heed_json_fail(json, "a value");
    return skipNumber(json);
  }
}

bool heed_json_skip(heed_json *json) { return skipValue(json, 0); }

bool heed_json_end(heed_json *json) {
  skipSpace(json);
  return json->at == json->end || heed_json_fail(json, "the end of the text");
}
