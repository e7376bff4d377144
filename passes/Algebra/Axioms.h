//===- Axioms.h - what two expressions may differ in ------------*- C++ -*-===//
//
// Two expressions count as equal if one becomes the other by these rules and no
// others. NormalForm applies them and notes which it used; a remark of a
// rewrite names them.
#ifndef HEED_PASSES_ALGEBRA_AXIOMS_H
#define HEED_PASSES_ALGEBRA_AXIOMS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace heed {

enum class Axiom {
  Reorder, // in every form, so none notes it
  Distribute,
  MoveFactor,
  Reciprocal,
  RowMaximum,
  LogSumExp,
  Exp2,
  ExcludedKey,
  AbsentElement,
  Count // how many there are
};

/// An axiom as people read it. `docs/language.md` ("What the compiler may
/// change") has the licence, `test/passes/Algebra/axioms.py` a test of each.
struct AxiomText {
  llvm::StringLiteral name;
  llvm::StringLiteral statement;
  llvm::StringLiteral licence;
  /// What must hold: proven, or compared apart.
  llvm::StringLiteral condition;
  /// What the two sides may differ in.
  llvm::StringLiteral differs;
};

const AxiomText &textOf(Axiom axiom);

} // namespace heed
#endif
