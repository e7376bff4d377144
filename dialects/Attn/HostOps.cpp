//===- HostOps.cpp - parameters and run-time checks -----------------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/ParamNames.h"
#include "dialects/Attn/Regions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "support/Format.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed::attn;

/// Checks the places `{k}` of \p text; returns what is wrong with them, or an
/// empty string.
static std::string checkPlaces(StringRef text, size_t count) {
  for (size_t at = 0; (at = text.find_first_of("{}", at)) != StringRef::npos;) {
    size_t end = text.find('}', at);
    unsigned place;
    if (text[at] == '}' || end == StringRef::npos ||
        text.slice(at + 1, end).getAsInteger(10, place))
      return "has a brace that encloses no number";
    if (place >= count)
      return heed::format("names value {} of {}", place, count);
    at = end + 1;
  }
  return {};
}

static ParseResult parseNames(OpAsmParser &parser, ArrayAttr &names) {
  SmallVector<Attribute> list;
  do {
    std::string name; // as an attribute it would swallow the op's colon
    if (parser.parseString(&name))
      return failure();
    list.push_back(parser.getBuilder().getStringAttr(name));
  } while (succeeded(parser.parseOptionalVerticalBar()));
  names = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printNames(OpAsmPrinter &printer, Operation *, ArrayAttr names) {
  llvm::interleave(names, printer, " | ");
}

LogicalResult ParamOp::verify() {
  if (getNames().empty())
    return emitOpError("has no name, expected at least one (param.c1)");
  for (auto name : getNames().getAsValueRange<StringAttr>()) {
    if (name.empty())
      return emitOpError("has an empty name (param.c1)");
    std::string wrong = checkPlaces(name, getIndices().size());
    if (!wrong.empty())
      return emitOpError() << "name \"" << name << "\" " << wrong
                           << " (param.c2)";
  }
  Type element = cast<ShapedType>(getResult().getType()).getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16() &&
      !element.isInteger(32) && !element.isInteger(64) &&
      !element.isInteger(8) && !element.isInteger(1))
    return emitOpError() << "has elements of " << element
                         << ", expected f32, f16, bf16, i32, i64, i8 or i1 "
                            "(param.c3)";
  return success();
}

std::string heed::fillParamName(StringRef name,
                                ArrayRef<std::string> replacements) {
  std::string result;
  while (!name.empty()) {
    size_t open = name.find('{');
    result += name.substr(0, open);
    if (open == StringRef::npos)
      break;
    size_t close = name.find('}', open);
    unsigned k = 0;
    name.slice(open + 1, close).getAsInteger(10, k);
    result += replacements[k];
    name = name.substr(close + 1);
  }
  return result;
}

/// Numbers that are known are written into the names, and of equal names the
/// first one stays.
LogicalResult ParamOp::canonicalize(ParamOp op, PatternRewriter &rewriter) {
  SmallVector<Value> kept;
  SmallVector<std::string> places;
  for (auto [k, index] : llvm::enumerate(op.getIndices())) {
    std::string place = heed::format("{{{}}}", k);
    bool isUsed =
        llvm::any_of(op.getNames().getAsValueRange<StringAttr>(),
                     [&](StringRef name) { return name.contains(place); });
    std::optional<int64_t> number = getConstantIntValue(index);
    if (number && *number >= 0) {
      places.push_back(std::to_string(*number));
    } else if (isUsed) {
      auto *at = llvm::find(kept, index);
      places.push_back(heed::format("{{{}}}", at - kept.begin()));
      if (at == kept.end())
        kept.push_back(index);
    } else {
      places.emplace_back();
    }
  }
  llvm::SetVector<Attribute> names;
  for (StringRef name : op.getNames().getAsValueRange<StringAttr>())
    names.insert(rewriter.getStringAttr(heed::fillParamName(name, places)));
  if (kept.size() == op.getIndices().size() &&
      names.size() == op.getNames().size())
    return rewriter.notifyMatchFailure(op, "nothing is known of the names");
  rewriter.modifyOpInPlace(op, [&] {
    op.setNamesAttr(rewriter.getArrayAttr(names.getArrayRef()));
    op.getIndicesMutable().assign(kept);
  });
  return success();
}

LogicalResult KeepOp::verify() {
  if (!cast<ShapedType>(getValue().getType()).hasStaticShape())
    return emitOpError("expected a static shape, found ")
           << getValue().getType() << " (keep.c1)";
  return success();
}

LogicalResult KeptOp::verify() {
  if (!cast<ShapedType>(getResult().getType()).hasStaticShape())
    return emitOpError("expected a static shape, found ")
           << getResult().getType() << " (kept.c1)";
  return success();
}

LogicalResult SlotOp::verify() {
  auto type = dyn_cast<MemRefType>(getMemory().getType());
  if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
    return emitOpError("expected dense memory of a static shape, found ")
           << getMemory().getType() << " (slot.c1)";
  return success();
}

LogicalResult RequireOp::verify() {
  std::string wrong = checkPlaces(getMessage(), getValues().size());
  if (!wrong.empty())
    return emitOpError() << "message " << wrong << " (require.c1)";
  return success();
}

LogicalResult RequireOp::canonicalize(RequireOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return rewriter.notifyMatchFailure(op, "condition is not known to hold");
  rewriter.eraseOp(op);
  return success();
}

LogicalResult RequireInRangeOp::verify() {
  Type element = cast<ShapedType>(getTensor().getType()).getElementType();
  if (!element.isInteger(32) && !element.isInteger(64) && !element.isInteger(8))
    return emitOpError() << "checks elements of " << element
                         << ", expected i32, i64 or i8 (require_in_range.c1)";
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Attn/Ops.cpp.inc"
