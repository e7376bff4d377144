//===- Squares.cpp - squares transposed in registers ----------------------===//
#include "passes/Schedule/Squares.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace heed;

void heed::addShuffles(KernelInfo &kernel, Operation *before,
                       SmallVectorImpl<halide::FuncOp> &steps, int64_t lanes) {
  halide::FuncOp first = steps.front();
  Location loc = first.getLoc();
  const int64_t square = lanes * lanes;
  SmallVector<std::string> names = varsOf(first);
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents = kernel.find(first.getResult())->extents;
  for (unsigned step = 1; step <= llvm::Log2_64(lanes); ++step) {
    Value last = steps.back().getResult();
    Type type = halide::getElementTypes(last).front();
    auto element = [&](OpBuilder &b, ValueRange at) -> Value {
      auto read = [&](Value x) {
        SmallVector<Value> place{x};
        llvm::append_range(place, at.drop_front());
        return halide::ReadOp::create(b, loc, type, last, place).getResult(0);
      };
      Value half = divI32(b, at[0], 2);
      int64_t other =
          mutated("row-block.turn-by-quarter") ? square / 4 : square / 2;
      Value isEven =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                remI32(b, at[0], 2), constantI32(b, loc, 0));
      return arith::SelectOp::create(b, loc, isEven, read(half),
                                     read(addI32(b, half, other)));
    };
    StringRef whole = first.getName();
    whole.consume_back("_rows");
    steps.push_back(addFunc(kernel, before,
                            heed::format("{}_turn{}", whole, step), vars, type,
                            extents, element)
                        .func);
  }
}

void heed::scheduleShuffles(OpBuilder &b, ArrayRef<halide::FuncOp> steps,
                            Value at, StringRef loop, int64_t lanes) {
  for (auto [number, each] : llvm::enumerate(steps)) {
    halide::FuncOp step = each;
    Location loc = step.getLoc();
    Value func = step.getResult();
    halide::ComputeAtOp::create(b, loc, func, at, loop);
    // A row is a vector; a shuffle makes two of two.
    halide::SplitOp::create(b, loc, func, 0, "x", "xo", "xi",
                            number == 0 ? lanes : 2 * lanes,
                            halide::TailStrategy::RoundUp);
    halide::VectorizeOp::create(b, loc, func, 0, "xi");
    halide::UnrollOp::create(b, loc, func, 0, "xo");
    for (const std::string &name : varsOf(step))
      halide::BoundExtentOp::create(b, loc, func, name,
                                    i32(b, name == "x" ? lanes * lanes : 1));
  }
}
