//===- Rewrite.cpp - changes of an algorithm that a schedule needs
//--------------------------===//
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace heed;

llvm::SmallPtrSet<Value, 4> heed::argumentsOf(Value value) {
  llvm::SmallPtrSet<Value, 4> found;
  SmallVector<Value> work{value};
  llvm::SmallPtrSet<Value, 16> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (isa<BlockArgument>(next)) {
      found.insert(next);
      continue;
    }
    Operation *def = next.getDefiningOp();
    if (!isa<halide::PipelineOp>(def->getParentOp()))
      work.append(def->operand_begin(), def->operand_end());
  }
  return found;
}

Value heed::cloneSlice(OpBuilder &b, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *def = value.getDefiningOp();
  if (!def || isa<halide::PipelineOp>(def->getParentOp()))
    return value;
  for (Value operand : def->getOperands())
    cloneSlice(b, operand, map);
  b.clone(*def, map);
  return map.lookup(value);
}

KernelFunc &
heed::addFunc(KernelInfo &kernel, Operation *before, StringRef name,
              ArrayRef<StringRef> vars, Type type, ArrayRef<Extent> extents,
              llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  OpBuilder b(before);
  KernelFunc f;
  f.func =
      halide::FuncOp::create(b, before->getLoc(), name, vars, type,
                             [&](OpBuilder &inner, Location, ValueRange args) {
                               return SmallVector<Value>{body(inner, args)};
                             });
  f.extents.assign(extents.begin(), extents.end());
  kernel.funcs.push_back(std::move(f));
  return kernel.funcs.back();
}

void heed::separateOutputs(KernelInfo &kernel) {
  SmallVector<halide::OutputOp> outputs(
      kernel.pipeline.getBody().front().getOps<halide::OutputOp>());
  for (halide::OutputOp output : outputs) {
    KernelFunc *f = kernel.find(output.getFunc());
    if (f->role == FuncRole::Pure)
      continue;
    Value source = f->func.getResult();
    Type type = halide::getElementTypes(source).front();
    SmallVector<std::string> names = varsOf(f->func);
    SmallVector<StringRef> vars(names.begin(), names.end());
    SmallVector<Extent> extents = f->extents;
    std::string name = (f->func.getName() + "_out").str();
    KernelFunc &copy =
        addFunc(kernel, output, name, vars, type, extents,
                [&](OpBuilder &inner, ValueRange args) {
                  return halide::ReadOp::create(inner, output.getLoc(), type,
                                                source, args)
                      .getResult(0);
                });
    Value written = copy.func.getResult();
    // Bounds that were stated of the output hold for the copy.
    for (Operation *user : llvm::make_early_inc_range(source.getUsers()))
      if (isa<halide::OutputOp, halide::SetBoundsOp, halide::SetStrideOp>(user))
        user->replaceUsesOfWith(source, written);
  }
}

Value heed::i32(OpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getUnknownLoc(),
                                   b.getI32IntegerAttr(value));
}

Value heed::addI32(OpBuilder &b, Value x, int64_t y) {
  return arith::AddIOp::create(b, x.getLoc(), x, i32(b, y));
}

Value heed::mulI32(OpBuilder &b, Value x, int64_t y) {
  return arith::MulIOp::create(b, x.getLoc(), x, i32(b, y));
}

Value heed::divI32(OpBuilder &b, Value x, int64_t y) {
  return arith::FloorDivSIOp::create(b, x.getLoc(), x, i32(b, y));
}

Value heed::remI32(OpBuilder &b, Value x, int64_t y) {
  return halide::ModOp::create(b, x.getLoc(), x, i32(b, y));
}

void heed::stateDenseStrides(KernelInfo &kernel) {
  OpBuilder b = OpBuilder::atBlockEnd(&kernel.pipeline.getBody().front());
  SmallVector<halide::SetBoundsOp> bounds(
      kernel.pipeline.getBody().front().getOps<halide::SetBoundsOp>());
  // Bounds stand in any order of dims, so extents are gathered first.
  llvm::MapVector<Value, SmallVector<std::optional<int64_t>>> known;
  for (halide::SetBoundsOp op : bounds) {
    auto &extents = known[op.getFunc()];
    if (extents.size() <= op.getDim())
      extents.resize(op.getDim() + 1);
    APInt extent;
    if (op.getExtent() && matchPattern(op.getExtent(), m_ConstantInt(&extent)))
      extents[op.getDim()] = extent.getSExtValue();
  }
  for (auto &[func, extents] : known) {
    int64_t stride = 1;
    for (size_t d = 0; d + 1 < extents.size(); ++d) {
      if (!extents[d] || *extents[d] <= 0)
        break;
      stride *= *extents[d];
      if (stride > std::numeric_limits<int32_t>::max())
        break;
      halide::SetStrideOp::create(b, func.getLoc(), func, d + 1,
                                  i32(b, stride));
    }
  }
}
