//===- TensorExpr.cpp - an element of a tensor as an expression: nodes ----===//
#include "passes/Algebra/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heed {

void Expr::Profile(llvm::FoldingSetNodeID &key) const {
  key.AddInteger(unsigned(kind));
  key.AddPointer(type.getAsOpaquePointer());
  key.AddInteger(number);
  key.AddPointer(attr.getAsOpaquePointer());
  key.AddPointer(name ? name->getAsOpaquePointer() : nullptr);
  key.AddPointer(value.getAsOpaquePointer());
  for (ExprRef operand : operands)
    key.AddInteger(operand->id);
  for (unsigned binder : binders)
    key.AddInteger(binder);
}

ExprRef Exprs::intern(Expr &&node) {
  llvm::FoldingSetNodeID key;
  node.Profile(key);
  void *position;
  if (Expr *known = nodes.FindNodeOrInsertPos(key, position))
    return known;
  node.id = storage.size();
  if (node.kind == ExprKind::Var)
    node.freeVars.push_back(node.number);
  for (ExprRef operand : node.operands) {
    node.depth = std::max(node.depth, operand->depth);
    for (unsigned v : operand->freeVars)
      if (!llvm::is_contained(node.binders, v) &&
          !llvm::is_contained(node.freeVars, v))
        node.freeVars.push_back(v);
  }
  if (node.kind == ExprKind::Reduce)
    ++node.depth;
  llvm::sort(node.freeVars);
  storage.push_back(std::move(node));
  nodes.InsertNode(&storage.back(), position);
  return &storage.back();
}

// ---- Makers

ExprRef Exprs::constant(TypedAttr value) {
  Expr node;
  node.kind = ExprKind::Constant;
  node.type = value.getType();
  node.attr = value;
  return intern(std::move(node));
}
ExprRef Exprs::index(int64_t value) {
  return constant(IntegerAttr::get(IndexType::get(context), value));
}
ExprRef Exprs::truth(bool value) {
  return constant(BoolAttr::get(context, value));
}

ExprRef Exprs::fold(OpFoldResult number) {
  if (auto value = dyn_cast<Value>(number))
    return scalar(value);
  return index(cast<IntegerAttr>(cast<Attribute>(number)).getInt());
}

ExprRef Exprs::scalar(Value value) {
  if (auto constantOp = value.getDefiningOp<arith::ConstantOp>())
    return constant(constantOp.getValue());
  Expr node;
  node.kind = ExprKind::Scalar;
  node.type = value.getType();
  node.value = value;
  return intern(std::move(node));
}

unsigned Exprs::freshVar(ExprRef extent) {
  unsigned number = nextVar++;
  if (extent)
    extents[number] = extent;
  return number;
}

ExprRef Exprs::parameter(unsigned number, Type type) {
  Expr node;
  node.kind = ExprKind::Var;
  node.type = type;
  node.number = number;
  return intern(std::move(node));
}

static bool isCommutative(StringRef name) {
  static constexpr StringLiteral names[] = {
      "arith.addf",     "arith.addi",    "arith.mulf",   "arith.muli",
      "arith.andi",     "arith.ori",     "arith.xori",   "arith.maxsi",
      "arith.minsi",    "arith.maxui",   "arith.minui",  "arith.maximumf",
      "arith.minimumf", "arith.maxnumf", "arith.minnumf"};
  // Forms of the algebra are multisets.
  return name.starts_with("algebra.") || llvm::is_contained(names, name);
}

ExprRef Exprs::op(StringRef name, Type type, ArrayRef<ExprRef> operands) {
  return op(OperationName(name, context), DictionaryAttr::get(context), type,
            operands);
}

// Loop indices, sizes, and what sums, products and divisions make of them.
static bool isNonNegative(ExprRef e) {
  e = Exprs::stripExtension(e);
  if (auto value = Exprs::constantInt(e))
    return *value >= 0;
  if (e->kind == ExprKind::Var)
    return true;
  if (e->kind == ExprKind::Scalar)
    return e->value.getDefiningOp() &&
           e->value.getDefiningOp()->getName().getStringRef() == "tensor.dim";
  return (e->isOp("arith.addi") || e->isOp("arith.muli") ||
          e->isOp("arith.floordivsi")) &&
         isNonNegative(e->operand(0)) && isNonNegative(e->operand(1));
}

ExprRef Exprs::simplifyCast(OperationName name, DictionaryAttr attrs, Type type,
                            ExprRef inner) {
  if (name.getStringRef() == "arith.index_cast") {
    auto isWide = [](Type t) { return t.isIndex() || t.isInteger(64); };
    if (inner->type == type)
      return inner;
    if (inner->isOp("arith.index_cast") && inner->operand(0)->type == type &&
        isWide(type) && isWide(inner->type))
      return inner->operand(0);
    if (auto value = constantInt(inner))
      return constant(IntegerAttr::get(type, *value));
    return nullptr;
  }
  auto isConstant = [](ExprRef e) { return e->kind == ExprKind::Constant; };
  bool chooses = inner->kind == ExprKind::If || inner->isOp("arith.select");
  if (chooses && isConstant(inner->operand(1)) && isConstant(inner->operand(2)))
    return select(inner->operand(0), op(name, attrs, type, inner->operand(1)),
                  op(name, attrs, type, inner->operand(2)),
                  inner->kind == ExprKind::If);
  if (!isConstant(inner))
    return nullptr;
  APFloat value = cast<FloatAttr>(inner->attr).getValue();
  bool exact;
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &exact);
  return constant(FloatAttr::get(type, value));
}

