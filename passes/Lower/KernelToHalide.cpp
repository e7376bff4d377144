//===- KernelToHalide.cpp - a kernel's algorithm in Halide ----------------===//
//
#include "passes/Lower/KernelToHalide.h"
#include "passes/Lower/KernelTranslator.h"
#include "passes/Lower/MaskTables.h"
#include "passes/Lower/StreamingAttention.h"
#include "passes/Masks/MaskBounds.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"

#include "dialects/Attn/Dialect.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace heed;

FailureOr<Extent> KernelTranslator::extent(OpBuilder &, Value tensor,
                                           int64_t axis) {
  auto it = sources.find(tensor);
  if (it == sources.end())
    return kernel.emitError("a tensor of the kernel has no extents");
  return it->second.extents[axis];
}

FailureOr<Value> KernelTranslator::read(OpBuilder &b, Location loc,
                                        Value tensor,
                                        ArrayRef<Value> coordinates) {
  auto it = sources.find(tensor);
  if (it == sources.end())
    return emitError(loc, "a tensor is read that the kernel does not define");
  KernelSource &source = it->second;
  if (!source.func) {
    auto type = cast<RankedTensorType>(tensor.getType());
    // Of a tensor without elements nothing was computed; a guard keeps every
    // index away from the read, as in a joined part of extent 0.
    if (!source.scalar && llvm::is_contained(type.getShape(), 0))
      return arith::ConstantOp::create(b, loc,
                                       b.getZeroAttr(type.getElementType()))
          .getResult();
    if (!source.scalar)
      return emitError(loc, "a tensor without values is read");
    return source.scalar;
  }
  auto read =
      halide::ReadOp::create(b, loc, halide::getElementTypes(source.func),
                             source.func, reversed(coordinates));
  return read.getResult(source.element);
}

void KernelTranslator::arguments() {
  for (auto [k, arg] : llvm::enumerate(kernel.getArguments())) {
    Location loc = kernel.getLoc();
    SmallString<8> name(heed::format("a{}", k));
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type) {
      map.map(arg,
              halide::ParamOp::create(b, loc, pipelineType(arg.getType()), name)
                  .getResult());
      continue;
    }
    Value buffer = halide::BufferOp::create(b, loc, name, type.getRank(),
                                            type.getElementType());
    if (k < weights.size() && weights.test(k))
      info->weights.insert(buffer);
    KernelSource source;
    source.func = buffer;
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      int64_t dim = type.getRank() - 1 - axis;
      Value zero = constantI32(b, loc, 0);
      if (type.isDynamicDim(axis)) {
        halide::SetBoundsOp::create(b, loc, buffer, dim, zero, Value());
        source.extents.push_back(
            {halide::ExtentOp::create(b, loc, b.getI32Type(), buffer, dim),
             std::nullopt});
      } else {
        source.extents.push_back(fixedExtent(loc, type.getDimSize(axis)));
        halide::SetBoundsOp::create(b, loc, buffer, dim, zero,
                                    source.extents.back().value);
      }
    }
    sources[arg] = std::move(source);
  }
}

FailureOr<KernelFunc *> KernelTranslator::func(Location loc, StringRef what,
                                               TypeRange types,
                                               ArrayRef<Extent> extents,
                                               Body body) {
  SmallVector<std::string> names;
  for (size_t k = extents.size(); k-- > 0;)
    names.push_back(heed::format("d{}", k));
  SmallVector<StringRef> vars(names.begin(), names.end());
  bool ok = true;
  auto op = halide::FuncOp::create(
      b, loc, (what + Twine(counter++)).str(), vars, types,
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> dims(llvm::reverse(args));
        FailureOr<SmallVector<Value>> values = body(inner, dims);
        ok = succeeded(values);
        return ok ? *values : SmallVector<Value>();
      });
  if (!ok)
    return failure();
  KernelFunc f;
  f.func = op;
  f.extents.assign(extents.rbegin(), extents.rend());
  info->funcs.push_back(std::move(f));
  return &info->funcs.back();
}

