/* The .npz format: a zip archive of .npy members. Only what numpy.savez writes:
 * stored members, perhaps with zip64 fields. Only the central directory is
 * believed; the local header must agree on where it is. */
#include "runtime/io/Npy.h"

#include <inttypes.h>
#include <string.h>

static uint16_t read16(const uint8_t *p) {
  return (uint16_t)(p[0] | p[1] << 8);
}
static uint32_t read32(const uint8_t *p) {
  return read16(p) | (uint32_t)read16(p + 2) << 16;
}
static uint64_t read64(const uint8_t *p) {
  return read32(p) | (uint64_t)read32(p + 4) << 32;
}

enum {
  LocalSize = 30,
  CentralSize = 46,
  EndSize = 22,
  LocatorSize = 20,
  End64Size = 56
};
static const uint32_t localMagic = 0x04034b50, centralMagic = 0x02014b50,
                      endMagic = 0x06054b50, locatorMagic = 0x07064b50,
                      end64Magic = 0x06064b50;

typedef struct member {
  const char *name;
  size_t nameLength;
  unsigned method, flags;
  uint32_t checksum;
  uint64_t compressed, size, offset;
} member;

static uint32_t checksumOf(const uint8_t *data, size_t size) {
  uint32_t table[256];
  for (uint32_t k = 0; k < 256; ++k) {
    uint32_t value = k;
    for (int bit = 0; bit < 8; ++bit)
      value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    table[k] = value;
  }
  uint32_t sum = 0xffffffffu;
  for (size_t k = 0; k < size; ++k)
    sum = sum >> 8 ^ table[(sum ^ data[k]) & 0xff];
  return ~sum;
}

bool heed_npz_recognise(const uint8_t *data, size_t size) {
  return size >= 4 && (read32(data) == localMagic || read32(data) == endMagic);
}

/* Finds the central directory: its bytes [*start, *stop). */
static bool findDirectory(const uint8_t *data, size_t size, const char *where,
                          uint64_t *start, uint64_t *stop,
                          heed_io_error *error) {
  if (size < EndSize)
    return heed_io_fail(error, "%s: not a .npz archive", where);
  /* The end record stands before a comment of up to 65535 bytes. */
  size_t end = size - EndSize;
  size_t least = end > 0xffff ? end - 0xffff : 0;
  while (read32(data + end) != endMagic ||
         read16(data + end + 20) != size - end - EndSize) {
    if (end == least)
      return heed_io_fail(
          error, "%s: the end record of the .npz archive is missing", where);
    --end;
  }
  uint64_t length = read32(data + end + 12), offset = read32(data + end + 16);
  size_t limit = end;
  if (length == 0xffffffffu || offset == 0xffffffffu ||
      read16(data + end + 10) == 0xffff) {
    if (end < LocatorSize || read32(data + end - LocatorSize) != locatorMagic)
      return heed_io_fail(error, "%s: the zip64 locator is missing", where);
    uint64_t record = read64(data + end - LocatorSize + 8);
    if (end < LocatorSize + End64Size ||
        record > end - LocatorSize - End64Size ||
        read32(data + record) != end64Magic)
      return heed_io_fail(error, "%s: the zip64 end record is missing", where);
    length = read64(data + record + 40);
    offset = read64(data + record + 48);
    limit = (size_t)record;
  }
  if (offset > limit || length > limit - offset)
    return heed_io_fail(
        error, "%s: the directory of the .npz archive lies outside the file",
        where);
  *start = offset;
  *stop = offset + length;
  return true;
}

/* Sizes that don't fit 32 bits stand in an extra field, in this order, those
 * alone that are marked. */
static bool readExtra(const uint8_t *extra, size_t length, member *m) {
  bool wantSize = m->size == 0xffffffffu,
       wantCompressed = m->compressed == 0xffffffffu,
       wantOffset = m->offset == 0xffffffffu;
  size_t at = 0;
  while (length - at >= 4) {
    unsigned id = read16(extra + at), bytes = read16(extra + at + 2);
    at += 4;
    if (bytes > length - at)
      return false;
    if (id == 1) {
      size_t field = at, stop = at + bytes;
      uint64_t *wanted[3] = {wantSize ? &m->size : NULL,
                             wantCompressed ? &m->compressed : NULL,
                             wantOffset ? &m->offset : NULL};
      for (int k = 0; k < 3; ++k) {
        if (!wanted[k])
          continue;
        if (stop - field < 8)
          return false;
        *wanted[k] = read64(extra + field);
        field += 8;
      }
      return true;
    }
    at += bytes;
  }
  return !wantSize && !wantCompressed && !wantOffset;
}

