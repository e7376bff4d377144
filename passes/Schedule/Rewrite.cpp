//===- Rewrite.cpp - changes of an algorithm that a schedule needs --------===//
#include "passes/Schedule/Rewrite.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

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

llvm::SmallSetVector<Value, 2> heed::arraysAlong(halide::FuncOp func) {
  llvm::SmallSetVector<Value, 2> arrays;
  Block &body = func.getBody().front();
  if (body.getNumArguments() < 2)
    return arrays;
  for (auto read : body.getOps<halide::ReadOp>()) {
    OperandRange at = read.getCoordinates();
    if (at.size() < 2 || !argumentsOf(at[0]).contains(body.getArgument(0)) ||
        !argumentsOf(at[1]).contains(body.getArgument(1)))
      continue;
    if (read.getFunc().getDefiningOp<halide::BufferOp>())
      arrays.insert(read.getFunc());
    else if (auto inner = read.getFunc().getDefiningOp<halide::FuncOp>())
      arrays.insert_range(arraysAlong(inner));
  }
  return arrays;
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

void heed::separateOutputs(KernelInfo &kernel, bool andRead) {
  SmallVector<halide::OutputOp> outputs(
      kernel.pipeline.getBody().front().getOps<halide::OutputOp>());
  for (halide::OutputOp output : outputs) {
    KernelFunc *f = kernel.find(output.getFunc());
    Value source = f->func.getResult();
    bool isRead =
        llvm::any_of(source.getUsers(), llvm::IsaPred<halide::ReadOp>);
    if (f->role == FuncRole::Pure && !(andRead && isRead))
      continue;
    Type type = halide::getElementTypes(source).front();
    SmallVector<std::string> names = varsOf(f->func);
    SmallVector<StringRef> vars(names.begin(), names.end());
    SmallVector<Extent> extents = f->extents;
    std::string name = heed::format("{}_out", f->func.getName());
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

void heed::clampLanes(KernelFunc &states, int64_t lanes) {
  const Extent &extent = states.extents[0];
  if (extent.fixed && *extent.fixed % lanes == 0)
    return;
  for (halide::UpdateOp update : states.updates) {
    Block &body = update.getSet().front();
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    Location loc = update.getLoc();
    Value lane = body.getArgument(0);
    auto likely = halide::LikelyOp::create(b, loc, lane);
    Value inside =
        arith::MinSIOp::create(b, loc, likely, addI32(b, extent.value, -1));
    lane.replaceUsesWithIf(inside, [&](OpOperand &use) {
      auto read = dyn_cast<halide::ReadOp>(use.getOwner());
      return use.getOwner() != likely &&
             !(read && read.getFunc() == states.func.getResult());
    });
  }
}

void heed::dropUnreadFuncs(KernelInfo &kernel) {
  for (KernelFunc &f : llvm::reverse(kernel.funcs)) {
    bool read = llvm::any_of(f.func.getResult().getUsers(), [&](Operation *op) {
      if (isa<halide::OutputOp>(op))
        return true;
      // What its own updates read does not count.
      auto update = dyn_cast<halide::UpdateOp>(op->getParentOp());
      return isa<halide::ReadOp>(op) &&
             !(update && update.getFunc() == f.func.getResult());
    });
    if (read)
      continue;
    for (halide::UpdateOp update : f.updates)
      update.erase();
    f.func.erase();
    f.func = halide::FuncOp();
  }
  kernel.funcs.remove_if([](KernelFunc &f) { return !f.func; });
}

Operation *heed::combinerOf(halide::UpdateOp update, unsigned &term) {
  Block &body = update.getSet().front();
  Operation *yield = body.getTerminator();
  if (yield->getNumOperands() != 1)
    return nullptr;
  Operation *op = yield->getOperand(0).getDefiningOp();
  if (!op ||
      !isa<arith::AddFOp, arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp,
           arith::MinimumFOp, arith::AddIOp, arith::OrIOp, arith::AndIOp,
           arith::MaxSIOp, arith::MinSIOp>(op))
    return nullptr;
  for (unsigned k = 0; k < 2; ++k) {
    auto read = op->getOperand(k).getDefiningOp<halide::ReadOp>();
    if (!read || read.getFunc() != update.getFunc())
      continue;
    // The old value itself, read nowhere else.
    for (auto [d, coordinate] : llvm::enumerate(read.getCoordinates()))
      if (coordinate != body.getArgument(d))
        return nullptr;
    if (!read.getResult(0).hasOneUse())
      return nullptr;
    term = 1 - k;
    return op;
  }
  return nullptr;
}

halide::UpdateOp heed::addBlocks(OpBuilder &b, Value sum, Value part,
                                 StringRef rvar, Value count) {
  Location loc = sum.getLoc();
  Type type = halide::getElementTypes(sum).front();
  auto update = halide::UpdateOp::create(b, loc, sum, ArrayRef<StringRef>{rvar},
                                         ValueRange{i32(b, 0), count});
  update.fill(
      b, update.getSet(), [&](OpBuilder &at, Location, ValueRange args) {
        Value fresh =
            halide::ReadOp::create(at, loc, type, part, args).getResult(0);
        Value old = halide::ReadOp::create(at, loc, type, sum, args.drop_back())
                        .getResult(0);
        return SmallVector<Value>{arith::AddFOp::create(at, loc, old, fresh)};
      });
  return update;
}

/// Terms of a block of \p extent terms: \p block, or about as many that leave
/// no rest. 0 if the sum is short.
static int64_t blockOf(std::optional<int64_t> extent, int64_t block) {
  if (!extent)
    return block;
  // Twice as many are no reason for another level.
  if (*extent <= 2 * block)
    return 0;
  for (int64_t size = block; 2 * size > block; --size)
    if (*extent % size == 0 && size % 16 == 0)
      return size;
  return block;
}

/// A func of the sums of \p block terms of \p update each, of \p f, before it:
/// what is read at a block's places may be stored before the func.
static Value addBlockSum(KernelInfo &kernel, KernelFunc &f,
                         halide::UpdateOp update, Operation *combine,
                         unsigned term, int64_t block, Value zero) {
  Location loc = update.getLoc();
  Type type = combine->getResult(0).getType();
  size_t rank = f.extents.size(), rvars = update.getRvars().size();
  SmallVector<std::string> names = varsOf(f.func);
  names.push_back("block");
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents = f.extents;
  extents.push_back({});
  if (std::optional<int64_t> terms = f.reductions[0].back().fixed)
    extents.back().fixed = *terms / block;
  KernelFunc &part =
      addFunc(kernel, update, heed::format("{}_block", f.func.getName()), vars,
              type, extents, [&](OpBuilder &inner, ValueRange) -> Value {
                return arith::ConstantOp::create(inner, loc,
                                                 inner.getFloatAttr(type, 0.0));
              });
  Value partFunc = part.func.getResult();
  part.role = FuncRole::Reduction;
  part.reductions.push_back(f.reductions[0]);

  OpBuilder b(update);
  SmallVector<Value> bounds(update.getBounds().drop_back(2));
  bounds.append({zero, i32(b, block)});
  SmallVector<StringRef> rnames;
  for (Attribute name : update.getRvars())
    rnames.push_back(cast<StringAttr>(name).getValue());
  auto inner = halide::UpdateOp::create(b, loc, partFunc, rnames, bounds);
  auto place = [&](OpBuilder &at, ValueRange args) -> Value {
    return arith::AddIOp::create(
        at, loc,
        mulI32(at, args[rank],
               mutated("contraction.blocks-overlap") ? block - 1 : block),
        args.back());
  };
  Block &body = update.getSet().front();
  inner.fill(b, inner.getSet(), [&](OpBuilder &at, Location, ValueRange args) {
    IRMapping map;
    for (size_t d = 0; d < rank; ++d)
      map.map(body.getArgument(d), args[d]);
    for (size_t r = 0; r + 1 < rvars; ++r)
      map.map(body.getArgument(rank + r), args[rank + 1 + r]);
    map.map(body.getArgument(rank + rvars - 1), place(at, args));
    Value old = halide::ReadOp::create(at, loc, type, partFunc,
                                       args.take_front(rank + 1))
                    .getResult(0);
    Value fresh = cloneSlice(at, combine->getOperand(term), map);
    IRMapping operands;
    operands.map(combine->getOperand(term), fresh);
    operands.map(combine->getOperand(1 - term), old);
    return SmallVector<Value>{at.clone(*combine, operands)->getResult(0)};
  });
  part.updates.push_back(inner);
  part.reductions.back().back() = {i32(b, block), block};
  return partFunc;
}

Value heed::sumByBlocks(KernelInfo &kernel, Value func, int64_t block) {
  KernelFunc *f = kernel.find(func);
  halide::UpdateOp update = f->updates[0];
  unsigned term = 0;
  Operation *combine = combinerOf(update, term);
  size_t rvars = update.getRvars().size();
  if (!isa_and_nonnull<arith::AddFOp>(combine) || rvars == 0 ||
      !update.getWhere().empty() || !update.getAt().empty())
    return {};
  for (const Extent &inner : ArrayRef(f->reductions[0]).drop_back())
    if (inner.fixed)
      block = std::max<int64_t>(1, block / std::max<int64_t>(1, *inner.fixed));
  Extent extent = f->reductions[0].back();
  block = blockOf(extent.fixed, block);
  if (!block)
    return {};

  OpBuilder b(update);
  Value zero = i32(b, 0);
  Value blocks = divI32(b, extent.value, block);
  Value part = addBlockSum(kernel, *f, update, combine, term, block, zero);
  f->updates[0] = addBlocks(
      b, func, part,
      heed::format("{}_b",
                   cast<StringAttr>(update.getRvars()[rvars - 1]).getValue()),
      blocks);
  SmallVector<Extent> reductions = f->reductions[0];
  f->reductions[0] = {{blocks, std::nullopt}};
  if ((extent.fixed && *extent.fixed % block == 0) ||
      mutated("contraction.drop-rest-of-blocks")) {
    update.erase();
    return part;
  }
  // The update itself, for what is left.
  Value done = mulI32(b, blocks, block);
  Value left = arith::SubIOp::create(b, update.getLoc(), extent.value, done);
  update.getBoundsMutable().slice(2 * (rvars - 1), 2).assign({done, left});
  f->updates.push_back(update);
  reductions.back() = {left, std::nullopt};
  if (extent.fixed)
    reductions.back().fixed = *extent.fixed % block;
  f->reductions.push_back(reductions);
  return part;
}

Value heed::constantI32(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

Value heed::i32(OpBuilder &b, int64_t value) {
  return constantI32(b, b.getUnknownLoc(), value);
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

static void swapUses(Value a, Value b) {
  SmallVector<OpOperand *> ofA, ofB;
  for (OpOperand &use : a.getUses())
    ofA.push_back(&use);
  for (OpOperand &use : b.getUses())
    ofB.push_back(&use);
  for (OpOperand *use : ofA)
    use->set(b);
  for (OpOperand *use : ofB)
    use->set(a);
}

void heed::swapDims(KernelFunc &f, unsigned x, unsigned y) {
  Value func = f.func.getResult();
  SmallVector<Attribute> vars(f.func.getVars().getValue());
  std::swap(vars[x], vars[y]);
  f.func.setVarsAttr(ArrayAttr::get(func.getContext(), vars));
  std::swap(f.extents[x], f.extents[y]);
  SmallVector<Block *> bodies{&f.func.getBody().front()};
  for (halide::UpdateOp update : f.updates)
    bodies.push_back(&update.getSet().front());
  for (Block *body : bodies)
    swapUses(body->getArgument(x), body->getArgument(y));
  for (Operation *user : func.getUsers())
    if (auto read = dyn_cast<halide::ReadOp>(user)) {
      MutableOperandRange at = read.getCoordinatesMutable();
      Value first = at[x].get();
      at[x].set(at[y].get());
      at[y].set(first);
    }
}

void heed::hideConditions(KernelInfo &kernel) {
  for (KernelFunc &f : kernel.funcs)
    for (auto select : f.func.getBody().front().getOps<arith::SelectOp>()) {
      Value condition = select.getCondition();
      if (argumentsOf(condition).empty())
        continue;
      OpBuilder b(select);
      Location loc = select.getLoc();
      Value number = arith::ExtUIOp::create(b, loc, b.getI8Type(), condition);
      Value one = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(1));
      select.getConditionMutable().assign(
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, one));
    }
}

Value heed::addTiles(KernelInfo &kernel, Value sum) {
  KernelFunc *f = kernel.find(sum);
  SmallVector<halide::ReadOp> reads;
  for (Operation *user : sum.getUsers()) {
    auto update = dyn_cast<halide::UpdateOp>(user->getParentOp());
    bool isOwn = update && update.getFunc() == sum;
    if (auto read = dyn_cast<halide::ReadOp>(user); read && !isOwn)
      reads.push_back(read);
  }
  SmallVector<std::string> names = varsOf(f->func);
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents = f->extents;
  Type type = halide::getElementTypes(sum).front();
  Value tiles =
      addFunc(kernel, f->updates.back()->getNextNode(),
              heed::format("{}_tiles", f->func.getName()), vars, type, extents,
              [&](OpBuilder &inner, ValueRange args) {
                return halide::ReadOp::create(inner, sum.getLoc(), type, sum,
                                              args)
                    .getResult(0);
              })
          .func.getResult();
  for (halide::ReadOp read : reads)
    read->replaceUsesOfWith(sum, tiles);
  return tiles;
}
