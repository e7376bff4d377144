//===- TensorExpr.h - an element as an expression ---------------*- C++ -*-===//
//
// Every value-semantics op on tensors is a function from indices to a scalar.
// This view inlines such functions into one another, so that a pass can match
// by meaning and not by how the ops were spelled or split. Nodes are
// hash-consed: equal expressions are one pointer, also up to the names of
// reduction indices and the order of operands of commutative ops.
//
// Used by attn-fuse-elementwise, attn-raise-attention, attn-reorder-products.
#ifndef HEED_PASSES_ALGEBRA_TENSOREXPR_H
#define HEED_PASSES_ALGEBRA_TENSOREXPR_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Allocator.h"
#include <deque>
#include <optional>

namespace mlir::arith {
enum class CmpIPredicate : uint64_t;
enum class CmpFPredicate : uint64_t;
} // namespace mlir::arith

namespace heed {

enum class ExprKind {
  Constant, // attr
  Var,      // a loop index, number is its name
  Scalar,   // an SSA scalar from outside: value
  Op,       // name, attrs, operands: a pure scalar op of one result
  Read,     // value[operands]: an element of a tensor
  If,     // operands: condition, then, else; only the taken branch is evaluated
  Reduce, // name(combiner) over binders; operands: body, then one extent per
          // binder
};

/// An immutable node. Lives as long as its Exprs.
class Expr : public llvm::FoldingSetNode {
public:
  ExprKind kind;
  mlir::Type type;
  unsigned id =
      0; // order of creation: makes every order in this analysis deterministic
  unsigned number = 0;
  unsigned depth = 0; // nesting of Reduce
  mlir::Attribute attr;
  std::optional<mlir::OperationName> name;
  mlir::Value value;
  llvm::SmallVector<const Expr *, 3> operands;
  llvm::SmallVector<unsigned, 2> binders;
  llvm::SmallVector<unsigned, 4> freeVars; // sorted

  bool uses(unsigned var) const { return llvm::is_contained(freeVars, var); }
  bool usesAny(llvm::ArrayRef<unsigned> vars) const {
    return llvm::any_of(vars, [&](unsigned v) { return uses(v); });
  }
  bool isOp(llvm::StringRef opName) const {
    return kind == ExprKind::Op && name->getStringRef() == opName;
  }
  const Expr *operand(unsigned k) const { return operands[k]; }
  /// Body of a reduction.
  const Expr *body() const { return operands[0]; }
  bool isReduceBy(llvm::StringRef opName) const {
    return kind == ExprKind::Reduce && name->getStringRef() == opName;
  }
  bool isSum() const {
    return isReduceBy("arith.addf") || isReduceBy("arith.addi");
  }

  void Profile(llvm::FoldingSetNodeID &key) const;
};
using ExprRef = const Expr *;

/// One turn of a reduction: what a term makes of the results before.
struct ReductionTurn {
  llvm::SmallVector<unsigned> outputs, reduced; ///< loops
  llvm::SmallVector<ExprRef> before, next;      ///< of each result
};

/// Owner and maker of expressions over the tensors of one function.
class Exprs {
public:
  explicit Exprs(mlir::MLIRContext *context) : context(context) {}
  mlir::MLIRContext *context;

  // ---- Makers
  // -----------------------------------------------------------------------------
  ExprRef constant(mlir::TypedAttr value);
  ExprRef index(int64_t value);
  ExprRef truth(bool value);
  ExprRef scalar(mlir::Value value);
  ExprRef fold(mlir::OpFoldResult index);
  /// A new loop index. \p extent is its range's end, null if nobody will ask.
  unsigned freshVar(ExprRef extent = nullptr);
  ExprRef var(unsigned number) {
    return parameter(number, mlir::IndexType::get(context));
  }
  /// A variable of another type than index: stands for a scalar that is given
  /// later.
  ExprRef parameter(unsigned number, mlir::Type type);
  ExprRef op(mlir::OperationName name, mlir::DictionaryAttr attrs,
             mlir::Type type, llvm::ArrayRef<ExprRef> operands);
  ExprRef op(llvm::StringRef name, mlir::Type type,
             llvm::ArrayRef<ExprRef> operands);
  ExprRef read(mlir::Value tensor, llvm::ArrayRef<ExprRef> indices);
  ExprRef select(ExprRef condition, ExprRef yes, ExprRef no, bool guard);
  /// \p value, but \p instead where the range of one of \p vars is empty. A
  /// sum over nothing is 0 by whatever it was divided.
  ExprRef unlessEmpty(llvm::ArrayRef<unsigned> vars, ExprRef value,
                      ExprRef instead);
  ExprRef compare(mlir::arith::CmpIPredicate predicate, ExprRef a, ExprRef b);
  ExprRef compare(mlir::arith::CmpFPredicate predicate, ExprRef a, ExprRef b);
  ExprRef logicalAnd(ExprRef a, ExprRef b);
  ExprRef logicalNot(ExprRef a);
  /// Reduction of \p body over the free variables \p vars.
  ExprRef reduce(mlir::OperationName combiner, llvm::ArrayRef<unsigned> vars,
                 ExprRef body);

