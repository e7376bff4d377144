//===- HostOps.cpp - parameters and run-time checks
//---------------------------------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Regions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

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
      return ("names value " + Twine(place) + " of " + Twine(count)).str();
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
