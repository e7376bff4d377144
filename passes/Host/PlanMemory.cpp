//===- PlanMemory.cpp - one arena for a function's buffers ----------------===//
//
// After bufferisation every intermediate tensor of the host is a memref.alloc.
// Buffers whose lifetimes do not meet share a slot; the slots lie one after the
// other in one arena, which the runtime keeps between calls. Sizes may be
// symbolic: a slot is as large as its largest buffer, computed when the
// function is entered. A buffer of a branch takes room only in calls that take
// the branch: the other way to compute the same may need far more.
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace heed {
#define GEN_PASS_DEF_ATTNPLANMEMORY
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;

namespace {

constexpr StringLiteral passName = "attn-plan-memory";
// A cache line, and the widest vector.
constexpr int64_t alignment = 64;

/// A condition of an `scf.if` around a buffer, and the branch it stands in.
using Branch = std::pair<Value, bool>;

/// A buffer that can move into the arena. Positions count the function's ops in
/// order; `last` is inclusive.
struct Buffer {
  memref::AllocOp alloc;
  int64_t first, last;
  SmallVector<Branch, 2> branches = {};
  /// The dynamic extents, or what they are at most, where the arena is made.
  SmallVector<Value> extents = {};
  /// Roundings to the alignment are left away.
  heed::Size bytes = {};
  unsigned slot = 0;
};

/// Position of every op in a walk of the function, and of the last op nested in
/// it.
class Positions {
public:
  explicit Positions(func::FuncOp function) {
    function.walk<WalkOrder::PreOrder>(
        [&](Operation *op) { begin[op] = next++; });
    function.walk([&](Operation *op) {
      int64_t last = begin[op];
      for (Region &region : op->getRegions())
        for (Operation &inner : region.getOps())
          last = std::max(last, end[&inner]);
      end[op] = last;
    });
  }
  int64_t first(Operation *op) const { return begin.lookup(op); }
  int64_t last(Operation *op) const { return end.lookup(op); }

private:
  llvm::DenseMap<Operation *, int64_t> begin, end;
  int64_t next = 0;
};

/// Whether \p op divides by what may be 0: it stands behind a check of that.
bool mayTrap(Operation *op) {
  if (!isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
           arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
    return false;
  std::optional<int64_t> divisor = getConstantIntValue(op->getOperand(1));
  return !divisor || *divisor == 0;
}

/// Moves the index arithmetic that computes \p value in front of \p point, out
/// of regions behind it too, if it is free of side effects and what it starts
/// from stands there already.
bool makeAvailable(Value value, Operation *point, DominanceInfo &dominance) {
  if (dominance.properlyDominates(value, point))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !point->getBlock()->findAncestorOpInBlock(*op) ||
      op->getNumRegions() != 0 || !isPure(op) || mayTrap(op))
    return false;
  for (Value operand : op->getOperands())
    if (!makeAvailable(operand, point, dominance))
      return false;
  op->moveBefore(point);
  return true;
}

/// \p extent in front of \p point, or what it is at most: a chunk of steps is
/// as long as others are, or shorter. Null if neither is known there.
Value availableBound(Value extent, Operation *point, DominanceInfo &dominance) {
  if (makeAvailable(extent, point, dominance))
    return extent;
  if (auto least = extent.getDefiningOp<arith::MinSIOp>())
    for (Value operand : least->getOperands())
      if (makeAvailable(operand, point, dominance))
        return operand;
  return {};
}

/// The ancestor of \p op in the function's entry block.
Operation *topLevel(Operation *op, func::FuncOp function) {
  return function.front().findAncestorOpInBlock(*op);
}

/// The branches that \p op stands in, from the inside to the outside.
SmallVector<Branch, 2> branchesAround(Operation *op) {
  SmallVector<Branch, 2> branches;
  for (Region *region = op->getParentRegion(); region;
       region = region->getParentRegion())
    if (auto choice = dyn_cast<scf::IfOp>(region->getParentOp()))
      branches.push_back(
          {choice.getCondition(), region == &choice.getThenRegion()});
  return branches;
}

/// The innermost block that \p aliases of a buffer made in \p block do not
/// leave: a branch hands its result to the block around it.
Block *homeOf(Block *block, const BufferViewFlowAnalysis::ValueSetT &aliases) {
  auto handsOn = [&](Operation *exit) {
    return llvm::any_of(exit->getOperands(),
                        [&](Value v) { return aliases.contains(v); });
  };
  while (isa_and_nonnull<scf::IfOp>(block->getParentOp()) &&
         handsOn(block->getTerminator()))
    block = block->getParentOp()->getBlock();
  return block;
}

/// When the buffer is in use; fails if it leaves the function, or goes to the
/// next iteration of a loop.
FailureOr<Buffer> lifetime(memref::AllocOp alloc,
                           const BufferViewFlowAnalysis &views,
                           const Positions &positions) {
  Buffer buffer{alloc, positions.first(alloc), positions.last(alloc),
                branchesAround(alloc)};
  BufferViewFlowAnalysis::ValueSetT aliases = views.resolve(alloc.getResult());
  Block *home = homeOf(alloc->getBlock(), aliases);
  for (Value alias : aliases)
    for (Operation *user : alias.getUsers()) {
      if (alias != alloc.getResult() &&
          heed::mutated("plan-memory.forget-views"))
        continue;
      Operation *here = home->findAncestorOpInBlock(*user);
      if (!here || here->hasTrait<OpTrait::IsTerminator>())
        return failure();
      buffer.last =
          std::max(buffer.last, heed::mutated("plan-memory.first-op-of-loop")
                                    ? positions.first(here)
                                    : positions.last(here));
    }
  return buffer;
}

/// Whether no call takes the branches of both.
bool exclude(const Buffer &a, const Buffer &b) {
  return llvm::any_of(a.branches, [&](const Branch &branch) {
    return llvm::is_contained(
        b.branches,
        Branch(branch.first,
               branch.second ==
                   heed::mutated("plan-memory.same-branch-excludes")));
  });
}

int64_t elementBytes(memref::AllocOp alloc) {
  return llvm::divideCeil(alloc.getType().getElementTypeBitWidth(), 8);
}

/// Bytes of the buffer, rounded up to the alignment.
Value byteSize(OpBuilder &builder, const Buffer &buffer) {
  memref::AllocOp alloc = buffer.alloc;
  MemRefType type = alloc.getType();
  Location loc = alloc.getLoc();
  int64_t bytes = elementBytes(alloc);
  for (int64_t extent : type.getShape())
    if (!ShapedType::isDynamic(extent) &&
        !heed::mutated("plan-memory.forget-fixed-extents"))
      bytes *= extent;
  if (buffer.extents.empty())
    return arith::ConstantIndexOp::create(builder, loc,
                                          llvm::alignTo(bytes, alignment));
  Value size = arith::ConstantIndexOp::create(builder, loc, bytes);
  for (Value extent : buffer.extents)
    size = arith::MulIOp::create(builder, loc, size, extent);
  Value up = arith::ConstantIndexOp::create(builder, loc, alignment - 1);
  Value unit = arith::ConstantIndexOp::create(builder, loc, alignment);
  Value padded = arith::AddIOp::create(builder, loc, size, up);
  Value units = arith::DivUIOp::create(builder, loc, padded, unit);
  return arith::MulIOp::create(builder, loc, units, unit);
}

/// Bytes that the buffer needs in this call: none where its branches are not
/// taken.
Value neededSize(OpBuilder &builder, const Buffer &buffer) {
  Location loc = buffer.alloc->getLoc();
  Value size = byteSize(builder, buffer);
  for (auto [condition, inThen] : buffer.branches) {
    bool isThen = inThen != heed::mutated("plan-memory.size-of-other-branch");
    Value none = arith::ConstantIndexOp::create(builder, loc, 0);
    size = arith::SelectOp::create(builder, loc, condition,
                                   isThen ? size : none, isThen ? none : size);
  }
  return size;
}

/// Gives each buffer a slot such that no two buffers of a slot live at once; a
/// slot of equal size is taken first.
unsigned assignSlots(const heed::attn::SymbolicDims &dims,
                     MutableArrayRef<Buffer> buffers) {
  SmallVector<SmallVector<unsigned>> slots;
  for (unsigned number = 0; number < buffers.size(); ++number) {
    Buffer &buffer = buffers[number];
    auto isFree = [&](ArrayRef<unsigned> slot) {
      return llvm::all_of(slot, [&](unsigned other) {
        return buffers[other].last <
                   buffer.first +
                       2 * heed::mutated("plan-memory.free-at-last-use") ||
               buffer.last < buffers[other].first ||
               exclude(buffers[other], buffer);
      });
    };
    std::optional<unsigned> chosen;
    for (auto [index, slot] : llvm::enumerate(slots))
      if (isFree(slot) &&
          (!chosen || dims.equal(buffers[slot.front()].bytes, buffer.bytes)))
        chosen = index;
    if (!chosen) {
      chosen = slots.size();
      slots.emplace_back();
    }
    slots[*chosen].push_back(number);
    buffer.slot = *chosen;
  }
  return slots.size();
}

/// The same as a polynomial of the model's sizes.
heed::Size bytesOf(heed::attn::SymbolicDims &dims, const Buffer &buffer) {
  memref::AllocOp alloc = buffer.alloc;
  heed::Size bytes = elementBytes(alloc);
  MemRefType type = alloc.getType();
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    Value bound = type.isDynamicDim(axis)
                      ? buffer.extents[type.getDynamicDimIndex(axis)]
                      : Value();
    bool isBound = bound && !llvm::is_contained(alloc.getDynamicSizes(), bound);
    bytes *= isBound ? dims.size(bound) : dims.dim(alloc, axis);
  }
  return bytes;
}

/// What the arena holds and what of it is in use at once, at most.
std::string explain(const heed::attn::SymbolicDims &dims,
                    ArrayRef<Buffer> buffers, unsigned slots) {
  // Which of two is taken for the larger: with every extent 1000.
  auto isLess = [](const heed::Size &a, const heed::Size &b) {
    return a.estimate(1000) < b.estimate(1000);
  };
  heed::Size live;
  for (const Buffer &at : buffers) {
    heed::Size here;
    for (const Buffer &other : buffers)
      if (other.first <= at.first && at.first <= other.last &&
          !exclude(at, other))
        here += other.bytes;
    live = std::max(live, here, isLess);
  }
  // A slot is as large as its largest buffer.
  heed::Size arena;
  for (unsigned slot = 0; slot < slots; ++slot) {
    heed::Size largest;
    for (const Buffer &buffer : buffers)
      if (buffer.slot == slot)
        largest = std::max(largest, buffer.bytes, isLess);
    arena += largest;
  }
  return heed::format(
      "{} buffers in {} slots of one arena: {} bytes; in use at once {}",
      buffers.size(), slots, dims.str(arena),
      arena == live ? "all of them"
                    : heed::format("at most {}", dims.str(live)));
}

struct PlanMemory : public heed::impl::AttnPlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    SmallVector<Buffer> buffers = collect(function);
    if (buffers.size() < 2)
      return;
    heed::attn::SymbolicDims dims;
    for (Buffer &buffer : buffers)
      buffer.bytes = bytesOf(dims, buffer);
    unsigned slots = assignSlots(dims, buffers);
    std::string text = explain(dims, buffers, slots);
    rewrite(function, dims, buffers, slots);
    heed::remarkDone(function, passName, "arena", text);
  }

  /// The buffers that can move, in order, after moving their sizes to where the
  /// arena will be made.
  SmallVector<Buffer> collect(func::FuncOp function) {
    BufferViewFlowAnalysis views(function);
    Positions positions(function);
    DominanceInfo dominance(function);
    SmallVector<Buffer> buffers;
    Operation *arenaPoint = nullptr;
    function.walk<WalkOrder::PreOrder>([&](memref::AllocOp alloc) {
      if (!alloc.getType().getLayout().isIdentity() ||
          alloc.getType().getMemorySpace())
        return;
      FailureOr<Buffer> buffer = lifetime(alloc, views, positions);
      if (failed(buffer)) {
        heed::remarkDeclined(alloc, passName, "escapes",
                             "the buffer leaves the function or the loop's "
                             "iteration that makes it");
        return;
      }
      Operation *point = arenaPoint ? arenaPoint : topLevel(alloc, function);
      if (!llvm::all_of(alloc.getDynamicSizes(), [&](Value size) {
            buffer->extents.push_back(availableBound(size, point, dominance));
            return buffer->extents.back() != nullptr;
          })) {
        heed::remarkDeclined(
            alloc, passName, "late-size",
            "the buffer's size is not known where the arena is made");
        return;
      }
      if (!llvm::all_of(buffer->branches, [&](const Branch &branch) {
            return makeAvailable(branch.first, point, dominance);
          })) {
        heed::remarkDeclined(alloc, passName, "late-branch",
                             "whether the buffer's branch is taken is not "
                             "known where the arena is made");
        return;
      }
      arenaPoint = point;
      buffers.push_back(*buffer);
    });
    return buffers;
  }

  void rewrite(func::FuncOp function, const heed::attn::SymbolicDims &dims,
               ArrayRef<Buffer> buffers, unsigned slots) {
    Operation *point = topLevel(buffers.front().alloc, function);
    OpBuilder builder(point);
    Location loc = function.getLoc();
    SmallVector<Value> sizes(slots);
    SmallVector<SmallVector<const Buffer *>> seen(slots);
    for (const Buffer &buffer : buffers) {
      // What is never larger than another one needs no maximum at run time.
      if (llvm::any_of(seen[buffer.slot], [&](const Buffer *other) {
            return dims.isNeverNegative(other->bytes - buffer.bytes) &&
                   other->branches == buffer.branches;
          }))
        continue;
      seen[buffer.slot].push_back(&buffer);
      Value size = neededSize(builder, buffer);
      Value &slot = sizes[buffer.slot];
      if (slot && heed::mutated("plan-memory.size-of-first-buffer"))
        continue;
      slot = slot ? arith::MaxUIOp::create(builder, loc, slot, size) : size;
    }
    SmallVector<Value> offsets;
    Value total = arith::ConstantIndexOp::create(builder, loc, 0);
    for (Value size : sizes) {
      offsets.push_back(total);
      total = arith::AddIOp::create(builder, loc, total, size);
    }
    auto bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
    Value arena =
        memref::AllocOp::create(builder, loc, bytes, ValueRange{total},
                                builder.getI64IntegerAttr(alignment));
    for (const Buffer &buffer : buffers) {
      memref::AllocOp alloc = buffer.alloc;
      builder.setInsertionPoint(alloc);
      Value view = memref::ViewOp::create(
          builder, alloc.getLoc(), alloc.getType(), arena, offsets[buffer.slot],
          alloc.getDynamicSizes());
      alloc.replaceAllUsesWith(view);
      alloc.erase();
    }
  }
};

} // namespace
