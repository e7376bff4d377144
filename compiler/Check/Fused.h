//===- Fused.h - whether attention is one kernel ----------------*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_FUSED_H
#define HEED_COMPILER_CHECK_FUSED_H

#include <string>

namespace heed::check {

/// What `heedc --explain=json` said of a model with one attention.
struct Fused {
  /// One attention was raised, it streams or keeps a row block, and nothing of
  /// the size queries × keys is stored between kernels.
  bool oneKernel = false;
  /// At least one attention was raised.
  bool raised = false;
  /// Products are contracted in another order than they are written in, or
  /// distributed over the terms of a weight.
  bool reordered = false;
  /// A log-sum-exp is a result of an attention.
  bool logarithms = false;
  /// A softmax over queries is an exponential of scores less their log-sum-exp.
  bool overQueries = false;
  /// Kernels of the whole model, and why there is not one, in the compiler's
  /// words.
  unsigned kernels = 0;
  std::string reason;
};

Fused readExplanation(const std::string &json);

} // namespace heed::check

#endif
