//===- GatheredKeys.cpp - a gather of neighbours as a band ----------------===//
#include "passes/Raise/GatheredKeys.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <functional>

using namespace mlir;

namespace heed {

namespace {

/// u, whose values lie at first + u of an axis of \p extent elements.
struct Neighbour {
  unsigned var;
  ExprRef position = nullptr, first = nullptr;
  ExprRef extent = nullptr;
  unsigned key = 0; ///< what runs over that axis
};

class Band {
public:
  Band(OpBuilder &builder, Exprs &exprs, Operation *root)
      : builder(builder), exprs(exprs), root(root) {}
  ExprRef write(ExprRef sum);

private:
  bool findSoftmax(ExprRef body);
  bool findPositions(ExprRef body);
  bool matchPosition(Neighbour &n, ExprRef index);
  bool isLegalWhereLive(ExprRef body);
  void addConjuncts(ExprRef c, SmallVectorImpl<ExprRef> &list);
  bool usesNeighbours(ExprRef e) { return e->usesAny(vars); }
  bool alwaysHolds(ExprRef c);
  ExprRef conjunction(ExprRef c);
  ExprRef inBand();
  bool isOfKeys(ExprRef read);
  ExprRef overKeys(ExprRef e);
  SmallVector<unsigned> axes();
  void writeSoftmax();