/// Whether \p values are what \p func holds at \p at.
static bool keeps(Value func, ValueRange at, ValueRange values) {
  return llvm::all_of(llvm::enumerate(values), [&](auto value) {
    auto read = value.value().template getDefiningOp<halide::ReadOp>();
    return read && read.getFunc() == func && read.getCoordinates() == at &&
           read.getResult(value.index()) == value.value();
  });
}

/// Folds what \p values are made of, in \p b's block.
static void fold(OpBuilder &b, SmallVectorImpl<Value> &values) {
  OpBuilder::InsertionGuard guard(b);
  for (Operation &op : llvm::make_early_inc_range(*b.getInsertionBlock())) {
    b.setInsertionPoint(&op);
    SmallVector<Value> folded;
    if (failed(b.tryFold(&op, folded)) || folded.empty())
      continue;
    for (auto [result, value] : llvm::zip(op.getResults(), folded))
      llvm::replace(values, Value(result), value);
    op.replaceAllUsesWith(folded);
    op.erase();
  }
}

LogicalResult KernelTranslator::update(Location loc, KernelFunc &f,
                                       ArrayRef<Extent> reductions,
                                       UpdateBody body) {
  SmallVector<std::string> names;
  SmallVector<Value> bounds;
  Value zero = constantI32(b, loc, 0);
  for (size_t k = reductions.size(); k-- > 0;) {
    names.push_back(heed::format("r{}", k));
    bounds.push_back(zero);
    bounds.push_back(reductions[k].value);
  }
  SmallVector<StringRef> rvars(names.begin(), names.end());
  auto op = halide::UpdateOp::create(b, loc, f.func.getResult(), rvars, bounds);
  bool ok = true, kept = false;
  size_t rank = f.extents.size();
  op.fill(
      b, op.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> dims(llvm::reverse(args.take_front(rank)));
        SmallVector<Value> loops(llvm::reverse(args.drop_front(rank)));
        FailureOr<SmallVector<Value>> values = body(inner, dims, loops);
        ok = succeeded(values);
        if (!ok)
          return {};
        auto depends = [&](Value loop) {
          return llvm::any_of(*values, [&](Value value) {
            return argumentsOf(value).contains(loop);
          });
        };
        if (llvm::none_of(loops, depends))
          fold(inner, *values);
        kept = keeps(f.func.getResult(), args.take_front(rank), *values);
        // Halide takes a reduction var that no value depends on for none
        // at all: a count of ones names its var in a condition.
        for (Value loop : loops) {
          if (mutated("kernel-algorithm.unused-loop-vanishes") || depends(loop))
            continue;
          Value inside = arith::CmpIOp::create(
              inner, loc, arith::CmpIPredicate::sge, loop, zero);
          auto state = halide::ReadOp::create(
              inner, loc, halide::getElementTypes(f.func.getResult()),
              f.func.getResult(), args.take_front(rank));
          for (auto [value, old] : llvm::zip(*values, state.getResults()))
            value = arith::SelectOp::create(inner, loc, inside, value, old);
        }
        return *values;
      });
  if (!ok)
    return failure();
  // Terms that change nothing (`any(o) false`, of a product over a dim of
  // extent 0) depend on no loop: libHalide would have none to schedule.
  if (kept) {
    op.erase();
    return success();
  }
  f.role = FuncRole::Reduction;
  f.updates.push_back(op);
  f.reductions.emplace_back(reductions.rbegin(), reductions.rend());
  return success();
}

void heed::relaxSums(ArrayRef<Value> combined) {
  auto flags = arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;
  for (Value value : combined) {
    auto add = value.getDefiningOp<arith::AddFOp>();
    if (!add)
      continue;
    add.setFastmath(flags);
    for (Value operand : add->getOperands())
      if (auto mul = operand.getDefiningOp<arith::MulFOp>())
        mul.setFastmath(flags);
  }
}

