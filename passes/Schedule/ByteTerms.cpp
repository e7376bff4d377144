//===- ByteTerms.cpp - sums of products of bytes, some terms a step -------===//
//
// y[m, n] = sum_r A[m, r] * B[r, n] of signed bytes, summed in i32. Multiplied
// as i32, a vector of products takes two multiplications, each slower than one
// of floats. As pairs of i16, sum_k (A[m, 2k] B[2k, n] + A[m, 2k + 1] B[2k + 1,
// n]), twice as many products are one multiplication, and it adds the two: 2 *
// 2^14 is far from the end of i32, so that the sum is the same, and wraps where
// the other one does.
//
// B is packed in panels [panel][k][column][pair], its bytes as they are; A is
// copied as i16, which a lane takes a pair at a time, with a zero behind an odd
// number of terms.
//
// Where the processor multiplies four bytes a lane (VNNI), one of its operands
// has no sign: A's bytes are taken with 128 more, sum_r (A + 128) B, and the
// sum starts from -128 sum_r B. Behind the last term B's are 0 then.
#include "passes/Schedule/GroupedTerms.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

class ByteSum : public GroupedTerms {
public:
  using GroupedTerms::GroupedTerms;

private:
  bool isSum(Operation *combine) override {
    return isa<arith::AddIOp>(combine) &&
           combine->getResult(0).getType().isInteger(32);
  }
  std::optional<std::pair<Value, Value>> factorsOf(Value term) override;
  Value narrowOf(Value factor) override;
  void chooseGroup() override;
  /// A's terms are i16, or bytes that have 128 more.
  Type rowType() override { return b.getIntegerType(group == 4 ? 8 : 16); }
  Value rowOf(OpBuilder &inner, Value term, Value byte) override;
  Value columnOf(OpBuilder &inner, Value term, Value byte) override {
    return group == 4 ? orZero(inner, term, byte) : byte;
  }
  Value addProduct(OpBuilder &at, Value sum, Value x, Value y) override;
  /// The sums of B's columns, as its products with ones, of which one
  /// instruction adds a step's: dims "lane", "panel", and \p ofColumns.
  void addColumns(Value panel, ArrayRef<BlockArgument> ofColumns) override;
  Value startOf(OpBuilder &inner, ArrayRef<Value> at) override;
  StringRef features() override {
    return hasVnni ? "avx512_cannonlake-avx512_zen4" : "";
  }
  /// As many bytes of 1 as a step has terms.
  Value addOnes();

  bool hasVnni = false;
};

std::optional<std::pair<Value, Value>> ByteSum::factorsOf(Value term) {
  if (auto narrow = term.getDefiningOp<arith::TruncIOp>())
    term = narrow.getIn();
  auto multiply = term.getDefiningOp<arith::MulIOp>();
  if (!multiply)
    return std::nullopt;
  return std::pair(multiply.getLhs(), multiply.getRhs());
}

/// A byte that is read.
Value ByteSum::narrowOf(Value factor) {
  auto wider = factor.getDefiningOp<arith::ExtSIOp>();
  if (!wider || !wider.getIn().getType().isInteger(8) ||
      wider.getType().getIntOrFloatBitWidth() < 32 ||
      !wider.getIn().getDefiningOp<halide::ReadOp>())
    return {};
  return wider.getIn();
}

void ByteSum::chooseGroup() {
  // Of few rows the columns' sums take as long as the products.
  constexpr int64_t fewest = 16;
  // libHalide's conversions to bf16 would be others.
  bool hasBF16 = false;
  kernel.pipeline->walk([&](Operation *op) {
    for (Value value : op->getResults())
      hasBF16 |= isa<halide::FuncType>(value.getType())
                     ? halide::getElementTypes(value).front().isBF16()
                     : value.getType().isBF16();
  });
  hasVnni = target.hasFeature("avx512vnni") && !hasBF16;
  if (hasVnni && kernel.rows != RowCount::Small &&
      f->extents[1].fixed.value_or(fewest) >= fewest)
    group = 4;
}

