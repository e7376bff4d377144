//===- TensorExprFromIR.cpp - tensor ops read as functions of indices -----===//
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace heed {

// A body whose every op is a pure scalar op, an index, an extract or an `if` of
// such.
static bool isExpressibleBody(Block &block) {
  return llvm::all_of(block, [](Operation &op) {
    if (auto ifOp = dyn_cast<scf::IfOp>(op))
      return !ifOp.getElseRegion().empty() &&
             isExpressibleBody(*ifOp.thenBlock()) &&
             isExpressibleBody(*ifOp.elseBlock());
    if (op.hasTrait<OpTrait::IsTerminator>())
      return true;
    return op.getNumRegions() == 0 && op.getNumResults() == 1 &&
           isMemoryEffectFree(&op);
  });
}

bool Exprs::isExpressible(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (!linalgOp.hasPureTensorSemantics() ||
        linalgOp.getNumDpsInits() != linalgOp->getNumResults())
      return false;
    bool permuted =
        llvm::all_of(linalgOp.getDpsInitsMutable(), [&](OpOperand &init) {
          return linalgOp.getMatchingIndexingMap(&init)
              .isProjectedPermutation();
        });
    // One reduction an op: several would share an accumulator.
    if (linalgOp.getNumReductionLoops() && linalgOp->getNumResults() != 1)
      return false;
    return permuted && isExpressibleBody(*linalgOp.getBlock());
  }
  return isa<tensor::CastOp, tensor::ExtractSliceOp, tensor::FromElementsOp,
             tensor::SplatOp>(op);
}

bool Exprs::isReshape(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

bool Exprs::isElementwise(Operation *op) {
  if (!isExpressible(op))
    return false;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return !linalgOp || linalgOp.getNumReductionLoops() == 0;
}

void Exprs::indexVars(Value tensor, SmallVectorImpl<unsigned> &vars,
                      SmallVectorImpl<ExprRef> &at) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t axis = 0; axis < rank; ++axis) {
    vars.push_back(freshVar(extentOf(tensor, axis)));
    at.push_back(var(vars.back()));
  }
}

ExprRef Exprs::fromAffine(AffineExpr expr, ArrayRef<ExprRef> dims,
                          ArrayRef<ExprRef> symbols) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  if (auto value = dyn_cast<AffineConstantExpr>(expr))
    return index(value.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  ExprRef a = fromAffine(binary.getLHS(), dims, symbols),
          b = fromAffine(binary.getRHS(), dims, symbols);
  StringRef name;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    name = "arith.addi";
    break;
  case AffineExprKind::Mul:
    name = "arith.muli";
    break;
  case AffineExprKind::FloorDiv:
    name = "arith.floordivsi";
    break;
  case AffineExprKind::CeilDiv:
    name = "arith.ceildivsi";
    break;
  default: { // a mod b with b > 0
    ExprRef quotient = op("arith.floordivsi", a->type, {a, b});
    return op("arith.subi", a->type,
              {a, op("arith.muli", a->type, {quotient, b})});
  }
  }
  return op(name, a->type, {a, b});
}

ExprRef Exprs::evaluate(Value value, DenseMap<Value, ExprRef> &known,
                        Block *within) {
  if (ExprRef found = known.lookup(value))
    return found;
  Operation *def = value.getDefiningOp();
  Block *home = def ? def->getBlock() : cast<BlockArgument>(value).getOwner();
  bool inside =
      home == within || (within->getParent() &&
                         within->getParent()->isAncestor(home->getParent()));
  if (!inside)
    return known[value] = scalar(value);
  if (!def)
    return nullptr;
  if (isa<arith::ConstantOp>(def))
    return known[value] = scalar(value);
  if (auto ifOp = dyn_cast<scf::IfOp>(def)) {
    unsigned result = cast<OpResult>(value).getResultNumber();
    ExprRef condition = evaluate(ifOp.getCondition(), known, within);
    ExprRef yes = evaluate(ifOp.thenYield().getOperand(result), known, within);
    ExprRef no = evaluate(ifOp.elseYield().getOperand(result), known, within);
    return condition && yes && no
               ? known[value] = select(condition, yes, no, /*guard=*/true)
               : nullptr;
  }
  if (auto dim = dyn_cast<tensor::DimOp>(def))
    return dim.getConstantIndex()
               ? known[value] =
                     extentOf(dim.getSource(), *dim.getConstantIndex())
               : nullptr;
  SmallVector<ExprRef, 3> operands;
  for (Value operand : def->getOperands()) {
    if (isa<RankedTensorType>(operand.getType())) {
      operands.push_back(nullptr);
      continue;
    }
    ExprRef e = evaluate(operand, known, within);
    if (!e)
      return nullptr;
    operands.push_back(e);
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(def))
    return known[value] =
               read(extract.getTensor(), ArrayRef(operands).drop_front());
  if (llvm::is_contained(operands, nullptr) || def->getNumResults() != 1 ||
      def->getNumRegions() || !isMemoryEffectFree(def))
    return nullptr;
  return known[value] = op(def->getName(), def->getAttrDictionary(),
                           value.getType(), operands);
}

