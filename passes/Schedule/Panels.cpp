//===- Panels.cpp - what a contraction reads along its columns ------------===//
//
// B is packed in panels of as many columns as a register tile has, [panel][r]
// [column], so that a step of the sum is one row of a panel: once if it is a
// weight, else in each call.
#include "passes/Schedule/Panels.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

/// Whether \p read, of \p columns columns in all, finds an array of the call in
/// the order that packing would give it: one panel, row after row.
static bool isPanel(const KernelInfo &kernel, halide::ReadOp read, Value column,
                    std::optional<int64_t> columns, int64_t width) {
  return columns == width && read.getFunc().getDefiningOp<halide::BufferOp>() &&
         !kernel.weights.contains(read.getFunc()) &&
         read.getCoordinates().front() == column &&
         llvm::none_of(read.getCoordinates().drop_front(), [&](Value other) {
           return argumentsOf(other).contains(column);
         });
}

SmallVector<Value> heed::packPanels(KernelInfo &kernel, halide::UpdateOp update,
                                    ArrayRef<halide::ReadOp> panels,
                                    PanelShape shape) {
  Value sum = update.getFunc();
  KernelFunc *acc = kernel.find(sum);
  Location loc = update.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  Block &body = update.getSet().front();
  Value column = body.getArgument(0);
  SmallVector<Value> packed;
  size_t rank = acc->extents.size(), rvars = acc->reductions[0].size();
  size_t productDim = rank - 1; // where there are several
  for (unsigned k = 0; k < panels.size(); ++k) {
    halide::ReadOp read = panels[k];
    if (isPanel(kernel, read, column, acc->extents[0].fixed, shape.width))
      continue;
    // Dims of the panel: lane, reduction vars, product, panel number, and the
    // outer dims that B depends on.
    llvm::SmallPtrSet<Value, 4> used;
    for (Value coordinate : read.getCoordinates())
      for (Value arg : argumentsOf(coordinate))
        used.insert(arg);
    SmallVector<std::string> names{"lane"};
    SmallVector<Extent> extents{{Value(), shape.width}};
    SmallVector<Value> from;
    for (size_t r = 0; r < rvars; ++r)
      if (used.contains(body.getArgument(rank + r))) {
        names.push_back(heed::format("k{}", r));
        extents.push_back(acc->reductions[0][r]);
        from.push_back(body.getArgument(rank + r));
      }
    bool several =
        shape.products > 1 && used.contains(body.getArgument(productDim));
    if (several) {
      names.push_back("product");
      extents.push_back(acc->extents[productDim]);
      from.push_back(body.getArgument(productDim));
    }
    names.push_back("panel");
    extents.push_back({Value(), std::nullopt});
    if (std::optional<int64_t> columns = acc->extents[0].fixed)
      extents.back().fixed = (*columns + shape.width - 1) / shape.width;
    size_t panelAt = names.size() - 1;
    for (size_t d = 2; d < rank; ++d)
      if (!(shape.products > 1 && d == productDim) &&
          used.contains(body.getArgument(d))) {
        names.push_back(heed::format("o{}", d));
        extents.push_back(acc->extents[d]);
        from.push_back(body.getArgument(d));
      }
    SmallVector<StringRef> refs(names.begin(), names.end());
    Value last;
    {
      OpBuilder before(acc->func);
      last = addI32(before, acc->extents[0].value,
                    mutated("contraction.clamp-before-last-column") ? -2 : -1);
    }
    Type element = read.getResult(0).getType();
    KernelFunc &panel = addFunc(
        kernel, acc->func, heed::format("panel{}", k), refs, element, extents,
        [&](OpBuilder &inner, ValueRange args) {
          Value at = arith::AddIOp::create(
              inner, loc, mulI32(inner, args[panelAt], shape.width), args[0]);
          at = arith::MinSIOp::create(inner, loc, at, last);
          IRMapping map;
          map.map(column, at);
          size_t next = 0;
          for (size_t a = 1; a < args.size(); ++a)
            if (a != panelAt)
              map.map(from[next++], args[a]);
          return cloneSlice(inner, read.getResult(0), map);
        });
    acc = kernel.find(sum);
    packed.push_back(panel.func.getResult());
    OpBuilder here(read);
    SmallVector<Value> coordinates{remI32(here, column, shape.width)};
    size_t next = 0;
    for (size_t a = 1; a < names.size(); ++a)
      coordinates.push_back(a != panelAt ? from[next++]
                            : mutated("contraction.first-panel")
                                ? i32(here, 0)
                                : divI32(here, column, shape.width));
    auto replaced = halide::ReadOp::create(here, loc, element,
                                           panel.func.getResult(), coordinates);
    read.getResult(0).replaceAllUsesWith(replaced.getResult(0));
    read.erase();

    // A weight is packed once, anything else in each call.
    Value f = panel.func.getResult();
    auto schedulePanel = [&](OpBuilder &at, KernelFunc &own) {
      Value func = own.func.getResult();
      halide::SplitOp::create(at, loc, func, 0, "lane", "lane", "lanev",
                              shape.lanes, halide::TailStrategy::RoundUp);
      halide::VectorizeOp::create(at, loc, func, 0, "lanev");
      halide::BoundExtentOp::create(at, loc, func, "lane",
                                    i32(at, shape.width));
      if (several) {
        halide::BoundExtentOp::create(at, loc, func, "product",
                                      i32(at, shape.products));
        halide::UnrollOp::create(at, loc, func, 0, "product");
      }
      parallelOuter(at, own.func, 0, names, panelAt, FusedBody::Alone);
    };
    if (Value buffer = packOnce(kernel, f, schedulePanel)) {
      packed.back() = buffer;
    } else {
      halide::ComputeRootOp::create(b, loc, f);
      schedulePanel(b, panel);
    }
    acc = kernel.find(sum);
  }
  return packed;
}
