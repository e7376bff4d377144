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

/// What of \p read a panel has: rounded to fewer bits, if all that reads it
/// rounds it so.
static Value elementOf(halide::ReadOp read) {
  Value value = read.getResult(0);
  if (value.hasOneUse())
    if (auto rounded = dyn_cast<arith::TruncFOp>(*value.user_begin()))
      return rounded.getResult();
  return value;
}

/// Whether \p read, of \p columns columns in all, finds an array of the call in
/// the order that packing would give it: one panel, row after row.
static bool isPanel(const KernelInfo &kernel, halide::ReadOp read, Value column,
                    std::optional<int64_t> columns, int64_t width) {
  return columns == width && elementOf(read) == read.getResult(0) &&
         read.getFunc().getDefiningOp<halide::BufferOp>() &&
         !kernel.weights.contains(read.getFunc()) &&
         read.getCoordinates().front() == column &&
         llvm::none_of(read.getCoordinates().drop_front(), [&](Value other) {
           return argumentsOf(other).contains(column);
         });
}

namespace {

/// The dims of a panel: lane, reduction vars, product, panel number, and the
/// outer dims that B depends on.
struct PanelDims {
  SmallVector<std::string> names{"lane"};
  SmallVector<Extent> extents;
  /// What of the sum each follows, but for the lane and the panel's number.
  SmallVector<Value> from;
  size_t panelAt = 0;   ///< the panel's number
  bool several = false; ///< products