ExprRef Exprs::block(Block &block, ArrayRef<ExprRef> arguments,
                     unsigned result) {
  DenseMap<Value, ExprRef> known;
  for (auto [argument, e] : llvm::zip(block.getArguments(), arguments))
    known[argument] = e;
  return evaluate(block.getTerminator()->getOperand(result), known, &block);
}

static bool isNeutral(StringRef combiner, ExprRef init) {
  if (auto value = Exprs::constantFloat(init)) {
    double infinity = std::numeric_limits<double>::infinity();
    return (combiner == "arith.addf" && *value == 0) ||
           (combiner == "arith.mulf" && *value == 1) ||
           ((combiner == "arith.maximumf" || combiner == "arith.maxnumf") &&
            *value == -infinity) ||
           ((combiner == "arith.minimumf" || combiner == "arith.minnumf") &&
            *value == infinity);
  }
  if (!Exprs::constantInt(init))
    return false;
  Builder b(init->type.getContext());
  return init->attr == neutralElement(b, combiner, init->type);
}

/// The loops of \p op where its result \p init is at \p indices; those that it
/// reduces are new variables, in \p reduced. Empty if the result's map says
/// less than that.
static SmallVector<ExprRef> loopsAt(Exprs &exprs, linalg::LinalgOp op,
                                    OpOperand *init, ArrayRef<ExprRef> indices,
                                    SmallVectorImpl<unsigned> &reduced) {
  SmallVector<ExprRef> loops(op.getNumLoops());
  for (auto [axis, expr] :
       llvm::enumerate(op.getMatchingIndexingMap(init).getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      loops[dim.getPosition()] = indices[axis];
    else if (!isa<AffineConstantExpr>(expr))
      return {};
  auto types = op.getIteratorTypesArray();
  for (unsigned loop = 0; loop < loops.size(); ++loop) {
    // Every loop is either an axis of the result or reduced.
    if (bool(loops[loop]) == (types[loop] == utils::IteratorType::reduction))
      return {};
    if (loops[loop])
      continue;
    ExprRef extent = nullptr;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (auto [axis, expr] : llvm::enumerate(map.getResults()))
        if (!extent && expr == getAffineDimExpr(loop, exprs.context))
          extent = exprs.extentOf(operand.get(), axis);
    }
    if (!extent)
      return {};
    reduced.push_back(exprs.freshVar(extent));
    loops[loop] = exprs.var(reduced.back());
  }
  return loops;
}

/// How a body adds up: acc' = combine(acc, term), acc used once; or that in one
/// branch of \p guard, whose other side keeps acc.
namespace {
struct Accumulation {
  Operation *combiner = nullptr; ///< null: in no way that is known
  Value term;
  scf::IfOp guard;
  bool whenTrue = true;
};
} // namespace

static Accumulation accumulationOf(Value yielded, BlockArgument acc) {
  static constexpr StringLiteral combiners[] = {
      "arith.addf",     "arith.addi",     "arith.mulf",    "arith.muli",
      "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf",
      "arith.maxsi",    "arith.minsi",    "arith.andi",    "arith.ori"};
  Accumulation found;
  Operation *combiner = yielded.getDefiningOp();
  found.guard = dyn_cast_or_null<scf::IfOp>(combiner);
  if (found.guard && found.guard.elseBlock()) {
    unsigned at = cast<OpResult>(yielded).getResultNumber();
    Value yes = found.guard.thenYield().getOperand(at),
          no = found.guard.elseYield().getOperand(at);
    found.whenTrue = no == acc;
    if (!found.whenTrue && yes != acc)
      return {};
    combiner = (found.whenTrue ? yes : no).getDefiningOp();
  }
  if (!combiner || combiner->getNumOperands() != 2 ||
      !llvm::is_contained(combiner->getOperands(), Value(acc)) ||
      !llvm::is_contained(combiners, combiner->getName().getStringRef()))
    return {};
  if (llvm::count_if(acc.getUses(), [](OpOperand &use) {
        return !isa<scf::YieldOp>(use.getOwner());
      }) != 1)
    return {};
  if (!found.guard && !acc.hasOneUse())
    return {};
  found.combiner = combiner;
  found.term = combiner->getOperand(combiner->getOperand(0) == acc ? 1 : 0);
  return found;
}

// What the body of `op` has at these loops: elements of its operands and
// positions, but for accumulators.
static DenseMap<Value, ExprRef> knownAt(Exprs &exprs, linalg::LinalgOp op,
                                        ArrayRef<ExprRef> loops) {
  DenseMap<Value, ExprRef> known;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (op.isDpsInit(&operand) && op.getNumReductionLoops())
      continue;
    if (!isa<RankedTensorType>(operand.get().getType())) {
      known[argument] = exprs.scalar(operand.get());
      continue;
    }
    SmallVector<ExprRef> at;
    for (AffineExpr e : op.getMatchingIndexingMap(&operand).getResults())
      at.push_back(exprs.fromAffine(e, loops));
    known[argument] = exprs.read(operand.get(), at);
  }
  op.getBlock()->walk([&](linalg::IndexOp indexOp) {
    known[indexOp] = loops[indexOp.getDim()];
  });
  return known;
}