ExprRef Exprs::simplifyIntegers(StringRef name, Type type,
                                ArrayRef<ExprRef> operands) {
  // Of numbers that are not negative, truncating division is floor division.
  if ((name == "arith.divsi" || name == "arith.remsi") &&
      isNonNegative(operands[0]) && isNonNegative(operands[1])) {
    ExprRef quotient = op("arith.floordivsi", type, operands);
    return name == "arith.divsi"
               ? quotient
               : op("arith.subi", type,
                    {operands[0],
                     op("arith.muli", type, {quotient, operands[1]})});
  }
  if (name == "arith.addi" || name == "arith.muli") {
    int64_t neutral = name == "arith.muli";
    for (int k : {0, 1})
      if (isConstantInt(operands[k], neutral))
        return operands[1 - k];
  }
  if (name == "arith.subi" && isConstantInt(operands[1], 0))
    return operands[0];
  if (operands.size() != 2 || name == "arith.cmpi" || type.isInteger(1))
    return nullptr;
  auto a = constantInt(operands[0]), b = constantInt(operands[1]);
  std::optional<int64_t> folded;
  if (!a || !b)
    return nullptr;
  if (name == "arith.addi")
    folded = *a + *b;
  else if (name == "arith.subi")
    folded = *a - *b;
  else if (name == "arith.muli")
    folded = *a * *b;
  else if (name == "arith.floordivsi" && *b > 0)
    folded = *a >= 0 ? *a / *b : -((-*a + *b - 1) / *b);
  return folded ? constant(IntegerAttr::get(type, *folded)) : nullptr;
}

ExprRef Exprs::op(OperationName name, DictionaryAttr attrs, Type type,
                  ArrayRef<ExprRef> operandList) {
  SmallVector<ExprRef, 3> operands(operandList);
  StringRef spelled = name.getStringRef();
  // Few simplifications, only such as hide one meaning behind two spellings.
  ExprRef simple = nullptr;
  if (spelled == "arith.index_cast" || spelled == "arith.truncf" ||
      spelled == "arith.extf")
    simple = simplifyCast(name, attrs, type, operands[0]);
  else if (spelled == "arith.select")
    return select(operands[0], operands[1], operands[2], /*guard=*/false);
  else if (spelled == "arith.andi" && type.isInteger(1))
    return logicalAnd(operands[0], operands[1]);
  if (spelled == "arith.xori" && type.isInteger(1))
    for (int k : {0, 1})
      if (isConstantInt(operands[k], -1) || isConstantInt(operands[k], 1))
        return logicalNot(operands[1 - k]);
  if (!simple && type.isIntOrIndex())
    simple = simplifyIntegers(spelled, type, operands);
  if (simple)
    return simple;
  if (isCommutative(spelled))
    llvm::sort(operands, [](ExprRef a, ExprRef b) { return a->id < b->id; });
  Expr node;
  node.kind = ExprKind::Op;
  node.type = type;
  node.name = name;
  node.attr = attrs;
  node.operands = operands;
  return intern(std::move(node));
}

ExprRef Exprs::read(Value tensor, ArrayRef<ExprRef> indices) {
  Expr node;
  node.kind = ExprKind::Read;
  node.type = cast<RankedTensorType>(tensor.getType()).getElementType();
  node.value = tensor;
  node.operands.assign(indices.begin(), indices.end());
  return intern(std::move(node));
}

ExprRef Exprs::select(ExprRef condition, ExprRef yes, ExprRef no, bool guard) {
  if (auto known = constantInt(condition))
    return *known ? yes : no;
  if (yes == no)
    return yes;
  Expr node;
  node.type = yes->type;
  node.operands = {condition, yes, no};
  if (guard) {
    node.kind = ExprKind::If;
  } else {
    node.kind = ExprKind::Op;
    node.name = OperationName("arith.select", context);
    node.attr = DictionaryAttr::get(context);
  }
  return intern(std::move(node));
}

ExprRef Exprs::unlessEmpty(ArrayRef<unsigned> vars, ExprRef value,
                           ExprRef instead) {
  for (unsigned v : vars) {
    ExprRef size = extent(v);
    if (!size || constantInt(size).value_or(0) > 0)
      continue;
    ExprRef empty = compare(arith::CmpIPredicate::eq, size, index(0));
    value = select(empty, instead, value, /*guard=*/false);
  }
  return value;
}