  /// The body of \p reduce over new variables, which \p vars receives.
  ExprRef open(ExprRef reduce, llvm::SmallVectorImpl<unsigned> &vars);
  ExprRef extent(unsigned var) const { return extents.lookup(var); }
  void setExtent(unsigned var, ExprRef extent) { extents[var] = extent; }
  /// How many nodes there are.
  size_t size() const { return storage.size(); }

  // ---- From IR
  // ----------------------------------------------------------------------------
  /// Is \p op a tensor op whose elements `element` can express?
  static bool isExpressible(mlir::Operation *op);
  /// Is \p op expressible without a reduction?
  static bool isElementwise(mlir::Operation *op);
  /// Does \p op only read the same elements in another shape? `expand` sees
  /// through it; where that is no gain, it is a view.
  static bool isReshape(mlir::Operation *op);
  /// The element of \p tensor at \p indices, one step: in terms of reads of
  /// what its defining op reads. Null if the defining op is not expressible.
  ExprRef expand(mlir::Value tensor, llvm::ArrayRef<ExprRef> indices);
  /// New loop indices for the axes of \p tensor, as numbers and as expressions.
  void indexVars(mlir::Value tensor, llvm::SmallVectorImpl<unsigned> &vars,
                 llvm::SmallVectorImpl<ExprRef> &at);
  ExprRef expand(ExprRef read) { return expand(read->value, read->operands); }
  /// A turn of \p op, all of whose results have the same axes. None if it is
  /// inexpressible.
  std::optional<ReductionTurn> turnOf(mlir::Operation *op);
  /// The value that \p block's terminator yields as its \p result, for these
  /// arguments. Null if inexpressible.
  ExprRef block(mlir::Block &block, llvm::ArrayRef<ExprRef> arguments,
                unsigned result = 0);
  /// The extent of an axis as a constant or an SSA index that dominates every
  /// use of the tensor.
  ExprRef extentOf(mlir::Value tensor, unsigned axis);
  /// Where \p size is not positive nothing is computed: what a call requires
  /// but then holds.
  void assumePositive(mlir::Value size) { positive = size; }
  ExprRef fromAffine(mlir::AffineExpr expr, llvm::ArrayRef<ExprRef> dims,
                     llvm::ArrayRef<ExprRef> symbols = {});

  // ---- Rewriting
  // --------------------------------------------------------------------------
  ExprRef substitute(ExprRef expr,
                     const llvm::DenseMap<unsigned, ExprRef> &values);
  /// Bottom-up; \p replace returns null to keep a (rebuilt) node. Bodies of
  /// reductions are visited with new variables.
  ExprRef rewrite(ExprRef expr, llvm::function_ref<ExprRef(ExprRef)> replace);
  /// Top-down, outside of reductions: \p replace returns null to go on into the
  /// operands.
  ExprRef replaceOutermost(ExprRef expr,
                           llvm::function_ref<ExprRef(ExprRef)> replace);
  /// Expands reads for which \p wanted holds, and reads in what comes of them,
  /// as far as they are expressible.
  ExprRef expandReads(ExprRef expr, llvm::function_ref<bool(ExprRef)> wanted);
  /// Calls \p visit on every node once, operands first. Bodies of reductions
  /// are seen with their bound variables.
  static void walk(ExprRef expr, llvm::function_ref<void(ExprRef)> visit);