Value ByteSum::rowOf(OpBuilder &inner, Value term, Value byte) {
  if (group == 4)
    return arith::XOrIOp::create(
        inner, loc, byte,
        arith::ConstantOp::create(inner, loc, inner.getI8IntegerAttr(-128)));
  return orZero(inner, term,
                arith::ExtSIOp::create(inner, loc, rowType(), byte));
}

Value ByteSum::addOnes() {
  KernelFunc &ones = addFunc(
      kernel, update, "ones", {"part"}, b.getI8Type(), {{Value(), group}},
      [&](OpBuilder &inner, ValueRange) -> Value {
        return arith::ConstantOp::create(inner, loc, inner.getI8IntegerAttr(1));
      });
  OpBuilder at = scheduleBuilder(kernel);
  halide::ComputeRootOp::create(at, loc, ones.func.getResult());
  return ones.func.getResult();
}

void ByteSum::addColumns(Value panel, ArrayRef<BlockArgument> ofColumns) {
  if (group != 4)
    return;
  SmallVector<std::string> names{"lane", "panel"};
  SmallVector<Extent> extents{{Value(), shape.width}, panels};
  for (BlockArgument arg : ofColumns) {
    unsigned dim = arg.getArgNumber();
    names.push_back(
        heed::format("{}{}", dim == panelDim ? "product" : "c", dim));
    extents.push_back(f->extents[arg.getArgNumber()]);
  }
  SmallVector<StringRef> vars(names.begin(), names.end());
  Type i32Type = b.getI32Type();
  Value ones = addOnes();
  Value func = addFunc(kernel, update, "columns", vars, i32Type, extents,
                       [&](OpBuilder &inner, ValueRange) -> Value {
                         return i32(inner, 0);
                       })
                   .func.getResult();
  const size_t dims = names.size();
  addUpdate(func, [&](OpBuilder &at, ValueRange args) -> Value {
    auto own = [&](BlockArgument arg) -> Value {
      if (arg.getArgNumber() > rank)
        return args[dims + 1 + arg.getArgNumber() - rank];
      return args[2 + (llvm::find(ofColumns, arg) - ofColumns.begin())];
    };
    auto read = [&](Value from, ValueRange coordinates, Type type) -> Value {
      return halide::ReadOp::create(at, loc, type, from, coordinates)
          .getResult(0);
    };
    Value byte =
        read(panel, placeOf(args[0], args[dims], args[dims + 1], args[1], own),
             at.getI8Type());
    Value old = read(func, args.take_front(dims), i32Type);
    Value one = read(ones, args[dims], at.getI8Type());
    return arith::AddIOp::create(
        at, loc, old,
        arith::MulIOp::create(at, loc,
                              arith::ExtUIOp::create(at, loc, i32Type, one),
                              arith::ExtSIOp::create(at, loc, i32Type, byte)));
  });
  columnSums = func;
}

Value ByteSum::startOf(OpBuilder &inner, ArrayRef<Value> at) {
  if (!columnSums)
    return i32(inner, 0);
  Value sum =
      halide::ReadOp::create(inner, loc, inner.getI32Type(), columnSums, at)
          .getResult(0);
  return mulI32(inner, sum, -128);
}

Value ByteSum::addProduct(OpBuilder &at, Value sum, Value x, Value y) {
  Type i32Type = at.getI32Type();
  Value wideX = group == 4
                    ? arith::ExtUIOp::create(at, loc, i32Type, x).getResult()
                    : arith::ExtSIOp::create(at, loc, i32Type, x).getResult();
  Value wideY = arith::ExtSIOp::create(at, loc, i32Type, y);
  return arith::AddIOp::create(at, loc, sum,
                               arith::MulIOp::create(at, loc, wideX, wideY));
}

} // namespace

std::unique_ptr<GroupedTerms> heed::byteTerms(KernelInfo &kernel, Value sum,
                                              halide::ReadOp panel,
                                              PanelShape shape,
                                              bool packsInTask,
                                              const halide::Target &target) {
  auto bytes =
      std::make_unique<ByteSum>(kernel, sum, panel, shape, packsInTask, target);
  return bytes->match() ? std::move(bytes) : nullptr;
}
