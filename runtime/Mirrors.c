/* Which parts of the host's memory are on a device, and where they are newer.
 * Tables and spans are arrays in order: a call has dozens of mirrors, and a
 * mirror few spans. */
#include "runtime/Device.h"

#include <stdlib.h>
#include <string.h>

/* The first mirror that ends behind the address. */
static size_t firstBehind(const heed_mirrors *mirrors, uintptr_t at) {
  size_t low = 0, high = mirrors->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (mirrors->list[middle].end > at)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

heed_mirror *heed_mirror_find(const heed_mirrors *mirrors, uintptr_t begin,
                              uintptr_t end) {
  size_t k = firstBehind(mirrors, begin);
  if (k == mirrors->count || mirrors->list[k].begin > begin ||
      mirrors->list[k].end < end)
    return NULL;
  return &mirrors->list[k];
}

bool heed_mirror_touches(const heed_mirrors *mirrors, uintptr_t begin,
                         uintptr_t end, size_t *which) {
  *which = firstBehind(mirrors, begin);
  return *which < mirrors->count && mirrors->list[*which].begin < end;
}

heed_mirror *heed_mirror_add(heed_mirrors *mirrors, uintptr_t begin,
                             uintptr_t end) {
  if (mirrors->count == mirrors->capacity) {
    size_t capacity = mirrors->capacity ? 2 * mirrors->capacity : 16;
    heed_mirror *grown =
        realloc(mirrors->list, capacity * sizeof *mirrors->list);
    if (!grown)
      return NULL;
    mirrors->list = grown;
    mirrors->capacity = capacity;
  }
  size_t k = firstBehind(mirrors, begin);
  memmove(&mirrors->list[k + 1], &mirrors->list[k],
          (mirrors->count - k) * sizeof *mirrors->list);
  ++mirrors->count;
  mirrors->list[k] = (heed_mirror){.begin = begin, .end = end};
  return &mirrors->list[k];
}

void heed_mirror_remove(heed_mirrors *mirrors, size_t k) {
  free(mirrors->list[k].spans);
  --mirrors->count;
  memmove(&mirrors->list[k], &mirrors->list[k + 1],
          (mirrors->count - k) * sizeof *mirrors->list);
}

/* ---- spans ---- */

bool heed_mirror_reserve(heed_mirror *mirror, size_t more) {
  /* A mark cuts one span in two and adds itself. */
  size_t wanted = mirror->numSpans + 2 * more;
  if (wanted <= mirror->capacity)
    return true;
  if (wanted < 2 * mirror->capacity)
    wanted = 2 * mirror->capacity;
  heed_span *grown = realloc(mirror->spans, wanted * sizeof *grown);
  if (!grown)
    return false;
  mirror->spans = grown;
  mirror->capacity = wanted;
  return true;
}

/* The first span that ends behind the address. */
static size_t firstSpan(const heed_mirror *mirror, uintptr_t at) {
  size_t low = 0, high = mirror->numSpans;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (mirror->spans[middle].end > at)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static void insert(heed_mirror *mirror, size_t k, heed_span span) {
  memmove(&mirror->spans[k + 1], &mirror->spans[k],
          (mirror->numSpans - k) * sizeof span);
  mirror->spans[k] = span;
  ++mirror->numSpans;
}

static void erase(heed_mirror *mirror, size_t first, size_t last) {
  memmove(&mirror->spans[first], &mirror->spans[last],
          (mirror->numSpans - last) * sizeof *mirror->spans);
  mirror->numSpans -= last - first;
}

/* Leaves no span in the range; returns where one of it would stand. */
static size_t cut(heed_mirror *mirror, uintptr_t begin, uintptr_t end) {
  size_t k = firstSpan(mirror, begin);
  if (k < mirror->numSpans && mirror->spans[k].begin < begin) {
    heed_span whole = mirror->spans[k];
    mirror->spans[k++].end = begin;
    if (whole.end > end) {
      insert(mirror, k, (heed_span){end, whole.end, whole.onDevice});
      return k;
    }
  }
  size_t last = k;
  while (last < mirror->numSpans && mirror->spans[last].end <= end)
    ++last;
  erase(mirror, k, last);
  if (k < mirror->numSpans && mirror->spans[k].begin < end)
    mirror->spans[k].begin = end;
  return k;
}

void heed_mirror_mark(heed_mirror *mirror, uintptr_t begin, uintptr_t end,
                      heed_side newer) {
  if (begin == end)
    return;
  size_t k = cut(mirror, begin, end);
  if (newer == HEED_SAME)
    return;
  bool onDevice = newer == HEED_ON_DEVICE;
  heed_span *before = k ? &mirror->spans[k - 1] : NULL;
  heed_span *after = k < mirror->numSpans ? &mirror->spans[k] : NULL;
  bool joinsBefore =
      before && before->end == begin && before->onDevice == onDevice;
  bool joinsAfter = after && after->begin == end && after->onDevice == onDevice;
  if (joinsBefore && joinsAfter) {
    before->end = after->end;
    erase(mirror, k, k + 1);
  } else if (joinsBefore) {
    before->end = end;
  } else if (joinsAfter) {
    after->begin = begin;
  } else {
    insert(mirror, k, (heed_span){begin, end, onDevice});
  }
}

bool heed_mirror_newer(const heed_mirror *mirror, uintptr_t begin,
                       uintptr_t end, bool onDevice, heed_span *part) {
  for (size_t k = firstSpan(mirror, begin);
       k < mirror->numSpans && mirror->spans[k].begin < end; ++k) {
    *part = mirror->spans[k];
    if (part->onDevice != onDevice)
      continue;
    if (part->begin < begin)
      part->begin = begin;
    if (part->end > end)
      part->end = end;
    return true;
  }
  return false;
}