/* Reads the directory's entry at *at and moves past it. */
static bool readMember(const uint8_t *data, uint64_t *at, uint64_t stop,
                       member *m) {
  if (stop - *at < CentralSize || read32(data + *at) != centralMagic)
    return false;
  const uint8_t *p = data + *at;
  m->flags = read16(p + 8);
  m->method = read16(p + 10);
  m->checksum = read32(p + 16);
  m->compressed = read32(p + 20);
  m->size = read32(p + 24);
  m->offset = read32(p + 42);
  m->nameLength = read16(p + 28);
  size_t extra = read16(p + 30), comment = read16(p + 32);
  if (m->nameLength + extra + comment > stop - *at - CentralSize)
    return false;
  m->name = (const char *)p + CentralSize;
  if (!readExtra(p + CentralSize + m->nameLength, extra, m))
    return false;
  *at += CentralSize + m->nameLength + extra + comment;
  return true;
}

static bool isNamed(const member *m, const char *key) {
  size_t length = strlen(key);
  return (m->nameLength == length + 4 && !memcmp(m->name, key, length) &&
          !memcmp(m->name + length, ".npy", 4)) ||
         (m->nameLength == length && !memcmp(m->name, key, length));
}

/* The member's own bytes, after its local header. */
static bool openMember(const uint8_t *data, size_t size, const member *m,
                       const char *where, heed_array *array,
                       heed_io_error *error) {
  if (m->flags & 1)
    return heed_io_fail(error, "%s: the member is encrypted", where);
  if (m->method != 0)
    return heed_io_fail(error,
                        "%s: the member is compressed (write it with "
                        "numpy.savez instead of savez_compressed)",
                        where);
  if (m->compressed != m->size || m->offset > size ||
      size - m->offset < LocalSize || read32(data + m->offset) != localMagic)
    return heed_io_fail(error, "%s: the member's header is malformed", where);
  const uint8_t *p = data + m->offset;
  uint64_t start = LocalSize + (uint64_t)read16(p + 26) + read16(p + 28);
  if (start > size - m->offset || m->size > size - m->offset - start)
    return heed_io_fail(error,
                        "%s: %" PRIu64 " bytes expected, the file is truncated",
                        where, m->size);
  const uint8_t *content = p + start;
  if (checksumOf(content, (size_t)m->size) != m->checksum)
    return heed_io_fail(error, "%s: the checksum does not match", where);
  return heed_npy_parse(content, (size_t)m->size, where, array, error);
}

bool heed_npz_parse(const uint8_t *data, size_t size, const char *key,
                    const char *where, heed_array *array,
                    heed_io_error *error) {
  uint64_t at = 0, stop = 0;
  if (!findDirectory(data, size, where, &at, &stop, error))
    return false;
  member found, m;
  size_t count = 0;
  char names[256] = "";
  size_t used = 0;
  bool known = false;
  while (at < stop) {
    if (!readMember(data, &at, stop, &m))
      return heed_io_fail(
          error, "%s: the directory of the .npz archive is malformed", where);
    ++count;
    if (key ? isNamed(&m, key) : count == 1) {
      found = m;
      known = true;
    }
    size_t shown = m.nameLength >= 4 ? m.nameLength - 4 : m.nameLength;
    if (used + shown + 3 < sizeof names)
      used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s",
                               used ? ", " : "", (int)shown, m.name);
  }
  if (!key && count != 1)
    return heed_io_fail(error,
                        "%s: expected one member, found %zu: %s (choose one "
                        "with FILE:NAME)",
                        where, count, names);
  if (!known)
    return heed_io_fail(error, "%s: no member '%s' (found: %s)", where, key,
                        names);
  return openMember(data, size, &found, where, array, error);
}
