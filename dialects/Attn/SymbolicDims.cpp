//===- SymbolicDims.cpp - extents as polynomials of a model's sizes -------===//
#include "dialects/Attn/SymbolicDims.h"
#include "dialects/Attn/Dialect.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace heed;
using namespace heed::attn;

//===----------------------------------------------------------------------===//
// Where an extent comes from
//===----------------------------------------------------------------------===//

namespace {

class Tracer {
public:
  /// Long: one op after the other.
  ExtentSource trace(Value shaped, int64_t axis) {
    auto type = cast<ShapedType>(shaped.getType());
    if (!type.isDynamicDim(axis))
      return {type.getDimSize(axis), {}, {}, -1};
    if (auto argument = dyn_cast<BlockArgument>(shaped)) {
      auto loop =
          dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
      // Where a loop is looked into, what it carries stands for itself.
      if (loop && !llvm::is_contained(open, loop))
        return carried(loop, argument.getArgNumber() - 1, axis, shaped);
      // A state keeps its extents.
      if (auto scan =
              dyn_cast_or_null<ScanOp>(argument.getOwner()->getParentOp()))
        return trace(scan.getStarts()[argument.getArgNumber() - 1], axis);
      return at(shaped, axis);
    }
    Operation *op = shaped.getDefiningOp();
    unsigned result = cast<OpResult>(shaped).getResultNumber();
    if (auto empty = dyn_cast<tensor::EmptyOp>(op))
      return size(empty.getDynamicSize(axis));
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return size(alloc.getDynamicSizes()[type.getDynamicDimIndex(axis)]);
    if (isa<tensor::CastOp, memref::CastOp>(op))
      return trace(op->getOperand(0), axis);
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return size(cast<Value>(expand.getMixedOutputShape()[axis]));
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      ReassociationIndices group = collapse.getReassociationIndices()[axis];
      return group.size() == 1 ? trace(collapse.getSrc(), group.front())
                               : at(shaped, axis);
    }
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      llvm::SmallBitVector dropped = slice.getDroppedDims();
      SmallVector<OpFoldResult> kept;
      for (auto [k, extent] : llvm::enumerate(slice.getMixedSizes()))
        if (!dropped[k])
          kept.push_back(extent);
      return size(cast<Value>(kept[axis]));
    }
    if (isa<SoftmaxOp, LogSoftmaxOp>(op))
      return trace(op->getOperand(0), axis);
    if (auto update = dyn_cast<UpdateStateOp>(op))
      return trace(update.getState(), axis);
    if (auto solve = dyn_cast<TriangularSolveOp>(op))
      return trace(solve.getRight(), axis);
    if (auto scan = dyn_cast<ScanOp>(op))
      return trace(scan->getOperand(2 + result), axis); // behind its range
    if (auto recurrence = dyn_cast<RecurrenceOp>(op))
      return size(axis ? recurrence.getSizes()[axis - 1]
                       : recurrence.getRows());
    if (auto scan = dyn_cast<ElementScanOp>(op)) {
      if (result >= scan.getRows().size() || axis < int64_t(scan.getAxis()))
        return size(scan.getSizes()[axis]);
      return size(axis == int64_t(scan.getAxis()) ? scan.getSteps()
                                                  : scan.getSizes()[axis - 1]);
    }
    if (auto scan = dyn_cast<SumScanOp>(op)) {
      bool isSteps =
          result < scan.getRows().size() && axis == int64_t(scan.sumAxis());
      return size(isSteps ? scan.getSteps() : scan.getSizes()[axis]);
    }
    if (auto linear = dyn_cast<LinearAttentionOp>(op)) {
      unsigned dim = axis;
      if (shaped == linear.getState())
        dim += axis >= linear.stepDim();
      else if (axis > linear.stepDim())
        dim += linear.getNumContract();
      return size(linear.getSizes()[dim]);
    }
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      // The log-sum-exp and the weights have the first loop dims as axes.
      unsigned dim = shaped == attention.getOutput()
                         ? attention.outputMap().getDimPosition(axis)
                         : axis;
      return size(attention.getSizes()[dim]);
    }
    if (auto online = dyn_cast<OnlineAttentionOp>(op)) {
      unsigned rows = online.firstDim(DimKind::Key);
      return size(
          online.getSizes()[axis < rows ? axis
                                        : axis - rows +
                                              online.firstDim(DimKind::Value)]);
    }
    if (auto finish = dyn_cast<FinishOp>(op))
      return trace(finish.getAccumulator(),
                   shaped == finish.getOutput()
                       ? finish.outputMap().getDimPosition(axis)
                       : axis);
    if (auto destination = dyn_cast<DestinationStyleOpInterface>(op);
        destination && destination.hasPureTensorSemantics())
      return trace(destination.getTiedOpOperand(op->getResult(result))->get(),
                   axis);
    if (auto loop = dyn_cast<scf::ForOp>(op);
        loop && !llvm::is_contained(open, loop))
      return carried(loop, result, axis, shaped);
    if (auto choice = dyn_cast<scf::IfOp>(op)) {
      ExtentSource yes = trace(choice.thenYield().getOperand(result), axis);
      if (yes == trace(choice.elseYield().getOperand(result), axis))
        return yes;
    }
    return at(shaped, axis);
  }

