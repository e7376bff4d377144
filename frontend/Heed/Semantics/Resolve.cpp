//===- Resolve.cpp - Expressions as typed nodes ---------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The second walk over an equation: every decision is taken and lies in the
// nodes. What happens before a node is evaluated (a check, a tensor of its own)
// is collected while it is made.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

Node *Analysis::newNode(Node::Kind kind, Ty ty, Range place,
                        ArrayRef<const Node *> operands) {
  Node &node = entry.nodes.emplace_back();
  node.kind = kind;
  node.ty = ty;
  node.place = place;
  node.operands.assign(operands.begin(), operands.end());
  return &node;
}

Node *Analysis::collecting(llvm::function_ref<Node *()> make) {
  Steps steps;
  llvm::SaveAndRestore into(sink, &steps);
  Node *node = make();
  if (node && !steps.empty())
    node->before.insert(node->before.begin(),
                        std::make_move_iterator(steps.begin()),
                        std::make_move_iterator(steps.end()));
  return node;
}

Node *Analysis::resolve(Body &body, const Expr &expr, const Scope &scope,
                        Equation &eq) {
  return collecting([&]() -> Node * {
    const Info &i = info(expr, scope, eq);
    if (i.fixed)
      return fixedNode(*i.fixed, expr.range);
    if (body.f64 || !i.pure || !i.hasReal)
      return resolveNode(body, expr, scope, eq);
    if (isReal(i.ty))
      return resolveTable(body, expr, scope, eq);
    // A decision on reals of indices alone: exact in f64, where it stands.
    llvm::SaveAndRestore exact(body.f64, true);
    Node *inner = resolveNode(body, expr, scope, eq);
    if (!inner)
      return nullptr;
    Node *node = newNode(Node::InF64, inner->ty, expr.range, inner);
    node->absent = inner->absent;
    return node;
  });
}

Node *Analysis::fixedNode(const Binding &binding, Range place) {
  switch (binding.kind) {
  case Binding::Bool: {
    Node *node = newNode(Node::Bool, Ty::Bool, place);
    node->flag = binding.flag;
    return node;
  }
  case Binding::Int: {
    Node *node = newNode(Node::Int, Ty::AnyInt, place);
    node->size = useOf(sizes, binding.size);
    return node;
  }
  case Binding::Real: {
    Node *node = newNode(Node::Real, Ty::AnyReal, place);
    node->real = binding.real;
    return node;
  }
  default:
    error(place, format("expected a number, found {}", kindOf(binding)));
    return nullptr;
  }
}

Node *Analysis::indexNode(const Idx *idx, Range place, Ty ty) {
  Node *node = newNode(Node::Index, ty, place);
  node->idx = idx;
  return node;
}

Node *Analysis::elementNode(const TensorVal &tensor, ArrayRef<Idx *> axes,
                            Range place) {
  Node *node = newNode(Node::Element, tensor.elem, place);
  node->tensor = tensor;
  node->axes.assign(axes.begin(), axes.end());
  node->absent = tensor.live;
  return node;
}

Node *Analysis::resolveNode(Body &body, const Expr &expr, const Scope &scope,
                            Equation &eq) {
  switch (expr.kind) {
  case ExprKind::Name: {
    auto &name = cast<NameExpr>(expr);
    if (auto it = scope.indices.find(name.name); it != scope.indices.end())
      return indexNode(it->second, expr.range);
    return resolveBinding(body, *lookup(*scope.env, name.name), expr, eq);
  }
  case ExprKind::Read:
    return resolveRead(body, cast<ReadExpr>(expr), scope, eq);
  case ExprKind::Paren:
    return resolve(body, *cast<ParenExpr>(expr).inner, scope, eq);
  case ExprKind::Negate: {
    Node *a = resolve(body, *cast<NegateExpr>(expr).operand, scope, eq);
    if (!a)
      return nullptr;
    Node *node = newNode(Node::Negate, a->ty, expr.range, a);
    node->absent = a->absent;
    return node;
  }
  case ExprKind::Not: {
    Node *a = resolve(body, *cast<NotExpr>(expr).operand, scope, eq);
    return a ? newNode(Node::Not, Ty::Bool, expr.range, a) : nullptr;
  }
  case ExprKind::Binary:
    return resolveBinary(body, cast<BinaryExpr>(expr), scope, eq);
  case ExprKind::Compare:
    return resolveCompare(body, cast<CompareExpr>(expr), scope, eq);
  case ExprKind::Logic:
    return resolveLogic(body, cast<LogicExpr>(expr), scope, eq);
  case ExprKind::If:
    return resolveIf(body, cast<IfExpr>(expr), scope, eq);
  case ExprKind::Call:
    return resolveCall(body, cast<CallExpr>(expr), scope, eq);
  case ExprKind::Reduce:
    return resolveReduced(body, cast<ReduceExpr>(expr), scope, eq);
  case ExprKind::Softmax:
    return resolveNestedSoftmax(body, cast<SoftmaxExpr>(expr), scope, eq);
  default:
    return nullptr;
  }
}

