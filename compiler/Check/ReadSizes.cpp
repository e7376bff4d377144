//===- ReadSizes.cpp - what a front end's IR says of sizes ----------------===//
#include "compiler/Check/Sizes.h"
#include "compiler/Driver/Pipeline.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace heed::check {

/// Writes the sizes of one model as formulas.
class SizesReader {
public:
  SizesReader(Sizes &into) : into(into), f(into.formulas) {}
  void read(func::FuncOp model);

private:
  using Node = Formulas::Node;
  Node text(StringRef text);
  Node extent(Value tensor, int64_t axis);
  Node size(OpFoldResult size);
  Node value(Value v);
  /// Sums of an input's elements and of indices, which together are `beyond` at
  /// most. Guarded: only those count for which data fulfils something.
  struct Positions {
    Value input; ///< null: they are something else
    Node beyond;
    bool adds = false; ///< any index
    bool guarded = false;
  };
  bool addends(Value sum, linalg::GenericOp generic, Positions &positions);
  Positions positionsOf(Value tensor, func::FuncOp model);
  void addRange(attn::RequireInRangeOp require, func::FuncOp model);
  Node compare(arith::CmpIOp op);
  Node binary(Operation *op, Node a, Node b);
  void count(linalg::LinalgOp op);

  Sizes &into;
  Formulas &f;
  llvm::DenseMap<Value, Node> done;
};

Formulas::Node SizesReader::text(StringRef text) {
  auto [at, isNew] = into.texts.insert({text.str(), 0});
  if (isNew)
    into.extents.push_back(at->second = f.parse(text.str()));
  return at->second;
}

Formulas::Node SizesReader::size(OpFoldResult size) {
  if (auto known = getConstantIntValue(size))
    return f.constant(*known);
  return value(cast<Value>(size));
}

/// The extent of \p tensor along \p axis: of inputs and parameters by their
/// texts, else by the op that made it.
Formulas::Node SizesReader::extent(Value tensor, int64_t axis) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type)
    return f.unknown();
  if (!type.isDynamicDim(axis))
    return f.constant(type.getDimSize(axis));
  Operation *def = tensor.getDefiningOp();
  auto named = [&](Attribute dims) {
    auto list = dyn_cast_or_null<ArrayAttr>(dims);
    return list ? text(cast<StringAttr>(list[axis]).getValue()) : f.unknown();
  };
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (auto function = dyn_cast<func::FuncOp>(owner))
      return named(
          function.getArgAttr(argument.getArgNumber(), attn::kDimsAttr));
    if (auto loop = dyn_cast<scf::ForOp>(owner))
      if (OpOperand *init = loop.getTiedLoopInit(argument))
        return extent(init->get(), axis);
    if (auto scan = dyn_cast<attn::ScanOp>(owner))
      return extent(scan.getStarts()[argument.getArgNumber() - 1], axis);
    return f.unknown();
  }
  if (auto op = dyn_cast<tensor::EmptyOp>(def))
    return size(op.getMixedSizes()[axis]);
  if (auto op = dyn_cast<tensor::ExpandShapeOp>(def))
    return size(op.getMixedOutputShape()[axis]);
  if (auto op = dyn_cast<tensor::ExtractSliceOp>(def)) {
    SmallVector<OpFoldResult> kept;
    for (auto [k, one] : llvm::enumerate(op.getMixedSizes()))
      if (!op.getDroppedDims().test(k))
        kept.push_back(one);
    return size(kept[axis]);
  }
  if (auto scan = dyn_cast<attn::ScanOp>(def)) // behind its range
    return extent(
        scan->getOperand(2 + cast<OpResult>(tensor).getResultNumber()), axis);
  if (auto op = dyn_cast<tensor::CollapseShapeOp>(def)) {
    Node product = f.constant(1);
    ReassociationIndices group = op.getReassociationIndices()[axis];
    for (int64_t from : group)
      product = f.make(Formulas::Mul, product, extent(op.getSrc(), from));
    return product;
  }
  if (isa<tensor::CastOp, attn::SoftmaxOp, attn::LogSoftmaxOp>(def))
    return extent(def->getOperand(0), axis);
  if (auto op = dyn_cast<tensor::InsertSliceOp>(def))
    return extent(op.getDest(), axis);
  if (auto op = dyn_cast<attn::UpdateStateOp>(def))
    return extent(op.getState(), axis);
  if (auto op = dyn_cast<DestinationStyleOpInterface>(def))
    return extent(op.getTiedOpOperand(cast<OpResult>(tensor))->get(), axis);
  if (auto loop = dyn_cast<scf::ForOp>(def))
    return extent(loop.getTiedLoopInit(cast<OpResult>(tensor))->get(), axis);
  return named(def->getAttr(attn::kDimsAttr));
}

