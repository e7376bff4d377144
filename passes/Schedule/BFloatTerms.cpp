//===- BFloatTerms.cpp - sums of products of bf16, two terms a step -------===//
//
// y[m, n] = sum_r A[m, r] * B[r, n] where both factors are exactly bf16. The
// product of two of them is exact in f32, so only the order of the sum is
// another one: VDPBF16PS multiplies a pair a lane and adds it, where a lane
// took two widenings and two FMAs. It has no subnormal numbers, neither in what
// it takes nor in the sum; hence only where --products=bf16 allows it.
#include "passes/Schedule/GroupedTerms.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

class BFloatSum : public GroupedTerms {
public:
  using GroupedTerms::GroupedTerms;

private:
  bool isSum(Operation *combine) override {
    return isa<arith::AddFOp>(combine) &&
           combine->getResult(0).getType().isF32();
  }
  std::optional<std::pair<Value, Value>> factorsOf(Value term) override {
    auto multiply = term.getDefiningOp<arith::MulFOp>();
    if (!multiply)
      return std::nullopt;
    return std::pair(multiply.getLhs(), multiply.getRhs());
  }
  Value narrowOf(Value factor) override {
    auto wider = factor.getDefiningOp<arith::ExtFOp>();
    return wider && wider.getIn().getType().isBF16() ? wider.getIn() : Value();
  }
  Type rowType() override { return b.getBF16Type(); }
  // Behind the last term both are 0: the last column may be infinite.
  Value rowOf(OpBuilder &inner, Value term, Value number) override {
    return orZero(inner, term, number);
  }
  Value columnOf(OpBuilder &inner, Value term, Value number) override {
    return orZero(inner, term, number);
  }
  Value addProduct(OpBuilder &at, Value sum, Value x, Value y) override;
  Value startOf(OpBuilder &inner, ArrayRef<Value>) override {
    return arith::ConstantOp::create(inner, loc, inner.getF32FloatAttr(0));
  }
  StringRef features() override { return "avx512_cannonlake-avx512_zen4"; }
};

Value BFloatSum::addProduct(OpBuilder &at, Value sum, Value x, Value y) {
  auto flags = arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;
  Type f32Type = at.getF32Type();
  Value product =
      arith::MulFOp::create(at, loc, arith::ExtFOp::create(at, loc, f32Type, x),
                            arith::ExtFOp::create(at, loc, f32Type, y), flags);
  return arith::AddFOp::create(at, loc, sum, product, flags);
}

} // namespace

std::unique_ptr<GroupedTerms> heed::bfloatTerms(KernelInfo &kernel, Value sum,
                                                halide::ReadOp panel,
                                                PanelShape shape,
                                                bool packsInTask,
                                                const halide::Target &target) {
  if (!target.bf16Products || !target.hasFeature("avx512bf16"))
    return nullptr;
  auto pairs = std::make_unique<BFloatSum>(kernel, sum, panel, shape,
                                           packsInTask, target);
  return pairs->match() ? std::move(pairs) : nullptr;
}

/// A func of \p value, of the terms of \p f, which depends on \p args, and its
/// schedule.
static Value storeValue(KernelInfo &kernel, KernelFunc &f, Value value,
                        ArrayRef<BlockArgument> args,
                        const halide::Target &target) {
  SmallVector<std::string> names;
  SmallVector<Extent> extents;
  size_t rank = f.extents.size();
  for (BlockArgument arg : args) {
    unsigned at = arg.getArgNumber();
    names.push_back(heed::format("a{}", at));
    extents.push_back(at < rank ? f.extents[at] : f.reductions[0][at - rank]);
  }
  KernelFunc &rows =
      addFunc(kernel, f.func, "rows",
              SmallVector<StringRef>(names.begin(), names.end()),
              value.getType(), extents, [&](OpBuilder &inner, ValueRange dims) {
                IRMapping map;
                for (auto [arg, dim] : llvm::zip(args, dims))
                  map.map(arg, dim);
                return cloneSlice(inner, value, map);
              });
  OpBuilder at = scheduleBuilder(kernel);
  halide::ComputeRootOp::create(at, value.getLoc(), rows.func.getResult());
  vectorizeInner(at, rows.func, 0, names[0], target.lanes(32));
  parallelOuter(at, rows.func, 0, names, 1, FusedBody::Alone);
  return rows.func.getResult();
}

void heed::storeRoundedRows(KernelInfo &kernel, Value sum,
                            const halide::Target &target) {
  KernelFunc &f = *kernel.find(sum);
  Block &body = f.updates[0].getSet().front();
  Value column = body.getArgument(0);
  for (auto wider : llvm::make_early_inc_range(body.getOps<arith::ExtFOp>())) {
    llvm::SmallPtrSet<Value, 4> used = argumentsOf(wider);
    if (!wider.getIn().getType().isBF16() ||
        !wider.getIn().getDefiningOp<arith::TruncFOp>() ||
        used.contains(column) || !isReadAtLoops(wider))
      continue;
    // Terms first, as they lie.
    SmallVector<BlockArgument> args;
    size_t rank = f.extents.size(), all = body.getNumArguments();
    for (size_t k = 0; k < all; ++k)
      if (BlockArgument arg = body.getArgument((rank + k) % all);
          used.contains(arg))
        args.push_back(arg);
    if (args.empty())
      continue;
    Value rows = storeValue(kernel, f, wider, args, target);
    OpBuilder b(wider);
    SmallVector<Value> at(args.begin(), args.end());
    auto read =
        halide::ReadOp::create(b, wider.getLoc(), wider.getType(), rows, at);
    wider.replaceAllUsesWith(read.getResult(0));
    wider.erase();
    return;
  }
}