Node *Analysis::resolveBinding(Body &body, const Binding &binding,
                               const Expr &expr, Equation &eq) {
  switch (binding.kind) {
  case Binding::Thunk:
    return resolve(body, *binding.thunk->expr, *binding.thunk->scope, eq);
  case Binding::Scalar: {
    Node *node = newNode(Node::Scalar, binding.tensor.elem, expr.range);
    node->tensor = binding.tensor;
    return node;
  }
  case Binding::Tensor:
  case Binding::Table:
  case Binding::Collection: {
    std::optional<TensorVal> tensor;
    if (binding.kind == Binding::Table)
      tensor = tableTensor(binding.table, body.f64, expr.range);
    else
      tensor = tensorOf(binding, expr.range);
    if (!tensor)
      return nullptr;
    return elementNode(
        *tensor, ArrayRef<Idx *>(eq.whole).take_front(tensor->shape.size()),
        expr.range);
  }
  default:
    return fixedNode(binding, expr.range);
  }
}

static bool isTensor(const Expr &part, const Scope &) {
  return isa<ReadExpr, ReduceExpr, SoftmaxExpr>(part);
}

static bool isSumOrProduct(BinaryOp op) {
  return op == BinaryOp::Add || op == BinaryOp::Sub || op == BinaryOp::Mul ||
         op == BinaryOp::Div;
}

/// A real that depends on indices alone, in a body that computes in f32: an
/// element of a table that is computed in f64.
Node *Analysis::resolveTable(Body &body, const Expr &expr, const Scope &scope,
                             Equation &eq) {
  const Info &i = info(expr, scope, eq);
  if (isa<ParenExpr>(expr))
    return resolve(body, *cast<ParenExpr>(expr).inner, scope, eq);
  // A table of the text is one already.
  if (isa<ReadExpr>(expr))
    return resolveNode(body, expr, scope, eq);
  if (auto *name = dyn_cast<NameExpr>(&expr))
    if (auto binding = lookup(*scope.env, name->name);
        binding && binding->kind == Binding::Thunk)
      return resolve(body, *binding->thunk->expr, *binding->thunk->scope, eq);
  // A sum or product of parts over fewer indices each stays one: a table of
  // slopes times a distance, not a table of H×N×M biases.
  if (i.used.size() >= 2 && !i.whole) {
    if (auto *binary = dyn_cast<BinaryExpr>(&expr);
        binary && isSumOrProduct(binary->op)) {
      auto fewer = [&](const Expr &part) {
        const Info &p = info(part, scope, eq);
        return p.used.size() < i.used.size() || !p.hasReal;
      };
      if (fewer(*binary->lhs) && fewer(*binary->rhs))
        return resolveBinary(body, *binary, scope, eq);
    }
    if (isa<NegateExpr>(expr))
      return resolveNode(body, expr, scope, eq);
  }
  SmallVector<Idx *, 4> used(i.used);
  if (i.whole)
    llvm::append_range(used, eq.whole);
  size_t depth = eq.guards.size();
  llvm::scope_exit leave([&] { eq.guards.resize(depth); });
  Hoisted hoisted = hoist({&expr}, scope, eq, used, {});
  auto fill = [&](Body &inner) -> Node * {
    auto value = [&] { return resolveNode(inner, expr, scope, eq); };
    if (!needsGuard(expr, scope, eq))
      return value();
    return underGuards(inner, eq, hoisted.firstGuard, i.ty, expr.range, value,
                       newNode(Node::Real, Ty::AnyReal, expr.range));
  };
  // Before the body stand scalars alone: what is read or reduced is a tensor.
  bool ofTensors = anyPart(expr, scope, eq, isTensor);
  if (hoisted.axes.empty() && !ofTensors) {
    llvm::SaveAndRestore run(running, Equation::Loops());
    Body host{Body::Host, {}, true};
    Node *node = collecting([&] { return fill(host); });
    return node ? newNode(Node::Host, i.ty, expr.range, node) : nullptr;
  }
  Equation::Place key{{&expr, scope.env.get()}, hoisted.guards};
  auto it = eq.tables.find(key);
  if (it == eq.tables.end()) {
    auto table = elementwise(hoisted.axes, Ty::F32, expr.range, true, fill);
    if (!table)
      return nullptr;
    it = eq.tables.emplace(key, std::make_pair(*table, hoisted.axes)).first;
  }
  Node *node = elementNode(it->second.first, it->second.second, expr.range);
  node->ty = i.ty;
  return node;
}

Node *Analysis::resolveCall(Body &body, const CallExpr &expr,
                            const Scope &scope, Equation &eq) {
  if (auto it = eq.calls.find({&expr, scope.env.get()}); it != eq.calls.end())
    return resolveBinding(body, it->second, expr, eq);
  SmallVector<const Node *, 3> args;
  for (const ExprPtr &arg : expr.args) {
    args.push_back(resolve(body, *arg, scope, eq));
    if (!args.back())
      return nullptr;
  }
  Ty ty = info(expr, scope, eq).ty;
  if (elementType(expr.callee.text)) {
    Node *node = newNode(Node::Cast, ty, expr.range, args);
    node->absent = ty != Ty::Bool && args[0]->absent;
    return node;
  }
  Node *node = newNode(Node::Call, ty, expr.range, args);
  node->builtin = findBuiltin(expr.callee.text);
  return node;
}
