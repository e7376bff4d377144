//===- MaskValues.h - a mask's expressions as numbers -----------*- C++ -*-===//
// Expressions of a mask for given sizes and for as much of a call's data as is
// known: of the rest, what no data can change. An integer is an interval of
// what it may be, a truth value the same within 0..1, a real is known or not.
//
// Used by heedc --emit=mask.
#ifndef HEED_PASSES_MASKS_MASKVALUES_H
#define HEED_PASSES_MASKS_MASKVALUES_H

#include "passes/Algebra/TensorExpr.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace heed {

/// What a scalar may be.
struct MaskValue {
  int64_t low, high;          ///< integers and truth values, both inclusive
  std::optional<double> real; ///< reals, where known

  static MaskValue integer(int64_t value) { return {value, value, {}}; }
  static MaskValue number(double value) { return {0, 0, value}; }
  /// Anything of \p type.
  static MaskValue anything(mlir::Type type);
  bool isSingle() const { return low == high; }
  bool surely() const { return low >= 1; }
  bool never() const { return high <= 0; }
};

/// The name of the dim that an axis of an input or parameter is, empty where it
/// is none: an expression of dims, or another tensor.
llvm::StringRef dimNameOf(mlir::Value tensor, std::optional<int64_t> axis);

/// What is known of a call: the model's dims, and elements of its inputs.
struct MaskCall {
  llvm::StringMap<int64_t> dims;
  /// Along the last axis, whatever the other indices are; what lies beyond the
  /// list is as its last number.
  llvm::StringMap<std::vector<double>> inputs;
};

class MaskValues {
public:
  using Variables = llvm::DenseMap<unsigned, MaskValue>;

  explicit MaskValues(const MaskCall &call) : call(call) {}

  /// The value of \p expr, whose nodes are \p exprs'.
  MaskValue of(Exprs &exprs, ExprRef expr, const Variables &variables);
  /// The value of a scalar outside of the attention.
  MaskValue of(mlir::Value scalar);
  /// From now on \p scalar (the variable of a loop) has this value.
  void set(mlir::Value scalar, int64_t value) {
    scalars.insert_or_assign(scalar, MaskValue::integer(value));
  }
  void forgetScalars() { scalars.clear(); }
  /// Names of what was asked for and is not known: data of a call.
  const std::set<std::string> &unknown() const { return missing; }

private:
  using Memo = llvm::DenseMap<ExprRef, MaskValue>;
  MaskValue visit(Exprs &exprs, ExprRef e, const Variables &variables,
                  Memo &memo);
  MaskValue compute(Exprs &exprs, ExprRef e, const Variables &variables,
                    Memo &memo);
  MaskValue read(Exprs &exprs, ExprRef e, const Variables &variables,
                 Memo &memo);
  MaskValue input(mlir::BlockArgument argument, mlir::Type type,
                  llvm::ArrayRef<MaskValue> at);
  MaskValue reduce(Exprs &exprs, ExprRef e, Variables variables, Memo &memo);
  MaskValue dim(mlir::Value tensor, std::optional<int64_t> axis);

  const MaskCall &call;
  llvm::DenseMap<mlir::Value, MaskValue> scalars;
  /// Reads as what they read is computed from, bodies of reductions with their
  /// variables: each is made once.
  std::map<ExprRef, ExprRef> expanded;
  std::map<ExprRef, std::pair<llvm::SmallVector<unsigned>, ExprRef>> opened;
  std::set<std::string> missing;
};

} // namespace heed
#endif
