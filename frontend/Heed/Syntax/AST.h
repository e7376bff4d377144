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

#ifndef HEED_FRONTEND_HEED_SYNTAX_AST_H
#define HEED_FRONTEND_HEED_SYNTAX_AST_H

#include "Expr.h"

namespace heed::ast {

struct File;

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

/// s[b,h,i,j] = expr, or x = expr; of an update of a state also `where cond`
struct EquationStmt : StmtOf<StmtKind::Equation> {
  Left left;
  ExprPtr right;
  ExprPtr where; ///< may be null
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
  /// Whose names the value means; null: what is around it.
  const File *file = nullptr;
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

/// A parameter of a `fn`, an input of a `model` or of an `entry`.
/// model: before `;` a type is there; after it a type, a default, or both.
/// fn: a type or none before `;`; a name without type after it is static.
struct Argument {
  Name name;
  TypePtr type;         ///< null: none written
  ExprPtr defaultValue; ///< null: none; may be a TableExpr
  bool afterSemicolon = false;
  bool isState = false; ///< of a fn: a state of the caller, which it changes
};

struct FnDecl {
  Name name;
  std::vector<Argument> args; ///< names are distinct
  Block body;                 ///< `fn f(x) = e` is a block of one return
  Range range;
  File *file = nullptr; ///< whose constants and functions the body sees
};

/// state kc: f32[L, N], most: f32[B] = -inf (one per name)
struct StateDecl {
  Name name;
  TypePtr type;
  /// Null: it starts with zeros. Shared by the names before it.
  std::shared_ptr<Expr> start;
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
  /// What stands behind the path, for entries that the file lacks. The loader
  /// moves those to `values` that it takes.
  std::vector<std::unique_ptr<ConstStmt>> defaults;
  /// Set by the loader, by name: numbers, bools, strings, none, (nested) lists
  /// of them, and records of all that. Other entries are left out.
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

} // namespace heed::ast

#endif // HEED_FRONTEND_HEED_SYNTAX_AST_H
