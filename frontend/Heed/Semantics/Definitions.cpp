//===- Definitions.cpp - Tensors of their own -----------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps that define a tensor, and the guards around what defines it.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;

const Tensor *Analysis::newTensor() { return &entry.tensors.emplace_back(); }

Idx &Analysis::newIdx(Equation &eq) {
  eq.pool.push_back(&entry.indices.emplace_back());
  eq.pool.back()->number = entry.indices.size();
  return *eq.pool.back();
}

Shape Analysis::shapeOf(ArrayRef<Idx *> axes) {
  Shape shape;
  for (Idx *idx : axes)
    shape.push_back(*idx->extent);
  return shape;
}

SizeUses Analysis::uses(ArrayRef<Size> all) {
  SizeUses result;
  for (const Size &size : all)
    result.push_back(useOf(sizes, size));
  return result;
}

void Analysis::evaluate(const Size &size, Range place) {
  sink->push_back(Evaluate{useOf(sizes, size), place});
}

Equation::Loops Analysis::loopsOf(ArrayRef<Idx *> a, ArrayRef<Idx *> b) {
  Equation::Loops all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

const Node *Analysis::bodyNode(ArrayRef<Idx *> axes, ArrayRef<Idx *> ids,
                               bool f64,
                               llvm::function_ref<Node *(Body &)> fill) {
  Body body{Body::Generic, {}, f64};
  body.loops.append(axes.begin(), axes.end());
  body.loops.append(ids.begin(), ids.end());
  llvm::SaveAndRestore run(running, loopsOf(axes, ids));
  return collecting([&] { return fill(body); });
}

std::optional<TensorVal>
Analysis::elementwise(ArrayRef<Idx *> axes, Ty elem, Range place, bool f64,
                      llvm::function_ref<Node *(Body &)> fill, bool withLive) {
  Elementwise step;
  step.axes.assign(axes.begin(), axes.end());
  Shape shape = shapeOf(axes);
  step.shape = uses(shape);
  step.elem = elem;
  step.f64 = f64;
  step.place = place;
  step.node = bodyNode(axes, {}, f64, fill);
  if (!step.node)
    return std::nullopt;
  step.result = newTensor();
  if (withLive && step.node->absent)
    step.live = newTensor();
  TensorVal tensor{step.result, elem, shape, step.live};
  sink->push_back(std::move(step));
  return tensor;
}

/// The guards from `first` on that `body` does not enforce yet, around what
/// `then` resolves.
bool Analysis::underGuards(Body &body, Equation &eq, size_t first,
                           EnforcedGuards &out,
                           llvm::function_ref<bool()> then) {
  while (first < eq.guards.size() && eq.guards[first].in == &body)
    ++first;
  if (first >= eq.guards.size())
    return then();
  Guard guard = eq.guards[first];
  EnforcedGuard enforced;
  enforced.positive = guard.positive;
  if (guard.condition) {
    llvm::SaveAndRestore exact(body.f64, false);
    // A condition stands under the guards before it alone: under its own, the
    // reads in it would ask for the condition again, without an end.
    SmallVector<Guard, 4> inner(llvm::drop_begin(eq.guards, first));
    eq.guards.truncate(first);
    enforced.condition = resolve(body, *guard.condition, *guard.scope, eq);
    eq.guards.append(inner);
    if (!enforced.condition)
      return false;
  } else {
    enforced.loop = useOf(sizes, *guard.loop->extent);
    enforced.loopPlace = guard.loop->place;
  }
  out.push_back(enforced);
  const Body *before = std::exchange(eq.guards[first].in, &body);
  bool ok = underGuards(body, eq, first + 1, out, then);
  eq.guards[first].in = before;
  return ok;
}

Node *Analysis::underGuards(Body &body, Equation &eq, size_t first, Ty ty,
                            Range place, llvm::function_ref<Node *()> then,
                            const Node *otherwise) {
  Node *node = newNode(Node::Guarded, ty, place);
  Node *value = nullptr;
  bool ok = underGuards(body, eq, first, node->guards, [&] {
    value = collecting(then);
    return bool(value);
  });
  if (!ok)
    return nullptr;
  node->operands = {value, otherwise};
  return node;
}
