//===- MaskText.cpp - a mask's bounds as text -----------------------------===//
#include "passes/Masks/MaskBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

std::string MaskBounds::text(ExprRef e) const {
  auto call = [&](StringRef name) {
    std::string s = name.str() + "(";
    llvm::raw_string_ostream os(s);
    llvm::interleaveComma(e->operands, os,
                          [&](ExprRef operand) { os << text(operand); });
    return s + ")";
  };
  auto infix = [&](StringRef sign) {
    return "(" + text(e->operand(0)) + " " + sign.str() + " " +
           text(e->operand(1)) + ")";
  };
  if (auto value = Exprs::constantInt(e))
    return e->type.isInteger(1) ? (*value ? "True" : "False")
                                : std::to_string(*value);
  if (e->kind == ExprKind::Var) {
    for (auto [v, name] :
         {std::pair(first, "i0"), std::pair(last, "i1"),
          std::pair(blockFirst, "j0"), std::pair(blockLast, "j1"),
          std::pair(queries, "N"), std::pair(keys, "M"), std::pair(query, "i"),
          std::pair(key, "j")})
      if (e->number == v)
        return name;
    for (auto [k, v] : llvm::enumerate(batch))
      if (e->number == v)
        return "b" + std::to_string(k);
    for (const MaskTable &table : tables) {
      bool truth = table.value->type.isInteger(1);
      std::string value = text(table.value);
      std::string over = table.ofKeys ? " for j in block" : " for i in tile";
      if (e->number == table.least)
        return (truth ? "all(" : "min(") + value + over + ")";
      if (e->number == table.greatest)
        return (truth ? "any(" : "max(") + value + over + ")";
      if (e->number == table.odd)
        return "any(" + value + " != " + value + over + ")";
    }
  }
  auto nameOf = [&](Value value) -> std::string {
    auto attrOf = [](Value argument, StringRef name) -> Attribute {
      auto arg = dyn_cast<BlockArgument>(argument);
      auto function =
          arg ? dyn_cast_or_null<func::FuncOp>(arg.getOwner()->getParentOp())
              : nullptr;
      return function ? function.getArgAttr(arg.getArgNumber(), name)
                      : Attribute();
    };
    if (auto name = dyn_cast_or_null<StringAttr>(attrOf(value, "attn.name")))
      return name.str();
    if (auto dim = value.getDefiningOp<tensor::DimOp>())
      if (auto names =
              dyn_cast_or_null<ArrayAttr>(attrOf(dim.getSource(), "attn.dims")))
        if (auto k = dim.getConstantIndex(); k && *k < int64_t(names.size()))
          if (auto name = dyn_cast<StringAttr>(names[*k]))
            return name.str();
    return "value";
  };
  if (e->kind == ExprKind::Scalar)
    return nameOf(e->value);
  if (e->kind == ExprKind::Read) {
    std::string s = nameOf(e->value) + "[";
    llvm::raw_string_ostream os(s);
    llvm::interleaveComma(e->operands, os,
                          [&](ExprRef operand) { os << text(operand); });
    return s + "]";
  }
  if (e->kind == ExprKind::If || e->isOp("arith.select"))
    return "(" + text(e->operand(1)) + " if " + text(e->operand(0)) + " else " +
           text(e->operand(2)) + ")";
  if (Exprs::stripExtension(e) != e)
    return text(Exprs::stripExtension(e));
  if (e->isOp("arith.addi"))
    return infix("+");
  if (e->isOp("arith.subi"))
    return infix("-");
  if (e->isOp("arith.muli"))
    return infix("*");
  if (e->isOp("arith.floordivsi"))
    return infix("//");
  if (e->isOp("arith.andi"))
    return infix("and");
  if (e->isOp("arith.ori"))
    return infix("or");
  if (e->isOp("arith.xori"))
    return infix("!=");
  if (e->isOp("arith.cmpi")) {
    static constexpr StringLiteral signs[] = {"==", "!=", "<",  "<=", ">",
                                              ">=", "<",  "<=", ">",  ">="};
    return infix(
        signs[cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
                  .getInt()]);
  }
  if (e->isOp("arith.cmpf")) {
    // Ordered and unordered comparisons of one sign read alike.
    static constexpr StringLiteral signs[] = {
        "", "==", ">", ">=", "<", "<=", "!=", "",
        "", "==", ">", ">=", "<", "<=", "!=", ""};
    auto predicate =
        cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
            .getInt();
    if (arith::CmpFPredicate(predicate) == arith::CmpFPredicate::UNO)
      return "isnan(" + text(e->operand(0)) +
             (e->operand(0) == e->operand(1) ? ""
                                             : " + " + text(e->operand(1))) +
             ")";
    if (!signs[predicate].empty())
      return infix(signs[predicate]);
  }
  if (e->isOp("arith.addf"))
    return infix("+");
  if (e->isOp("arith.subf"))
    return infix("-");
  if (auto value = Exprs::constantFloat(e)) {
    std::string s;
    llvm::raw_string_ostream(s) << *value;
    return s;
  }
  if (e->isOp("arith.sitofp"))
    return text(e->operand(0));
  if (e->isOp("arith.minsi"))
    return call("min");
  if (e->isOp("arith.maxsi"))
    return call("max");
  if (e->isOp("math.absi"))
    return call("abs");
  return e->kind == ExprKind::Op ? call(e->name->stripDialect()) : "?";
}

} // namespace heed
