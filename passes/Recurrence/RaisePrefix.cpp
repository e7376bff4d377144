//===- RaisePrefix.cpp - reductions over what comes before ----------------===//
//
// y[i] = sum_(j <= i) x[j], or a product, a maximum, a minimum: each is the one
// before with one term more, a recurrence. Likewise over what comes behind. A
// sum of exp(x[j] - m[i]), m[i] the maximum of what it sums, is the one before
// times exp(m[i - 1] - m[i]), which is 1 at most. Over those of the same
// segment it begins anew with each, if equal segments lie together: a call sees
// to that.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Products.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/CausalBound.h"
#include "passes/Recurrence/RaiseLinearAttention.h"
#include "passes/Recurrence/WidenSums.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
  bool isTruth = false;      ///< the state is a number for it: 1 or 0
  bool isLong = false;       ///< the state is an f64: an f32 rounds too often
  ExprRef peak = nullptr;    ///< of a query: what the terms are stabilised by
  Product outside = {};      ///< of a query alone
  ExprRef segment = nullptr; ///< of a query: keys of the same alone
};

/// Whether \p peak, of a query, is the maximum of \p score over what the bound
/// has.
bool isPeak(Exprs &exprs, ExprRef peak, ExprRef score, unsigned key,
            const CausalBound &bound, ArrayRef<unsigned> outputs,
            ExprRef seen) {
  ExprRef maximum = exprs.expand(peak);
  std::optional<CausalReduction> own =
      matchCausalReduction(exprs, maximum, outputs);
  if (!own || !maximum->isReduceBy("arith.maximumf"))
    return false;
  DenseMap<unsigned, ExprRef> rename;
  rename[own->key] = exprs.var(key);
  if (own->seen)
    own->seen = exprs.substitute(own->seen, rename);
  return own->bound.query == bound.query && own->seen == seen &&
         !own->segment && own->bound.isBehind == bound.isBehind &&
         own->bound.isStrict == bound.isStrict &&
         exprs.substitute(own->term, rename) == score;
}

/// Takes out of the term of a sum what is of the query: factors, and the
/// maximum that an exponential is stabilised by. Whether it is of the key alone
/// then, but for that. \p seen: what a key must fulfil.
bool splitTerm(Exprs &exprs, Prefix &prefix, ExprRef seen) {
  unsigned query = prefix.bound.query;
  Product all, inside;
  flatten(exprs, prefix.term, all);
  for (ExprRef e : all.over) {
    if (!e->uses(query)) {
      inside.over.push_back(e);
    } else if (!e->uses(prefix.key)) {
      prefix.outside.over.push_back(e);
    } else {
      if (prefix.peak || prefix.bound.isStrict || !e->isOp("math.exp") ||
          !e->operand(0)->isOp("arith.subf"))
        return false;
      ExprRef score = e->operand(0)->operand(0);
      prefix.peak = e->operand(0)->operand(1);
      if (score->uses(query) || prefix.peak->uses(prefix.key) ||
          prefix.peak->kind != ExprKind::Read ||
          !isPeak(exprs, prefix.peak, score, prefix.key, prefix.bound,
                  prefix.outputs, seen))
        return false;
      inside.over.push_back(e);
    }
  }
  for (ExprRef e : all.under) {
    if (e->uses(query) && e->uses(prefix.key))
      return false;
    (e->uses(query) ? prefix.outside : inside).under.push_back(e);
  }
  prefix.term = multiply(exprs, inside.over, inside.under);
  // A query that sees no key meets nothing that stands outside.
  return !seen || (prefix.outside.over.empty() && prefix.outside.under.empty());
}

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
  SmallVector<unsigned> outputs;
  SmallVector<ExprRef> at;
  exprs.indexVars(result, outputs, at);
  ExprRef written = exprs.expand(result, at);
  std::optional<CausalReduction> causal =
      matchCausalReduction(exprs, written, outputs);
  if (!causal)
    return std::nullopt;
  Builder b(exprs.context);
  Prefix prefix{outputs,
                causal->key,
                causal->bound,
                *written->name,
                neutralElement(b, written->name->getStringRef(), written->type),
                causal->term};
  prefix.segment = causal->segment;
  if (prefix.term->uses(prefix.bound.query) &&
      (!written->isReduceBy("arith.addf") || !written->type.isF32() ||
       prefix.segment || !splitTerm(exprs, prefix, causal->seen)))
    return std::nullopt;
  if (causal->seen)
    prefix.term =
        exprs.select(causal->seen, prefix.term, exprs.constant(prefix.neutral),
                     causal->isGuarded);
  if (written->type.isInteger(1))
    count(exprs, prefix);
  prefix.isLong = (prefix.combiner.getStringRef() == "arith.addf" ||
                   prefix.combiner.getStringRef() == "arith.mulf") &&
                  prefix.term->type.isF32() &&
                  roundsTooOften(Exprs::constantInt(exprs.extent(prefix.key)));
  if (prefix.isLong)
    prefix.neutral =
        neutralElement(b, written->name->getStringRef(), b.getF64Type());
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

