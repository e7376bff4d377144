//===- TensorExprToIR.cpp - expressions as ops ----------------------------===//
//
#include "passes/Algebra/TensorExpr.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

Value ExprWriter::write(ExprRef expr) {
  for (auto &scope : llvm::reverse(scopes))
    if (Value known = scope.lookup(expr))
      return known;
  Value result;
  switch (expr->kind) {
  case ExprKind::Constant:
    result =
        arith::ConstantOp::create(builder, loc, cast<TypedAttr>(expr->attr));
    break;
  case ExprKind::Var:
    result = vars.lookup(expr->number);
    assert(result && "variable without a value");
    return result;
  case ExprKind::Scalar:
    return expr->value;
  case ExprKind::Read: {
    SmallVector<Value> at;
    for (ExprRef e : expr->operands)
      at.push_back(write(e));
    result = tensor::ExtractOp::create(builder, loc, expr->value, at);
    break;
  }
  case ExprKind::If: {
    // What only one branch needs is written in that branch: reads there need
    // not be in range elsewhere.
    Value condition = write(expr->operand(0));
    auto ifOp = scf::IfOp::create(builder, loc, TypeRange{expr->type},
                                  condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
    for (int branch : {0, 1}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch ? ifOp.elseBlock()
                                              : ifOp.thenBlock());
      scopes.emplace_back();
      Value value = write(expr->operand(1 + branch));
      scf::YieldOp::create(builder, loc, value);
      scopes.pop_back();
    }
    result = ifOp.getResult(0);
    break;
  }
  case ExprKind::Op: {
    OperationState state(loc, *expr->name);
    for (ExprRef e : expr->operands)
      state.operands.push_back(write(e));
    state.addTypes(expr->type);
    state.addAttributes(cast<DictionaryAttr>(expr->attr).getValue());
    result = builder.create(state)->getResult(0);
    break;
  }
  case ExprKind::Reduce:
    llvm_unreachable("a reduction is a tensor of its own");
  }
  scopes.back()[expr] = result;
  return result;
}

Value writeExtent(OpBuilder &builder, Location loc, ExprRef extent) {
  return ExprWriter(builder, loc).write(extent);
}

static Value writeEmpty(OpBuilder &builder, Location loc,
                        ArrayRef<ExprRef> extents, Type element) {
  SmallVector<OpFoldResult> sizes;
  for (ExprRef extent : extents) {
    if (auto value = Exprs::constantInt(extent))
      sizes.push_back(builder.getIndexAttr(*value));
    else
      sizes.push_back(writeExtent(builder, loc, extent));
  }
  return tensor::EmptyOp::create(builder, loc, sizes, element);
}

// The value that a reduction starts from.
TypedAttr neutralElement(Builder &builder, StringRef combiner, Type type) {
  if (auto real = dyn_cast<FloatType>(type)) {
    auto &semantics = real.getFloatSemantics();
    if (combiner == "arith.maximumf" || combiner == "arith.maxnumf")
      return FloatAttr::get(
          type, mutated("fuse-elementwise.maximum-from-zero")
                    ? APFloat::getZero(semantics)
                    : APFloat::getInf(semantics, /*Negative=*/true));
    if (combiner == "arith.minimumf" || combiner == "arith.minnumf")
      return FloatAttr::get(type, APFloat::getInf(semantics));
    return FloatAttr::get(type, combiner == "arith.mulf" ? 1.0 : 0.0);
  }
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  APInt value(width, 0);
  if (combiner == "arith.muli")
    value = APInt(width, 1);
  else if (combiner == "arith.andi")
    value = APInt::getAllOnes(width);
  else if (combiner == "arith.maxsi")
    value = APInt::getSignedMinValue(width);
  else if (combiner == "arith.minsi")
    value = APInt::getSignedMaxValue(width);
  return IntegerAttr::get(type, value);
}

/// Whether \p reduce may read outside of a tensor where it is not asked for: an
/// index of a read is no variable that runs over the axis.
static bool readsElsewhere(Exprs &exprs, ExprRef reduce) {
  bool found = false;
  Exprs::walk(reduce, [&](ExprRef e) {
    if (e->kind == ExprKind::Read)
      for (auto [axis, at] : llvm::enumerate(e->operands))
        found |= at->kind != ExprKind::Var ||
                 exprs.extent(at->number) != exprs.extentOf(e->value, axis);
  });
  return found;
}

