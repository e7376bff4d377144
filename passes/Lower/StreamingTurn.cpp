//===- StreamingTurn.cpp - transposing rows into lanes and back -----------===//
// A tile's lanes are queries, memory holds rows of queries. A square of L rows
// by L numbers (L lanes, a power of two) is read row by row, as L vectors one
// behind the other, and log2(L) perfect shuffles transpose it: place x of a
// shuffled sequence is place x/2 of one half or of the other, so that a vector
// is two vectors interleaved. Lane by lane it would be L loads a vector.
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Schedule/StreamingWriter.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;

halide::FuncOp Streaming::turned(StringRef name, ArrayRef<StringRef> own,
                                 SmallVector<halide::FuncOp> &steps,
                                 ElementOf element) {
  const int64_t lanes = plan.lanes, half = lanes * lanes / 2;
  const bool inBlock = own.size() > 2;
  SmallVector<StringRef> vars{"x", "ta", "tb"};
  llvm::append_range(vars, own.drop_front(2));
  steps.push_back(
      func(heed::format("{}_rows", name), vars, 1,
           [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
             auto place = [&](Value square, Value inside) {
               return o.addi(o.muli(square, o.i(lanes)), inside);
             };
             TilePlace tile = TilePlace::ofTile(at.drop_front(vars.size()));
             return {element(o, place(at[1], o.floorDiv(at[0], lanes)),
                             place(at[2], o.mod(at[0], lanes)),
                             inBlock ? tile.inBlock(at[3]) : tile)};
           }));
  auto read = [](Ops &o, halide::FuncOp from, Value x, ArrayRef<Value> rest) {
    SmallVector<Value> coordinates{x};
    llvm::append_range(coordinates, rest);
    return o.read1(from.getResult(), coordinates);
  };
  for (unsigned step = 1; step <= llvm::Log2_64(lanes); ++step) {
    halide::FuncOp before = steps.back();
    steps.push_back(func(
        heed::format("{}_turn{}", name, step), vars, 1,
        [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
          Value even = arith::CmpIOp::create(
              o.b, o.loc, arith::CmpIPredicate::eq, o.mod(at[0], 2), o.i(0));
          Value place = o.floorDiv(at[0], 2);
          ArrayRef<Value> rest = at.drop_front();
          return {o.select(even, read(o, before, place, rest),
                           read(o, before, o.addi(place, o.i(half)), rest))};
        }));
  }
  return func(name, own, 1,
              [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
                SmallVector<Value> rest{o.floorDiv(at[0], lanes),
                                        o.floorDiv(at[1], lanes)};
                llvm::append_range(rest, at.drop_front(2));
                return {read(o, steps.back(),
                             o.addi(o.muli(o.mod(at[1], lanes), o.i(lanes)),
                                    o.mod(at[0], lanes)),
                             rest)};
              });
}

void Writer::transpose(halide::FuncOp f, ArrayRef<halide::FuncOp> steps,
                       StringRef lane, StringRef other) {
  const int64_t lanes = plan.lanes;
  std::string laneOut = heed::format("{}o", lane),
              inner = heed::format("{}i", other);
  split(f, 0, lane, laneOut, "iv", lanes);
  split(f, 0, other, other, inner, lanes);
  reorder(f, 0, {"iv", inner, other, laneOut});
  vectorize(f, 0, "iv");
  unroll(f, 0, inner);
  for (auto [number, step] : llvm::enumerate(steps)) {
    computeAt(step, f, other);
    // A row is a vector; a shuffle makes two of two.
    split(step, 0, "x", "xo", "xi", number == 0 ? lanes : 2 * lanes);
    vectorize(step, 0, "xi");
    unroll(step, 0, "xo");
    boundExtent(step, "x", i(lanes * lanes));
    for (StringRef var : {"ta", "tb"})
      boundExtent(step, var, i(1));
  }
}
