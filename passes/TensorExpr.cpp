//===- TensorExpr.cpp - an element of a tensor as an expression: nodes and
// rewriting -------===//
#include "passes/TensorExpr.h"

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
// ---------------------------------------------------------------------------------

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
  return llvm::is_contained(names, name);
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

ExprRef Exprs::op(OperationName name, DictionaryAttr attrs, Type type,
                  ArrayRef<ExprRef> operandList) {
  SmallVector<ExprRef, 3> operands(operandList);
  StringRef spelled = name.getStringRef();
  // Few simplifications, only such as hide one meaning behind two spellings.
  if (spelled == "arith.index_cast") {
    ExprRef inner = operands[0];
    if (inner->type == type)
      return inner;
    if (inner->isOp("arith.index_cast") && inner->operand(0)->type == type &&
        (type.isIndex() || type.isInteger(64)) &&
        (inner->type.isIndex() || inner->type.isInteger(64)))
      return inner->operand(0);
    if (auto value = constantInt(inner))
      return constant(IntegerAttr::get(type, *value));
  }
  if (spelled == "arith.truncf" || spelled == "arith.extf") {
    auto isConstant = [](ExprRef e) { return e->kind == ExprKind::Constant; };
    ExprRef inner = operands[0];
    bool chooses = inner->kind == ExprKind::If || inner->isOp("arith.select");
    if (chooses && isConstant(inner->operand(1)) &&
        isConstant(inner->operand(2)))
      return select(inner->operand(0), op(name, attrs, type, inner->operand(1)),
                    op(name, attrs, type, inner->operand(2)),
                    inner->kind == ExprKind::If);
    if (isConstant(inner)) {
      APFloat value = cast<FloatAttr>(inner->attr).getValue();
      bool exact;
      value.convert(cast<FloatType>(type).getFloatSemantics(),
                    APFloat::rmNearestTiesToEven, &exact);
      return constant(FloatAttr::get(type, value));
    }
  }
  if (spelled == "arith.select")
    return select(operands[0], operands[1], operands[2], /*guard=*/false);
  if (spelled == "arith.andi" && type.isInteger(1))
    return logicalAnd(operands[0], operands[1]);
  if (spelled == "arith.xori" && type.isInteger(1)) {
    for (int k : {0, 1})
      if (isConstantInt(operands[k], -1) || isConstantInt(operands[k], 1))
        return logicalNot(operands[1 - k]);
  }
  // Of numbers that are not negative, truncating division is floor division.
  if ((spelled == "arith.divsi" || spelled == "arith.remsi") &&
      isNonNegative(operands[0]) && isNonNegative(operands[1])) {
    ExprRef quotient = op("arith.floordivsi", type, operands);
    return spelled == "arith.divsi"
               ? quotient
               : op("arith.subi", type,
                    {operands[0],
                     op("arith.muli", type, {quotient, operands[1]})});
  }
  if (type.isIntOrIndex()) {
    if (spelled == "arith.addi" || spelled == "arith.muli") {
      int64_t neutral = spelled == "arith.muli";
      for (int k : {0, 1})
        if (isConstantInt(operands[k], neutral))
          return operands[1 - k];
    }
    if (spelled == "arith.subi" && isConstantInt(operands[1], 0))
      return operands[0];
    if (operands.size() == 2 && spelled != "arith.cmpi") {
      auto a = constantInt(operands[0]), b = constantInt(operands[1]);
      if (a && b && !type.isInteger(1)) {
        std::optional<int64_t> folded;
        if (spelled == "arith.addi")
          folded = *a + *b;
        else if (spelled == "arith.subi")
          folded = *a - *b;
        else if (spelled == "arith.muli")
          folded = *a * *b;
        else if (spelled == "arith.floordivsi" && *b > 0)
          folded = *a >= 0 ? *a / *b : -((-*a + *b - 1) / *b);
        if (folded)
          return constant(IntegerAttr::get(type, *folded));
      }
    }
  }
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
  Builder b(context);
  auto equal = arith::CmpIPredicateAttr::get(context, arith::CmpIPredicate::eq);
  for (unsigned v : vars) {
    ExprRef size = extent(v);
    if (!size || constantInt(size).value_or(0) > 0)
      continue;
    ExprRef empty = op(OperationName("arith.cmpi", context),
                       b.getDictionaryAttr(b.getNamedAttr("predicate", equal)),
                       b.getI1Type(), {size, index(0)});
    value = select(empty, instead, value, /*guard=*/false);
  }
  return value;
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
    auto inverse = arith::invertPredicate(predicate);
    auto inverseAttr = DictionaryAttr::get(
        context,
        NamedAttribute(StringAttr::get(context, "predicate"),
                       arith::CmpIPredicateAttr::get(context, inverse)));
    return op(*a->name, inverseAttr, a->type, {a->operand(0), a->operand(1)});
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

// ---- Rewriting
// ------------------------------------------------------------------------------

namespace {
struct Rewriter {
  Exprs &exprs;
  llvm::function_ref<ExprRef(ExprRef)> replace;
  llvm::function_ref<bool(ExprRef)> skip;
  DenseMap<ExprRef, ExprRef> done = DenseMap<ExprRef, ExprRef>();

  ExprRef visit(ExprRef expr) {
    if (skip(expr))
      return expr;
    if (ExprRef known = done.lookup(expr))
      return known;
    ExprRef result = rebuild(expr);
    if (ExprRef other = replace(result))
      result = other;
    return done[expr] = result;
  }

  ExprRef rebuild(ExprRef expr) {
    if (expr->kind == ExprKind::Reduce) {
      SmallVector<unsigned> vars;
      ExprRef opened = exprs.open(expr, vars);
      for (auto [k, v] : llvm::enumerate(vars))
        exprs.setExtent(v, visit(expr->operand(1 + k)));
      return exprs.reduce(*expr->name, vars, visit(opened));
    }
    SmallVector<ExprRef, 3> operands;
    for (ExprRef operand : expr->operands)
      operands.push_back(visit(operand));
    return assemble(exprs, expr, operands);
  }

  // The same node over other operands.
  static ExprRef assemble(Exprs &exprs, ExprRef expr,
                          ArrayRef<ExprRef> operands) {
    if (ArrayRef<ExprRef>(expr->operands) == operands)
      return expr;
    switch (expr->kind) {
    case ExprKind::Read:
      return exprs.read(expr->value, operands);
    case ExprKind::If:
      return exprs.select(operands[0], operands[1], operands[2],
                          /*guard=*/true);
    case ExprKind::Op:
      return exprs.op(*expr->name, cast<DictionaryAttr>(expr->attr), expr->type,
                      operands);
    default:
      return expr;
    }
  }
};
} // namespace

ExprRef Exprs::substitute(ExprRef expr,
                          const DenseMap<unsigned, ExprRef> &values) {
  auto replace = [&](ExprRef e) -> ExprRef {
    return e->kind == ExprKind::Var ? values.lookup(e->number) : nullptr;
  };
  auto skip = [&](ExprRef e) {
    return llvm::none_of(e->freeVars,
                         [&](unsigned v) { return values.contains(v); });
  };
  return Rewriter{*this, replace, skip}.visit(expr);
}

ExprRef Exprs::rewrite(ExprRef expr,
                       llvm::function_ref<ExprRef(ExprRef)> replace) {
  auto skip = [](ExprRef) { return false; };
  return Rewriter{*this, replace, skip}.visit(expr);
}

ExprRef Exprs::replaceOutermost(ExprRef expr,
                                llvm::function_ref<ExprRef(ExprRef)> replace) {
  DenseMap<ExprRef, ExprRef> done;
  std::function<ExprRef(ExprRef)> go = [&](ExprRef e) -> ExprRef {
    if (ExprRef known = done.lookup(e))
      return known;
    if (ExprRef other = replace(e))
      return done[e] = other;
    if (e->kind == ExprKind::Reduce)
      return done[e] = e;
    SmallVector<ExprRef, 3> operands;
    for (ExprRef operand : e->operands)
      operands.push_back(go(operand));
    return done[e] = Rewriter::assemble(*this, e, operands);
  };
  return go(expr);
}

ExprRef Exprs::expandReads(ExprRef expr,
                           llvm::function_ref<bool(ExprRef)> wanted) {
  return rewrite(expr, [&](ExprRef e) -> ExprRef {
    if (e->kind != ExprKind::Read || !wanted(e))
      return nullptr;
    ExprRef expanded = expand(e);
    return expanded ? expandReads(expanded, wanted) : nullptr;
  });
}

void Exprs::walk(ExprRef expr, llvm::function_ref<void(ExprRef)> visit) {
  DenseSet<ExprRef> seen;
  std::function<void(ExprRef)> go = [&](ExprRef e) {
    if (!seen.insert(e).second)
      return;
    for (ExprRef operand : e->operands)
      go(operand);
    visit(e);
  };
  go(expr);
}

// ---- Classification
// -------------------------------------------------------------------------

std::optional<int64_t> Exprs::constantInt(ExprRef expr) {
  if (expr->kind == ExprKind::Constant)
    if (auto value = dyn_cast<IntegerAttr>(expr->attr))
      return value.getValue().getBitWidth() == 1
                 ? int64_t(value.getValue().getZExtValue())
                 : value.getInt();
  return std::nullopt;
}
bool Exprs::isConstantInt(ExprRef expr, int64_t value) {
  return constantInt(expr) == value;
}

std::optional<double> Exprs::constantFloat(ExprRef expr) {
  if (expr->kind == ExprKind::Constant)
    if (auto value = dyn_cast<FloatAttr>(expr->attr))
      return value.getValueAsDouble();
  return std::nullopt;
}
bool Exprs::isMinusInfinity(ExprRef expr) {
  auto value = constantFloat(stripExtension(expr));
  return value && *value == -std::numeric_limits<double>::infinity();
}

ExprRef Exprs::stripExtension(ExprRef expr) {
  while (expr->isOp("arith.extf") || expr->isOp("arith.extsi") ||
         expr->isOp("arith.index_cast"))
    expr = expr->operand(0);
  return expr;
}

// A scalar of the host: sizes, their roots, products and quotients.
static bool isPositive(Value value) {
  FloatAttr real;
  IntegerAttr integer;
  if (matchPattern(value, m_Constant(&real)))
    return real.getValueAsDouble() > 0;
  if (matchPattern(value, m_Constant(&integer)))
    return integer.getInt() > 0;
  Operation *def = value.getDefiningOp();
  StringRef name = def ? def->getName().getStringRef() : "";
  if (name == "tensor.dim" || name == "math.sqrt" || name == "math.rsqrt" ||
      name == "math.exp")
    return true;
  static constexpr StringLiteral kept[] = {
      "arith.truncf",     "arith.extf", "arith.sitofp",
      "arith.index_cast", "arith.mulf", "arith.divf",
      "arith.addf",       "arith.muli", "arith.addi"};
  return llvm::is_contained(kept, name) &&
         llvm::all_of(def->getOperands(),
                      [](Value operand) { return isPositive(operand); });
}

bool Exprs::isPositive(ExprRef expr) {
  if (expr->kind == ExprKind::Scalar)
    return heed::isPositive(expr->value);
  if (auto value = constantFloat(expr))
    return *value > 0;
  if (auto value = constantInt(expr))
    return *value > 0;
  if (expr->kind == ExprKind::Read) {
    ExprRef expanded = expand(expr);
    return expanded && expanded->kind != ExprKind::Read && isPositive(expanded);
  }
  if (expr->isOp("math.exp") || expr->isOp("math.exp2") ||
      expr->isOp("math.sqrt") || expr->isOp("math.rsqrt"))
    return true;
  if (expr->isOp("arith.extf") || expr->isOp("arith.truncf") ||
      expr->isOp("arith.sitofp") || expr->isOp("arith.index_cast"))
    return isPositive(expr->operand(0));
  if (expr->isOp("arith.mulf") || expr->isOp("arith.divf") ||
      expr->isOp("arith.addf"))
    return isPositive(expr->operand(0)) && isPositive(expr->operand(1));
  return false;
}

AffineExpr Exprs::toAffine(ExprRef expr,
                           const DenseMap<unsigned, unsigned> &dims,
                           SmallVectorImpl<Value> &symbols) {
  expr = stripExtension(expr);
  if (!expr->type.isIntOrIndex() || expr->type.isInteger(1))
    return {};
  if (auto value = constantInt(expr))
    return getAffineConstantExpr(*value, context);
  if (expr->kind == ExprKind::Var) {
    auto found = dims.find(expr->number);
    return found == dims.end() ? AffineExpr()
                               : getAffineDimExpr(found->second, context);
  }
  if (expr->kind == ExprKind::Scalar) {
    Value value = expr->value;
    if (!value.getType().isIndex())
      return {}; // an integer of another width would need a cast outside
    auto found = llvm::find(symbols, value);
    unsigned position = found - symbols.begin();
    if (found == symbols.end())
      symbols.push_back(value);
    return getAffineSymbolExpr(position, context);
  }
  if (expr->kind != ExprKind::Op || expr->operands.size() != 2)
    return {};
  AffineExpr a = toAffine(expr->operand(0), dims, symbols);
  AffineExpr b = a ? toAffine(expr->operand(1), dims, symbols) : AffineExpr();
  if (!a || !b)
    return {};
  if (expr->isOp("arith.addi"))
    return a + b;
  if (expr->isOp("arith.subi"))
    return a - b;
  // What stands beside a product or below a division must not hold a dim: that
  // is where semi-affine ends.
  if (expr->isOp("arith.muli") &&
      (a.isSymbolicOrConstant() || b.isSymbolicOrConstant()))
    return a.isSymbolicOrConstant() ? b * a : a * b;
  if (expr->isOp("arith.floordivsi") && b.isSymbolicOrConstant())
    return a.floorDiv(b);
  return {};
}

ExprRef Exprs::byOffset(ExprRef expr, unsigned i, unsigned j, unsigned &offset,
                        ExprRef &shift) {
  ExprRef queries = extent(i), keys = extent(j);
  Type index = IndexType::get(context);
  shift = op("arith.subi", index, {queries, this->index(1)});
  // Neither queries nor keys: no offset, not -1 of them.
  offset =
      freshVar(op("arith.maxsi", index,
                  {op("arith.addi", index, {shift, keys}), this->index(0)}));
  ExprRef difference = op("arith.subi", index, {var(offset), shift}); // j - i
  DenseMap<unsigned, unsigned> dims{{i, 0}, {j, 1}};
  AffineExpr d0 = getAffineDimExpr(0, context),
             d1 = getAffineDimExpr(1, context);
  ExprRef table = replaceOutermost(expr, [&](ExprRef inner) -> ExprRef {
    if (!inner->uses(i) || !inner->uses(j) || inner->kind != ExprKind::Op)
      return nullptr;
    SmallVector<Value> scalars;
    AffineExpr affine = toAffine(inner, dims, scalars);
    if (!affine)
      return nullptr;
    for (int sign : {1, -1}) {
      AffineExpr rest =
          simplifyAffineExpr(affine - (d1 - d0) * sign, 2, scalars.size());
      if (!rest.isSymbolicOrConstant())
        continue;
      SmallVector<ExprRef> symbolExprs;
      for (Value s : scalars)
        symbolExprs.push_back(scalar(s));
      ExprRef constant = fromAffine(rest, {}, symbolExprs);
      ExprRef moved = op(sign == 1 ? "arith.addi" : "arith.subi", index,
                         {constant, difference});
      return op("arith.index_cast", inner->type, {moved});
    }
    return nullptr;
  });
  return table->uses(i) || table->uses(j) || !table->uses(offset) ? nullptr
                                                                  : table;
}

// ---- Printing
// -------------------------------------------------------------------------------

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
    expr->value.printAsOperand(os, OpPrintingFlags());
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
