//===- Builtins.h - The table of built-in functions -------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that the front end knows of a scalar function is its row: how it is
// typed, folded, bounded and emitted. docs/language.md lists the same names
// (test/docs/builtins.py).
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_BUILTINS_H
#define HEED_FRONTEND_COMMON_BUILTINS_H

#include "Intervals.h"
#include "Points.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace heed::sema {

struct Builtin {
  using Values = llvm::ArrayRef<mlir::Value>;

  llvm::StringRef name;
  unsigned arity;
  enum Result {
    Keeps, ///< the type that its arguments have together
    Real,  ///< the real type of that
    Static ///< known when compiling: it never comes to emission
  } result;
  /// Of sizes; null: it takes none, or none is folded.
  Size (*ofSizes)(SizeTable &, llvm::ArrayRef<Size>);
  /// Of numbers in f64; null: computed where it stands, by the same code as
  /// that of data.
  double (*ofNumbers)(const double *);
  /// Of integers between bounds; null: nothing is known.
  Bounds (*bounds)(Intervals &, llvm::ArrayRef<Bounds>);
  /// Constraints between the value and the arguments, of which `argument` makes
  /// a form; null: none.
  void (*relate)(Points &, const Form &value,
                 llvm::function_ref<Form(unsigned)> argument);
  /// Arguments of one type: `index` or i64; f32 or f64.
  mlir::Value (*emitIntegers)(mlir::OpBuilder &, mlir::Location, Values);
  mlir::Value (*emitReals)(mlir::OpBuilder &, mlir::Location, Values);
};

/// All rows, in the order of docs/language.md.
llvm::ArrayRef<Builtin> builtins();
/// Null if there is no such function.
const Builtin *findBuiltin(llvm::StringRef name);

} // namespace heed::sema

#endif // HEED_FRONTEND_COMMON_BUILTINS_H
