//===- TensorExprRewrite.cpp - expressions rebuilt over other operands ----===//
#include "passes/Algebra/TensorExpr.h"

using namespace mlir;

namespace heed {

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

} // namespace heed