  OpBuilder &builder;
  Exprs &exprs;
  Operation *root;
  SmallVector<unsigned> vars;
  SmallVector<Neighbour, 2> neighbours;
  attn::SoftmaxOp softmax, fresh;
  ExprRef weight = nullptr;
  SmallVector<ExprRef> where; ///< conjuncts, over u
};

void Band::addConjuncts(ExprRef c, SmallVectorImpl<ExprRef> &list) {
  if (c->isOp("arith.andi")) {
    addConjuncts(c->operand(0), list);
    addConjuncts(c->operand(1), list);
  } else {
    list.push_back(c);
  }
}

/// The one softmax whose weights \p body reads, all of them, at variables
/// alone.
bool Band::findSoftmax(ExprRef body) {
  bool isOne = true;
  Exprs::walk(body, [&](ExprRef e) {
    if (e->kind != ExprKind::Read || !isa<FloatType>(e->type) ||
        !e->value.getDefiningOp<attn::SoftmaxOp>())
      return;
    isOne &= !weight;
    weight = e;
  });
  if (!weight || !isOne)
    return false;
  softmax = weight->value.getDefiningOp<attn::SoftmaxOp>();
  llvm::SmallDenseSet<unsigned> seen;
  for (auto [axis, at] : llvm::enumerate(weight->operands))
    if (at->kind != ExprKind::Var || !seen.insert(at->number).second ||
        exprs.extent(at->number) != exprs.extentOf(softmax.getResult(), axis) ||
        llvm::is_contained(softmax.getAxes(), int64_t(axis)) !=
            llvm::is_contained(vars, at->number))
      return false;
  if (softmax.getAxes().size() != vars.size())
    return false;
  for (Operation *user : softmax->getUsers())
    if (user != root && !root->isProperAncestor(user))
      return false;
  if (softmax.getWhere().empty())
    return true;
  ExprRef c = exprs.block(softmax.getWhere().front(), weight->operands);
  if (c)
    addConjuncts(c, where);
  return c != nullptr;
}

/// index = first + u, first a function of the softmax's row?
bool Band::matchPosition(Neighbour &n, ExprRef index) {
  SmallVector<std::pair<ExprRef, bool>> work{{index, false}};
  bool found = false;
  SmallVector<ExprRef> over, under;
  while (!work.empty()) {
    auto [e, negative] = work.pop_back_val();
    if (e->kind == ExprKind::Var && e->number == n.var) {
      if (found || negative)
        return false;
      found = true;
    } else if (!e->uses(n.var)) {
      (negative ? under : over).push_back(e);
    } else if (e->isOp("arith.addi") || e->isOp("arith.subi")) {
      work.push_back({e->operand(0), negative});
      work.push_back({e->operand(1), negative != e->isOp("arith.subi")});
    } else {
      return false;
    }
  }
  if (!found || (over.empty() && under.empty()))
    return false;
  ExprRef first = over.empty() ? exprs.index(0) : over[0];
  for (ExprRef e : ArrayRef(over).drop_front(over.empty() ? 0 : 1))
    first = exprs.op("arith.addi", first->type, {first, e});
  for (ExprRef e : under)
    first = exprs.op("arith.subi", first->type, {first, e});
  bool ofRow = llvm::all_of(first->freeVars, [&](unsigned v) {
    return llvm::is_contained(weight->freeVars, v) &&
           !llvm::is_contained(vars, v);
  });
  n.position = index;
  n.first = first;
  return ofRow;
}

/// Where the values of \p body lie: one position for each u.
bool Band::findPositions(ExprRef body) {
  for (unsigned v : vars) {
    Neighbour n{v};
    bool ok = true;
    Exprs::walk(body, [&](ExprRef e) {
      if (e->kind != ExprKind::Read || e->value == softmax.getResult() ||
          e->value == softmax.getLive())
        return;
      for (auto [axis, at] : llvm::enumerate(e->operands)) {
        if (!at->uses(v) || at->kind == ExprKind::Var || at == n.position)
          continue;
        ok &= !n.position && matchPosition(n, at);
        n.extent = exprs.extentOf(e->value, axis);
      }
    });
    if (!ok || !n.position || !n.extent)
      return false;
    neighbours.push_back(n);
  }
  return true;
}

/// Whether \p body reads each position under no condition that the softmax's
/// `where` does not imply: then it lies within the axis for each u that counts.
bool Band::isLegalWhereLive(ExprRef body) {
  SmallVector<ExprRef> missing;
  for (const Neighbour &n : neighbours)
    missing.push_back(n.position);
  std::function<void(ExprRef, bool)> go = [&](ExprRef e, bool isLive) {
    if (e->kind == ExprKind::Read && isLive)
      for (auto [axis, at] : llvm::enumerate(e->operands))
        for (const Neighbour &n : neighbours)
          if (at == n.position && exprs.extentOf(e->value, axis) == n.extent)
            llvm::erase(missing, at);
    if (e->kind == ExprKind::If) {
      SmallVector<ExprRef> conjuncts;
      addConjuncts(e->operand(0), conjuncts);
      go(e->operand(1), isLive && llvm::all_of(conjuncts, [&](ExprRef c) {
                          return llvm::is_contained(where, c);
                        }));
      return;
    }
    if (e->kind != ExprKind::Reduce)
      for (ExprRef operand : e->operands)
        go(operand, isLive);
  };
  go(body, true);
  return missing.empty();
}

/// Whether \p c, over keys, says no more than their range.
bool Band::alwaysHolds(ExprRef c) {
  return llvm::any_of(neighbours, [&](const Neighbour &n) {
    ExprRef key = exprs.var(n.key);
    return c == exprs.compare(arith::CmpIPredicate::sge, key, exprs.index(0)) ||
           c == exprs.compare(arith::CmpIPredicate::sle, exprs.index(0), key) ||
           c == exprs.compare(arith::CmpIPredicate::slt, key, n.extent) ||
           c == exprs.compare(arith::CmpIPredicate::sgt, n.extent, key);
  });
}

/// \p c, over keys, without what always holds; null if nothing is left.
ExprRef Band::conjunction(ExprRef c) {
  SmallVector<ExprRef> list;
  addConjuncts(c, list);
  ExprRef result = nullptr;
  for (ExprRef part : list)
    if (!alwaysHolds(part))
      result = result ? exprs.logicalAnd(result, part) : part;
  return result;
}

/// 0 <= j - first < K for all keys.
ExprRef Band::inBand() {
  ExprRef result = nullptr;
  for (const Neighbour &n : neighbours) {
    ExprRef key = exprs.var(n.key);
    ExprRef offset = exprs.op("arith.subi", key->type, {key, n.first});
    ExprRef inside = exprs.logicalAnd(
        exprs.compare(arith::CmpIPredicate::sge, offset, exprs.index(0)),
        exprs.compare(arith::CmpIPredicate::slt, offset, exprs.extent(n.var)));
    result = result ? exprs.logicalAnd(result, inside) : inside;
  }
  return result;
}

/// Whether \p read takes what lies at positions alone: there is one at each
/// key.
bool Band::isOfKeys(ExprRef read) {
  for (unsigned axis = 0; axis < read->operands.size(); ++axis) {
    ExprRef at = read->operand(axis);
    if (usesNeighbours(at) &&
        llvm::none_of(neighbours, [&](const Neighbour &n) {
          return at == n.position &&
                 exprs.extentOf(read->value, axis) == n.extent;
        }))
      return false;
  }
  return true;
}

/// \p e over keys: what lay at first + u lies at j, and u is j - first. What is
/// read at u otherwise is read in the band alone.
ExprRef Band::overKeys(ExprRef e) {
  unsigned inside = exprs.freshVar();
  ExprRef parameter =
      exprs.parameter(inside, IntegerType::get(exprs.context, 1));
  e = exprs.rewrite(e, [&](ExprRef inner) -> ExprRef {
    if (inner->kind != ExprKind::Read || !usesNeighbours(inner) ||
        isOfKeys(inner))
      return nullptr;
    ExprRef none = isa<FloatType>(inner->type)
                       ? exprs.constant(FloatAttr::get(inner->type, 0.0))
                       : exprs.constant(IntegerAttr::get(inner->type, 0));
    return exprs.select(parameter, inner, none, /*guard=*/true);
  });
  e = exprs.rewrite(e, [&](ExprRef inner) -> ExprRef {
    for (const Neighbour &n : neighbours)
      if (inner == n.position)
        return exprs.var(n.key);
    return nullptr;
  });
  DenseMap<unsigned, ExprRef> values{{inside, inBand()}};
  for (const Neighbour &n : neighbours) {
    ExprRef key = exprs.var(n.key);
    values[n.var] = exprs.op("arith.subi", key->type, {key, n.first});
  }
  e = exprs.substitute(e, values);
  return exprs.rewrite(e, [&](ExprRef inner) -> ExprRef {
    if (inner->kind != ExprKind::If)
      return nullptr;
    ExprRef c = conjunction(inner->operand(0));
    return c == inner->operand(0) ? nullptr
           : c ? exprs.select(c, inner->operand(1), inner->operand(2), true)
               : inner->operand(1);
  });
}

/// What numbers the weights over keys.
SmallVector<unsigned> Band::axes() {
  SmallVector<unsigned> result;
  for (ExprRef at : weight->operands) {
    auto *n = llvm::find_if(
        neighbours, [&](const Neighbour &n) { return n.var == at->number; });
    result.push_back(n == neighbours.end() ? at->number : n->key);
  }
  return result;
}

/// The softmax over keys.
void Band::writeSoftmax() {
  ExprRef score = exprs.expandReads(
      exprs.read(softmax.getInput(), weight->operands), [&](ExprRef read) {
        Operation *def = read->value.getDefiningOp();
        return def && usesNeighbours(read) && Exprs::isExpressible(def) &&
               !isTable(def);
      });
  Location loc = softmax.getLoc();
  Value scores = writeTensor(builder, loc, exprs, overKeys(score), axes());
  auto shape = cast<RankedTensorType>(scores.getType()).getShape();
  fresh = attn::SoftmaxOp::create(
      builder, loc, RankedTensorType::get(shape, builder.getF32Type()),
      RankedTensorType::get(shape, builder.getI1Type()), scores,
      softmax.getSink(),
      SmallVector<int64_t>(softmax.getAxes().begin(), softmax.getAxes().end()));
  fresh.setMap(softmax.getMap());
  ExprRef condition = inBand();
  for (ExprRef c : where)
    if (ExprRef rest = conjunction(overKeys(c)))
      condition = exprs.logicalAnd(condition, rest);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&fresh.getWhere());
  ExprWriter writer(builder, loc);
  for (unsigned v : axes())
    writer.bind(v, block->addArgument(builder.getIndexType(), loc));
  attn::YieldOp::create(builder, loc, writer.write(condition));
}

ExprRef Band::write(ExprRef sum) {
  if (!sum->isSum() || !sum->type.isF32())
    return nullptr;
  ExprRef body = exprs.open(sum, vars);
  if (!findSoftmax(body) || !findPositions(body) || !isLegalWhereLive(body))
    return nullptr;
  SmallVector<unsigned> keys;
  for (Neighbour &n : neighbours)
    keys.push_back(n.key = exprs.freshVar(n.extent));
  writeSoftmax();
  SmallVector<ExprRef> at;
  for (unsigned axis : axes())
    at.push_back(exprs.var(axis));
  ExprRef live = exprs.read(fresh.getLive(), at);
  // A weight stands for itself until all else is over keys.
  unsigned parameter = exprs.freshVar(), alive = exprs.freshVar();
  body = exprs.rewrite(body, [&](ExprRef e) -> ExprRef {
    if (e == weight)
      return exprs.parameter(parameter, e->type);
    if (e->kind == ExprKind::Read && e->value == softmax.getLive())
      return exprs.parameter(alive, e->type);
    return nullptr;
  });
  body = overKeys(body);
  DenseMap<unsigned, ExprRef> back{
      {parameter, exprs.read(fresh.getResult(), at)}, {alive, live}};
  body = exprs.rewrite(body, [&](ExprRef e) -> ExprRef {
    return e->kind == ExprKind::Var ? back.lookup(e->number) : nullptr;
  });
  return exprs.reduce(
      OperationName("arith.addf", exprs.context), keys,
      exprs.select(live, body, exprs.constant(FloatAttr::get(body->type, 0.0)),
                   /*guard=*/false));
}

} // namespace

ExprRef gatherToBand(OpBuilder &builder, Exprs &exprs, Operation *root,
                     ExprRef sum) {
  return Band(builder, exprs, root).write(sum);
}

} // namespace heed
