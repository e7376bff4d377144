//===- Regions.cpp - the regions of attn ops as text, and their checks ----===//
#include "dialects/Attn/Regions.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace heed::attn {

ParseResult parseBody(OpAsmParser &parser, Region &region) {
  SmallVector<OpAsmParser::Argument> args;
  size_t typed = 0; // arguments before this one have their type
  auto parseGroup = [&]() -> ParseResult {
    if (parser.parseArgument(args.emplace_back()))
      return failure();
    if (failed(parser.parseOptionalColon()))
      return success();
    Type type;
    if (parser.parseType(type))
      return failure();
    for (; typed < args.size(); ++typed)
      args[typed].type = type;
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseGroup))
    return failure();
  for (; typed < args.size(); ++typed)
    args[typed].type = parser.getBuilder().getIndexType();
  return parser.parseRegion(region, args);
}

void printBody(OpAsmPrinter &printer, Region &region) {
  if (region.empty())
    return;
  Block &block = region.front();
  bool onlyIndices = llvm::all_of(block.getArgumentTypes(),
                                  [](Type type) { return type.isIndex(); });
  printer << " (";
  for (auto [k, arg] : llvm::enumerate(block.getArguments())) {
    if (k)
      printer << ", ";
    printer.printRegionArgument(arg, {}, /*omitType=*/true);
    bool last = k + 1 == block.getNumArguments();
    if (!onlyIndices &&
        (last || block.getArgument(k + 1).getType() != arg.getType()))
      printer << " : " << arg.getType();
  }
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

ParseResult parseWhere(OpAsmParser &parser, Region &region) {
  if (failed(parser.parseOptionalKeyword("where")))
    return success();
  return parseBody(parser, region);
}

void printWhere(OpAsmPrinter &printer, Operation *, Region &region) {
  if (region.empty())
    return;
  printer << "where";
  printBody(printer, region);
}

ParseResult parseNext(OpAsmParser &parser, Region &region) {
  return parseBody(parser, region);
}

void printNext(OpAsmPrinter &printer, Operation *, Region &region) {
  printBody(printer, region);
}

ParseResult parseHold(OpAsmParser &parser, Region &region) {
  return succeeded(parser.parseOptionalKeyword("hold"))
             ? parseBody(parser, region)
             : success();
}

void printHold(OpAsmPrinter &printer, Operation *, Region &region) {
  if (region.empty())
    return;
  printer << "hold";
  printBody(printer, region);
}

LogicalResult verifyBody(Operation *op, Region &region, StringRef constraint,
                         StringRef name, unsigned indices, unsigned reals,
                         Type result) {
  auto fail = [&]() { return op->emitOpError() << "region '" << name << "' "; };
  if (!region.hasOneBlock())
    return fail() << "has " << region.getBlocks().size()
                  << " blocks, expected one (" << constraint << ")";
  Block &block = region.front();
  Builder b(op->getContext());
  SmallVector<Type> expected(indices, b.getIndexType());
  expected.append(reals, b.getF32Type());
  if (!llvm::equal(block.getArgumentTypes(), expected))
    return fail() << "takes (" << block.getArgumentTypes() << "), expected ("
                  << expected << ") (" << constraint << ")";
  auto yield = dyn_cast_if_present<YieldOp>(
      block.mightHaveTerminator() ? block.getTerminator() : nullptr);
  if (!yield || yield.getValue().getType() != result)
    return fail() << "must end with attn.yield of " << result << " ("
                  << constraint << ")";
  Operation *writer = nullptr;
  region.walk([&](Operation *inner) {
    if (writer || isa<YieldOp>(inner))
      return;
    auto effects = dyn_cast<MemoryEffectOpInterface>(inner);
    if (effects ? effects.hasEffect<MemoryEffects::Write>()
                : !inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      writer = inner;
  });
  if (writer)
    return fail() << "holds '" << writer->getName()
                  << "', expected ops that write nothing (" << constraint
                  << ")";
  return success();
}

} // namespace heed::attn
