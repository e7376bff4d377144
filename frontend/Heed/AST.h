//===- AST.h - The syntax tree of Heed --------------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain structs, one per construct, with a kind for llvm::dyn_cast. The tree
// says what was written and nothing about what it means: names are not
// resolved, `/` is not yet real or floor division (but every `/` knows the
// place it stands in), and reads of a tensor are not told from calls of a cast
// except by their brackets.
//
// Ownership: a node owns its children. Every StringRef and every source range
// points into a buffer of heed::Sources, which must outlive the tree.
//
// A tree is at most `maxHeight` nodes high, so recursion over it is safe.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_AST_H
#define HEED_FRONTEND_HEED_AST_H

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

/// Brackets, blocks and prefix operators nest at most this deep.
constexpr unsigned maxNesting = 256;
/// No path from a node to a leaf is longer; bounds chains such as a + b + ...
constexpr unsigned maxHeight = 1024;

using Range = llvm::SMRange;

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
  Table
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

enum class BinaryOp { Add, Sub, Mul, Div, FloorDiv, Mod, Pow };
llvm::StringRef spelling(BinaryOp op);

struct BinaryExpr : ExprOf<ExprKind::Binary> {
  BinaryOp op = BinaryOp::Add;
  Place place = Place::Value;
  ExprPtr lhs, rhs;
  Range opRange;
};

enum class CompareOp { Eq, Ne, Lt, Le, Gt, Ge };
llvm::StringRef spelling(CompareOp op);

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

enum class ReduceOp { Sum, Max, Min, Mean, Prod, Any, All, Argmax };
llvm::StringRef spelling(ReduceOp op);

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

