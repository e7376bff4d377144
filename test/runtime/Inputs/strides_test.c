/* Copies of arrays whose elements lie apart, both ways, against a walk element
 * by element: any order of axes, gaps, negative steps, axes of one. */
#include "runtime/Model.h"
#include "test/runtime/Inputs/check.h"

#include <stdlib.h>
#include <string.h>

/* Axes in any order with steps that leave gaps; the elements from the first to
 * the last on either side. */
static int64_t drawView(int32_t rank, int64_t *shape, int64_t *strides) {
  int32_t order[HEED_MAX_RANK];
  int64_t step = 1 + rand() % 2;
  for (int32_t k = 0; k < rank; ++k) {
    int32_t at = rand() % (k + 1);
    shape[k] = 1 + rand() % (rank < 3 ? 40 : 7);
    order[k] = order[at];
    order[at] = k;
  }
  for (int32_t k = 0; k < rank; ++k) {
    strides[order[k]] = rand() % 3 ? step : -step;
    step *= shape[order[k]] + rand() % 2;
  }
  return step;
}

static void checkView(int32_t rank, size_t size) {
  int64_t shape[HEED_MAX_RANK], strides[HEED_MAX_RANK], count = 1;
  int64_t reach = drawView(rank, shape, strides);
  for (int32_t axis = 0; axis < rank; ++axis)
    count *= shape[axis];
  size_t room = (size_t)(2 * reach + 2) * size;
  char *from = malloc(room), *to = calloc(1, room),
       *dense = malloc((size_t)count * size);
  for (size_t k = 0; k < room; ++k)
    from[k] = (char)(1 + rand() % 100);
  char *first = from + reach * (int64_t)size, *back = to + (first - from);
  CHECK(heed_strides_are_distinct(rank, shape, strides));
  heed_strides_gather(dense, first, rank, shape, strides, size);
  heed_strides_scatter(back, dense, rank, shape, strides, size);
  int64_t written = 0;
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k, offset = 0;
    for (int32_t axis = rank - 1; axis >= 0; --axis) {
      offset += rest % shape[axis] * strides[axis];
      rest /= shape[axis];
    }
    offset *= (int64_t)size;
    CHECK(!memcmp(dense + k * (int64_t)size, first + offset, size));
    CHECK(!memcmp(back + offset, first + offset, size));
  }
  for (size_t k = 0; k < room; ++k)
    written += to[k] != 0;
  CHECK(written == count * (int64_t)size); /* and nothing beside them */
  free(from);
  free(to);
  free(dense);
}

int main(void) {
  static const size_t sizes[] = {1, 2, 4, 8};
  srand(1);
  for (int turn = 0; turn < 3000; ++turn)
    checkView(rand() % 5, sizes[rand() % 4]);
  puts("every element in its place");
}