private:
  static ExtentSource at(Value tensor, int64_t axis) {
    return {std::nullopt, {}, tensor, axis};
  }
  static ExtentSource size(Value size) {
    if (std::optional<int64_t> number = getConstantIntValue(size))
      return {*number, {}, {}, -1};
    return {std::nullopt, size, {}, -1};
  }

  /// What a loop carries keeps its extents if every iteration yields the same
  /// ones.
  ExtentSource carried(scf::ForOp loop, unsigned number, int64_t axis,
                       Value self) {
    ExtentSource before = trace(loop.getInitArgs()[number], axis);
    open.push_back(loop);
    ExtentSource after = trace(loop.getYieldedValues()[number], axis);
    if (after.size)
      if (auto dim = after.size.getDefiningOp<tensor::DimOp>();
          dim && dim.getConstantIndex() &&
          dim.getSource() == loop.getRegionIterArg(number))
        after = trace(dim.getSource(), *dim.getConstantIndex());
    open.pop_back();
    if (after == before || after == at(loop.getRegionIterArg(number), axis))
      return before;
    return at(self, axis);
  }

  SmallVector<scf::ForOp> open;
};

/// The name that a function's attributes give to a dim of an argument.
StringAttr nameOf(Value value, int64_t axis) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast_or_null<FunctionOpInterface>(
                                 argument.getOwner()->getParentOp())
                           : FunctionOpInterface();
  if (!function || !argument.getOwner()->isEntryBlock())
    return {};
  unsigned number = argument.getArgNumber();
  if (axis < 0)
    return function.getArgAttrOfType<StringAttr>(number, kNameAttr);
  auto names = function.getArgAttrOfType<ArrayAttr>(number, kDimsAttr);
  return names && axis < int64_t(names.size())
             ? dyn_cast<StringAttr>(names[axis])
             : StringAttr();
}

/// What an extent or a number is called in texts: a parameter's also by its
/// dims, which says nothing of what is equal.
std::string shownName(Value value, int64_t axis, unsigned atom) {
  StringAttr name = nameOf(value, axis);
  if (auto param = value.getDefiningOp<ParamOp>(); param && axis >= 0)
    if (auto dims = param->getAttrOfType<ArrayAttr>(kDimsAttr))
      name = cast<StringAttr>(dims[axis]);
  if (!name)
    return heed::format("?{}", atom);
  bool isSum = name.getValue().contains(' ');
  return isSum ? heed::format("({})", name.str()) : name.str();
}

} // namespace

ExtentSource heed::attn::traceExtent(Value shaped, int64_t axis) {
  return Tracer().trace(shaped, axis);
}

