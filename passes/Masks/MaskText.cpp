//===- MaskText.cpp - a mask's bounds as text -----------------------------===//
#include "passes/Masks/MaskBounds.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace heed {

/// The name that the model gives to a scalar, "value" for one without.
static std::string nameOf(Value value) {
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
}

std::string MaskBounds::textOfVariable(ExprRef e) const {
  for (auto [v, name] :
       {std::pair(first, "i0"), std::pair(last, "i1"),
        std::pair(blockFirst, "j0"), std::pair(blockLast, "j1"),
        std::pair(queries, "N"), std::pair(keys, "M"), std::pair(query, "i"),
        std::pair(key, "j")})
    if (e->number == v)
      return name;
  for (auto [k, v] : llvm::enumerate(batch))
    if (e->number == v)
      return format("b{}", k);
  for (const MaskTable &table : tables) {
    bool truth = table.value->type.isInteger(1);
    std::string value = text(table.value);
    const char *over = table.ofKeys ? "j in block" : "i in tile";
    if (e->number == table.least)
      return format("{}({} for {})", truth ? "all" : "min", value, over);
    if (e->number == table.greatest)
      return format("{}({} for {})", truth ? "any" : "max", value, over);
    if (e->number == table.odd)
      return format("any({0} != {0} for {1})", value, over);
  }
  return "?";
}

/// What a comparison is in a text; ordered and unordered ones of one sign read
/// alike. Empty for one that has no sign.
static StringRef signOfComparison(ExprRef e) {
  static constexpr StringLiteral integers[] = {"==", "!=", "<",  "<=", ">",
                                               ">=", "<",  "<=", ">",  ">="};
  static constexpr StringLiteral floats[] = {
      "", "==", ">", ">=", "<", "<=", "!=", "",
      "", "==", ">", ">=", "<", "<=", "!=", ""};
  auto predicate =
      cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
          .getInt();
  return e->isOp("arith.cmpi") ? integers[predicate] : floats[predicate];
}

static bool isUnordered(ExprRef e) {
  return e->isOp("arith.cmpf") &&
         cast<DictionaryAttr>(e->attr)
                 .getAs<arith::CmpFPredicateAttr>("predicate")
                 .getValue() == arith::CmpFPredicate::UNO;
}

std::string MaskBounds::textOfOp(ExprRef e) const {
  auto operands = [&] {
    return llvm::map_to_vector(e->operands,
                               [&](ExprRef operand) { return text(operand); });
  };
  if (isUnordered(e)) {
    SmallVector<std::string> names = operands();
    if (e->operand(0) == e->operand(1))
      names.pop_back();
    return format("isnan({})", fmt::join(names, " + "));
  }
  StringRef sign = e->isOp("arith.cmpi") || e->isOp("arith.cmpf")
                       ? signOfComparison(e)
                       : llvm::StringSwitch<StringRef>(e->name->getStringRef())
                             .Cases({"arith.addi", "arith.addf"}, "+")
                             .Cases({"arith.subi", "arith.subf"}, "-")
                             .Case("arith.muli", "*")
                             .Case("arith.floordivsi", "//")
                             .Case("arith.andi", "and")
                             .Case("arith.ori", "or")
                             .Case("arith.xori", "!=")
                             .Default("");
  if (!sign.empty())
    return heed::format("({} {} {})", text(e->operand(0)), sign,
                        text(e->operand(1)));
  if (e->isOp("arith.sitofp"))
    return text(e->operand(0));
  StringRef name = llvm::StringSwitch<StringRef>(e->name->getStringRef())
                       .Case("arith.minsi", "min")
                       .Case("arith.maxsi", "max")
                       .Case("math.absi", "abs")
                       .Default(e->name->stripDialect());
  return heed::format("{}({})", name, fmt::join(operands(), ", "));
}

std::string MaskBounds::text(ExprRef e) const {
  if (auto value = Exprs::constantInt(e))
    return e->type.isInteger(1) ? (*value ? "True" : "False")
                                : format("{}", *value);
  if (auto value = Exprs::constantFloat(e))
    return printed(*value);
  if (e->kind == ExprKind::Var)
    return textOfVariable(e);
  if (e->kind == ExprKind::Scalar)
    return nameOf(e->value);
  if (e->kind == ExprKind::Read)
    return format("{}[{}]", nameOf(e->value),
                  fmt::join(llvm::map_to_vector(
                                e->operands,
                                [&](ExprRef operand) { return text(operand); }),
                            ", "));
  if (e->kind == ExprKind::If || e->isOp("arith.select"))
    return format("({} if {} else {})", text(e->operand(1)),
                  text(e->operand(0)), text(e->operand(2)));
  if (Exprs::stripExtension(e) != e)
    return text(Exprs::stripExtension(e));
  return e->kind == ExprKind::Op ? textOfOp(e) : "?";
}

} // namespace heed