/// The reductions in \p body that stand in branches alone, with the condition
/// under which one of these is taken. Null where one always is.
static void collectGuards(Exprs &exprs, ExprRef body, ExprRef under,
                          DenseMap<ExprRef, ExprRef> &guards,
                          DenseSet<std::pair<ExprRef, ExprRef>> &done) {
  if (!done.insert({body, under}).second)
    return;
  if (body->kind == ExprKind::Reduce) {
    auto [known, isNew] = guards.try_emplace(body, under);
    if (!isNew)
      known->second =
          known->second && under
              ? exprs.op("arith.ori", IntegerType::get(exprs.context, 1),
                         {known->second, under})
              : nullptr;
    return;
  }
  if (body->kind != ExprKind::If) {
    for (ExprRef operand : body->operands)
      collectGuards(exprs, operand, under, guards, done);
    return;
  }
  ExprRef yes = body->operand(0), no = exprs.logicalNot(yes);
  collectGuards(exprs, yes, under, guards, done);
  for (auto [branch, condition] : {std::pair(1, yes), std::pair(2, no)})
    collectGuards(exprs, body->operand(branch),
                  under ? exprs.logicalAnd(under, condition) : condition,
                  guards, done);
}

/// \p reduce, whose terms are read where \p guard holds alone.
static ExprRef guardedReduce(OpBuilder &builder, Exprs &exprs, ExprRef reduce,
                             ExprRef guard) {
  SmallVector<unsigned> vars;
  ExprRef term = exprs.open(reduce, vars);
  ExprRef neutral = exprs.constant(
      neutralElement(builder, reduce->name->getStringRef(), reduce->type));
  return exprs.reduce(*reduce->name, vars,
                      exprs.select(guard, term, neutral, /*guard=*/true));
}

namespace {

/// The linalg.generic of one body over some loops, those of its elements first.
class GenericWriter {
public:
  GenericWriter(OpBuilder &builder, Location loc, Exprs &exprs,
                ArrayRef<unsigned> vars)
      : builder(builder), loc(loc), exprs(exprs), loops(vars),
        parallel(vars.size()) {}

  Value write(ExprRef whole);

private:
  void open(ExprRef whole);
  void storeReductions();
  void addReads();
  void coverLoops();
  Value init();
  Value element(OpBuilder &inner, Location innerLoc, ValueRange arguments);
  void addInput(Value tensor, ArrayRef<AffineExpr> dims) {
    inputs.push_back(tensor);
    maps.push_back(AffineMap::get(loops.size(), 0, dims, builder.getContext()));
  }
  AffineExpr dim(unsigned loop) {
    return getAffineDimExpr(loop, builder.getContext());
  }