Value heed::attn::makeExtent(OpBuilder &b, Location loc, Value tensor,
                             int64_t axis) {
  ExtentSource source = traceExtent(tensor, axis);
  if (source.fixed)
    return arith::ConstantIndexOp::create(b, loc, *source.fixed);
  if (source.size)
    return source.size;
  return tensor::DimOp::create(b, loc, source.tensor, source.axis);
}

//===----------------------------------------------------------------------===//
// As polynomials
//===----------------------------------------------------------------------===//

/// Reads what the function around \p value requires before it computes
/// anything: a call that goes on has passed these.
void SymbolicDims::learn(Value value) {
  Operation *op = value.getParentBlock()->getParentOp();
  while (op && !isa<FunctionOpInterface>(op))
    op = op->getParentOp();
  if (!op || op->getRegion(0).empty() || !learned.insert(op).second)
    return;
  for (Operation &each : op->getRegion(0).front()) {
    bool computes = each.getNumRegions() ||
                    (!isa<ParamOp>(each) &&
                     llvm::any_of(each.getResultTypes(), [](Type type) {
                       return isa<ShapedType>(type);
                     }));
    if (computes)
      return;
    if (auto require = dyn_cast<RequireOp>(each))
      assume(require.getCondition());
  }
}

void SymbolicDims::assume(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    assume(both.getLhs());
    assume(both.getRhs());
    return;
  }
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getLhs().getType().isInteger(1))
    return;
  Size left = size(compare.getLhs()), right = size(compare.getRhs());
  auto notNegative = [&](const Size &size) {
    table.assumeNonNegative(size);
    // One size with a constant: a bound of its own.
    Size rest = size;
    rest.terms.erase(Size::Monomial());
    if (auto atom = rest.asAtom())
      if (auto least = (rest - size).constant())
        table.atLeast(*atom, *least);
  };
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::eq:
    table.assumeZero(left - right);
    return;
  case arith::CmpIPredicate::ne:
    if (right.is(0) && isNeverNegative(left))
      notNegative(left - 1);
    return;
  case arith::CmpIPredicate::sle:
    return notNegative(right - left);
  case arith::CmpIPredicate::slt:
    return notNegative(right - left - 1);
  case arith::CmpIPredicate::sge:
    return notNegative(left - right);
  case arith::CmpIPredicate::sgt:
    return notNegative(left - right - 1);
  default:
    return;
  }
}

bool SymbolicDims::isNeverNegative(const Size &size) const {
  if (table.nonNegative(size))
    return true;
  return llvm::any_of(table.assumptions(), [&](const auto &known) {
    auto &[fact, isZero] = known;
    if (table.nonNegative(size - fact) ||
        (isZero && table.nonNegative(size + fact)))
      return true;
    std::optional<Size> times = size.dividedBy(fact);
    return times && (isZero || table.nonNegative(*times));
  });
}

Size SymbolicDims::intern(Source wanted) {
  StringAttr name = nameOf(wanted.value, wanted.axis);
  for (auto &[atom, known] : sources) {
    bool isSame = known.value == wanted.value && known.axis == wanted.axis;
    // Checks at the entry of a function make dims of one name equal.
    if (isSame ||
        (name && wanted.axis >= 0 && known.axis >= 0 &&
         nameOf(known.value, known.axis) == name &&
         known.value.getParentBlock() == wanted.value.getParentBlock()))
      return Size::atom(atom);
  }
  unsigned atom = table.numAtoms();
  // An extent is not negative; any other integer may be.
  table.addAtom({Atom::Dim,
                 shownName(wanted.value, wanted.axis, atom),
                 /*inLoop=*/false,
                 {},
                 {},
                 wanted.axis >= 0 ? 0 : INT64_MIN});
  sources[atom] = wanted;
  return Size::atom(atom);
}

