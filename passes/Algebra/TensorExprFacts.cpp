//===- TensorExprFacts.cpp - what is known of an expression: constants, ---===//
// signs, affine forms, offsets.
#include "passes/Algebra/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace heed {

std::optional<int64_t> Exprs::constantInt(ExprRef expr) {
  if (expr->kind == ExprKind::Constant)
    if (auto value = dyn_cast<IntegerAttr>(expr->attr))
      return value.getValue().getBitWidth() == 1
                 ? int64_t(value.getValue().getZExtValue())
                 : value.getInt();
  return std::nullopt;
}
bool Exprs::isConstantInt(ExprRef expr, int64_t value) {
  return constantInt(expr) == value;
}

std::optional<double> Exprs::constantFloat(ExprRef expr) {
  if (expr->kind == ExprKind::Constant)
    if (auto value = dyn_cast<FloatAttr>(expr->attr))
      return value.getValueAsDouble();
  return std::nullopt;
}
bool Exprs::isMinusInfinity(ExprRef expr) {
  auto value = constantFloat(stripExtension(expr));
  return value && *value == -std::numeric_limits<double>::infinity();
}

ExprRef Exprs::stripExtension(ExprRef expr) {
  while (expr->isOp("arith.extf") || expr->isOp("arith.extsi") ||
         expr->isOp("arith.index_cast"))
    expr = expr->operand(0);
  return expr;
}

// A scalar of the host: sizes, their roots, products and quotients.
static bool isPositive(Value value) {
  FloatAttr real;
  IntegerAttr integer;
  if (matchPattern(value, m_Constant(&real)))
    return real.getValueAsDouble() > 0;
  if (matchPattern(value, m_Constant(&integer)))
    return integer.getInt() > 0;
  Operation *def = value.getDefiningOp();
  StringRef name = def ? def->getName().getStringRef() : "";
  if (name == "tensor.dim" || name == "math.sqrt" || name == "math.rsqrt" ||
      name == "math.exp")
    return true;
  static constexpr StringLiteral kept[] = {
      "arith.truncf",     "arith.extf", "arith.sitofp",
      "arith.index_cast", "arith.mulf", "arith.divf",
      "arith.addf",       "arith.muli", "arith.addi"};
  return llvm::is_contained(kept, name) &&
         llvm::all_of(def->getOperands(),
                      [](Value operand) { return isPositive(operand); });
}

bool Exprs::isPositive(ExprRef expr) {
  if (expr->kind == ExprKind::Scalar)
    return heed::isPositive(expr->value);
  if (auto value = constantFloat(expr))
    return *value > 0;
  if (auto value = constantInt(expr))
    return *value > 0;
  if (expr->kind == ExprKind::Read) {
    ExprRef expanded = expand(expr);
    return expanded && expanded->kind != ExprKind::Read && isPositive(expanded);
  }
  if (expr->isOp("math.exp") || expr->isOp("math.exp2") ||
      expr->isOp("math.sqrt") || expr->isOp("math.rsqrt"))
    return true;
  if (expr->isOp("arith.extf") || expr->isOp("arith.truncf") ||
      expr->isOp("arith.sitofp") || expr->isOp("arith.index_cast"))
    return isPositive(expr->operand(0));
  if (expr->isOp("arith.mulf") || expr->isOp("arith.divf") ||
      expr->isOp("arith.addf"))
    return isPositive(expr->operand(0)) && isPositive(expr->operand(1));
  return false;
}

AffineExpr Exprs::toAffine(ExprRef expr,
                           const DenseMap<unsigned, unsigned> &dims,
                           SmallVectorImpl<Value> &symbols) {
  expr = stripExtension(expr);
  if (!expr->type.isIntOrIndex() || expr->type.isInteger(1))
    return {};
  if (auto value = constantInt(expr))
    return getAffineConstantExpr(*value, context);
  if (expr->kind == ExprKind::Var) {
    auto found = dims.find(expr->number);
    return found == dims.end() ? AffineExpr()
                               : getAffineDimExpr(found->second, context);
  }
  if (expr->kind == ExprKind::Scalar) {
    Value value = expr->value;
    if (!value.getType().isIndex())
      return {}; // an integer of another width would need a cast outside
    auto *found = llvm::find(symbols, value);
    unsigned position = found - symbols.begin();
    if (found == symbols.end())
      symbols.push_back(value);
    return getAffineSymbolExpr(position, context);
  }
  if (expr->kind != ExprKind::Op || expr->operands.size() != 2)
    return {};
  AffineExpr a = toAffine(expr->operand(0), dims, symbols);
  AffineExpr b = a ? toAffine(expr->operand(1), dims, symbols) : AffineExpr();
  if (!a || !b)
    return {};
  if (expr->isOp("arith.addi"))
    return a + b;
  if (expr->isOp("arith.subi"))
    return a - b;
  // What stands beside a product or below a division must not hold a dim: that
  // is where semi-affine ends.
  if (expr->isOp("arith.muli") &&
      (a.isSymbolicOrConstant() || b.isSymbolicOrConstant()))
    return a.isSymbolicOrConstant() ? b * a : a * b;
  if (expr->isOp("arith.floordivsi") && b.isSymbolicOrConstant())
    return a.floorDiv(b);
  return {};
}

/// Of a comparison of integers: not as numbers without a sign.
static bool isSigned(ExprRef comparison) {
  using arith::CmpIPredicate;
  auto predicate = cast<DictionaryAttr>(comparison->attr)
                       .getAs<arith::CmpIPredicateAttr>("predicate")
                       .getValue();
  return predicate <= CmpIPredicate::sge;
}

