//===- Hoisting.cpp - what is the same in every call runs once ------------===//

#include "passes/Plan/Hoisting.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Algebra/Weights.h"
#include "passes/Mutation.h"
#include "passes/Remarks.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;

int64_t heed::bytesOf(RankedTensorType tensor) {
  return tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
}

namespace {

/// Why \p op, which reads no other tensors than those of \p analysis that are
/// fixed, is not the same in every call.
std::string whyNotFixed(Operation *op, WeightAnalysis &analysis) {
  for (Value input : inputsOf(op)) {
    if (analysis.of(input).fixed)
      continue;
    if (auto empty = input.getDefiningOp<tensor::EmptyOp>();
        empty || isa<IndexType>(input.getType()))
      return "its size is known in a call only";
    return "it depends on an input";
  }
  return "it depends on an input";
}

class Hoister {
public:
  Hoister(ModuleOp module, const HoistedWork &work)
      : module(module), work(work) {
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(attn::kInitAttr))
        init = function;
    if (init)
      if (auto count = init->getAttrOfType<IntegerAttr>(attn::kSlotsAttr))
        slots = count.getInt();
  }

  void run(func::FuncOp model);

private:
  /// What was hoisted: its copy in init, in copies of its loops, and its slots.
  struct Done {
    Operation *copy;
    SmallVector<Value> variables; ///< of the copies of its loops
    SmallVector<Operation *> loops;
    int64_t slots;
  };

  void collect(Region &region, SmallVectorImpl<Operation *> &ops);
  bool isRoot(Operation *op);
  void explain(Operation *op);
  void hoist(Operation *root);
  const Done *find(Operation *root, ArrayRef<Operation *> loops);
  void readFrom(Operation *root, ArrayRef<Operation *> loops, int64_t first);
  OpBuilder atEndOfInit();
  Value slotOf(OpBuilder &b, Location loc, int64_t first,
               ArrayRef<Operation *> loops, ArrayRef<Value> variables);

  ModuleOp module;
  const HoistedWork &work;
  func::FuncOp init;
  int64_t slots = 0;
  WeightAnalysis analysis;
  std::vector<Done> done;
};

using Pairs = ArrayRef<std::pair<Value, Value>>;

/// Do \p a and \p b compute the same, where pairs of \p variables are?
bool isSame(Operation *a, Operation *b, Pairs variables) {
  DenseMap<Value, Value> inside;
  auto check = [&](Value x, Value y) {
    if (x == y || inside.lookup(x) == y ||
        llvm::is_contained(variables, std::pair(x, y)))
      return success();
    auto from = dyn_cast<OpResult>(x), to = dyn_cast<OpResult>(y);
    return success(from && to &&
                   from.getResultNumber() == to.getResultNumber() &&
                   isSame(from.getOwner(), to.getOwner(), variables));
  };
  return OperationEquivalence::isEquivalentTo(
      a, b, check, [&](Value x, Value y) { inside[x] = y; },
      OperationEquivalence::IgnoreLocations);
}

/// The ops of \p region in program order, those in loops and branches of the
/// host included.
void Hoister::collect(Region &region, SmallVectorImpl<Operation *> &ops) {
  for (Block &block : region)
    for (Operation &op : block) {
      ops.push_back(&op);
      if (isa<scf::ForOp, scf::IfOp>(op))
        for (Region &inner : op.getRegions())
          collect(inner, ops);
    }
}

bool Hoister::isRoot(Operation *op) {
  if (!work.computes(op) || !analysis.of(op).fixed)
    return false;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        !tensor || !tensor.hasStaticShape() ||
        !tensor.getElementType().isIntOrFloat())
      return false;
  return !work.isCheap(op);
}

