//===- ByteCount.cpp - sizes of buffers in a model's dims -----------------===//
#include "passes/ByteCount.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;

namespace heed {
namespace {

/// An extent as a text: the name of an argument's dim, or what is computed of
/// such names; "?" for anything else.
std::string name(Value extent) {
  APInt value;
  if (matchPattern(extent, m_ConstantInt(&value)))
    return std::to_string(value.getSExtValue());
  Operation *def = extent.getDefiningOp();
  if (auto dim = dyn_cast_or_null<memref::DimOp>(def)) {
    auto argument = dyn_cast<BlockArgument>(dim.getSource());
    auto function =
        argument
            ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
            : FunctionOpInterface();
    auto names = function ? function.getArgAttrOfType<ArrayAttr>(
                                argument.getArgNumber(), "attn.dims")
                          : ArrayAttr();
    auto axis = dim.getConstantIndex();
    if (names && axis && *axis < int64_t(names.size()))
      return cast<StringAttr>(names[*axis]).getValue().str();
    return "?";
  }
  StringRef sign;
  if (isa_and_nonnull<arith::AddIOp>(def))
    sign = " + ";
  else if (isa_and_nonnull<arith::SubIOp>(def))
    sign = " - ";
  else if (isa_and_nonnull<arith::MulIOp>(def))
    sign = "*";
  else if (isa_and_nonnull<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(
               def))
    sign = "//";
  else
    return "?";
  return ("(" + name(def->getOperand(0)) + sign + name(def->getOperand(1)) +
          ")")
      .str();
}

void factors(Value extent, int64_t &coefficient,
             std::vector<std::string> &names) {
  APInt value;
  if (matchPattern(extent, m_ConstantInt(&value))) {
    coefficient *= value.getSExtValue();
  } else if (auto product = extent.getDefiningOp<arith::MulIOp>()) {
    factors(product.getLhs(), coefficient, names);
    factors(product.getRhs(), coefficient, names);
  } else {
    names.push_back(name(extent));
  }
}

} // namespace

ByteCount::ByteCount(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t extent : type.getShape())
    if (!ShapedType::isDynamic(extent))
      bytes *= extent;
  std::vector<std::string> names;
  for (Value extent : alloc.getDynamicSizes())
    factors(extent, bytes, names);
  llvm::sort(names);
  parts[names] = bytes;
}

ByteCount &ByteCount::operator+=(const ByteCount &other) {
  for (auto &[names, bytes] : other.parts)
    parts[names] += bytes;
  return *this;
}

bool ByteCount::operator<(const ByteCount &other) const {
  auto value = [](const ByteCount &count) {
    double total = 0;
    for (auto &[names, bytes] : count.parts)
      total += double(bytes) * std::pow(1000.0, double(names.size()));
    return total;
  };
  return value(*this) < value(other);
}

std::string ByteCount::str() const {
  if (parts.empty())
    return "0";
  std::string text;
  for (auto &[names, bytes] : parts) {
    if (!text.empty())
      text += " + ";
    text += std::to_string(bytes);
    for (const std::string &each : names)
      text += "*" + each;
  }
  return text;
}

} // namespace heed
