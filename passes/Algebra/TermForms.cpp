//===- TermForms.cpp - one node for a sum of products ---------------------===//
//
// Bound variables are numbered in an order that their names do not change, so
// that equal terms are one node.
#include "passes/Algebra/NormalForm.h"
#include "support/Format.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heed {

/// A hash of \p e that does not depend on how variables are called but for
/// \p marked.
static llvm::hash_code shapeOf(ExprRef e, unsigned marked,
                               DenseMap<ExprRef, llvm::hash_code> &known) {
  if (auto found = known.find(e); found != known.end())
    return found->second;
  // Nothing of addresses: the order is the same in every run.
  llvm::hash_code hash =
      llvm::hash_combine(unsigned(e->kind), e->operands.size(),
                         e->name ? e->name->getStringRef() : llvm::StringRef());
  if (e->kind == ExprKind::Var)
    hash = llvm::hash_combine(hash, e->number == marked);
  // The order of operands may hang on names: their sum does not.
  size_t sum = 0, ordered = 0;
  bool inOrder = e->kind == ExprKind::Read || e->operands.size() < 3;
  for (ExprRef operand : e->operands) {
    size_t h = shapeOf(operand, marked, known);
    sum += h;
    ordered = llvm::hash_combine(ordered, h);
  }
  hash = llvm::hash_combine(hash, inOrder && e->kind == ExprKind::Read ? ordered
                                                                       : sum);
  return known[e] = hash;
}

SmallVector<unsigned> NormalForm::binderOrder(const Term &term) {
  SmallVector<std::pair<size_t, unsigned>> keys;
  for (unsigned v : term.sums) {
    DenseMap<ExprRef, llvm::hash_code> known;
    size_t key = 0;
    for (ExprRef guard : term.guards)
      key += shapeOf(guard, v, known);
    for (const Power &factor : term.factors)
      key += llvm::hash_combine(shapeOf(factor.atom, v, known), factor.power);
    Terms extent = terms(exprs.extent(v));
    key = llvm::hash_combine(key, reify(extent)->id);
    keys.emplace_back(key, v);
  }
  llvm::sort(keys);
  SmallVector<unsigned> order;
  for (auto [key, v] : keys)
    order.push_back(v);
  return order;
}

/// A reduction over \p vars in this order, of what \p body makes of their new
/// names.
ExprRef NormalForm::bind(
    StringRef combiner, ArrayRef<unsigned> vars,
    llvm::function_ref<ExprRef(const DenseMap<unsigned, ExprRef> &)> body,
    unsigned depth) {
  DenseMap<unsigned, ExprRef> to;
  SmallVector<unsigned> binders;
  for (auto [k, v] : llvm::enumerate(vars)) {
    unsigned binder = (depth + 1) * 64 + k;
    binders.push_back(binder);
    to[v] = exprs.var(binder);
    exprs.setExtent(binder, reify(terms(exprs.extent(v))));
  }
  return exprs.reduce(OperationName(combiner, exprs.context), binders,
                      body(to));
}

ExprRef NormalForm::reify(const Term &term) {
  auto product = [&](const DenseMap<unsigned, ExprRef> &to) {
    SmallVector<ExprRef> operands;
    for (ExprRef guard : term.guards)
      operands.push_back(
          node("algebra.when", truth(), {exprs.substitute(guard, to)}));
    for (const Power &factor : term.factors) {
      ExprRef atom = exprs.substitute(factor.atom, to);
      operands.push_back(factor.power == 1
                             ? atom
                             : node("algebra.power", real(), {atom},
                                    format("{}", factor.power)));
    }
    return operands.size() == 1 && term.guards.empty()
               ? operands[0]
               : node("algebra.product", real(), operands);
  };
  if (term.sums.empty())
    return product(DenseMap<unsigned, ExprRef>());
  unsigned depth = 0;
  for (ExprRef guard : term.guards)
    depth = std::max(depth, guard->depth);
  for (const Power &factor : term.factors)
    depth = std::max(depth, factor.atom->depth);
  // Variables that look alike are tried in every order.
  SmallVector<unsigned> order = binderOrder(term);
  ExprRef best = bind("arith.addf", order, product, depth);
  if (order.size() > 1 && order.size() <= 4) {
    SmallVector<unsigned> other = order;
    llvm::sort(other);
    do {
      ExprRef next = bind("arith.addf", other, product, depth);
      if (next->id < best->id)
        best = next;
    } while (std::next_permutation(other.begin(), other.end()));
  }
  return best;
}

ExprRef NormalForm::reify(const Terms &a) {
  ExprRef sum = nullptr;
  Type type = a.isReal ? real() : index();
  if (a.isConstant() && a.present.empty()) {
    Fraction value = presburger::reduce(a.constant());
    if (!a.isReal && value.den == 1)
      return exprs.index(int64_t(value.num));
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return node("algebra.number", type, {}, text);
  }
  SmallVector<ExprRef> terms;
  for (const Term &term : a.terms) {
    ExprRef form = reify(term);
    std::string text;
    llvm::raw_string_ostream(text) << presburger::reduce(term.coefficient);
    bool isOne = term.coefficient.num == term.coefficient.den;
    terms.push_back(isOne && !term.isConstant()
                        ? form
                        : node("algebra.scaled", type, {form}, text));
  }
  sum = terms.size() == 1 ? terms[0] : node("algebra.sum", type, terms);
  if (a.present.empty())
    return sum;
  SmallVector<ExprRef> operands{
      node("algebra.present", truth(), {both(a.present)}), sum};
  return node("algebra.masked", type, operands);
}

} // namespace heed
