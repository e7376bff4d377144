//===- RaisePrefix.cpp - reductions over what comes before ----------------===//
//
// y[i] = sum_(j <= i) x[j], or a product, a maximum, a minimum: each is the one
// before with one term more, a recurrence. Likewise over what comes behind.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/CausalBound.h"
#include "passes/Recurrence/RaiseLinearAttention.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

namespace {

/// A reduction of \p term over what comes before a query.
struct Prefix {
  SmallVector<unsigned> outputs;
  unsigned key = 0;
  CausalBound bound;
  OperationName combiner;
  TypedAttr neutral;
  ExprRef term;
  bool isTruth = false; ///< the state is a number for it: 1 or 0
};

/// A prefix of truth values as one of numbers, which kernels keep.
void count(Exprs &exprs, Prefix &prefix) {
  bool isAny = prefix.combiner.getStringRef() == "arith.ori";
  Type number = IntegerType::get(exprs.context, 32);
  prefix.isTruth = true;
  prefix.combiner =
      OperationName(isAny ? "arith.maxsi" : "arith.minsi", exprs.context);
  prefix.neutral = IntegerAttr::get(number, !isAny);
  prefix.term = exprs.op("arith.extui", number, {prefix.term});
}

std::optional<Prefix> matchPrefix(Exprs &exprs, linalg::LinalgOp reduction) {
  Value result = reduction->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  if (llvm::is_contained(type.getShape(), 0))
    return std::nullopt;
  SmallVector<unsigned> outputs, keys;
  SmallVector<ExprRef> at;
  exprs.indexVars(result, outputs, at);
  ExprRef written = exprs.expand(result, at);
  if (!written || written->kind != ExprKind::Reduce)
    return std::nullopt;
  ExprRef body = exprs.open(written, keys);
  if (keys.size() != 1 ||
      (body->kind != ExprKind::If && !body->isOp("arith.select")))
    return std::nullopt;
  std::optional<CausalBound> bound =
      matchCausalBound(body->operand(0), keys[0], outputs);
  Builder b(exprs.context);
  TypedAttr neutral =
      neutralElement(b, written->name->getStringRef(), written->type);
  if (!bound || body->operand(1)->uses(bound->query) ||
      body->operand(2) != exprs.constant(neutral) ||
      exprs.extent(bound->query) != exprs.extent(keys[0]))
    return std::nullopt;
  Prefix prefix{outputs,        keys[0], *bound,
                *written->name, neutral, body->operand(1)};
  if (written->type.isInteger(1))
    count(exprs, prefix);
  return prefix;
}

/// The scan without its steps.
attn::ScanOp makeScan(OpBuilder &b, Location loc, Exprs &exprs,
                      const Prefix &prefix, RankedTensorType type,
                      ArrayRef<unsigned> vars) {
  Value start =
      writeTensor(b, loc, exprs, exprs.constant(prefix.neutral), vars);
  SmallVector<Value> sizes;
  for (auto [k, v] : llvm::enumerate(prefix.outputs))
    if (type.isDynamicDim(k))
      sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  Value out = tensor::EmptyOp::create(b, loc, type, sizes);
  Value low = arith::ConstantIndexOp::create(b, loc, 0);
  Value high = writeExtent(b, loc, exprs.extent(prefix.bound.query));
  int64_t axis =
      llvm::find(prefix.outputs, prefix.bound.query) - prefix.outputs.begin();
  bool isReversed =
      prefix.bound.isBehind != mutated("raise-linear-attention.other-end");
  return attn::ScanOp::create(b, loc, low, high, ValueRange(start),
                              ValueRange(out), {axis}, {isReversed});
}

/// One term more.
void writeStep(OpBuilder &b, attn::ScanOp scan, Exprs &exprs,
               const Prefix &prefix, ArrayRef<unsigned> vars) {
  Location loc = scan.getLoc();
  Type index = b.getIndexType();
  ExprRef step = exprs.scalar(scan.step());
  if (prefix.bound.isBehind)
    step = exprs.op("arith.subi", index,
                    {exprs.op("arith.subi", index,
                              {exprs.extent(prefix.key), exprs.index(1)}),
                     step});
  DenseMap<unsigned, ExprRef> turn;
  turn[prefix.key] = step;
  SmallVector<ExprRef> own;
  for (unsigned v : vars)
    own.push_back(exprs.var(v));
  Value carried = scan.carried()[0];
  ExprRef term = exprs.substitute(prefix.term, turn);
  Value next =
      writeTensor(b, loc, exprs,
                  exprs.op(prefix.combiner, DictionaryAttr::get(b.getContext()),
                           term->type, {exprs.read(carried, own), term}),
                  vars);
  next = castTo(b, next, carried.getType());
  bool isBefore =
      prefix.bound.isStrict != mutated("raise-linear-attention.other-row");
  Value row = isBefore ? carried : next;
  if (prefix.isTruth)
    row = castTo(
        b,
        writeTensor(b, loc, exprs,
                    exprs.compare(arith::CmpIPredicate::ne,
                                  exprs.read(row, own),
                                  exprs.constant(b.getI32IntegerAttr(0))),
                    vars),
        RankedTensorType::get(cast<RankedTensorType>(row.getType()).getShape(),
                              b.getI1Type()));
  attn::StepOp::create(b, loc, ValueRange(next), ValueRange(row));
}

} // namespace

bool raisePrefix(linalg::LinalgOp reduction) {
  Exprs exprs(reduction.getContext());
  std::optional<Prefix> prefix = matchPrefix(exprs, reduction);
  if (!prefix)
    return false;
  Value result = reduction->getResult(0);
  OpBuilder b(reduction);
  SmallVector<unsigned> vars(prefix->outputs);
  llvm::erase(vars, prefix->bound.query);
  attn::ScanOp scan = makeScan(b, reduction.getLoc(), exprs, *prefix,
                               cast<RankedTensorType>(result.getType()), vars);
  b.setInsertionPointToEnd(&scan.getBody().front());
  writeStep(b, scan, exprs, *prefix, vars);
  remarkDone(reduction, raiseLinearPass, "prefix",
             prefix->bound.isBehind
                 ? "a reduction over what comes behind: a recurrence"
                 : "a reduction over what comes before: a recurrence");
  result.replaceAllUsesWith(scan.getStacked()[0]);
  return true;
}

} // namespace heed
