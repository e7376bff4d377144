//===- Scan.cpp - attn.scan: text, checks and definition ------------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace heed::attn;

StepOp ScanOp::terminator() {
  return cast<StepOp>(getBody().front().getTerminator());
}

void ScanOp::build(OpBuilder &b, OperationState &state, Value low, Value high,
                   ValueRange starts, ValueRange outs, ArrayRef<int64_t> axes,
                   ArrayRef<bool> reversed) {
  state.addOperands({low, high});
  state.addOperands(starts);
  state.addOperands(outs);
  state.addTypes(starts.getTypes());
  state.addTypes(outs.getTypes());
  state.addAttribute("axes", b.getDenseI64ArrayAttr(axes));
  state.addAttribute("reversed", b.getDenseBoolArrayAttr(reversed));
  int32_t numStarts = starts.size(), numOuts = outs.size();
  state.addAttribute("operandSegmentSizes",
                     b.getDenseI32ArrayAttr({1, 1, numStarts, numOuts}));
  state.addAttribute("resultSegmentSizes",
                     b.getDenseI32ArrayAttr({numStarts, numOuts}));
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(state.addRegion());
  body->addArgument(b.getIndexType(), state.location);
  for (Value start : starts)
    body->addArgument(start.getType(), state.location);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &b = parser.getBuilder();
  using Unresolved = OpAsmParser::UnresolvedOperand;
  SmallVector<OpAsmParser::Argument> arguments(1);
  arguments[0].type = b.getIndexType();
  Unresolved low, high;
  if (parser.parseArgument(arguments[0]) || parser.parseEqual() ||
      parser.parseOperand(low) || parser.parseKeyword("to") ||
      parser.parseOperand(high) ||
      parser.resolveOperands({low, high}, b.getIndexType(), result.operands))
    return failure();
  auto operand = [&](Unresolved &value, Type &type) -> ParseResult {
    if (parser.parseColonType(type) ||
        parser.resolveOperand(value, type, result.operands))
      return failure();
    result.addTypes(type);
    return success();
  };
  int32_t numStarts = 0;
  SmallVector<int64_t> axes;
  SmallVector<bool> reversed;
  using Delimiter = OpAsmParser::Delimiter;
  if (succeeded(parser.parseOptionalKeyword("states")) &&
      parser.parseCommaSeparatedList(Delimiter::Paren, [&]() -> ParseResult {
        OpAsmParser::Argument &state = arguments.emplace_back();
        Unresolved start;
        ++numStarts;
        return failure(parser.parseArgument(state) || parser.parseEqual() ||
                       parser.parseOperand(start) ||
                       operand(start, state.type));
      }))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("rows")) &&
      parser.parseCommaSeparatedList(Delimiter::Paren, [&]() -> ParseResult {
        Unresolved out;
        Type type;
        if (parser.parseOperand(out) || parser.parseKeyword("axis") ||
            parser.parseInteger(axes.emplace_back()))
          return failure();
        reversed.push_back(succeeded(parser.parseOptionalKeyword("reversed")));
        return operand(out, type);
      }))
    return failure();
  result.addAttribute("axes", b.getDenseI64ArrayAttr(axes));
  result.addAttribute("reversed", b.getDenseBoolArrayAttr(reversed));
  int32_t numOuts = axes.size();
  result.addAttribute("operandSegmentSizes",
                      b.getDenseI32ArrayAttr({1, 1, numStarts, numOuts}));
  result.addAttribute("resultSegmentSizes",
                      b.getDenseI32ArrayAttr({numStarts, numOuts}));
  return failure(parser.parseRegion(*result.addRegion(), arguments) ||
                 parser.parseOptionalAttrDict(result.attributes));
}

void ScanOp::print(OpAsmPrinter &p) {
  p << ' ' << step() << " = " << getLow() << " to " << getHigh();
  if (!getStarts().empty()) {
    p << " states(";
    llvm::interleaveComma(llvm::zip(carried(), getStarts()), p, [&](auto pair) {
      auto [state, start] = pair;
      p << state << " = " << start << " : " << start.getType();
    });
    p << ')';
  }
  if (!getOuts().empty()) {
    p << " rows(";
    llvm::interleaveComma(
        llvm::zip(getOuts(), getAxes(), getReversed()), p, [&](auto row) {
          auto [out, axis, isReversed] = row;
          p << out << " axis " << axis << (isReversed ? " reversed" : "")
            << " : " << out.getType();
        });
    p << ')';
  }
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  p.printOptionalAttrDict(
      (*this)->getAttrs(),
      {"axes", "reversed", "operandSegmentSizes", "resultSegmentSizes"});
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// The type of a row of \p out.
static RankedTensorType rowType(Type out, int64_t axis) {
  auto type = cast<RankedTensorType>(out);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + axis);
  return RankedTensorType::get(shape, type.getElementType());
}