/// The addends of \p sum in the body of \p generic: indices, numbers from
/// outside, and an input of integers. False if it is no such sum.
bool SizesReader::addends(Value sum, linalg::GenericOp generic,
                          Positions &positions) {
  if (auto argument = dyn_cast<BlockArgument>(sum)) {
    if (argument.getOwner() != generic.getBody())
      return true;
    Value input = generic.getMatchingOpOperand(argument)->get();
    bool isOnly = !positions.input || positions.input == input;
    positions.input = input;
    return isOnly;
  }
  Operation *def = sum.getDefiningOp();
  if (!generic->isProperAncestor(def))
    return true;
  if (auto index = dyn_cast<linalg::IndexOp>(def)) {
    for (OpOperand &operand : generic->getOpOperands()) {
      auto axis = generic.getMatchingIndexingMap(&operand).getResultPosition(
          getAffineDimExpr(index.getDim(), index.getContext()));
      if (!axis)
        continue;
      Node last =
          f.make(Formulas::Sub, extent(operand.get(), *axis), f.constant(1));
      positions.beyond = f.make(Formulas::Add, positions.beyond, last);
      positions.adds = true;
      break;
    }
    return true;
  }
  return isa<arith::IndexCastOp, arith::ExtSIOp, arith::AddIOp>(def) &&
         llvm::all_of(def->getOperands(), [&](Value operand) {
           return addends(operand, generic, positions);
         });
}

/// What the elements of \p tensor add to an input of integers; they may be the
/// least or the greatest of a row, and of those alone for which a condition
/// holds. Without an input if they are something else.
SizesReader::Positions SizesReader::positionsOf(Value tensor,
                                                func::FuncOp model) {
  Positions positions{tensor, f.constant(0)}, none{Value(), f.constant(0)};
  if (auto generic = tensor.getDefiningOp<linalg::GenericOp>()) {
    positions.input = Value();
    Value element = generic.getBody()->getTerminator()->getOperand(0);
    Operation *def = element.getDefiningOp();
    if (isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(def))
      element = def->getOperand(1);
    if (auto guard = element.getDefiningOp<scf::IfOp>()) {
      positions.guarded = true;
      element = guard.thenYield().getOperand(0);
    }
    if (!addends(element, generic, positions))
      return none;
  }
  auto argument = dyn_cast_or_null<BlockArgument>(positions.input);
  bool isInput = argument && argument.getOwner()->getParentOp() == model &&
                 isa<IntegerType>(getElementTypeOrSelf(argument));
  return isInput ? positions : none;
}

/// Which positions an input may hold.
void SizesReader::addRange(attn::RequireInRangeOp require, func::FuncOp model) {
  Positions positions = positionsOf(require.getTensor(), model);
  auto argument = dyn_cast_or_null<BlockArgument>(positions.input);
  if (!argument)
    return;
  auto name = model.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                 attn::kNameAttr);
  Node low = value(require.getLo()),
       high = f.make(Formulas::Sub, value(require.getHi()), positions.beyond);
  into.ranges.push_back({name.str(), low, high, positions.guarded});
  // Where indices are added, there is room for all of them.
  if (positions.adds)
    (positions.guarded ? into.underGuards : into.conditions)
        .push_back(f.make(Formulas::Less, low, high));
}