/// \p element of the query of \p step, as that of the query that was before
/// it. The first has itself.
ExprRef ofLast(Exprs &exprs, const Prefix &prefix, ExprRef element,
               ExprRef step) {
  Type index = step->type;
  ExprRef one = exprs.index(1),
          end = exprs.op("arith.subi", index,
                         {exprs.extent(prefix.bound.query), one});
  DenseMap<unsigned, ExprRef> turn;
  turn[prefix.bound.query] =
      prefix.bound.isBehind
          ? exprs.op("arith.minsi", index,
                     {exprs.op("arith.addi", index, {step, one}), end})
          : exprs.op(
                "arith.maxsi", index,
                {exprs.op("arith.subi", index, {step, one}), exprs.index(0)});
  return exprs.substitute(element, turn);
}

/// \p old, a sum by the maximum before this step, by that behind it. Of terms
/// that were all by -inf nothing is left; \p isFirst, there were none.
ExprRef rescaled(Exprs &exprs, const Prefix &prefix, ExprRef old,
                 const DenseMap<unsigned, ExprRef> &now, ExprRef step,
                 ExprRef isFirst) {
  Type real = old->type;
  ExprRef peak = ofLast(exprs, prefix, prefix.peak, step),
          next = exprs.substitute(prefix.peak, now);
  ExprRef nothing = exprs.constant(
      FloatAttr::get(peak->type, -std::numeric_limits<double>::infinity()));
  peak = exprs.select(isFirst, nothing, peak, /*guard=*/false);
  ExprRef scaled = exprs.op(
      "arith.mulf", real,
      {inType(exprs, real,
              exprs.op("math.exp", peak->type,
                       {exprs.op("arith.subf", peak->type, {peak, next})})),
       old});
  ExprRef isNothing = exprs.compare(arith::CmpFPredicate::OEQ, peak, nothing);
  return exprs.select(isNothing, exprs.constant(FloatAttr::get(real, 0.0)),
                      scaled, /*guard=*/false);
}

/// What is of a query alone, beside the sum of its terms.
Value withOutside(OpBuilder &b, Location loc, Exprs &exprs,
                  const Prefix &prefix, Value sums) {
  if (prefix.outside.over.empty() && prefix.outside.under.empty())
    return sums;
  SmallVector<ExprRef> at;
  for (unsigned v : prefix.outputs)
    at.push_back(exprs.var(v));
  SmallVector<ExprRef> over{exprs.read(sums, at)};
  over.append(prefix.outside.over);
  ExprRef element = multiply(exprs, over, prefix.outside.under);
  // It meets no term where there is none.
  if (prefix.bound.isStrict) {
    ExprRef query = exprs.var(prefix.bound.query);
    ExprRef none = exprs.index(0);
    if (prefix.bound.isBehind)
      none = exprs.op("arith.subi", query->type,
                      {exprs.extent(prefix.bound.query), exprs.index(1)});
    element = exprs.select(exprs.compare(arith::CmpIPredicate::eq, query, none),
                           exprs.constant(FloatAttr::get(element->type, 0.0)),
                           element,
                           /*guard=*/false);
  }
  return writeTensor(b, loc, exprs, element, prefix.outputs);
}

/// The row that \p state is, read at \p own, of \p type.
Value rowOf(OpBuilder &b, Location loc, Exprs &exprs, const Prefix &prefix,
            Value state, ArrayRef<ExprRef> own, Type type,
            ArrayRef<unsigned> vars) {
  ExprRef element = exprs.read(state, own);
  element = prefix.isTruth
                ? exprs.compare(arith::CmpIPredicate::ne, element,
                                exprs.constant(b.getI32IntegerAttr(0)))
                : inType(exprs, type, element);
  auto shape = cast<RankedTensorType>(state.getType()).getShape();
  return castTo(b, writeTensor(b, loc, exprs, element, vars),
                RankedTensorType::get(shape, element->type));
}

