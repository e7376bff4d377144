//===- Expr.h - Types and expressions of the syntax tree --------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AST.h says what holds of all nodes.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SYNTAX_EXPR_H
#define HEED_FRONTEND_HEED_SYNTAX_EXPR_H

#include "frontend/Common/Operators.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Casting.h"
#include "llvm/Support/SMLoc.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heed::ast {

struct File;

/// Brackets, blocks and prefix operators nest at most this deep.
constexpr unsigned maxNesting = 256;
/// No path from a node to a leaf is longer; bounds chains such as a + b + ...
constexpr unsigned maxHeight = 1024;

using Range = llvm::SMRange;
using sema::BinaryOp;
using sema::CompareOp;
using sema::ReduceOp;
using sema::spelling;

/// A name as written, with its place.
struct Name {
  llvm::StringRef text;
  Range range;
};

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

enum class ElementType { F16, BF16, F32, F64, I8, U8, I16, I32, I64, Bool };

/// The type named `name`, if it names one.
std::optional<ElementType> elementType(llvm::StringRef name);
llvm::StringRef spelling(ElementType type);

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// One extent of a type: an expression, or `..` (then `extent` is null).
struct Extent {
  ExprPtr extent;
  Range range;
  bool isDots() const { return !extent; }
};

/// `f32[B, N, D]`, `i32`, `[.., D]`. At least one of the two parts is there.
struct Type {
  std::optional<ElementType> element; ///< absent: taken from the call
  bool hasExtents = false;            ///< false: `f32`, a scalar
  std::vector<Extent> extents;        ///< empty with hasExtents: `f32[]`
  Range range;
};
/// Types are shared by the names they are written for: `a, b: f32[N]`.
using TypePtr = std::shared_ptr<Type>;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

enum class ExprKind {
  Int,
  Real,
  Bool,
  None,
  String,
  Name,
  Read,
  Call,
  Paren,
  Negate,
  Not,
  Binary,
  Compare,
  Logic,
  If,
  Reduce,
  Softmax,
  Concat,
  Table,
  Record
};

/// Where an expression stands, innermost first; decides what `/` between
/// integers means. Parentheses and calls do not change it.
enum class Place {
  Value,    ///< real division
  Index,    ///< between index brackets: floor division
  Dim,      ///< a `dim` or the extent of a type: must divide exactly
  Bound,    ///< `n:N`, `lo..hi`: an error between integers
  Condition ///< `where` or `if`: an error between integers
};

struct Expr {
  const ExprKind kind;
  Range range;
  unsigned height = 1; ///< nodes on the longest path to a leaf
  virtual ~Expr() = default;

protected:
  explicit Expr(ExprKind kind) : kind(kind) {}
};

template <ExprKind K> struct ExprOf : Expr {
  ExprOf() : Expr(K) {}
  static bool classof(const Expr *expr) { return expr->kind == K; }
};

struct IntExpr : ExprOf<ExprKind::Int> {
  int64_t value = 0;
};
/// Also `inf` and `pi`. `value` is the nearest f64.
struct RealExpr : ExprOf<ExprKind::Real> {
  double value = 0;
};
struct BoolExpr : ExprOf<ExprKind::Bool> {
  bool value = false;
};
struct NoneExpr : ExprOf<ExprKind::None> {};

/// "layer.{l+1}.w": text and expressions in turn.
struct StringExpr : ExprOf<ExprKind::String> {
  struct Part {
    llvm::StringRef text; ///< used when `expr` is null
    ExprPtr expr;
  };
  llvm::StringRef raw; ///< what stands between the quotes
  std::vector<Part> parts;
  /// True if nothing is interpolated: then the value is `raw`.
  bool isPlain() const {
    return parts.empty() || (parts.size() == 1 && !parts[0].expr);
  }
};

/// A bare name: an index, a loop variable, a dim, a scalar, or a whole tensor.
/// `rope_scaling.factor` too, an entry of a record: names with points between
/// them.
struct NameExpr : ExprOf<ExprKind::Name> {
  llvm::StringRef name;
};

/// One position of a read: an expression, or `..` (then `expr` is null).
struct Index {
  ExprPtr expr;
  Range range;
  bool isDots() const { return !expr; }
};

/// name[i, .., h*E + e]
struct ReadExpr : ExprOf<ExprKind::Read> {
  Name name;
  std::vector<Index> indices;
};