  // ---- Classification
  // ---------------------------------------------------------------------
  static bool isConstantInt(ExprRef expr, int64_t value);
  static std::optional<int64_t> constantInt(ExprRef expr);
  static std::optional<double> constantFloat(ExprRef expr);
  static bool isMinusInfinity(ExprRef expr);
  /// Provably > 0 (or >= 0 where only +0 on empty shapes is the exception):
  /// constants, sqrt, exp, products of such.
  bool isPositive(ExprRef expr);
  /// Operand of extf, index_cast, extsi: the same number in another type.
  /// Otherwise \p expr itself.
  static ExprRef stripExtension(ExprRef expr);
  /// As an affine expression; \p dims gives the position of loop variables, \p
  /// symbols collects scalars. Semi-affine (a symbol times a dim, division by a
  /// symbol) is allowed. Fails on anything else.
  mlir::AffineExpr toAffine(ExprRef expr,
                            const llvm::DenseMap<unsigned, unsigned> &dims,
                            llvm::SmallVectorImpl<mlir::Value> &symbols);

  /// \p expr, if it depends on \p i and \p j only through j - i, over the new
  /// variable \p offset = j - i + \p shift, shift = extent(i) - 1. Else null.
  ExprRef byOffset(ExprRef expr, unsigned i, unsigned j, unsigned &offset,
                   ExprRef &shift);
  /// The same where offsets beyond some bounds make no difference, since each
  /// is clamped between two numbers from outside: over the offsets between
  /// these alone. Beyond its ends it goes on as at its ends. There is one
  /// at least if there is a pair. Null where nothing is clamped.
  ExprRef byClampedOffset(ExprRef expr, unsigned i, unsigned j,
                          unsigned &offset, ExprRef &shift);

  // ---- To IR
  // ------------------------------------------------------------------------------
  void print(ExprRef expr, llvm::raw_ostream &os);
  std::string str(ExprRef expr);

private:
  ExprRef intern(Expr &&node);
  /// What a cast, or an op on integers, is as something simpler, or null.
  ExprRef simplifyCast(mlir::OperationName name, mlir::DictionaryAttr attrs,
                       mlir::Type type, ExprRef inner);
  ExprRef simplifyIntegers(llvm::StringRef name, mlir::Type type,
                           llvm::ArrayRef<ExprRef> operands);
  /// \p size, or the first dim or constant that the model requires it to be.
  ExprRef sizeOf(mlir::Value size);
  bool isRequired(mlir::Value condition);
  ExprRef reshaped(mlir::Operation *op, llvm::ArrayRef<ExprRef> indices);
  ExprRef generic(mlir::Operation *op, mlir::Value result,
                  llvm::ArrayRef<ExprRef> indices);
  ExprRef evaluate(mlir::Value value,
                   llvm::DenseMap<mlir::Value, ExprRef> &known,
                   mlir::Block *within);

  llvm::FoldingSet<Expr> nodes;
  std::deque<Expr> storage;
  llvm::DenseMap<unsigned, ExprRef> extents;
  mlir::Value positive;
  unsigned nextVar = firstFree;
  static constexpr unsigned firstFree = 1u << 20;
};

/// Writes expressions as ops at a builder's position. Reductions can't be
/// written: replace them by reads before.
class ExprWriter {
public:
  ExprWriter(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}
  void bind(unsigned var, mlir::Value value) { vars[var] = value; }
  void bind(ExprRef expr, mlir::Value value) { scopes.back()[expr] = value; }
  mlir::Value write(ExprRef expr);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  llvm::DenseMap<unsigned, mlir::Value> vars;
  llvm::SmallVector<llvm::DenseMap<ExprRef, mlir::Value>, 2> scopes{1};
};

/// A tensor of \p body over \p vars in this order, as a `linalg.generic` at the
/// builder's position. A reduction may be the whole body or stand anywhere in
/// it: inner ones become tensors of their own. Reads at plain loop indices
/// become operands of the generic, others `tensor.extract` in its body.
mlir::Value writeTensor(mlir::OpBuilder &builder, mlir::Location loc,
                        Exprs &exprs, ExprRef body,
                        llvm::ArrayRef<unsigned> vars);

/// What a reduction by \p combiner is over nothing.
mlir::TypedAttr neutralElement(mlir::Builder &builder, llvm::StringRef combiner,
                               mlir::Type type);

/// An extent as an SSA index at the builder's position.
mlir::Value writeExtent(mlir::OpBuilder &builder, mlir::Location loc,
                        ExprRef extent);

/// Erases \p op if nobody reads it, then what only it read; \p erased collects
/// them.
void eraseDeadOps(mlir::Operation *op,
                  llvm::DenseSet<mlir::Operation *> &erased);

} // namespace heed
#endif