static DictionaryAttr withPredicate(Attribute predicate) {
  MLIRContext *context = predicate.getContext();
  return DictionaryAttr::get(
      context,
      NamedAttribute(StringAttr::get(context, "predicate"), predicate));
}

ExprRef Exprs::compare(arith::CmpIPredicate predicate, ExprRef a, ExprRef b) {
  return op(OperationName("arith.cmpi", context),
            withPredicate(arith::CmpIPredicateAttr::get(context, predicate)),
            IntegerType::get(context, 1), {a, b});
}

ExprRef Exprs::compare(arith::CmpFPredicate predicate, ExprRef a, ExprRef b) {
  return op(OperationName("arith.cmpf", context),
            withPredicate(arith::CmpFPredicateAttr::get(context, predicate)),
            IntegerType::get(context, 1), {a, b});
}

ExprRef Exprs::logicalAnd(ExprRef a, ExprRef b) {
  if (a == b)
    return a;
  for (int k : {0, 1})
    if (auto known = constantInt(k ? b : a))
      return *known ? (k ? a : b) : truth(false);
  Expr node;
  node.kind = ExprKind::Op;
  node.type = a->type;
  node.name = OperationName("arith.andi", context);
  node.attr = DictionaryAttr::get(context);
  node.operands = {a->id < b->id ? a : b, a->id < b->id ? b : a};
  return intern(std::move(node));
}

ExprRef Exprs::logicalNot(ExprRef a) {
  if (auto known = constantInt(a))
    return truth(!*known);
  if (a->isOp("arith.xori") && a->operand(0)->kind == ExprKind::Constant)
    return a->operand(1);
  if (a->isOp("arith.xori") && a->operand(1)->kind == ExprKind::Constant)
    return a->operand(0);
  if (a->isOp("arith.cmpi")) {
    auto attrs = cast<DictionaryAttr>(a->attr);
    auto predicate = arith::CmpIPredicate(
        cast<IntegerAttr>(attrs.get("predicate")).getInt());
    return compare(arith::invertPredicate(predicate), a->operand(0),
                   a->operand(1));
  }
  Expr node;
  node.kind = ExprKind::Op;
  node.type = a->type;
  node.name = OperationName("arith.xori", context);
  node.attr = DictionaryAttr::get(context);
  ExprRef yes = truth(true);
  node.operands = {a->id < yes->id ? a : yes, a->id < yes->id ? yes : a};
  return intern(std::move(node));
}

// Bound variables are numbered by nesting depth, so that equal reductions are
// equal nodes. Variables of one depth never meet those of another nest: a body
// is always opened with fresh variables before anything is put into it.
ExprRef Exprs::reduce(OperationName combiner, ArrayRef<unsigned> vars,
                      ExprRef body) {
  Expr node;
  node.kind = ExprKind::Reduce;
  node.type = body->type;
  node.name = combiner;
  DenseMap<unsigned, ExprRef> renamed;
  for (auto [position, v] : llvm::enumerate(vars)) {
    node.binders.push_back((body->depth + 1) * 64 + position);
    renamed[v] = var(node.binders.back());
  }
  node.operands.push_back(substitute(body, renamed));
  for (unsigned v : vars)
    node.operands.push_back(extents.lookup(v));
  return intern(std::move(node));
}

ExprRef Exprs::open(ExprRef reduce, SmallVectorImpl<unsigned> &vars) {
  DenseMap<unsigned, ExprRef> renamed;
  for (auto [position, binder] : llvm::enumerate(reduce->binders)) {
    vars.push_back(freshVar(reduce->operand(1 + position)));
    renamed[binder] = var(vars.back());
  }
  return substitute(reduce->body(), renamed);
}

// ---- Printing

void Exprs::print(ExprRef expr, raw_ostream &os) {
  switch (expr->kind) {
  case ExprKind::Constant:
    cast<TypedAttr>(expr->attr).print(os, /*elideType=*/true);
    return;
  case ExprKind::Var:
    os << "i"
       << (expr->number >= firstFree ? expr->number - firstFree : expr->number);
    return;
  case ExprKind::Scalar:
  case ExprKind::Read:
    // Other functions of the module change at the same time: they are neither
    // looked at nor verified.
    expr->value.printAsOperand(
        os, OpPrintingFlags().useLocalScope().assumeVerified());
    if (expr->kind == ExprKind::Scalar)
      return;
    os << "[";
    llvm::interleaveComma(expr->operands, os, [&](ExprRef e) { print(e, os); });
    os << "]";
    return;
  case ExprKind::If:
    os << "if";
    break;
  case ExprKind::Op:
    os << expr->name->stripDialect();
    if (auto text = cast<DictionaryAttr>(expr->attr).getAs<StringAttr>("value"))
      os << " " << text.getValue() << " ";
    break;
  case ExprKind::Reduce:
    os << "reduce." << expr->name->stripDialect();
    break;
  }
  os << "(";
  llvm::interleaveComma(expr->operands, os, [&](ExprRef e) { print(e, os); });
  os << ")";
}

std::string Exprs::str(ExprRef expr) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(expr, os);
  return text;
}

} // namespace heed
