//===- AttentionCalls.cpp - which form of an attention is called ----------===//
#include "passes/Lower/AttentionCalls.h"
#include "passes/Lower/CallerExtents.h"
#include "passes/Masks/MaskBounds.h"
#include "passes/Mutation.h"
#include "passes/Plan/ScoreBound.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

halide::CallOp heed::branch(halide::CallOp call, Value condition,
                            StringRef name) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  auto either = scf::IfOp::create(b, loc, call.getResultTypes(), condition,
                                  /*withElseRegion=*/true);
  call.replaceAllUsesWith(either.getResults());
  auto inside = [&](Block *block, halide::CallOp one) {
    OpBuilder inner = OpBuilder::atBlockEnd(block);
    scf::YieldOp::create(inner, loc, one.getResults());
  };
  OpBuilder then = OpBuilder::atBlockEnd(either.thenBlock());
  auto other = halide::CallOp::create(then, loc, call.getResultTypes(), name,
                                      call.getInputs(), call.getOuts());
  inside(either.thenBlock(), other);
  call->moveBefore(either.elseBlock(), either.elseBlock()->end());
  inside(either.elseBlock(), call);
  return other;
}

StreamedAttention heed::aloneIn(func::FuncOp kernel) {
  SmallVector<attn::OnlineAttentionOp> ops;
  kernel.walk([&](attn::OnlineAttentionOp op) { ops.push_back(op); });
  if (ops.size() != 1)
    return {};
  auto isReturned = [](Value value) {
    return value.use_empty() ||
           (value.hasOneUse() && isa<func::ReturnOp>(*value.user_begin()));
  };
  StreamedAttention streamed(ops[0]);
  return llvm::all_of(streamed.finish->getResults(), isReturned)
             ? streamed
             : StreamedAttention();
}

namespace {

struct CallSizes {
  CallerExtent queries, keys;
};

/// How many queries and keys \p op has; keys only roughly: queries, where
/// callers do not know.
FailureOr<CallSizes> sizesOf(attn::AttentionLike op) {
  auto sizeOf = [&](DimKind kind) { return op.getSizes()[op.firstDim(kind)]; };
  FailureOr<CallerExtent> queries = callerSize(sizeOf(DimKind::Query)),
                          keys = queries;
  Value size = sizeOf(DimKind::Key);
  auto dim = size.getDefiningOp<tensor::DimOp>();
  if (isa<BlockArgument>(size) || matchPattern(size, m_Constant()) ||
      (dim && isa<BlockArgument>(dim.getSource())))
    keys = callerSize(size);
  if (failed(queries) || failed(keys))
    return failure();
  return CallSizes{*queries, *keys};
}

/// How many keys a tile amid the queries of a call looks at, by indices, sizes
/// and scalars.
struct KeysInReach {
  KeysInReach(halide::CallOp call, attn::AttentionLike op, Value queries,
              Value keys)
      : call(call), b(call), mask(readMask(op)), queries(queries), keys(keys) {
    if (succeeded(mask))
      mask->evaluated = false; // what indices say bounds it, too
    known = succeeded(mask) && !mask->needsTables() && mask->reach.size() == 1;
    if (!known)
      return;
    for (ExprRef end : {mask->reach[0].low, mask->reach[0].high})
      Exprs::walk(end, [&](ExprRef e) {
        known &= e->kind != ExprKind::Read && e->kind != ExprKind::Reduce &&
                 (e->kind != ExprKind::Scalar || argumentOf(e));
        if (e->kind == ExprKind::Scalar)
          scalars.push_back(e);
      });
  }