LogicalResult ScanOp::verify() {
  bool fits = getAxes().size() == getOuts().size() &&
              getReversed().size() == getOuts().size();
  for (auto [out, axis] : llvm::zip(getOuts(), getAxes()))
    fits &= axis >= 0 && axis < cast<RankedTensorType>(out.getType()).getRank();
  if (!fits)
    return emitOpError() << "has axes [" << getAxes() << "] for outputs of "
                         << getOuts().getTypes()
                         << ", expected one of each (scan.c1)";
  auto types = getBody().getArgumentTypes();
  if (types.empty() || !types.front().isIndex() ||
      !llvm::equal(llvm::drop_begin(types), getStarts().getTypes()))
    return emitOpError() << "has a body that takes " << types
                         << ", expected an index and " << getStarts().getTypes()
                         << " (scan.c2)";
  auto end = dyn_cast<StepOp>(getBody().front().getTerminator());
  SmallVector<Type> rows;
  for (auto [out, axis] : llvm::zip(getOuts(), getAxes()))
    rows.push_back(rowType(out.getType(), axis));
  if (!end ||
      !llvm::equal(end.getStates().getTypes(), getStarts().getTypes()) ||
      !llvm::equal(end.getRows().getTypes(), rows))
    return emitOpError() << "expected its body to end with attn.step states("
                         << getStarts().getTypes() << ") rows(" << rows
                         << ") (scan.c3)";
  if (!llvm::equal(getStates().getTypes(), getStarts().getTypes()) ||
      !llvm::equal(getStacked().getTypes(), getOuts().getTypes()))
    return emitOpError() << "has results " << getResultTypes()
                         << ", expected the types of starts and outputs "
                            "(scan.c4)";
  return success();
}

//===----------------------------------------------------------------------===//
// Definition
//===----------------------------------------------------------------------===//

/// \p into with \p row at \p position of \p axis; \p like has its extents.
static Value insertRow(OpBuilder &b, Location loc, Value row, Value into,
                       Value like, int64_t axis, Value position) {
  // There is no slice of a tensor that is known to be empty, and nothing in it.
  if (llvm::is_contained(cast<RankedTensorType>(like.getType()).getShape(), 0))
    return into;
  RowPlace place;
  place.sizes = tensor::getMixedSizes(b, loc, like);
  place.offsets.assign(place.sizes.size(), b.getIndexAttr(0));
  place.dropped.assign(place.sizes.size(), false);
  place.sizes[axis] = b.getIndexAttr(1);
  place.offsets[axis] = position;
  place.dropped[axis] = true;
  return writeRow(b, loc, row, into, place);
}

FailureOr<SmallVector<Value>> ScanOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> inits(getStarts());
  inits.append(getOuts().begin(), getOuts().end());
  auto loop = scf::ForOp::create(b, loc, getLow(), getHigh(), one, inits);
  if (inits.empty())
    loop.getBody()->getTerminator()->erase();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  IRMapping map;
  map.map(step(), loop.getInductionVar());
  for (auto [state, arg] : llvm::zip(carried(), loop.getRegionIterArgs()))
    map.map(state, arg);
  StepOp end = terminator();
  for (Operation &op : getBody().front().without_terminator())
    b.clone(op, map);
  SmallVector<Value> yields;
  for (Value state : end.getStates())
    yields.push_back(map.lookupOrDefault(state));
  auto stacks = loop.getRegionIterArgs().drop_front(getStarts().size());
  for (auto [row, stack, out, axis, isReversed] :
       llvm::zip(end.getRows(), stacks, getOuts(), getAxes(), getReversed())) {
    Value turn = loop.getInductionVar(), position;
    if (isReversed)
      position = arith::SubIOp::create(
          b, loc, arith::SubIOp::create(b, loc, getHigh(), one), turn);
    else
      position = arith::SubIOp::create(b, loc, turn, getLow());
    yields.push_back(insertRow(b, loc, map.lookupOrDefault(row), stack, out,
                               axis, position));
  }
  scf::YieldOp::create(b, loc, yields);
  return SmallVector<Value>(loop.getResults());
}