std::optional<ReductionTurn> Exprs::turnOf(Operation *op) {
  auto linalgOp = cast<linalg::LinalgOp>(op);
  ReductionTurn turn;
  SmallVector<ExprRef> at;
  indexVars(op->getResult(0), turn.outputs, at);
  OpOperand *first = linalgOp.getDpsInitOperand(0);
  SmallVector<ExprRef> loops =
      loopsAt(*this, linalgOp, first, at, turn.reduced);
  if (loops.size() != linalgOp.getNumLoops())
    return std::nullopt;
  DenseMap<Value, ExprRef> known = knownAt(*this, linalgOp, loops);
  for (OpOperand &init : linalgOp.getDpsInitsMutable()) {
    if (linalgOp.getMatchingIndexingMap(&init) !=
        linalgOp.getMatchingIndexingMap(first))
      return std::nullopt;
    BlockArgument argument = linalgOp.getMatchingBlockArgument(&init);
    turn.before.push_back(known[argument] = scalar(argument));
  }
  Block &body = *linalgOp.getBlock();
  for (Value yielded : body.getTerminator()->getOperands()) {
    turn.next.push_back(evaluate(yielded, known, &body));
    if (!turn.next.back())
      return std::nullopt;
  }
  return turn;
}

ExprRef Exprs::generic(Operation *op, Value result, ArrayRef<ExprRef> indices) {
  auto linalgOp = cast<linalg::LinalgOp>(op);
  unsigned number = cast<OpResult>(result).getResultNumber();
  OpOperand *init = linalgOp.getDpsInitOperand(number);
  SmallVector<unsigned> reduced;
  SmallVector<ExprRef> loops = loopsAt(*this, linalgOp, init, indices, reduced);
  if (loops.size() != linalgOp.getNumLoops())
    return nullptr;
  DenseMap<Value, ExprRef> known = knownAt(*this, linalgOp, loops);
  Block &body = *linalgOp.getBlock();
  Value yielded = body.getTerminator()->getOperand(number);
  if (reduced.empty())
    return evaluate(yielded, known, &body);
  Accumulation sum =
      accumulationOf(yielded, linalgOp.getMatchingBlockArgument(init));
  ExprRef x = sum.combiner ? evaluate(sum.term, known, &body) : nullptr;
  if (x && sum.guard) {
    // Where the branch keeps acc, the term is the neutral element.
    ExprRef condition = evaluate(sum.guard.getCondition(), known, &body);
    auto neutral = arith::getNeutralElement(sum.combiner);
    if (!condition || !neutral)
      return nullptr;
    ExprRef nothing = constant(*neutral);
    x = sum.whenTrue ? select(condition, x, nothing, /*guard=*/true)
                     : select(condition, nothing, x, /*guard=*/true);
  }
  if (!x)
    return nullptr;
  OperationName name = sum.combiner->getName();
  ExprRef reduction = reduce(name, reduced, x);
  ExprRef start = expand(init->get(), indices);
  if (start && isNeutral(name.getStringRef(), start))
    return reduction;
  if (!start)
    start = read(init->get(), indices);
  return this->op(name, DictionaryAttr::get(context), reduction->type,
                  {start, reduction});
}

// Of axes of one element each, the one that has the position: that of a row
// begins elsewhere, the others at 0.
static size_t axisOfOne(Value source, ArrayRef<int64_t> axes) {
  if (auto slice = source.getDefiningOp<tensor::ExtractSliceOp>())
    for (auto [k, axis] : llvm::enumerate(axes))
      if (getConstantIntValue(slice.getMixedOffsets()[axis]) == 0)
        return k;
  return axes.size() - 1;
}