  /// For a tile of \p width queries, in pieces of \p piece; null where it is
  /// not known. Where heads or sentences differ, the more of the first two.
  Value of(int64_t width, int64_t piece) {
    if (!known)
      return Value();
    Value seen = ofBatch(0, width, piece);
    return mask->batchOfRange().empty()
               ? seen
               : make<arith::MaxSIOp>(seen, ofBatch(1, width, piece));
  }

private:
  static BlockArgument argumentOf(ExprRef scalar) {
    auto argument = dyn_cast<BlockArgument>(scalar->value);
    return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp())
               ? argument
               : BlockArgument();
  }
  template <typename Op> Value make(Value x, Value y) {
    return b.createOrFold<Op>(call.getLoc(), x, y);
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, call.getLoc(), value);
  }
  Value rounded(Value x, Value unit) {
    return make<arith::MulIOp>(make<arith::DivSIOp>(x, unit), unit);
  }
  Value ofBatch(int64_t element, int64_t width, int64_t piece) {
    ExprWriter writer(b, call.getLoc());
    for (ExprRef scalar : scalars)
      writer.bind(scalar, call.getInputs()[argumentOf(scalar).getArgNumber()]);
    for (unsigned var : mask->batch)
      writer.bind(var, constant(element));
    // The tile may end behind the last query: a range without it is as long.
    Value first =
        rounded(make<arith::DivSIOp>(queries, constant(2)), constant(width));
    writer.bind(mask->first, first);
    writer.bind(mask->last, make<arith::AddIOp>(first, constant(width - 1)));
    writer.bind(mask->queries, queries);
    writer.bind(mask->keys, keys);
    auto end = [&](ExprRef expr) -> Value {
      return b.createOrFold<arith::IndexCastOp>(call.getLoc(), b.getIndexType(),
                                                writer.write(expr));
    };
    Value unit = constant(piece), low = rounded(end(mask->reach[0].low), unit);
    Value high = rounded(
        make<arith::AddIOp>(end(mask->reach[0].high), constant(piece - 1)),
        unit);
    return make<arith::SubIOp>(make<arith::MaxSIOp>(low, high), low);
  }

  halide::CallOp call;
  OpBuilder b;
  FailureOr<MaskBounds> mask;
  Value queries, keys;
  SmallVector<ExprRef> scalars;
  bool known;
};

} // namespace

FailureOr<FormCalls> heed::branchOn(ArrayRef<halide::CallOp> calls,
                                    attn::AttentionLike op,
                                    const halide::Target &target,
                                    ArrayRef<AttentionForm> forms,
                                    size_t number, StringRef name) {
  FailureOr<CallSizes> sizes = sizesOf(op);
  if (failed(sizes))
    return failure();
  const auto &[queries, keys] = *sizes;
  // For all calls the same, then.
  bool known = queries.fixed && (op.getWhere().empty() || keys.fixed);
  FormCalls choice;
  for (halide::CallOp call : calls) {
    OpBuilder b(call);
    Location loc = call.getLoc();
    auto extent = [&](const CallerExtent &from) {
      return getValueOrCreateConstantIndexOp(
          b, loc, extentAt(b, loc, call.getInputs(), from));
    };
    Value members;
    if (forms[number].form == attn::Form::Rows && !queries.fixed) {
      FailureOr<std::optional<KeyGroups>> groups = groupsAt(call, op);
      if (failed(groups))
        return failure();
      members = *groups ? (*groups)->members : Value();
    }
    Value numQueries = extent(queries), numKeys = extent(keys);
    KeysInReach reach(call, op, numQueries, numKeys);
    Value isIt = isFastest(
        b, loc, op, target, forms, number, numQueries, numKeys, members,
        [&](int64_t width, int64_t piece) { return reach.of(width, piece); });
    if (matchPattern(isIt, m_Zero()))
      continue;
    if (known && matchPattern(isIt, m_One())) {
      choice.calls.push_back(call);
      choice.always = true;
      continue;
    }
    choice.calls.push_back(branch(call, isIt, name));
  }
  return choice;
}

bool heed::boundReadsInputs(func::FuncOp kernel, StreamedAttention op) {
  auto isInput = [&](Value value) {
    return isa<BlockArgument>(value) &&
           value.getParentBlock() == &kernel.getBody().front();
  };
  Value sink = op.finish.getSink();
  return llvm::all_of(op.online.getTermOperands(), isInput) &&
         llvm::all_of(op.online.getValues(), isInput) &&
         (!sink || isInput(sink));
}