/// One term more.
void writeStep(OpBuilder &b, attn::ScanOp scan, Exprs &exprs,
               const Prefix &prefix, ArrayRef<unsigned> vars) {
  Location loc = scan.getLoc();
  Type index = b.getIndexType();
  ExprRef step = exprs.scalar(scan.step());
  ExprRef isFirst =
      exprs.compare(arith::CmpIPredicate::eq, step, exprs.index(0));
  if (prefix.bound.isBehind)
    step = exprs.op("arith.subi", index,
                    {exprs.op("arith.subi", index,
                              {exprs.extent(prefix.key), exprs.index(1)}),
                     step});
  DenseMap<unsigned, ExprRef> turn;
  turn[prefix.key] = step;
  turn[prefix.bound.query] = step;
  SmallVector<ExprRef> own;
  for (unsigned v : vars)
    own.push_back(exprs.var(v));
  Value carried = scan.carried()[0];
  ExprRef old = exprs.read(carried, own),
          term = exprs.substitute(prefix.term, turn);
  Type rowType = term->type;
  if (prefix.isLong)
    term = inType(exprs, old->type, term);
  if (prefix.peak)
    old = rescaled(exprs, prefix, old, turn, step, isFirst);
  if (prefix.segment)
    old =
        exprs.select(exprs.compare(arith::CmpIPredicate::eq,
                                   ofLast(exprs, prefix, prefix.segment, step),
                                   exprs.substitute(prefix.segment, turn)),
                     old, exprs.constant(prefix.neutral), /*guard=*/false);
  Value next =
      writeTensor(b, loc, exprs,
                  exprs.op(prefix.combiner, DictionaryAttr::get(b.getContext()),
                           term->type, {old, term}),
                  vars);
  next = castTo(b, next, carried.getType());
  bool isBefore =
      prefix.bound.isStrict != mutated("raise-linear-attention.other-row");
  Value row = isBefore ? carried : next;
  if (isBefore && prefix.segment)
    row = castTo(b, writeTensor(b, loc, exprs, old, vars), carried.getType());
  if (prefix.isTruth || prefix.isLong)
    row = rowOf(b, loc, exprs, prefix, row, own, rowType, vars);
  attn::StepOp::create(b, loc, ValueRange(next), ValueRange(row));
}

/// The recurrence, and what stands outside of it.
Value writePrefix(OpBuilder &b, Location loc, Exprs &exprs,
                  const Prefix &prefix, RankedTensorType type) {
  SmallVector<unsigned> vars(prefix.outputs);
  llvm::erase(vars, prefix.bound.query);
  attn::ScanOp scan = makeScan(b, loc, exprs, prefix, type, vars);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&scan.getBody().front());
    writeStep(b, scan, exprs, prefix, vars);
  }
  return castTo(b, withOutside(b, loc, exprs, prefix, scan.getStacked()[0]),
                type);
}

/// Whether segments only rise, or only fall: equal ones lie together then.
Value areSorted(OpBuilder &b, Location loc, Exprs &exprs,
                const Prefix &prefix) {
  unsigned query = prefix.bound.query;
  Type index = b.getIndexType();
  ExprRef one = exprs.index(1),
          end = exprs.op("arith.subi", index, {exprs.extent(query), one});
  DenseMap<unsigned, ExprRef> turn;
  turn[query] =
      exprs.op("arith.minsi", index,
               {exprs.op("arith.addi", index, {exprs.var(query), one}), end});
  ExprRef behind = exprs.substitute(prefix.segment, turn);
  auto any = [&](arith::CmpIPredicate predicate) -> Value {
    ExprRef found = exprs.reduce(
        OperationName("arith.ori", exprs.context), prefix.segment->freeVars,
        exprs.compare(predicate, behind, prefix.segment));
    return tensor::ExtractOp::create(
        b, loc, writeTensor(b, loc, exprs, found, {}), ValueRange());
  };
  Value rises = any(arith::CmpIPredicate::sgt),
        falls = mutated("raise-linear-attention.never-falls")
                    ? arith::ConstantIntOp::create(b, loc, 0, 1).getResult()
                    : any(arith::CmpIPredicate::slt);
  Value both = arith::AndIOp::create(b, loc, rises, falls);
  return arith::XOrIOp::create(b, loc, both,
                               arith::ConstantIntOp::create(b, loc, 1, 1));
}

} // namespace

bool raisePrefix(linalg::LinalgOp reduction) {
  Exprs exprs(reduction.getContext());
  std::optional<Prefix> prefix = matchPrefix(exprs, reduction);
  if (!prefix)
    return false;
  OpBuilder b(reduction);
  Location loc = reduction.getLoc();
  Value result = reduction->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  std::string what = prefix->bound.isBehind
                         ? "a reduction over what comes behind: a recurrence"
                         : "a reduction over what comes before: a recurrence";
  if (!prefix->segment) {
    result.replaceAllUsesWith(writePrefix(b, loc, exprs, *prefix, type));
    remarkDone(reduction, raiseLinearPass, "prefix", what);
    return true;
  }
  auto choice =
      scf::IfOp::create(b, loc, type, areSorted(b, loc, exprs, *prefix),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  result.replaceAllUsesWith(choice.getResult(0));
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, loc, writePrefix(b, loc, exprs, *prefix, type));
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, loc, result);
  reduction->moveBefore(choice.elseBlock(), choice.elseBlock()->begin());
  remarkDone(reduction, raiseLinearPass, "prefix",
             what + ", if a call's segments are sorted");
  return true;
}

} // namespace heed