/// softmax(j where c; sink = t[h]) operand. Binders have no extent: the
/// indices stay free.
struct SoftmaxExpr : ExprOf<ExprKind::Softmax> {
  bool isLog = false;
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

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

enum class StmtKind {
  Equation,
  Bind,
  Return,
  Param,
  Dim,
  Let,
  Const,
  For,
  If,
  Scan,
  While,
  Call
};

struct Stmt {
  const StmtKind kind;
  Range range;
  virtual ~Stmt() = default;

protected:
  explicit Stmt(StmtKind kind) : kind(kind) {}
};
using StmtPtr = std::unique_ptr<Stmt>;

template <StmtKind K> struct StmtOf : Stmt {
  StmtOf() : Stmt(K) {}
  static bool classof(const Stmt *stmt) { return stmt->kind == K; }
};

/// `{ ... }`. `close` is the place of the brace that ends it.
struct Block {
  std::vector<StmtPtr> stmts;
  Range range;
};

/// One position of a left side: a name with or without a range (`n`, `n:N`),
/// `..`, or an affine expression (`h*E + e`, also a static `l`-`1`).
struct LeftIndex {
  enum Kind { Plain, Dots, Affine } kind = Plain;
  Name name;      ///< Plain
  ExprPtr extent; ///< Plain, may be null
  ExprPtr expr;   ///< Affine
  Range range;
};

/// name, or name[indices]
struct Left {
  Name name;
  bool hasIndices = false;
  std::vector<LeftIndex> indices;
  Range range;
};

/// s[b,h,i,j] = expr, or x = expr
struct EquationStmt : StmtOf<StmtKind::Equation> {
  Left left;
  ExprPtr right;
};

/// q, k, v = heads(x): several results in order; at least two names.
struct BindStmt : StmtOf<StmtKind::Bind> {
  std::vector<Name> names;
  ExprPtr right;
};

/// One thing that is returned: an equation, or a bare expression.
struct Result {
  std::optional<Left> left;
  ExprPtr right;
  Range range;
};
struct ReturnStmt : StmtOf<StmtKind::Return> {
  std::vector<Result> results; ///< at least one
};

/// param name: type @ "a" | "b". A statement with several names or groups
/// gives one ParamStmt per name.
struct ParamStmt : StmtOf<StmtKind::Param> {
  Name name;
  TypePtr type;
  /// The alternatives, StringExpr each; empty if none is given.
  std::vector<std::unique_ptr<StringExpr>> files;
};

/// dim name = value (one per name)
struct DimStmt : StmtOf<StmtKind::Dim> {
  Name name;
  ExprPtr value;
};

/// let name: type (one per name)
struct LetStmt : StmtOf<StmtKind::Let> {
  Name name;
  TypePtr type;
};

/// const name = value (one per name); in a block or in a file, and what a
/// `config` file defines (then all ranges are that of the config's path).
struct ConstStmt : StmtOf<StmtKind::Const> {
  Name name;
  ExprPtr value; ///< may be a TableExpr
};

/// for l in lo..hi { }
struct ForStmt : StmtOf<StmtKind::For> {
  Name var;
  ExprPtr lo, hi;
  Block body;
};

/// if c { } else { }; `else if` is an IfStmt alone in the other block.
struct IfStmt : StmtOf<StmtKind::If> {
  ExprPtr condition;
  Block thenBlock, elseBlock;
  bool hasElse = false;
};

/// S: type = init, the carried state of `scan` and `while`.
struct Carried {
  Name name;
  TypePtr type;
  /// Shared: `S, z: f32[E] = 0` gives both the value.
  std::shared_ptr<Expr> init;
};

/// scan t in lo..hi, S: type = init { }                          (later)
struct ScanStmt : StmtOf<StmtKind::Scan> {
  Name var;
  ExprPtr lo, hi;
  std::vector<Carried> state;
  Block body;
};

/// while c, S: type = init { }                                   (later)
struct WhileStmt : StmtOf<StmtKind::While> {
  ExprPtr condition;
  std::vector<Carried> state;
  Block body;
};

/// append(kc[l], k): a call that stands alone                     (later)
struct CallStmt : StmtOf<StmtKind::Call> {
  std::unique_ptr<CallExpr> call;
};

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

struct File;

/// A parameter of a `fn`, an input of a `model` or of an `entry`.
/// model: before `;` a type is there; after it a type, a default, or both.
/// fn: a type or none before `;`; a name without type after it is static.
struct Argument {
  Name name;
  TypePtr type;         ///< null: none written
  ExprPtr defaultValue; ///< null: none; may be a TableExpr
  bool afterSemicolon = false;
};

struct FnDecl {
  Name name;
  std::vector<Argument> args; ///< names are distinct
  Block body;                 ///< `fn f(x) = e` is a block of one return
  Range range;
  File *file = nullptr; ///< whose constants and functions the body sees
};

/// state kc: f32[L, N], len: i32 (one per name)                   (later)
struct StateDecl {
  Name name;
  TypePtr type;
};

/// entry step(ids: i32[B]) -> f32[B, V] { }                       (later)
struct EntryDecl {
  Name name;
  std::vector<Argument> args;
  std::vector<TypePtr> results; ///< empty if no `->` is written
  Block body;
  Range range;
};

struct ModelDecl {
  Name name;
  bool hasSignature = true; ///< false: `model gpt2 { ... }`
  std::vector<Argument> args;
  /// Statements. A model with entries has statements (params, dims, consts)
  /// that all entries share.
  Block body;
  std::vector<StateDecl> states;
  std::vector<EntryDecl> entries;
  Range range;
  File *file = nullptr;
};

struct ImportDecl {
  llvm::StringRef path;
  Range range;
  File *file = nullptr; ///< set by the loader; owned by the program
};

struct ConfigDecl {
  llvm::StringRef path;
  Range range;
  /// Set by the loader, in the file's order: numbers, bools, strings, and
  /// (nested) lists of numbers. Other entries are left out.
  std::vector<std::unique_ptr<ConstStmt>> values;
};

/// One source file, in the order of its text within each kind.
struct File {
  std::string path; ///< as shown in messages
  bool isLibrary = false;
  std::vector<ImportDecl> imports;
  std::vector<ConfigDecl> configs;
  std::vector<std::unique_ptr<ConstStmt>> consts;
  std::vector<std::unique_ptr<FnDecl>> fns;
  std::vector<std::unique_ptr<ModelDecl>> models;
};

//===----------------------------------------------------------------------===//
// Walking
//===----------------------------------------------------------------------===//

/// Calls `f` on the direct parts of an expression.
void forEachChild(const Expr &expr, llvm::function_ref<void(const Expr &)> f);

/// The expression without the parentheses around it.
const Expr &inParens(const Expr &expr);

} // namespace heed::ast

#endif // HEED_FRONTEND_HEED_AST_H