FailureOr<SmallVector<halide::CallOp>>
heed::branchOnBound(ArrayRef<halide::CallOp> calls, attn::AttentionLike op,
                    StringRef bound, StringRef bounded) {
  FailureOr<CallSizes> sizes = sizesOf(op);
  if (failed(sizes))
    return failure();
  SmallVector<halide::CallOp> chosen;
  for (halide::CallOp call : calls) {
    OpBuilder b(call);
    Location loc = call.getLoc();
    auto constant = [&](OpBuilder &at, int64_t value) -> Value {
      return arith::ConstantIndexOp::create(at, loc, value);
    };
    auto isLong = [&](const CallerExtent &size) -> Value {
      Value count = getValueOrCreateConstantIndexOp(
          b, loc, extentAt(b, loc, call.getInputs(), size));
      return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ule,
                                           constant(b, fewestOfBoundedScore),
                                           count);
    };
    Value pays = b.createOrFold<arith::AndIOp>(loc, isLong(sizes->queries),
                                               isLong(sizes->keys));
    if (matchPattern(pays, m_Zero()))
      continue;
    auto holds = scf::IfOp::create(b, loc, b.getI1Type(), pays,
                                   /*withElseRegion=*/true);
    OpBuilder inside = OpBuilder::atBlockEnd(holds.thenBlock());
    Value one = tensor::EmptyOp::create(inside, loc, {1}, b.getI32Type());
    Value fits = halide::CallOp::create(inside, loc, one.getType(), bound,
                                        call.getInputs(), one)
                     .getResult(0);
    Value number =
        tensor::ExtractOp::create(inside, loc, fits, constant(inside, 0));
    Value zero = arith::ConstantIntOp::create(inside, loc, b.getI32Type(), 0);
    Value isBounded = arith::CmpIOp::create(
        inside, loc, arith::CmpIPredicate::ne, number, zero);
    scf::YieldOp::create(inside, loc, isBounded);
    OpBuilder otherwise = OpBuilder::atBlockEnd(holds.elseBlock());
    Value no =
        arith::ConstantOp::create(otherwise, loc, otherwise.getBoolAttr(false));
    scf::YieldOp::create(otherwise, loc, no);
    chosen.push_back(branch(call, holds.getResult(0), bounded));
  }
  return chosen;
}

/// \p size of a kernel where \p call happens (index). Clears \p known, with an
/// error, where callers do not know it.
static Value sizeAt(OpBuilder &b, halide::CallOp call, Value size,
                    bool &known) {
  FailureOr<CallerExtent> extent = callerSize(size);
  known &= succeeded(extent);
  if (failed(extent))
    return arith::ConstantIndexOp::create(b, call.getLoc(), 1);
  return getValueOrCreateConstantIndexOp(
      b, call.getLoc(), extentAt(b, call.getLoc(), call.getInputs(), *extent));
}

FailureOr<std::optional<KeyGroups>> heed::groupsAt(halide::CallOp call,
                                                   attn::AttentionLike op) {
  OpBuilder b(call);
  bool known = true;
  std::optional<KeyGroups> groups =
      groupsOf(b, call.getLoc(), op,
               [&](Value size) { return sizeAt(b, call, size, known); });
  if (!known)
    return failure();
  return groups;
}

FailureOr<Value> heed::partsAt(halide::CallOp call, attn::AttentionLike op,
                               const halide::Target &target) {
  OpBuilder b(call);
  bool known = true;
  auto number = [&](Value size) { return sizeAt(b, call, size, known); };
  FailureOr<Value> parts = partsOf(b, call.getLoc(), op, target, number);
  return known ? parts : FailureOr<Value>();
}

/// Whether anything is computed of the number of a query, or once for all.
static bool readsNumbers(attn::OnlineAttentionOp op) {
  // Behind the batch's, an argument of a region is the query's number.
  unsigned number = op.numDims(DimKind::Batch);
  for (Region *region : {&op.getScore(), &op.getWhere(), &op.getWeight()})
    if (!region->empty() && !region->front().getArgument(number).use_empty())
      return true;
  if (!op.getWhere().empty()) {
    // Tables are cut for all queries.
    FailureOr<MaskBounds> bounds = readMask(op);
    if (failed(bounds) || bounds->needsTables())
      return true;
  }
  return false;
}