  void add(std::string name, Extent extent, Value follows) {
    names.push_back(std::move(name));
    extents.push_back(extent);
    from.push_back(follows);
  }
};

PanelDims dimsOf(halide::ReadOp read, const KernelFunc &acc, Block &body,
                 PanelShape shape) {
  llvm::SmallPtrSet<Value, 4> used;
  for (Value coordinate : read.getCoordinates())
    for (Value arg : argumentsOf(coordinate))
      used.insert(arg);
  size_t rank = acc.extents.size(), rvars = acc.reductions[0].size();
  size_t productDim = rank - 1; // where there are several
  PanelDims dims;
  dims.extents.push_back({Value(), shape.width});
  for (size_t r = 0; r < rvars; ++r)
    if (used.contains(body.getArgument(rank + r)))
      dims.add(heed::format("k{}", r), acc.reductions[0][r],
               body.getArgument(rank + r));
  dims.several =
      shape.products > 1 && used.contains(body.getArgument(productDim));
  if (dims.several)
    dims.add("product", acc.extents[productDim], body.getArgument(productDim));
  dims.panelAt = dims.names.size();
  dims.names.push_back("panel");
  dims.extents.push_back({Value(), std::nullopt});
  if (std::optional<int64_t> columns = acc.extents[0].fixed)
    dims.extents.back().fixed = (*columns + shape.width - 1) / shape.width;
  for (size_t d = 1; d < rank; ++d)
    if (d != shape.row && !(shape.products > 1 && d == productDim) &&
        used.contains(body.getArgument(d)))
      dims.add(heed::format("o{}", d), acc.extents[d], body.getArgument(d));
  return dims;
}

/// The func of what \p read finds, panel by panel; past the end it has the
/// last column.
KernelFunc &addPanel(KernelInfo &kernel, KernelFunc &acc, halide::ReadOp read,
                     Value column, unsigned number, const PanelDims &dims,
                     int64_t width) {
  Location loc = read->getParentOp()->getLoc();
  SmallVector<StringRef> names(dims.names.begin(), dims.names.end());
  Value last;
  {
    OpBuilder before(acc.func);
    last = addI32(before, acc.extents[0].value,
                  mutated("contraction.clamp-before-last-column") ? -2 : -1);
  }
  Value element = elementOf(read);
  return addFunc(
      kernel, acc.func, heed::format("panel{}", number), names,
      element.getType(), dims.extents, [&](OpBuilder &inner, ValueRange args) {
        Value at = arith::AddIOp::create(
            inner, loc, mulI32(inner, args[dims.panelAt], width), args[0]);
        at = arith::MinSIOp::create(inner, loc, at, last);
        IRMapping map;
        map.map(column, at);
        size_t next = 0;
        for (size_t a = 1; a < args.size(); ++a)
          if (a != dims.panelAt)
            map.map(dims.from[next++], args[a]);
        return cloneSlice(inner, element, map);
      });
}

/// Has the sum read \p panel in place of \p read.
void readPanel(halide::ReadOp read, Value panel, Value column,
               const PanelDims &dims, int64_t width) {
  OpBuilder here(read);
  Value element = elementOf(read);
  SmallVector<Value> coordinates{remI32(here, column, width)};
  size_t next = 0;
  for (size_t a = 1; a < dims.names.size(); ++a)
    coordinates.push_back(a != dims.panelAt ? dims.from[next++]
                          : mutated("contraction.first-panel")
                              ? i32(here, 0)
                              : divI32(here, column, width));
  auto replaced = halide::ReadOp::create(here, read->getParentOp()->getLoc(),
                                         element.getType(), panel, coordinates);
  element.replaceAllUsesWith(replaced.getResult(0));
  if (element != read.getResult(0))
    element.getDefiningOp()->erase();
  read.erase();
}

/// \p once: of a weight, whose lines of cache come from memory: each is read
/// whole while it is there, since 16 steps of a sum lie in it and its columns
/// often a power of two apart.
void schedulePanel(OpBuilder &b, Location loc, KernelFunc &panel,
                   const PanelDims &dims, PanelShape shape, bool once) {
  Value func = panel.func.getResult();
  halide::SplitOp::create(b, loc, func, 0, "lane", "lane", "lanev", shape.lanes,
                          halide::TailStrategy::RoundUp);
  halide::VectorizeOp::create(b, loc, func, 0, "lanev");
  halide::BoundExtentOp::create(b, loc, func, "lane", i32(b, shape.width));
  constexpr int64_t line = 16;
  if (once && dims.panelAt > 1 && dims.extents[1].fixed > line) {
    std::string steps = dims.names[1];
    halide::SplitOp::create(b, loc, func, 0, steps, steps, "step", line,
                            halide::TailStrategy::GuardWithIf);
    halide::ReorderOp::create(b, loc, func, 0,
                              {"lanev", "step", "lane", StringRef(steps)});
  }
  if (dims.several) {
    halide::BoundExtentOp::create(b, loc, func, "product",
                                  i32(b, shape.products));
    halide::UnrollOp::create(b, loc, func, 0, "product");
  }
  parallelOuter(b, panel.func, 0, dims.names, dims.panelAt, FusedBody::Alone);
}

} // namespace

SmallVector<Value> heed::packPanels(KernelInfo &kernel, halide::UpdateOp update,
                                    ArrayRef<halide::ReadOp> panels,
                                    PanelShape shape) {
  Value sum = update.getFunc();
  Location loc = update.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  Block &body = update.getSet().front();
  Value column = body.getArgument(0);
  SmallVector<Value> packed;
  for (auto [k, read] : llvm::enumerate(panels)) {
    KernelFunc &acc = *kernel.find(sum);
    if (isPanel(kernel, read, column, acc.extents[0].fixed, shape.width))
      continue;
    PanelDims dims = dimsOf(read, acc, body, shape);
    KernelFunc &panel =
        addPanel(kernel, acc, read, column, k, dims, shape.width);
    Value func = panel.func.getResult();
    readPanel(read, func, column, dims, shape.width);
    // A weight is packed once, anything else in each call.
    Value buffer = packOnce(kernel, func, [&](OpBuilder &at, KernelFunc &own) {
      schedulePanel(at, loc, own, dims, shape, /*once=*/true);
    });
    if (!buffer) {
      halide::ComputeRootOp::create(b, loc, func);
      schedulePanel(b, loc, panel, dims, shape, /*once=*/false);
    }
    packed.push_back(buffer ? buffer : func);
  }
  return packed;
}