Formulas::Node SizesReader::compare(arith::CmpIOp op) {
  using P = arith::CmpIPredicate;
  Node a = value(op.getLhs()), b = value(op.getRhs());
  auto negated = [&](Node node) {
    return f.make(Formulas::Xor, node, f.constant(1));
  };
  switch (op.getPredicate()) {
  case P::eq:
    return f.make(Formulas::Equal, a, b);
  case P::ne:
    return negated(f.make(Formulas::Equal, a, b));
  case P::slt:
    return f.make(Formulas::Less, a, b);
  case P::sge:
    return negated(f.make(Formulas::Less, a, b));
  case P::sgt:
    return f.make(Formulas::Less, b, a);
  case P::sle:
    return negated(f.make(Formulas::Less, b, a));
  default:
    return f.unknown();
  }
}

Formulas::Node SizesReader::binary(Operation *op, Node a, Node b) {
  if (isa<arith::CeilDivSIOp>(op)) {
    Node negative = f.make(Formulas::Sub, f.constant(0), a);
    return f.make(Formulas::Sub, f.constant(0),
                  f.make(Formulas::FloorDiv, negative, b));
  }
  auto kind = llvm::StringSwitch<std::optional<Formulas::Op>>(
                  op->getName().getStringRef())
                  .Case("arith.addi", Formulas::Add)
                  .Case("arith.subi", Formulas::Sub)
                  .Case("arith.muli", Formulas::Mul)
                  .Case("arith.divsi", Formulas::Div)
                  .Case("arith.floordivsi", Formulas::FloorDiv)
                  .Case("arith.remsi", Formulas::Rem)
                  .Case("arith.minsi", Formulas::Min)
                  .Case("arith.maxsi", Formulas::Max)
                  .Case("arith.andi", Formulas::And)
                  .Case("arith.ori", Formulas::Or)
                  .Case("arith.xori", Formulas::Xor)
                  .Default(std::nullopt);
  // And and Or stop at one known side, which is right for i1 alone.
  if (!kind || ((*kind == Formulas::And || *kind == Formulas::Or) &&
                !op->getResult(0).getType().isInteger(1)))
    return f.unknown();
  return f.make(*kind, a, b);
}

Formulas::Node SizesReader::value(Value v) {
  if (auto found = done.find(v); found != done.end())
    return found->second;
  auto make = [&]() -> Node {
    APInt known;
    if (matchPattern(v, m_ConstantInt(&known)))
      return f.constant(v.getType().isInteger(1) ? known.getZExtValue()
                                                 : known.getSExtValue());
    Operation *op = v.getDefiningOp();
    if (!op)
      return f.unknown();
    if (auto dim = dyn_cast<tensor::DimOp>(op)) {
      auto axis = dim.getConstantIndex();
      return axis ? extent(dim.getSource(), *axis) : f.unknown();
    }
    if (auto cmp = dyn_cast<arith::CmpIOp>(op))
      return compare(cmp);
    if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
      return value(op->getOperand(0));
    if (isa<arith::SelectOp>(op)) {
      Node condition = value(op->getOperand(0)), a = value(op->getOperand(1));
      return f.make(Formulas::Select, condition, a, value(op->getOperand(2)));
    }
    if (isa<math::CountLeadingZerosOp>(op)) {
      Node a = value(op->getOperand(0));
      return f.make(
          Formulas::Sub,
          f.constant(int64_t(v.getType().getIntOrFloatBitWidth()) - 1),
          f.make(Formulas::Log2, a, a));
    }
    if (op->getNumOperands() != 2 || !v.getType().isIntOrIndex())
      return f.unknown();
    Node a = value(op->getOperand(0)), b = value(op->getOperand(1));
    return binary(op, a, b);
  };
  Node node = make();
  return done[v] = node;
}