/// Adds to \p axes the one along which \p tensor has a row for each query, if
/// it has any; false if its rows can't be told apart.
static bool takeQueries(func::FuncOp kernel, attn::OnlineAttentionOp op,
                        Value tensor, AffineMap map, QueryAxes &axes) {
  unsigned query = op.firstDim(DimKind::Query);
  auto isCount = [&](OpOperand &use) {
    OpOperand &count = op.getSizesMutable()[query];
    return use.getOwner() == op && &use == &count;
  };
  if (!map.isFunctionOfDim(query))
    return true;
  auto argument = dyn_cast<BlockArgument>(tensor);
  std::optional<int64_t> axis;
  for (auto [k, expr] : llvm::enumerate(map.getResults()))
    if (expr.isFunctionOfDim(query)) {
      if (axis || !isa<AffineDimExpr>(expr))
        return false;
      axis = k;
    }
  if (!argument || argument.getOwner() != &kernel.getBody().front() ||
      !cast<RankedTensorType>(argument.getType()).isDynamicDim(*axis))
    return false;
  unsigned reads = 0;
  for (Operation *user : argument.getUsers()) {
    auto dim = dyn_cast<tensor::DimOp>(user);
    std::optional<int64_t> which = dim ? dim.getConstantIndex() : std::nullopt;
    if (!which)
      ++reads;
    else if (*which == *axis && !llvm::all_of(dim->getUses(), isCount))
      return false;
  }
  axes.arguments.push_back({argument.getArgNumber(), *axis});
  return reads == 1;
}

std::optional<QueryAxes> heed::separableQueries(func::FuncOp kernel,
                                                StreamedAttention streamed) {
  attn::OnlineAttentionOp op = streamed.online;
  attn::FinishOp finish = streamed.finish;
  unsigned query = op.firstDim(DimKind::Query);
  FailureOr<CallSizes> sizes = sizesOf(op);
  if (failed(sizes) || sizes->queries.fixed)
    return std::nullopt;
  if (readsNumbers(op))
    return std::nullopt;

  QueryAxes axes;
  auto take = [&](Value tensor, AffineMap map) {
    return takeQueries(kernel, op, tensor, map, axes);
  };
  for (unsigned term = 0; term < op.numTerms(); ++term)
    for (auto [tensor, map] : llvm::zip(op.term(term), op.maps(term)))
      if (!take(tensor, map))
        return std::nullopt;
  for (auto [k, tensor] : llvm::enumerate(op.getValues()))
    if (!take(tensor, op.valueMap(k)))
      return std::nullopt;
  if (finish.getSink() && !take(finish.getSink(), *finish.getSinkMap()))
    return std::nullopt;

  for (Value result : kernel.getBody().front().getTerminator()->getOperands()) {
    if (result == finish.getLse()) {
      axes.results.push_back(op.numDims(DimKind::Batch));
      continue;
    }
    if (result != finish.getOutput())
      return std::nullopt;
    for (auto [axis, expr] : llvm::enumerate(streamed.outputMap().getResults()))
      if (expr == getAffineDimExpr(query, op->getContext()))
        axes.results.push_back(axis);
  }
  return axes;
}

namespace {

/// Neighbours along an axis of a tensor, and nothing less of its others.
struct Part {
  SmallVector<OpFoldResult> offsets, sizes, strides;

  Part(OpBuilder &b, Location loc, Value tensor, int64_t axis, Value first,
       Value count) {
    auto type = cast<RankedTensorType>(tensor.getType());
    offsets.assign(type.getRank(), b.getIndexAttr(0));
    strides.assign(type.getRank(), b.getIndexAttr(1));
    sizes = tensor::getMixedSizes(b, loc, tensor);
    offsets[axis] = first;
    sizes[axis] = count;
  }
};

} // namespace

/// Casts of what \p call writes to. Upstream's elimination of empty tensors
/// takes each use of one for a tensor of its own; a cast's are the same. Each
/// call has a cast of its own, which CSE leaves as it is.
static SmallVector<Value> castOuts(OpBuilder &b, halide::CallOp call,
                                   const std::string &name) {
  Location loc = call.getLoc();
  Attribute unique = b.getStringAttr(name);
  SmallVector<Value> outs;
  for (Value out : call.getOuts()) {
    auto own = tensor::CastOp::create(b, loc, out.getType(), out);
    own->setAttr("attn.call", unique);
    outs.push_back(own);
  }
  return outs;
}

