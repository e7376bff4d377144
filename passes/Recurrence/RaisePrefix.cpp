//===- RaisePrefix.cpp - reductions over what comes before ----------------===//
//
// y[i] = sum_(j <= i) x[j], or a product, a maximum, a minimum: each is the one
// before with one term more, a recurrence. Likewise over what comes behind.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/CausalBound.h"
#include "passes/Recurrence/LinearMatch.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

std::optional<CausalBound> matchCausalBound(ExprRef condition, unsigned key,
                                            ArrayRef<unsigned> outputs) {
  if (!condition->isOp("arith.cmpi"))
    return std::nullopt;
  ExprRef sides[] = {Exprs::stripExtension(condition->operand(0)),
                     Exprs::stripExtension(condition->operand(1))};
  using Predicate = arith::CmpIPredicate;
  Predicate predicate =
      cast<arith::CmpIPredicateAttr>(
          cast<DictionaryAttr>(condition->attr).get("predicate"))
          .getValue();
  bool isStrict = predicate == Predicate::slt || predicate == Predicate::sgt;
  if (!isStrict && predicate != Predicate::sle && predicate != Predicate::sge)
    return std::nullopt;
  if (predicate == Predicate::sge || predicate == Predicate::sgt)
    std::swap(sides[0], sides[1]);
  if (sides[0]->kind != ExprKind::Var || sides[1]->kind != ExprKind::Var)
    return std::nullopt;
  // The key is below, or above.
  bool isBehind = sides[1]->number == key;
  unsigned query = sides[isBehind ? 0 : 1]->number;
  if ((sides[0]->number != key && !isBehind) ||
      !llvm::is_contained(outputs, query))
    return std::nullopt;
  return CausalBound{query, isStrict, isBehind};
}

bool raisePrefix(linalg::LinalgOp reduction) {
  Exprs exprs(reduction.getContext());
  Value result = reduction->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  if (llvm::is_contained(type.getShape(), 0) ||
      type.getElementType().isInteger(1))
    return false;
  SmallVector<unsigned> outputs, summed;
  SmallVector<ExprRef> at;
  exprs.indexVars(result, outputs, at);
  ExprRef written = exprs.expand(result, at);
  if (!written || written->kind != ExprKind::Reduce)
    return false;
  ExprRef body = exprs.open(written, summed);
  if (summed.size() != 1 ||
      (body->kind != ExprKind::If && !body->isOp("arith.select")))
    return false;
  std::optional<CausalBound> bound =
      matchCausalBound(body->operand(0), summed[0], outputs);
  OpBuilder b(reduction);
  TypedAttr neutral =
      neutralElement(b, written->name->getStringRef(), written->type);
  ExprRef element = body->operand(1);
  if (!bound || element->uses(bound->query) ||
      body->operand(2) != exprs.constant(neutral) ||
      exprs.extent(bound->query) != exprs.extent(summed[0]))
    return false;
  Location loc = reduction.getLoc();
  SmallVector<unsigned> vars(outputs);
  auto *place = llvm::find(vars, bound->query);
  int64_t axis = place - vars.begin();
  vars.erase(place);
  Value start = writeTensor(b, loc, exprs, exprs.constant(neutral), vars);
  SmallVector<Value> sizes;
  for (auto [k, v] : llvm::enumerate(outputs))
    if (type.isDynamicDim(k))
      sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  Value out = tensor::EmptyOp::create(b, loc, type, sizes);
  Value low = arith::ConstantIndexOp::create(b, loc, 0);
  Value high = writeExtent(b, loc, exprs.extent(bound->query));
  bool isReversed =
      bound->isBehind != mutated("raise-linear-attention.other-end");
  auto scan = attn::ScanOp::create(b, loc, low, high, ValueRange(start),
                                   ValueRange(out), {axis}, {isReversed});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&scan.getBody().front());
  ExprRef step = exprs.scalar(scan.step());
  Type index = b.getIndexType();
  if (bound->isBehind)
    step = exprs.op("arith.subi", index,
                    {exprs.op("arith.subi", index,
                              {exprs.extent(bound->query), exprs.index(1)}),
                     step});
  DenseMap<unsigned, ExprRef> turn;
  turn[summed[0]] = step;
  SmallVector<ExprRef> own;
  for (unsigned v : vars)
    own.push_back(exprs.var(v));
  ExprRef old = exprs.read(scan.carried()[0], own);
  Value next = writeTensor(
      b, loc, exprs,
      exprs.op(*written->name, DictionaryAttr::get(b.getContext()),
               written->type, {old, exprs.substitute(element, turn)}),
      vars);
  if (next.getType() != start.getType())
    next = tensor::CastOp::create(b, loc, start.getType(), next);
  bool isBefore =
      bound->isStrict != mutated("raise-linear-attention.other-row");
  attn::StepOp::create(b, loc, ValueRange(next),
                       ValueRange(isBefore ? scan.carried()[0] : next));
  remarkDone(reduction, raiseLinearPass, "recurrence",
             bound->isBehind
                 ? "a reduction over what comes behind: a recurrence"
                 : "a reduction over what comes before: a recurrence");
  result.replaceAllUsesWith(scan.getStacked()[0]);
  return true;
}

} // namespace heed
