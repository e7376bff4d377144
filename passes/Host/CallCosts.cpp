//===- CallCosts.cpp - what a call of a kernel costs, for profiles --------===//

#include "passes/Host/HostBuilder.h"
#include "passes/Plan/Cost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace heed;

/// What \p live counts, where a profile is asked for; else zeros. Nothing where
/// \p arguments are not what it takes.
static SmallVector<Value> countLive(HostBuilder &host, OpBuilder &b,
                                    halide::CallOp op, func::FuncOp live,
                                    ArrayAttr names,
                                    const llvm::StringMap<Value> &arguments) {
  Location loc = op.getLoc();
  SmallVector<Value> actual;
  for (auto [name, type] : llvm::zip(names.getAsValueRange<StringAttr>(),
                                     live.getArgumentTypes())) {
    Value value = arguments.lookup(name);
    if (!value || (value.getType() != type &&
                   !memref::CastOp::areCastCompatible(value.getType(), type)))
      return {};
    actual.push_back(value);
  }
  Value asked =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                            host.call(b, loc, "heed_host_profiles",
                                      b.getI32Type(), {host.handle(op)}),
                            host.i32(b, loc, 0));
  auto branch = scf::IfOp::create(b, loc, live.getResultTypes(), asked,
                                  /*withElseRegion=*/true);
  OpBuilder inside = branch.getThenBodyBuilder();
  for (auto [value, type] : llvm::zip(actual, live.getArgumentTypes()))
    if (value.getType() != type)
      value = memref::CastOp::create(inside, loc, type, value);
  auto counts = func::CallOp::create(inside, loc, live, actual);
  scf::YieldOp::create(inside, loc, counts.getResults());
  OpBuilder other = branch.getElseBodyBuilder();
  SmallVector<Value> zeros(live.getNumResults(), host.i64(other, loc, 0));
  scf::YieldOp::create(other, loc, zeros);
  return branch.getResults();
}

std::pair<Value, Value>
heed::costOfCall(HostBuilder &host, OpBuilder &b, halide::CallOp op,
                 const llvm::StringMap<Value> &arguments,
                 halide::PipelineOp pipeline) {
  Location loc = op.getLoc();
  auto size = [&](StringRef name, std::optional<int64_t> axis) -> Value {
    Value actual = arguments.lookup(name);
    if (actual && axis)
      return memref::DimOp::create(b, loc, actual, *axis);
    return actual;
  };
  auto count = [&](func::FuncOp live, ArrayAttr names) {
    return countLive(host, b, op, live, names, arguments);
  };
  return evaluateCost(b, loc, pipeline, {size, count});
}
