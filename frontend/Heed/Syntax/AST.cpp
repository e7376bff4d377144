//===- AST.cpp - Spelling and walking the syntax tree ---------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AST.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace heed;
using namespace heed::ast;
using llvm::cast;
using llvm::StringRef;

std::optional<ast::ElementType> ast::elementType(StringRef name) {
  return llvm::StringSwitch<std::optional<ElementType>>(name)
      .Case("f16", ElementType::F16)
      .Case("bf16", ElementType::BF16)
      .Case("f32", ElementType::F32)
      .Case("f64", ElementType::F64)
      .Case("i8", ElementType::I8)
      .Case("u8", ElementType::U8)
      .Case("i16", ElementType::I16)
      .Case("i32", ElementType::I32)
      .Case("i64", ElementType::I64)
      .Case("bool", ElementType::Bool)
      .Default(std::nullopt);
}

StringRef ast::spelling(ElementType type) {
  static constexpr StringRef names[] = {"f16", "bf16", "f32", "f64", "i8",
                                        "u8",  "i16",  "i32", "i64", "bool"};
  return names[static_cast<unsigned>(type)];
}

ExprPtr *RecordExpr::find(StringRef name) {
  for (Entry &entry : entries)
    if (entry.path.rsplit('.').second == name)
      return &entry.value;
  return nullptr;
}

void ast::forEachChild(const ast::Expr &expr,
                       llvm::function_ref<void(const Expr &)> f) {
  auto visit = [&](const ExprPtr &child) {
    if (child)
      f(*child);
  };
  switch (expr.kind) {
  case ExprKind::Read:
    for (const Index &index : cast<ReadExpr>(expr).indices)
      visit(index.expr);
    break;
  case ExprKind::Call:
    for (const ExprPtr &arg : cast<CallExpr>(expr).args)
      visit(arg);
    for (const NamedArgument &arg : cast<CallExpr>(expr).named)
      visit(arg.value);
    break;
  case ExprKind::Paren:
    return visit(cast<ParenExpr>(expr).inner);
  case ExprKind::Negate:
    return visit(cast<NegateExpr>(expr).operand);
  case ExprKind::Not:
    return visit(cast<NotExpr>(expr).operand);
  case ExprKind::Binary:
    visit(cast<BinaryExpr>(expr).lhs);
    return visit(cast<BinaryExpr>(expr).rhs);
  case ExprKind::Compare:
    for (const ExprPtr &operand : cast<CompareExpr>(expr).operands)
      visit(operand);
    break;
  case ExprKind::Logic:
    visit(cast<LogicExpr>(expr).lhs);
    return visit(cast<LogicExpr>(expr).rhs);
  case ExprKind::If:
    visit(cast<IfExpr>(expr).condition);
    visit(cast<IfExpr>(expr).thenValue);
    return visit(cast<IfExpr>(expr).elseValue);
  case ExprKind::Reduce:
    visit(cast<ReduceExpr>(expr).where);
    return visit(cast<ReduceExpr>(expr).operand);
  case ExprKind::Softmax:
    visit(cast<SoftmaxExpr>(expr).where);
    visit(cast<SoftmaxExpr>(expr).sink);
    return visit(cast<SoftmaxExpr>(expr).operand);
  default:
    break;
  }
}

bool ast::anyName(const ast::Expr &expr,
                  llvm::function_ref<bool(StringRef)> is) {
  auto *name = llvm::dyn_cast<NameExpr>(&expr);
  bool any = name && is(name->name);
  forEachChild(expr, [&](const Expr &part) { any = any || anyName(part, is); });
  return any;
}

const Expr &ast::inParens(const Expr &expr) {
  const Expr *inner = &expr;
  while (auto *paren = llvm::dyn_cast<ParenExpr>(inner))
    inner = paren->inner.get();
  return *inner;
}
