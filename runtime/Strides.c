/* Arrays whose elements do not lie one behind the other: what memory they span,
 * and copies to dense memory and back. */
#include "runtime/Model.h"

#include <stdlib.h>
#include <string.h>

static bool isEmpty(int32_t rank, const int64_t *shape) {
  for (int32_t axis = 0; axis < rank; ++axis)
    if (shape[axis] == 0)
      return true;
  return false;
}

bool heed_strides_are_dense(int32_t rank, const int64_t *shape,
                            const int64_t *strides) {
  if (!strides || isEmpty(rank, shape))
    return true;
  int64_t dense = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    if (shape[axis] > 1 && strides[axis] != dense)
      return false;
    dense *= shape[axis];
  }
  return true;
}

bool heed_strides_range(int32_t rank, const int64_t *shape,
                        const int64_t *strides, size_t elementSize,
                        int64_t *begin, int64_t *end) {
  int64_t low = 0, high = 1, dense = 1;
  *begin = *end = 0;
  if (isEmpty(rank, shape))
    return true;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    int64_t reach;
    if (shape[axis] > 1) {
      if (__builtin_mul_overflow(shape[axis] - 1,
                                 strides ? strides[axis] : dense, &reach))
        return false;
      int64_t *side = reach < 0 ? &low : &high;
      if (__builtin_add_overflow(*side, reach, side))
        return false;
    }
    if (!strides && __builtin_mul_overflow(dense, shape[axis], &dense))
      return false;
  }
  return !__builtin_mul_overflow(low, (int64_t)elementSize, begin) &&
         !__builtin_mul_overflow(high, (int64_t)elementSize, end);
}

bool heed_strides_are_distinct(int32_t rank, const int64_t *shape,
                               const int64_t *strides) {
  if (!strides || isEmpty(rank, shape))
    return true;
  /* From the smallest step to the largest: each is beyond the reach of those
   * before. */
  int64_t reach = 0;
  bool passed[HEED_MAX_RANK] = {false};
  for (;;) {
    int32_t next = -1;
    int64_t step = 0;
    for (int32_t axis = 0; axis < rank; ++axis) {
      if (passed[axis] || shape[axis] <= 1)
        continue;
      int64_t size = strides[axis] < 0 ? -strides[axis] : strides[axis];
      if (next < 0 || size < step) {
        next = axis;
        step = size;
      }
    }
    if (next < 0)
      return true;
    if (step <= reach)
      return false;
    reach += step * (shape[next] - 1); /* fits: the range has been computed */
    passed[next] = true;
  }
}

/* `count` runs of `run` bytes, `step` bytes apart on one side. A size that the
 * compiler knows makes it moves of single elements. */
static void copyRuns(char *dense, char *at, int64_t count, int64_t step,
                     size_t run, bool gather) {
#define COPY(bytes)                                                            \
  for (int64_t k = 0; k < count; ++k, at += step, dense += (bytes))            \
  gather ? memcpy(dense, at, (bytes)) : memcpy(at, dense, (bytes))
  switch (run) {
  case 1:
    COPY(1);
    break;
  case 2:
    COPY(2);
    break;
  case 4:
    COPY(4);
    break;
  case 8:
    COPY(8);
    break;
  default:
    COPY(run);
  }
#undef COPY
}

/* An axis as both sides step along it, in bytes. */
typedef struct step {
  int64_t count, apart, dense;
} step;

/* Two axes: where the elements of `outer` lie closer together than those of
 * `inner`, a square of both is copied at a time, so that each line of the cache
 * that is read is used up. */
static void copyPlane(char *dense, char *data, step outer, step inner,
                      size_t run, bool gather) {
  enum { Square = 16 };
  int64_t width = outer.count > 1 ? Square : inner.count;
  for (int64_t i = 0; i < outer.count; i += Square)
    for (int64_t k = 0; k < inner.count; k += width)
      for (int64_t j = i; j < i + Square && j < outer.count; ++j)
        copyRuns(dense + j * outer.dense + k * inner.dense,
                 data + j * outer.apart + k * inner.apart,
                 inner.count - k < width ? inner.count - k : width, inner.apart,
                 run, gather);
}

/* One walk for both directions: runs of elements that lie one behind the other
 * in both are copied at once. */
static void copy(char *dense, char *data, int32_t rank, const int64_t *shape,
                 const int64_t *strides, size_t elementSize, bool gather) {
  if (isEmpty(rank, shape))
    return;
  size_t run = elementSize;
  while (rank > 0 &&
         (shape[rank - 1] == 1 ||
          strides[rank - 1] * (int64_t)elementSize == (int64_t)run)) {
    run *= (size_t)shape[rank - 1];
    --rank;
  }
  const step one = {1, 0, 0};
  if (rank <= 0) {
    copyPlane(dense, data, one, one, run, gather);
    return;
  }
  step steps[HEED_MAX_RANK];
  int64_t bytes = (int64_t)run;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    steps[axis] =
        (step){shape[axis], strides[axis] * (int64_t)elementSize, bytes};
    bytes *= shape[axis];
  }
  step inner = steps[rank - 1], outer = one;
  int32_t closest = -1;
  for (int32_t axis = 0; axis < rank - 1; ++axis)
    if (steps[axis].count > 1 &&
        llabs(steps[axis].apart) <
            llabs(closest < 0 ? inner.apart : steps[closest].apart))
      closest = axis;
  if (closest >= 0) {
    outer = steps[closest];
    steps[closest] = one;
  }
  int64_t index[HEED_MAX_RANK] = {0};
  for (;;) {
    copyPlane(dense, data, outer, inner, run, gather);
    int32_t axis = rank - 2;
    for (; axis >= 0; --axis) {
      data += steps[axis].apart;
      dense += steps[axis].dense;
      if (++index[axis] < steps[axis].count)
        break;
      data -= steps[axis].apart * steps[axis].count;
      dense -= steps[axis].dense * steps[axis].count;
      index[axis] = 0;
    }
    if (axis < 0)
      return;
  }
}

void heed_strides_gather(void *dense, const void *data, int32_t rank,
                         const int64_t *shape, const int64_t *strides,
                         size_t elementSize) {
  copy(dense, (char *)(uintptr_t)data, rank, shape, strides, elementSize,
       /*gather=*/true);
}

void heed_strides_scatter(void *data, const void *dense, int32_t rank,
                          const int64_t *shape, const int64_t *strides,
                          size_t elementSize) {
  copy((char *)(uintptr_t)dense, data, rank, shape, strides, elementSize,
       /*gather=*/false);
}
