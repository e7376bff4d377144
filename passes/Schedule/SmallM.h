//===- SmallM.h - products of small M, whose weight is large ----*- C++ -*-===//
//
// M is the number of rows. A product of small M takes as long as its weight
// takes to come from memory.
#ifndef HEED_PASSES_SCHEDULE_SMALLM_H
#define HEED_PASSES_SCHEDULE_SMALLM_H

#include "passes/Schedule/Schedule.h"

namespace heed {

/// Register tiles that M is at most.
constexpr int64_t smallMTiles = 8;

/// Steps of a sum of small M that an iteration of its loop adds: a few, as what
/// is asked for ahead stands before them, and what asks for many lines at once
/// waits for the first.
constexpr int64_t smallMSteps = 2;

/// Terms of a block of a sum of small M whose panel has \p row bytes a term:
/// all tiles are done with it while it is in the first cache.
int64_t smallMBlock(int64_t row, const halide::Target &target);

/// The tile of one row (a product of a matrix and a vector) reads a weight that
/// no cache holds faster than one of several, whose other rows nobody asked
/// for; where the weight is large, several rows have a pipeline that reads
/// while it computes.
RowVersions contractionVersions(const KernelFacts &facts,
                                const halide::Target &target);

/// One stream of addresses does not exhaust the memory.
constexpr int64_t streamsOfRow = 4;

/// Terms of a block of a sum of \p terms, of which streamsOfRow are read side
/// by side until none is left; 0 if there is no such block.
int64_t streamBlock(int64_t terms);

} // namespace heed

#endif
