//===- Semantics.h - What a tree means -------------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Semantic analysis: one model of a program becomes resolved equations
// (Resolved.h), which Emit makes IR.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SEMANTICS_SEMANTICS_H
#define HEED_FRONTEND_HEED_SEMANTICS_SEMANTICS_H

#include "frontend/Common/Types.h"
#include "frontend/Heed/Syntax/Loader.h"

#include "llvm/ADT/StringMap.h"

#include <memory>

namespace heed {

/// What a weights file says about its tensors, for checks when compiling.
struct WeightInfo {
  std::string type; ///< as safetensors spells it: F32, BF16, I64, ...
  llvm::SmallVector<int64_t, 4> shape;
};
using WeightIndex = llvm::StringMap<WeightInfo>;

struct FrontendOptions {
  /// --set name=value: a compile-time constant, or the extent of a dim.
  std::vector<std::pair<std::string, ast::ExprPtr>> settings;
  /// Which model of the file; empty: the last one.
  std::string model;
  /// The tensors of --weights; null: unknown until the model is opened.
  const WeightIndex *weights = nullptr;
  HeldType weightsType = HeldType::Stored, stateType = HeldType::Stored;
};

namespace sema {
struct Model;
} // namespace sema

/// What one model of `program` means. Null after an error, which is in `diags`.
std::shared_ptr<sema::Model> analyse(const Program &program,
                                     const FrontendOptions &options,
                                     const Sources &sources,
                                     Diagnostics &diags);

} // namespace heed

#endif // HEED_FRONTEND_HEED_SEMANTICS_SEMANTICS_H
