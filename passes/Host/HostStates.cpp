//===- HostStates.cpp - updates of states as calls of the runtime ---------===//

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Host/HostBuilder.h"

using namespace mlir;
using namespace heed;

/// Each position, and then `where`, as the address of its tensor's first
/// element (or as itself), and its strides along the axes of the values.
void heed::lowerWriteState(HostBuilder &host, OpBuilder &b,
                           attn::WriteStateOp op) {
  Location loc = op.getLoc();
  HostBuilder::Strided state = host.decompose(b, loc, op.getState()),
                       values = host.decompose(b, loc, op.getValues());
  SmallVector<Value> axes, positions, mapped(op.getPositions());
  if (op.getMask())
    mapped.push_back(op.getMask());
  for (int64_t axis : op.getAxes())
    axes.push_back(host.i64(b, loc, axis));
  for (auto [position, attr] : llvm::zip(mapped, op.getMaps())) {
    SmallVector<Value> strides(values.sizes.size(), host.i64(b, loc, 0));
    bool isNumber = position.getType().isIndex();
    positions.push_back(host.i64(b, loc, isNumber));
    if (isNumber) {
      positions.push_back(host.toI64(b, loc, position));
    } else {
      HostBuilder::Strided data = host.decompose(b, loc, position);
      positions.push_back(LLVM::PtrToIntOp::create(
          b, loc, TypeRange{b.getI64Type()}, ValueRange{data.data}));
      AffineMap map = cast<AffineMapAttr>(attr).getValue();
      for (auto [expr, stride] : llvm::zip(map.getResults(), data.strides))
        strides[cast<AffineDimExpr>(expr).getPosition()] = stride;
    }
    llvm::append_range(positions, strides);
  }
  Type element = cast<MemRefType>(op.getState().getType()).getElementType();
  host.call(
      b, loc, "heed_host_update", Type(),
      {host.handle(op), state.data,
       host.i64(b, loc, host.elementBytes(element)),
       host.i32(b, loc, state.sizes.size()), host.i64Array(b, op, state.sizes),
       host.i64Array(b, op, state.strides), values.data,
       host.i32(b, loc, values.sizes.size()),
       host.i64Array(b, op, values.sizes), host.i64Array(b, op, values.strides),
       host.i64Array(b, op, axes), host.i64Array(b, op, positions),
       host.i32(b, loc, op.getMask() ? int64_t(op.getPositions().size()) : -1),
       op.getCheckDistinct()
           ? host.text(b, loc, op->getAttrOfType<StringAttr>(attn::kNameAttr))
           : host.null(b, loc)});
}