/// The points of \p op, and what it stores.
void SizesReader::count(linalg::LinalgOp op) {
  Node points = f.constant(1), stored = f.constant(4);
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    SmallVector<std::pair<Value, unsigned>> places;
    op.mapIterationSpaceDimToAllOperandDims(loop, places);
    if (places.empty())
      return;
    Node size = extent(places[0].first, places[0].second);
    points = f.make(Formulas::Mul, points, size);
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel)
      stored = f.make(Formulas::Mul, stored, size);
  }
  into.costs.push_back(points);
  into.costs.push_back(stored);
}

/// Whether every call of \p model comes to \p op: it stands in no branch, and
/// in loops that have a turn.
static bool isAlwaysReached(Operation *op, Operation *model) {
  for (Operation *at = op->getParentOp(); at != model; at = at->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(at);
    auto low = loop ? getConstantIntValue(loop.getLowerBound()) : std::nullopt;
    auto high = loop ? getConstantIntValue(loop.getUpperBound()) : std::nullopt;
    if (!low || !high || *low >= *high)
      return false;
  }
  return true;
}

void SizesReader::read(func::FuncOp model) {
  for (BlockArgument argument : model.getArguments()) {
    auto name = model.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                   attn::kNameAttr);
    if (auto type = dyn_cast<RankedTensorType>(argument.getType())) {
      Node count = f.constant(4);
      for (int64_t axis = 0; axis < type.getRank(); ++axis)
        count = f.make(Formulas::Mul, count, extent(argument, axis));
      into.costs.push_back(count);
    } else if (name && argument.getType().isInteger() &&
               !argument.getType().isInteger(1)) {
      done[argument] = f.name(name.str());
    }
  }
  llvm::DenseSet<Node> ofParams;
  model.walk([&](attn::ParamOp param) {
    auto type = dyn_cast<RankedTensorType>(param.getType());
    Node count = f.constant(1);
    for (int64_t axis = 0; type && axis < type.getRank(); ++axis) {
      Node size = extent(param.getResult(), axis);
      ofParams.insert(size);
      count = f.make(Formulas::Mul, count, size);
    }
    into.params.push_back(count);
  });
  for (const std::string &name : f.names())
    into.known.push_back({name});
  for (Node node : ofParams)
    for (auto [k, used] : llvm::enumerate(f.namesIn(node)))
      into.known[k].isParam |= used;
  for (BlockArgument argument : model.getArguments())
    if (auto found = done.find(argument); found != done.end())
      for (Sizes::Name &name : into.known)
        name.isScalar |= f.name(name.text) == found->second;
  model.walk([&](Operation *op) {
    if (auto require = dyn_cast<attn::RequireOp>(op)) {
      if (!isAlwaysReached(op, model))
        return;
      into.conditions.push_back(value(require.getCondition()));
    } else if (auto require = dyn_cast<attn::RequireInRangeOp>(op)) {
      addRange(require, model);
    } else if (auto generic = dyn_cast<linalg::LinalgOp>(op)) {
      count(generic);
    }
  });
  for (auto [name, drives] : llvm::zip(into.known, f.divisors()))
    name.drives = drives;
}

std::vector<std::unique_ptr<Sizes>> Sizes::read(const std::string &ir,
                                                std::string &error) {
  DialectRegistry registry;
  registerPipelineDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(ir, ParserConfig(&context));
  std::vector<std::unique_ptr<Sizes>> entries;
  if (!module)
    return entries;
  for (auto function : module->getOps<func::FuncOp>()) {
    if (!function->hasAttr(attn::kModelAttr) || function.isExternal())
      continue;
    auto sizes = std::make_unique<Sizes>();
    SizesReader(*sizes).read(function);
    sizes->entry = function.getName().str();
    entries.push_back(std::move(sizes));
  }
  error = "expected a model";
  return entries;
}

} // namespace heed::check