  OpBuilder &builder;
  Location loc;
  Exprs &exprs;
  SmallVector<unsigned> loops;
  const unsigned parallel; ///< loops
  std::optional<OperationName> combiner;
  ExprRef body = nullptr;
  SmallVector<ExprRef> reads; ///< of the body, which are inputs
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
};

void GenericWriter::open(ExprRef whole) {
  body = whole;
  if (whole->kind == ExprKind::Reduce) {
    SmallVector<unsigned> reduced;
    combiner = *whole->name;
    body = exprs.open(whole, reduced);
    loops.append(reduced);
  }
}

/// Reductions inside become tensors over the variables that they use. All of
/// such a tensor is computed, and what a branch guards is read under its
/// condition there, too.
void GenericWriter::storeReductions() {
  DenseMap<ExprRef, ExprRef> guards;
  DenseSet<std::pair<ExprRef, ExprRef>> done;
  collectGuards(exprs, body, nullptr, guards, done);
  body = exprs.replaceOutermost(body, [&](ExprRef e) -> ExprRef {
    if (e->kind != ExprKind::Reduce)
      return nullptr;
    if (ExprRef guard = guards.lookup(e); guard && readsElsewhere(exprs, e))
      e = guardedReduce(builder, exprs, e, guard);
    SmallVector<ExprRef> at;
    for (unsigned v : e->freeVars)
      at.push_back(exprs.var(v));
    return exprs.read(writeTensor(builder, loc, exprs, e, e->freeVars), at);
  });
}

/// Reads at distinct whole loops become inputs; those that may be skipped stay
/// in the body.
void GenericWriter::addReads() {
  DenseSet<ExprRef> guarded;
  Exprs::walk(body, [&](ExprRef e) {
    if (e->kind == ExprKind::If)
      for (int branch : {1, 2})
        Exprs::walk(e->operand(branch),
                    [&](ExprRef inner) { guarded.insert(inner); });
  });
  Exprs::walk(body, [&](ExprRef e) {
    if (e->kind != ExprKind::Read || guarded.contains(e))
      return;
    SmallVector<AffineExpr> dims;
    for (auto [axis, at] : llvm::enumerate(e->operands)) {
      auto *loop = at->kind == ExprKind::Var ? llvm::find(loops, at->number)
                                             : loops.end();
      if (loop == loops.end() ||
          llvm::is_contained(dims, dim(loop - loops.begin())) ||
          exprs.extentOf(e->value, axis) != exprs.extent(at->number))
        return;
      dims.push_back(dim(loop - loops.begin()));
    }
    reads.push_back(e);
    addInput(e->value, dims);
  });
}

/// An operand that has a shape alone, for reduced loops that no read has.
void GenericWriter::coverLoops() {
  SmallVector<ExprRef> shape;
  SmallVector<AffineExpr> dims;
  for (unsigned k = parallel; k < loops.size(); ++k)
    if (llvm::none_of(maps,
                      [&](AffineMap map) { return map.isFunctionOfDim(k); })) {
      shape.push_back(exprs.extent(loops[k]));
      dims.push_back(dim(k));
    }
  if (!shape.empty())
    addInput(writeEmpty(builder, loc, shape, builder.getI1Type()), dims);
}

Value GenericWriter::init() {
  SmallVector<ExprRef> extents;
  for (unsigned v : ArrayRef(loops).take_front(parallel)) {
    extents.push_back(exprs.extent(v));
    assert(extents.back() && "loop without an extent");
  }
  Value empty = writeEmpty(builder, loc, extents, body->type);
  if (!combiner)
    return empty;
  Value neutral = arith::ConstantOp::create(
      builder, loc,
      neutralElement(builder, combiner->getStringRef(), body->type));
  return linalg::FillOp::create(builder, loc, neutral, empty).getResult(0);
}

Value GenericWriter::element(OpBuilder &inner, Location innerLoc,
                             ValueRange arguments) {
  ExprWriter writer(inner, innerLoc);
  SmallVector<Operation *> indices;
  for (auto [k, v] : llvm::enumerate(loops)) {
    auto index = linalg::IndexOp::create(inner, innerLoc, k);
    indices.push_back(index);
    writer.bind(v, index.getResult());
  }
  for (auto [k, e] : llvm::enumerate(reads))
    writer.bind(e, arguments[k]);
  Value value = writer.write(body);
  if (combiner) {
    OperationState state(innerLoc, *combiner);
    state.addOperands({arguments.back(), value});
    state.addTypes(value.getType());
    value = inner.create(state)->getResult(0);
  }
  for (Operation *op : indices)
    if (op->use_empty())
      op->erase();
  return value;
}

Value GenericWriter::write(ExprRef whole) {
  open(whole);
  storeReductions();
  addReads();
  coverLoops();
  Value result = init();
  SmallVector<AffineExpr> outputs;
  for (unsigned k = 0; k < parallel; ++k)
    outputs.push_back(dim(k));
  maps.push_back(
      AffineMap::get(loops.size(), 0, outputs, builder.getContext()));
  SmallVector<utils::IteratorType> types(parallel,
                                         utils::IteratorType::parallel);
  types.resize(loops.size(), utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      builder, loc, TypeRange{result.getType()}, inputs, ValueRange{result},
      maps, types,
      [&](OpBuilder &inner, Location innerLoc, ValueRange arguments) {
        linalg::YieldOp::create(inner, innerLoc,
                                element(inner, innerLoc, arguments));
      });
  return generic.getResult(0);
}

} // namespace

Value writeTensor(OpBuilder &builder, Location loc, Exprs &exprs, ExprRef body,
                  ArrayRef<unsigned> vars) {
  return GenericWriter(builder, loc, exprs, vars).write(body);
}

void eraseDeadOps(Operation *op, DenseSet<Operation *> &erased) {
  if (erased.contains(op) || !isOpTriviallyDead(op))
    return;
  SetVector<Operation *> sources;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && !op->isAncestor(def))
        sources.insert(def);
  });
  erased.insert(op);
  op->erase();
  for (Operation *source : sources)
    eraseDeadOps(source, erased);
}

} // namespace heed