LogicalResult KernelTranslator::results(func::ReturnOp op) {
  llvm::SmallPtrSet<Value, 4> taken;
  for (Value value : op.getOperands()) {
    KernelSource source = sources[value];
    auto type = cast<RankedTensorType>(value.getType());
    bool single = source.func && source.func.getDefiningOp<halide::FuncOp>() &&
                  halide::getElementTypes(source.func).size() == 1 &&
                  taken.insert(source.func).second;
    if (!single) {
      FailureOr<KernelFunc *> copy =
          func(op.getLoc(), "copy", type.getElementType(), source.extents,
               [&](OpBuilder &inner,
                   ArrayRef<Value> dims) -> FailureOr<SmallVector<Value>> {
                 FailureOr<Value> one = read(inner, op.getLoc(), value, dims);
                 if (failed(one))
                   return failure();
                 return SmallVector<Value>{*one};
               });
      if (failed(copy))
        return failure();
      source.func = (*copy)->func.getResult();
    }
    halide::OutputOp::create(b, op.getLoc(), source.func);
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      Value size =
          type.isDynamicDim(axis) ? Value() : source.extents[axis].value;
      halide::SetBoundsOp::create(b, op.getLoc(), source.func,
                                  type.getRank() - 1 - axis,
                                  constantI32(b, op.getLoc(), 0), size);
    }
  }
  return success();
}

LogicalResult KernelTranslator::run(TranslatedKernel &result) {
  info = &result.info;
  LogicalResult done = translate();
  result.masks = std::move(masks);
  return done;
}

LogicalResult KernelTranslator::runMaskTables(const MaskRequest &request) {
  KernelInfo unused;
  info = &unused;
  stopAt = request.op;
  if (failed(translate()))
    return failure();
  auto op = cast<attn::AttentionLike>(request.op);
  // What the mask reads and the kernel computes, is computed before.
  for (KernelFunc &f : unused.funcs)
    if (f.role == FuncRole::Reduction)
      halide::ComputeRootOp::create(b, op->getLoc(), f.func.getResult());
  MaskTiling tiling = request.tiling;
  tiling.queries = size32(op.getSizes()[op.firstDim(attn::DimKind::Query)]);
  tiling.keys = size32(op.getSizes()[op.firstDim(attn::DimKind::Key)]);
  tiling.cuts.clear();
  if (auto online = dyn_cast<attn::OnlineAttentionOp>(request.op))
    for (const Extent &cut :
         segmentCuts(b, online, map, {tiling.keys, std::nullopt}))
      tiling.cuts.push_back(cut.value);
  FailureOr<MaskBounds> bounds = readMask(op);
  if (failed(bounds))
    return failure();
  return writeMaskTables(b, op, *bounds, tiling, map, *this);
}

LogicalResult KernelTranslator::runScoreBound(StreamedAttention op) {
  KernelInfo unused;
  info = &unused;
  stopAt = op.online;
  if (failed(translate()))
    return failure();
  return writeScoreBound(b, op, map, *this, target);
}