// Position `at` of a collapsed axis as positions of the axes of `source` it was
// made of.
static SmallVector<ExprRef> delinearise(Exprs &exprs, ExprRef at, Value source,
                                        ArrayRef<int64_t> axes) {
  SmallVector<ExprRef> result(axes.size()), extents;
  for (int64_t axis : axes)
    extents.push_back(exprs.extentOf(source, axis));
  Type index = IndexType::get(exprs.context);
  // Beside axes of one element another has the position.
  auto isOne = [&](ExprRef e) { return Exprs::isConstantInt(e, 1); };
  size_t others = extents.size() - llvm::count_if(extents, isOne);
  if (others <= 1) {
    size_t own = others ? llvm::find_if_not(extents, isOne) - extents.begin()
                        : axisOfOne(source, axes);
    for (auto [k, position] : llvm::enumerate(result))
      position = k == own ? at : exprs.index(0);
    return result;
  }
  for (size_t k = extents.size(); k-- > 1;) {
    ExprRef extent = extents[k], outer = nullptr;
    // x * extent + y with y below extent: the way that axes are merged.
    if (at->isOp("arith.addi"))
      for (int side : {0, 1}) {
        ExprRef product = at->operand(side), inner = at->operand(1 - side);
        if (!product->isOp("arith.muli") || inner->kind != ExprKind::Var ||
            exprs.extent(inner->number) != extent)
          continue;
        for (int factor : {0, 1})
          if (product->operand(factor) == extent) {
            outer = product->operand(1 - factor);
            result[k] = inner;
          }
      }
    if (!outer) {
      outer = exprs.op("arith.floordivsi", index, {at, extent});
      result[k] =
          exprs.op("arith.subi", index,
                   {at, exprs.op("arith.muli", index, {outer, extent})});
    }
    at = outer;
  }
  result[0] = at;
  return result;
}

ExprRef Exprs::reshaped(Operation *op, ArrayRef<ExprRef> indices) {
  Type index = IndexType::get(context);
  SmallVector<ExprRef> at;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    for (auto [axis, group] :
         llvm::enumerate(collapse.getReassociationIndices())) {
      if (group.empty())
        return nullptr;
      llvm::append_range(
          at, delinearise(*this, indices[axis], collapse.getSrc(), group));
    }
    return read(collapse.getSrc(), at);
  }
  auto expand = cast<tensor::ExpandShapeOp>(op);
  for (const ReassociationIndices &group : expand.getReassociationIndices()) {
    ExprRef position = this->index(0);
    for (int64_t axis : group)
      position =
          this->op("arith.addi", index,
                   {this->op("arith.muli", index,
                             {position, extentOf(expand.getResult(), axis)}),
                    indices[axis]});
    at.push_back(position);
  }
  return read(expand.getSrc(), at);
}

ExprRef Exprs::expand(Value tensor, ArrayRef<ExprRef> indices) {
  Operation *def = tensor.getDefiningOp();
  if (!def)
    return nullptr;
  if (isReshape(def))
    return reshaped(def, indices);
  if (auto constantOp = dyn_cast<arith::ConstantOp>(def)) {
    auto elements = dyn_cast<DenseElementsAttr>(constantOp.getValue());
    if (!elements || !elements.isSplat())
      return nullptr;
    return constant(cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  }
  if (!isExpressible(def))
    return nullptr;
  if (auto castOp = dyn_cast<tensor::CastOp>(def))
    return read(castOp.getSource(), indices);
  if (auto splat = dyn_cast<tensor::SplatOp>(def))
    return scalar(splat.getInput());
  if (auto elements = dyn_cast<tensor::FromElementsOp>(def))
    return elements.getElements().size() == 1
               ? scalar(elements.getElements()[0])
               : nullptr;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(def)) {
    SmallVector<ExprRef> at;
    auto dropped = slice.getDroppedDims();
    unsigned next = 0;
    auto toExpr = [&](OpFoldResult f) {
      auto fixed = getConstantIntValue(f);
      return fixed ? index(*fixed) : scalar(cast<Value>(f));
    };
    for (unsigned axis = 0; axis < slice.getSourceType().getRank(); ++axis) {
      ExprRef position = toExpr(slice.getMixedOffsets()[axis]);
      if (!dropped.test(axis)) {
        ExprRef step =
            op("arith.muli", position->type,
               {indices[next++], toExpr(slice.getMixedStrides()[axis])});
        position = op("arith.addi", position->type, {position, step});
      }
      at.push_back(position);
    }
    return read(slice.getSource(), at);
  }
  return isa<linalg::FillOp>(def) ? scalar(def->getOperand(0))
                                  : generic(def, tensor, indices);
}

} // namespace heed