ExprRef Exprs::byOffset(ExprRef expr, unsigned i, unsigned j, unsigned &offset,
                        ExprRef &shift) {
  ExprRef queries = extent(i), keys = extent(j);
  Type index = IndexType::get(context);
  shift = op("arith.subi", index, {queries, this->index(1)});
  // Without a pair there is none, lest a table read what has no element.
  ExprRef count = op("arith.maxsi", index,
                     {op("arith.addi", index, {shift, keys}), this->index(0)});
  offset = freshVar(op("arith.minsi", index,
                       {count, op("arith.muli", index, {queries, keys})}));
  ExprRef difference = op("arith.subi", index, {var(offset), shift}); // j - i
  DenseMap<unsigned, unsigned> dims{{i, 0}, {j, 1}};
  AffineExpr d0 = getAffineDimExpr(0, context),
             d1 = getAffineDimExpr(1, context);
  ExprRef table = replaceOutermost(expr, [&](ExprRef inner) -> ExprRef {
    if (!inner->uses(i) || !inner->uses(j) || inner->kind != ExprKind::Op)
      return nullptr;
    SmallVector<Value> scalars;
    // A comparison is one of the difference with 0.
    bool compares = inner->isOp("arith.cmpi") && isSigned(inner);
    AffineExpr affine;
    if (compares) {
      AffineExpr left = toAffine(inner->operand(0), dims, scalars);
      AffineExpr right =
          left ? toAffine(inner->operand(1), dims, scalars) : AffineExpr();
      affine = right ? left - right : right;
    } else {
      affine = toAffine(inner, dims, scalars);
    }
    if (!affine)
      return nullptr;
    for (int sign : {1, -1}) {
      AffineExpr rest =
          simplifyAffineExpr(affine - (d1 - d0) * sign, 2, scalars.size());
      if (!rest.isSymbolicOrConstant())
        continue;
      SmallVector<ExprRef> symbolExprs;
      for (Value s : scalars)
        symbolExprs.push_back(scalar(s));
      ExprRef constant = fromAffine(rest, {}, symbolExprs);
      ExprRef moved = op(sign == 1 ? "arith.addi" : "arith.subi", index,
                         {constant, difference});
      if (compares)
        return op(*inner->name, cast<DictionaryAttr>(inner->attr), inner->type,
                  {moved, this->index(0)});
      return op("arith.index_cast", inner->type, {moved});
    }
    return nullptr;
  });
  return table->uses(i) || table->uses(j) || !table->uses(offset) ? nullptr
                                                                  : table;
}

/// The bounds of the clamp that \p e is, of \p inner; of one pair of bounds,
/// whichever is applied first.
static bool matchClamp(ExprRef e, ExprRef &inner, ExprRef &low, ExprRef &high) {
  auto bound = [](ExprRef at, StringRef name, ExprRef &rest, ExprRef &limit) {
    if (!at->isOp(name))
      return false;
    for (int k : {0, 1})
      if (at->operand(k)->freeVars.empty()) {
        limit = at->operand(k);
        rest = at->operand(1 - k);
        return true;
      }
    return false;
  };
  ExprRef middle;
  return (bound(e, "arith.minsi", middle, high) &&
          bound(middle, "arith.maxsi", inner, low)) ||
         (bound(e, "arith.maxsi", middle, low) &&
          bound(middle, "arith.minsi", inner, high));
}

ExprRef Exprs::byClampedOffset(ExprRef expr, unsigned i, unsigned j,
                               unsigned &offset, ExprRef &shift) {
  unsigned all = 0;
  ExprRef table = byOffset(expr, i, j, all, shift);
  if (!table)
    return nullptr;
  // Each place of the offset stands in a clamp by the same bounds, of
  // `offset - shift` as byOffset writes it.
  Type index = IndexType::get(context);
  ExprRef difference = op("arith.subi", index, {var(all), shift});
  ExprRef low = nullptr, high = nullptr;
  ExprRef marked = replaceOutermost(table, [&](ExprRef e) -> ExprRef {
    ExprRef inner, l, h;
    if (!matchClamp(e, inner, l, h) || inner != difference ||
        !l->type.isIndex())
      return nullptr;
    if (low && (l != low || h != high))
      return nullptr;
    low = l;
    high = h;
    return this->index(0);
  });
  if (!low || marked->uses(all))
    return nullptr;
  // No more than the offsets that there are: j - i from 1 - N to M - 1.
  ExprRef one = this->index(1);
  ExprRef first = op("arith.maxsi", index,
                     {low, op("arith.subi", index, {this->index(0), shift})});
  ExprRef last = op("arith.minsi", index,
                    {high, op("arith.subi", index, {extent(j), one})});
  ExprRef count =
      op("arith.addi", index, {op("arith.subi", index, {last, first}), one});
  // Without a pair there is none, lest a table read what has no element.
  ExprRef pairs = op("arith.muli", index, {extent(i), extent(j)});
  offset = freshVar(op("arith.minsi", index,
                       {op("arith.maxsi", index, {count, one}), pairs}));
  ExprRef at = op("arith.addi", index, {var(offset), first});
  shift = op("arith.subi", index, {this->index(0), first});
  return replaceOutermost(
      table, [&](ExprRef e) { return e == difference ? at : nullptr; });
}

} // namespace heed