/// Long: one op after the other.
LogicalResult KernelTranslator::translate() {
  // Pointers to funcs are held while updates are added.
  arguments();
  for (Operation &op : kernel.getBody().front()) {
    if (&op == stopAt)
      return success();
    if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
      KernelSource source;
      for (auto [axis, size] : llvm::enumerate(empty.getMixedSizes())) {
        if (auto value = dyn_cast<Value>(size))
          source.extents.push_back({size32(value), std::nullopt});
        else
          source.extents.push_back(fixedExtent(
              op.getLoc(), cast<IntegerAttr>(cast<Attribute>(size)).getInt()));
      }
      sources[empty] = std::move(source);
    } else if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      KernelSource source = sources[fill.getOutputs()[0]];
      source.func = Value();
      source.scalar = map.lookupOrDefault(fill.getInputs()[0]);
      sources[fill.getResult(0)] = std::move(source);
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op);
               constant && isa<RankedTensorType>(constant.getType())) {
      auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
      if (!splat)
        return op.emitError("a table of constants inside a kernel");
      KernelSource source;
      source.scalar = arith::ConstantOp::create(
          b, op.getLoc(), splat.getSplatValue<TypedAttr>());
      for (int64_t size : cast<RankedTensorType>(constant.getType()).getShape())
        source.extents.push_back(fixedExtent(op.getLoc(), size));
      sources[constant] = std::move(source);
    } else if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      KernelSource source = sources[cast.getSource()];
      sources[cast] = std::move(source);
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (failed(generic(linalgOp)))
        return failure();
    } else if (auto s = dyn_cast<attn::SoftmaxOp>(op)) {
      if (failed(softmax(s, s.getInput(), s.getSink(), s.getAxes(),
                         s.getWhere(), false)))
        return failure();
    } else if (auto s = dyn_cast<attn::LogSoftmaxOp>(op)) {
      if (failed(softmax(s, s.getInput(), s.getSink(), s.getAxes(),
                         s.getWhere(), true)))
        return failure();
    } else if (auto t = dyn_cast<attn::ThresholdOp>(op)) {
      if (failed(threshold(t)))
        return failure();
    } else if (auto r = dyn_cast<attn::RecurrenceOp>(op)) {
      if (failed(recurrence(r)))
        return failure();
    } else if (auto scan = dyn_cast<attn::ElementScanOp>(op)) {
      if (failed(elementScan(scan)))
        return failure();
    } else if (auto scan = dyn_cast<attn::SumScanOp>(op)) {
      if (failed(sumScan(scan)))
        return failure();
    } else if (auto solve = dyn_cast<attn::TriangularSolveOp>(op)) {
      if (failed(triangularSolve(solve)))
        return failure();
    } else if (isa<attn::OnlineAttentionOp>(op)) {
      continue; // with the op that finishes it
    } else if (auto finish = dyn_cast<attn::FinishOp>(op)) {
      auto online =
          finish.getAccumulator().getDefiningOp<attn::OnlineAttentionOp>();
      if (!online)
        return op.emitOpError("finishes no attn.online_attention");
      if (failed(attention(StreamedAttention(online))))
        return failure();
    } else if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      if (failed(results(ret)))
        return failure();
    } else {
      // Scalars, for the bodies below.
      if (failed(translateOp(b, &op, map, {}, *this)))
        return failure();
    }
  }
  return success();
}

FailureOr<TranslatedKernel>
heed::translateKernel(OpBuilder &b, func::FuncOp kernel, StringRef name,
                      const halide::Target &target, attn::Form form,
                      const llvm::BitVector &weights) {
  TranslatedKernel result;
  KernelInfo &info = result.info;
  info.pipeline = halide::PipelineOp::create(b, kernel.getLoc(), name);
  if (auto kind = kernel->getAttrOfType<StringAttr>("attn.kind"))
    info.kind = kind.getValue();
  OpBuilder inner = OpBuilder::atBlockBegin(&info.pipeline.getBody().front());
  KernelTranslator translator(inner, kernel, target, form, weights);
  if (failed(translator.run(result))) {
    info.pipeline.erase();
    return failure();
  }
  // A branch that is never taken may have been the only one to read a sum.
  dropUnreadFuncs(info);
  translator.setLargest(info.pipeline);
  return result;
}

LogicalResult heed::translateMaskTables(OpBuilder &b, func::FuncOp kernel,
                                        const MaskRequest &request,
                                        StringRef name,
                                        const halide::Target &target) {
  auto pipeline = halide::PipelineOp::create(b, kernel.getLoc(), name);
  OpBuilder inner = OpBuilder::atBlockBegin(&pipeline.getBody().front());
  KernelTranslator translator(inner, kernel, target);
  LogicalResult done = translator.runMaskTables(request);
  if (failed(done))
    pipeline.erase();
  else
    translator.setLargest(pipeline);
  return done;
}

LogicalResult heed::translateScoreBound(OpBuilder &b, func::FuncOp kernel,
                                        StreamedAttention op, StringRef name,
                                        const halide::Target &target) {
  auto pipeline = halide::PipelineOp::create(b, kernel.getLoc(), name);
  OpBuilder inner = OpBuilder::atBlockBegin(&pipeline.getBody().front());
  KernelTranslator translator(inner, kernel, target);
  LogicalResult done = translator.runScoreBound(op);
  if (failed(done))
    pipeline.erase();
  else
    translator.setLargest(pipeline);
  return done;
}