/// A call of \p name for the \p count queries of \p call from \p first on,
/// unless these are \p none. They are written to \p outs, which are the results
/// then.
static halide::CallOp callPart(OpBuilder &b, halide::CallOp call,
                               const QueryAxes &axes, SmallVector<Value> &outs,
                               Value first, Value count, Value none,
                               StringRef name) {
  Location loc = call.getLoc();
  Value some =
      b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, count, none);
  auto branch = scf::IfOp::create(b, loc, call.getResultTypes(), some,
                                  /*withElseRegion=*/true);
  OpBuilder inside = OpBuilder::atBlockEnd(branch.thenBlock());
  SmallVector<Value> inputs(call.getInputs()), parts, results;
  for (auto [argument, axis] : axes.arguments) {
    Part part(inside, loc, inputs[argument], axis, first, count);
    inputs[argument] = tensor::ExtractSliceOp::create(
        inside, loc, inputs[argument], part.offsets, part.sizes, part.strides);
  }
  inputs.push_back(count);
  for (auto [out, axis] : llvm::zip_equal(outs, axes.results)) {
    Part part(inside, loc, out, axis, first, count);
    parts.push_back(tensor::ExtractSliceOp::create(
        inside, loc, out, part.offsets, part.sizes, part.strides));
  }
  auto now = halide::CallOp::create(inside, loc, TypeRange(ValueRange(parts)),
                                    name, inputs, parts);
  for (auto [k, out] : llvm::enumerate(outs)) {
    Part part(inside, loc, out, axes.results[k], first, count);
    results.push_back(
        tensor::InsertSliceOp::create(inside, loc, now.getResult(k), out,
                                      part.offsets, part.sizes, part.strides));
  }
  scf::YieldOp::create(inside, loc, results);
  OpBuilder otherwise = OpBuilder::atBlockEnd(branch.elseBlock());
  scf::YieldOp::create(otherwise, loc, outs);
  outs.assign(branch.getResults().begin(), branch.getResults().end());
  return now;
}

FailureOr<SmallVector<SmallVector<halide::CallOp>>>
heed::callInParts(func::FuncOp kernel, attn::AttentionLike op,
                  const QueryAxes &axes, ArrayRef<halide::CallOp> calls,
                  const halide::Target &target, ArrayRef<AttentionForm> forms,
                  ArrayRef<std::string> names) {
  FailureOr<CallSizes> sizes = sizesOf(op);
  if (failed(sizes))
    return failure();
  SmallVector<SmallVector<halide::CallOp>> found(forms.size());
  for (auto [number, called] : llvm::enumerate(calls)) {
    halide::CallOp call = called;
    OpBuilder b(call);
    Location loc = call.getLoc();
    auto extent = [&](const CallerExtent &from) {
      return getValueOrCreateConstantIndexOp(
          b, loc, extentAt(b, loc, call.getInputs(), from));
    };
    FailureOr<std::optional<KeyGroups>> groups = groupsAt(call, op);
    if (failed(groups))
      return failure();
    SmallVector<Value> shares =
        shareQueries(b, loc, target, forms, extent(sizes->queries),
                     *groups ? (*groups)->members : Value());
    Value first = arith::ConstantIndexOp::create(b, loc, 0), none = first;
    SmallVector<Value> outs =
        castOuts(b, call, names.front() + heed::format(" {}", number));
    // The form for many queries has the first ones.
    for (size_t form = forms.size(); form-- > 0;) {
      Value count = shares[form];
      found[form].push_back(
          callPart(b, call, axes, outs, first, count, none, names[form]));
      if (!mutated("kernel-algorithm.parts-from-first-query"))
        first = b.createOrFold<arith::AddIOp>(loc, first, count);
    }
    call.replaceAllUsesWith(outs);
    call.erase();
  }
  unsigned added = kernel.getNumArguments();
  if (failed(kernel.insertArgument(added, IndexType::get(op->getContext()), {},
                                   op->getLoc())))
    return failure();
  op.getSizesMutable()[op.firstDim(DimKind::Query)].set(
      kernel.getArgument(added));
  return found;
}