Size SymbolicDims::dim(Value shaped, int64_t axis) {
  learn(shaped);
  ExtentSource source = traceExtent(shaped, axis);
  if (source.fixed)
    return *source.fixed;
  if (source.size) {
    Size extent = size(source.size);
    if (auto atom = extent.asAtom())
      table.atLeast(*atom, 0);
    return extent;
  }
  Operation *op = source.tensor.getDefiningOp();
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
    Size product = 1;
    ReassociationIndices group =
        collapse.getReassociationIndices()[source.axis];
    for (int64_t part : group)
      product *= dim(collapse.getSrc(), part);
    return product;
  }
  if (auto choice = dyn_cast_or_null<scf::IfOp>(op)) {
    unsigned result = cast<OpResult>(source.tensor).getResultNumber();
    Size yes = dim(choice.thenYield().getOperand(result), source.axis);
    if (yes == dim(choice.elseYield().getOperand(result), source.axis))
      return yes;
  }
  return intern({source.tensor, source.axis});
}

Size SymbolicDims::elements(Value shaped) {
  Size product = 1;
  for (int64_t axis = 0; axis < cast<ShapedType>(shaped.getType()).getRank();
       ++axis)
    product *= dim(shaped, axis);
  return product;
}

Size SymbolicDims::size(Value value) {
  learn(value);
  auto known = sizes.find(value);
  if (known != sizes.end())
    return known->second;
  Size result;
  APInt number;
  Operation *op = value.getDefiningOp();
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 64)
    result = number.getSExtValue();
  else if (isa_and_nonnull<tensor::DimOp, memref::DimOp>(op) &&
           getConstantIntValue(op->getOperand(1)) &&
           isa<RankedTensorType, MemRefType>(op->getOperand(0).getType()))
    result = dim(op->getOperand(0), *getConstantIntValue(op->getOperand(1)));
  else if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(op))
    result = size(op->getOperand(0));
  else if (isa_and_nonnull<arith::ArithDialect>(op ? op->getDialect()
                                                   : nullptr) &&
           op->getNumOperands() == 2 &&
           op->getOperandTypes().front() == value.getType())
    result = computed(op);
  else
    result = intern({value, -1});
  sizes[value] = result;
  return result;
}

Size SymbolicDims::computed(Operation *op) {
  Size left = size(op->getOperand(0)), right = size(op->getOperand(1));
  // More terms than a person would write; nobody compares them.
  constexpr size_t kMaxTerms = 64;
  if (left.terms.size() * right.terms.size() > kMaxTerms)
    return opaque(op, left, right);
  if (isa<arith::AddIOp>(op))
    return left + right;
  if (isa<arith::SubIOp>(op))
    return left - right;
  if (isa<arith::MulIOp>(op))
    return left * right;
  bool isSigned = isa<arith::MinSIOp, arith::MaxSIOp>(op);
  if (isSigned && isNeverNegative(right - left))
    return isa<arith::MinSIOp>(op) ? left : right;
  if (isSigned && isNeverNegative(left - right))
    return isa<arith::MinSIOp>(op) ? right : left;
  if (isa<arith::MinSIOp>(op))
    return table.min(left, right);
  if (isa<arith::MaxSIOp>(op))
    return table.max(left, right);
  // All divisions and remainders are one where nothing is negative. A divisor
  // is not 0, whatever its bound.
  if (!isNeverNegative(left) || !isNeverNegative(right) || right.is(0))
    return opaque(op, left, right);
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op))
    return table.floorDiv(left, right);
  if (isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
    return table.floorDiv(left + right - 1, right);
  if (isa<arith::RemSIOp, arith::RemUIOp>(op))
    return table.mod(left, right);
  if (isa<arith::MinUIOp>(op))
    return table.min(left, right);
  if (isa<arith::MaxUIOp>(op))
    return table.max(left, right);
  return opaque(op, left, right);
}

/// What the table has no form for; equal for equal operands.
Size SymbolicDims::opaque(Operation *op, const Size &left, const Size &right) {
  const void *name = op->getName().getAsOpaquePointer();
  auto [known, isNew] =
      opaques.try_emplace({name, left, right}, table.numAtoms());
  if (isNew)
    table.addAtom({Atom::Dim,
                   heed::format("{}({}, {})", op->getName().stripDialect(),
                                str(left), str(right)),
                   /*inLoop=*/false,
                   {},
                   {},
                   INT64_MIN});
  return Size::atom(known->second);
}