/// Says why something that reads weights alone is computed in every call.
void Hoister::explain(Operation *op) {
  if (!work.computes(op))
    return;
  bool weights = false;
  for (Value input : inputsOf(op)) {
    if (!isa<RankedTensorType>(input.getType()) ||
        isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(input.getDefiningOp()))
      continue;
    const Dependence &on = analysis.of(input);
    if (!on.fixed)
      return;
    weights |= on.weights;
  }
  if (!weights)
    return;
  std::string why = analysis.of(op).fixed
                        ? "it is cheaper to compute again than to read"
                        : whyNotFixed(op, analysis);
  remarkDeclined(op, work.pass, "not-hoisted",
                 format("computed from parameters in every call: {}", why));
}

void Hoister::run(func::FuncOp model) {
  SmallVector<Operation *> ops;
  collect(model.getBody(), ops);
  llvm::SmallPtrSet<Operation *, 16> stays;
  SmallVector<Operation *> roots;
  for (Operation *op : llvm::reverse(ops)) {
    bool needed = !analysis.of(op).fixed || isa<attn::SlotOp>(op) ||
                  op->hasTrait<OpTrait::IsTerminator>();
    for (Operation *user : op->getUsers()) {
      // A user may stand in the body of a tensor op.
      while (!stays.contains(user) && user->getParentOp() != model &&
             !isa<scf::ForOp, scf::IfOp>(user->getParentOp()))
        user = user->getParentOp();
      needed |= stays.contains(user);
    }
    if (!needed)
      continue;
    if (isRoot(op)) {
      roots.push_back(op);
    } else {
      stays.insert(op);
      explain(op);
    }
  }
  for (Operation *root : llvm::reverse(roots))
    hoist(root);
  // What is hoisted is among them.
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

OpBuilder Hoister::atEndOfInit() {
  OpBuilder b(module.getContext());
  if (!init) {
    b.setInsertionPointToEnd(module.getBody());
    init = func::FuncOp::create(module.getLoc(), "init",
                                b.getFunctionType({}, {}));
    init.setPrivate();
    init->setAttr(attn::kInitAttr, b.getUnitAttr());
    SymbolTable(module).insert(init);
    b.setInsertionPointToStart(init.addEntryBlock());
    func::ReturnOp::create(b, module.getLoc());
  }
  b.setInsertionPoint(init.getBody().front().getTerminator());
  return b;
}

/// The slot that belongs to these values of the loops' variables: instances
/// follow each other, the innermost loop's the fastest.
Value Hoister::slotOf(OpBuilder &b, Location loc, int64_t first,
                      ArrayRef<Operation *> loops, ArrayRef<Value> variables) {
  Value slot;
  int64_t stride = 1;
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  for (auto [op, variable] : llvm::reverse(llvm::zip(loops, variables))) {
    ConstantLoop loop = *constantLoop(cast<scf::ForOp>(op));
    Value k = variable;
    if (loop.low && !mutated("hoist-weights.count-from-zero"))
      k = arith::SubIOp::create(b, loc, k, constant(loop.low));
    if (loop.step != 1)
      k = arith::DivSIOp::create(b, loc, k, constant(loop.step));
    if (stride != 1 && !mutated("hoist-weights.drop-stride"))
      k = arith::MulIOp::create(b, loc, k, constant(stride));
    slot = slot ? arith::AddIOp::create(b, loc, slot, k) : k;
    stride *= loop.count;
  }
  if (!slot)
    return constant(first);
  return first ? arith::AddIOp::create(b, loc, slot, constant(first)) : slot;
}

/// What computes the same as \p root, in the same turns of as many loops: of
/// another entry of the model.
const Hoister::Done *Hoister::find(Operation *root,
                                   ArrayRef<Operation *> loops) {
  for (const Done &one : done) {
    bool alike = one.loops.size() == loops.size();
    SmallVector<std::pair<Value, Value>> variables;
    for (size_t k = 0; alike && k < loops.size(); ++k) {
      auto loop = cast<scf::ForOp>(loops[k]),
           other = cast<scf::ForOp>(one.loops[k]);
      ConstantLoop a = *constantLoop(loop), b = *constantLoop(other);
      alike = a.low == b.low && a.step == b.step && a.count == b.count;
      variables.push_back({loop.getInductionVar(), one.variables[k]});
    }
    if (alike && isSame(root, one.copy, variables))
      return &one;
  }
  return nullptr;
}

/// What reads \p root reads what is kept in its slots, from \p first on.
void Hoister::readFrom(Operation *root, ArrayRef<Operation *> loops,
                       int64_t first) {
  OpBuilder here(root);
  SmallVector<Value> turns;
  int64_t instances = 1;
  for (Operation *op : loops) {
    turns.push_back(cast<scf::ForOp>(op).getInductionVar());
    instances *= constantLoop(cast<scf::ForOp>(op))->count;
  }
  for (auto [k, result] : llvm::enumerate(root->getResults())) {
    Value slot =
        slotOf(here, root->getLoc(), first + k * instances, loops, turns);
    auto kept =
        attn::KeptOp::create(here, root->getLoc(), result.getType(), slot);
    // Users in what stays read it; later roots do so, too.
    result.replaceAllUsesWith(kept.getResult());
  }
}

/// Long: from the loops in init to what is read.
void Hoister::hoist(Operation *root) {
  Location loc = root->getLoc();
  SmallVector<Operation *> loops = llvm::to_vector(analysis.of(root).loops);
  if (const Done *same = find(root, loops)) {
    readFrom(root, loops, same->slots);
    remarkDone(root, work.pass, "hoisted",
               "computed once, with what another entry reads");
    return;
  }
  int64_t instances = 1;
  for (Operation *loop : loops)
    instances *= constantLoop(cast<scf::ForOp>(loop))->count;

  // The same loops in init, without what they carry.
  OpBuilder b = atEndOfInit();
  IRMapping map;
  SmallVector<Value> ours;
  SmallVector<Operation *> copies;
  for (Operation *op : loops) {
    auto loop = cast<scf::ForOp>(op);
    SmallVector<Value> bounds;
    for (Value bound :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      bounds.push_back(
          arith::ConstantIndexOp::create(b, loc, *getConstantIntValue(bound)));
    auto copy = scf::ForOp::create(b, loc, bounds[0], bounds[1], bounds[2]);
    map.map(loop.getInductionVar(), copy.getInductionVar());
    ours.push_back(copy.getInductionVar());
    copies.push_back(copy);
    b.setInsertionPointToStart(copy.getBody());
  }
  SmallVector<Value> keptIn;
  for (unsigned k = 0; k < root->getNumResults(); ++k)
    keptIn.push_back(slotOf(b, loc,
                            mutated("hoist-weights.overwrite-first-slot")
                                ? 0
                                : slots + k * instances,
                            loops, ours));
  auto clone = [&](auto &&self, Operation *op) -> void {
    for (Value input : inputsOf(op))
      if (!map.contains(input))
        if (Operation *def = input.getDefiningOp())
          self(self, def);
    b.clone(*op, map);
  };
  clone(clone, root);

  int64_t bytes = 0;
  for (auto [k, result] : llvm::enumerate(root->getResults())) {
    attn::KeepOp::create(b, loc, map.lookup(result), keptIn[k]);
    bytes += bytesOf(cast<RankedTensorType>(result.getType())) * instances;
  }
  done.push_back(
      {map.lookup(root->getResult(0)).getDefiningOp(), ours, copies, slots});
  readFrom(root, loops, slots);
  slots += (mutated("hoist-weights.slot-of-one-turn") ? 1 : instances) *
           root->getNumResults();
  init->setAttr(attn::kSlotsAttr, b.getI64IntegerAttr(slots));
  remarkDone(
      root, work.pass, "hoisted",
      format("computed once, when the model is opened: {} bytes{}", bytes,
             instances == 1 ? "" : format(" in {} instances", instances)));
}

} // namespace

void heed::hoist(ModuleOp module, const HoistedWork &work) {
  SmallVector<func::FuncOp> models;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(attn::kModelAttr) && !function.isExternal())
      models.push_back(function);
  Hoister hoister(module, work);
  for (func::FuncOp model : models)
    hoister.run(model);
}