struct NamedArgument {
  Name name;
  ExprPtr value;
};

/// name(a, b, key = c): a function, a built-in or a cast.
struct CallExpr : ExprOf<ExprKind::Call> {
  Name callee;
  std::vector<ExprPtr> args;
  std::vector<NamedArgument> named; ///< after `args`; names are distinct
};

struct ParenExpr : ExprOf<ExprKind::Paren> {
  ExprPtr inner;
};
struct NegateExpr : ExprOf<ExprKind::Negate> {
  ExprPtr operand;
};
struct NotExpr : ExprOf<ExprKind::Not> {
  ExprPtr operand;
};

struct BinaryExpr : ExprOf<ExprKind::Binary> {
  BinaryOp op = BinaryOp::Add;
  Place place = Place::Value;
  ExprPtr lhs, rhs;
  Range opRange;
};
/// Whether a power is a product of its base alone: its exponent is a literal of
/// 1 or more.
inline bool isProduct(const BinaryExpr &power) {
  auto *exponent = llvm::dyn_cast<IntExpr>(power.rhs.get());
  return exponent && exponent->value >= 1;
}

/// a < b, or a chain a <= b < c: ops[k] stands between operands[k] and
/// operands[k+1]; the comparisons are joined by `and`.
struct CompareExpr : ExprOf<ExprKind::Compare> {
  std::vector<ExprPtr> operands;
  std::vector<CompareOp> ops;
  std::vector<Range> opRanges;
};

struct LogicExpr : ExprOf<ExprKind::Logic> {
  bool isAnd = false; ///< else `or`
  ExprPtr lhs, rhs;
};

/// if c then a else b
struct IfExpr : ExprOf<ExprKind::If> {
  ExprPtr condition, thenValue, elseValue;
};

/// An index that a reduction names: `j`, or with its range `u:3`.
struct Binder {
  Name name;
  ExprPtr extent; ///< null if the range comes from reads
};

/// sum(j, u:3 where c) operand
struct ReduceExpr : ExprOf<ExprKind::Reduce> {
  ReduceOp op = ReduceOp::Sum;
  Range opRange;
  std::vector<Binder> binders;
  ExprPtr where; ///< null: all
  ExprPtr operand;
  /// The right operand of `/` without parentheses inside another reduction's
  /// operand, which deserves a warning.
  bool isBareDivisor = false;
};

/// softmax(j where c; sink = t[h]) operand, and other normalisers of a row.
/// Binders have no extent: the indices stay free.
struct SoftmaxExpr : ExprOf<ExprKind::Softmax> {
  std::string name; ///< softmax, log_softmax, or a normaliser with a threshold
  bool isLog() const { return name == "log_softmax"; }
  Range opRange;
  std::vector<Binder> binders;
  ExprPtr where; ///< null: all
  ExprPtr sink;  ///< null: none
  ExprPtr operand;
};

/// concat(n)(a[n], b[n]): only as the whole right side of an equation.
struct ConcatExpr : ExprOf<ExprKind::Concat> {
  Name index;
  std::vector<ExprPtr> parts; ///< at least one
};

/// [[5, 7], [3, 2]]: only as the value of a constant.
struct TableExpr : ExprOf<ExprKind::Table> {
  std::vector<ExprPtr> rows;
};

/// An object of a `config` file: no text of a model holds one.
struct RecordExpr : ExprOf<ExprKind::Record> {
  struct Entry {
    llvm::StringRef path; ///< with the names of the records around it
    ExprPtr value;
  };
  std::vector<Entry> entries;
  const File *file = nullptr; ///< whose names the entries' defaults mean

  /// The value of the entry \p name; null if there is none.
  ExprPtr *find(llvm::StringRef name);
  const ExprPtr *find(llvm::StringRef name) const {
    return const_cast<RecordExpr *>(this)->find(name);
  }
};

//===----------------------------------------------------------------------===//
// Walking
//===----------------------------------------------------------------------===//

/// Calls `f` on the direct parts of an expression.
void forEachChild(const Expr &expr, llvm::function_ref<void(const Expr &)> f);

/// Whether \p is holds for a name that stands in the expression.
bool anyName(const Expr &expr, llvm::function_ref<bool(llvm::StringRef)> is);

/// The expression without the parentheses around it.
const Expr &inParens(const Expr &expr);

} // namespace heed::ast

#endif // HEED_FRONTEND_HEED_SYNTAX_EXPR_H
