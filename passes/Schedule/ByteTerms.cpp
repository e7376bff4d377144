//===- ByteTerms.cpp - sums of products of bytes, two terms a step --------===//
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
#include "passes/Schedule/ByteTerms.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

/// The byte that \p factor, of 32 bits and more, stands for; null if none.
static halide::ReadOp byteOf(Value factor) {
  auto wider = factor.getDefiningOp<arith::ExtSIOp>();
  if (!wider || !wider.getIn().getType().isInteger(8) ||
      wider.getType().getIntOrFloatBitWidth() < 32)
    return {};
  return wider.getIn().getDefiningOp<halide::ReadOp>();
}

namespace {

class ByteSum {
public:
  ByteSum(KernelInfo &kernel, Value sum, halide::ReadOp panel, PanelShape shape,
          const halide::Target &target)
      : kernel(kernel), f(kernel.find(sum)), update(f->updates[0]),
        body(update.getSet().front()), column(panel), shape(shape),
        target(target), loc(update.getLoc()), b(update),
        rank(f->extents.size()), panelDim(rank - (shape.products > 1)) {}

  /// Whether the sum is one of products of two bytes.
  bool match();
  PairedSum run();

private:
  /// \p term, or the last one if it is beyond that.
  Value lastTerm(OpBuilder &inner, Value term);
  /// A's terms along dim 0, as i16.
  Value addRows();
  /// B's bytes, panel by panel; past the end they are those of the last column.
  Value addPanel();
  Value schedulePanel(KernelFunc &panel, size_t panelAt);
  Value addSum(Value rows, Value panel);
  /// \p sum at \p args with the pair of terms that they name.
  Value addTerm(OpBuilder &at, ValueRange args, Value sum, Value rows,
                Value panel);

  /// The argument of the sum's update that counts terms.
  BlockArgument term() { return body.getArgument(rank); }

  KernelInfo &kernel;
  KernelFunc *f;
  halide::UpdateOp update;
  Block &body;
  halide::ReadOp column, row; ///< of B, of A
  PanelShape shape;
  const halide::Target &target;
  Location loc;
  OpBuilder b; ///< before the update
  size_t rank, panelDim;
  Extent terms{}, steps{}, panels{};
  Value lastColumn;
  /// The arguments of the update that A and B follow, but for terms and
  /// columns.
  SmallVector<BlockArgument> ofRows, ofPanel;
};

bool ByteSum::match() {
  unsigned number = 0;
  Operation *combine = combinerOf(update, number);
  Operation *yield = f->func.getBody().front().getTerminator();
  if (!isa_and_nonnull<arith::AddIOp>(combine) || f->updates.size() != 1 ||
      !update.getWhere().empty() || !update.getAt().empty() ||
      !combine->getResult(0).getType().isInteger(32) ||
      !matchPattern(yield->getOperand(0), m_Zero()))
    return false;
  Value product = combine->getOperand(number);
  if (auto narrow = product.getDefiningOp<arith::TruncIOp>())
    product = narrow.getIn();
  auto multiply = product.getDefiningOp<arith::MulIOp>();
  if (!multiply)
    return false;
  halide::ReadOp x = byteOf(multiply.getLhs()), y = byteOf(multiply.getRhs());
  row = x == column ? y : x;
  if (!row || row == column || (x != column && y != column))
    return false;
  // A copy of A is no larger than A.
  for (Value at : row.getCoordinates())
    if (auto arg = dyn_cast<BlockArgument>(at)) {
      if (llvm::is_contained(ofRows, arg))
        return false;
      if (arg != term())
        ofRows.push_back(arg);
    } else if (!argumentsOf(at).empty()) {
      return false;
    }
  if (!llvm::is_contained(row.getCoordinates(), Value(term())))
    return false;
  llvm::SmallPtrSet<Value, 4> used;
  for (Value at : column.getCoordinates())
    for (Value arg : argumentsOf(at))
      used.insert(arg);
  for (BlockArgument arg : body.getArguments().drop_front())
    if (arg != term() && used.contains(arg))
      ofPanel.push_back(arg);
  return used.contains(term());
}

Value ByteSum::lastTerm(OpBuilder &inner, Value term) {
  if (terms.fixed && *terms.fixed % pairedTerms == 0)
    return term;
  Value likely = halide::LikelyOp::create(inner, loc, term);
  return arith::MinSIOp::create(inner, loc, likely,
                                addI32(inner, terms.value, -1));
}

Value ByteSum::addRows() {
  SmallVector<std::string> names{"term"};
  SmallVector<Extent> extents{{mulI32(b, steps.value, pairedTerms), {}}};
  if (steps.fixed)
    extents[0].fixed = *steps.fixed * pairedTerms;
  for (BlockArgument arg : ofRows) {
    unsigned at = arg.getArgNumber();
    names.push_back(heed::format("a{}", at));
    extents.push_back(at < rank ? f->extents[at] : f->reductions[0][at - rank]);
  }
  Type i16 = b.getIntegerType(16);
  SmallVector<StringRef> vars(names.begin(), names.end());
  KernelFunc &rows = addFunc(
      kernel, update, "pairs", vars, i16, extents,
      [&](OpBuilder &inner, ValueRange args) -> Value {
        IRMapping map;
        map.map(term(), lastTerm(inner, args[0]));
        for (auto [arg, dim] : llvm::zip(ofRows, args.drop_front()))
          map.map(arg, dim);
        Value byte = cloneSlice(inner, row.getResult(0), map);
        Value value = arith::ExtSIOp::create(inner, loc, i16, byte);
        if (terms.fixed && *terms.fixed % pairedTerms == 0)
          return value;
        Value isTerm = arith::CmpIOp::create(
            inner, loc, arith::CmpIPredicate::slt, args[0],
            mutated("contraction.pair-beyond-last-term") ? extents[0].value
                                                         : terms.value);
        Value likely = halide::LikelyOp::create(inner, loc, value);
        Value zero =
            arith::ConstantOp::create(inner, loc, inner.getIntegerAttr(i16, 0));
        return arith::SelectOp::create(inner, loc, isTerm, likely, zero);
      });
  OpBuilder at = scheduleBuilder(kernel);
  halide::ComputeRootOp::create(at, loc, rows.func.getResult());
  vectorizeInner(at, rows.func, 0, "term", target.lanes(16));
  parallelOuter(at, rows.func, 0, names, 1, FusedBody::Alone);
  return rows.func.getResult();
}

Value ByteSum::addPanel() {
  // Outer dims of the sum are outside of a panel, all else is inside.
  SmallVector<std::string> names{"pair", "lane", "step"};
  SmallVector<Extent> extents{
      {Value(), pairedTerms}, {Value(), shape.width}, steps};
  SmallVector<BlockArgument> order;
  auto add = [&](StringRef name, BlockArgument arg, Extent extent) {
    names.push_back(heed::format("{}{}", name, arg.getArgNumber()));
    extents.push_back(extent);
    order.push_back(arg);
  };
  for (BlockArgument arg : ofPanel)
    if (arg.getArgNumber() > rank)
      add("k", arg, f->reductions[0][arg.getArgNumber() - rank]);
    else if (arg.getArgNumber() == panelDim)
      add("product", arg, {Value(), shape.products});
  const size_t panelAt = names.size(), inside = order.size();
  names.push_back("panel");
  extents.push_back(panels);
  for (BlockArgument arg : ofPanel)
    if (arg.getArgNumber() < panelDim)
      add("o", arg, f->extents[arg.getArgNumber()]);
  ofPanel = order;
  SmallVector<StringRef> vars(names.begin(), names.end());
  KernelFunc &panel = addFunc(
      kernel, update, "panel0", vars, column.getResult(0).getType(), extents,
      [&](OpBuilder &inner, ValueRange args) -> Value {
        IRMapping map;
        Value at = arith::AddIOp::create(
            inner, loc, mulI32(inner, args[panelAt], shape.width), args[1]);
        map.map(body.getArgument(0),
                arith::MinSIOp::create(inner, loc, at, lastColumn));
        Value term = arith::AddIOp::create(
            inner, loc, mulI32(inner, args[2], pairedTerms), args[0]);
        map.map(this->term(), lastTerm(inner, term));
        for (auto [k, arg] : llvm::enumerate(order))
          map.map(arg, args[k < inside ? 3 + k : 4 + k]);
        return cloneSlice(inner, column.getResult(0), map);
      });
  return schedulePanel(panel, panelAt);
}

Value ByteSum::schedulePanel(KernelFunc &panel, size_t panelAt) {
  auto schedule = [&](OpBuilder &at, KernelFunc &own) {
    Value func = own.func.getResult();
    SmallVector<std::string> names = varsOf(own.func);
    halide::SplitOp::create(at, loc, func, 0, "lane", "lane", "lanev",
                            shape.lanes, halide::TailStrategy::RoundUp);
    halide::VectorizeOp::create(at, loc, func, 0, "lanev");
    halide::BoundExtentOp::create(at, loc, func, "lane", i32(at, shape.width));
    halide::BoundExtentOp::create(at, loc, func, "pair", i32(at, pairedTerms));
    halide::UnrollOp::create(at, loc, func, 0, "pair");
    parallelOuter(at, own.func, 0, names, panelAt, FusedBody::Alone);
  };
  Value func = panel.func.getResult();
  if (Value buffer = packOnce(kernel, func, schedule))
    return buffer;
  OpBuilder at = scheduleBuilder(kernel);
  halide::ComputeRootOp::create(at, loc, func);
  schedule(at, panel);
  return func;
}

Value ByteSum::addTerm(OpBuilder &at, ValueRange args, Value sum, Value rows,
                       Value panel) {
  Type i32Type = at.getI32Type();
  // Where an argument of the sum's update stands here.
  auto own = [&](BlockArgument arg) {
    unsigned k = arg.getArgNumber();
    return args[k < panelDim ? k : k < rank ? k + 1 : k + 2];
  };
  Value pair = args[rank + 1], step = args[rank + 2];
  SmallVector<Value> ofA{
      arith::AddIOp::create(at, loc, mulI32(at, step, pairedTerms), pair)};
  for (BlockArgument arg : ofRows)
    ofA.push_back(own(arg));
  SmallVector<Value> ofB{pair, args[0], step};
  bool isPlaced = false;
  for (BlockArgument arg : ofPanel) {
    if (!isPlaced && arg.getArgNumber() < panelDim) {
      ofB.push_back(args[panelDim]);
      isPlaced = true;
    }
    ofB.push_back(own(arg));
  }
  if (!isPlaced)
    ofB.push_back(args[panelDim]);
  auto read = [&](Value from, ValueRange coordinates, Type type) -> Value {
    return halide::ReadOp::create(at, loc, type, from, coordinates)
        .getResult(0);
  };
  Value x = arith::ExtSIOp::create(at, loc, i32Type,
                                   read(rows, ofA, at.getIntegerType(16)));
  Value y = arith::ExtSIOp::create(at, loc, i32Type,
                                   read(panel, ofB, at.getIntegerType(8)));
  Value old = read(sum, args.take_front(rank + 1), i32Type);
  Value fresh = arith::MulIOp::create(at, loc, x, y);
  return arith::AddIOp::create(at, loc, old, fresh);
}

Value ByteSum::addSum(Value rows, Value panel) {
  SmallVector<std::string> names = varsOf(f->func);
  names[0] = "lane";
  names.insert(names.begin() + panelDim, "panel");
  SmallVector<Extent> extents = f->extents;
  extents[0] = {Value(), shape.width};
  extents.insert(extents.begin() + panelDim, panels);
  SmallVector<StringRef> vars(names.begin(), names.end());
  Type i32Type = b.getI32Type();
  KernelFunc &paired =
      addFunc(kernel, update, heed::format("{}_pairs", f->func.getName()), vars,
              i32Type, extents, [&](OpBuilder &inner, ValueRange) -> Value {
                return i32(inner, 0);
              });
  Value sum = paired.func.getResult();
  paired.role = FuncRole::Reduction;
  SmallVector<StringRef> rvars{"pair"};
  for (Attribute name : update.getRvars())
    rvars.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> bounds{i32(b, 0), i32(b, pairedTerms), i32(b, 0),
                            steps.value};
  llvm::append_range(bounds, update.getBounds().drop_front(2));
  auto add = halide::UpdateOp::create(b, loc, sum, rvars, bounds);
  add.fill(b, add.getSet(), [&](OpBuilder &at, Location, ValueRange args) {
    return SmallVector<Value>{addTerm(at, args, sum, rows, panel)};
  });
  paired.updates.push_back(add);
  SmallVector<Extent> reductions{{i32(b, pairedTerms), pairedTerms}, steps};
  llvm::append_range(reductions, ArrayRef(f->reductions[0]).drop_front());
  paired.reductions.push_back(reductions);
  return sum;
}

PairedSum ByteSum::run() {
  terms = f->reductions[0][0];
  steps = {divI32(b, addI32(b, terms.value, pairedTerms - 1), pairedTerms), {}};
  if (terms.fixed)
    steps.fixed = (*terms.fixed + pairedTerms - 1) / pairedTerms;
  if (steps.fixed)
    steps.value = i32(b, *steps.fixed);
  Extent columns = f->extents[0];
  if (columns.fixed)
    panels.fixed = (*columns.fixed + shape.width - 1) / shape.width;
  lastColumn = addI32(b, columns.value, -1);
  Value rows = addRows();
  Value panel = addPanel();
  Value sum = addSum(rows, panel);

  // Its readers read the new one.
  Value old = f->func.getResult();
  for (Operation *user : llvm::make_early_inc_range(old.getUsers())) {
    auto read = dyn_cast<halide::ReadOp>(user);
    if (!read || read->getParentOp() == update)
      continue;
    OpBuilder here(read);
    SmallVector<Value> at(read.getCoordinates());
    Value place = at[0];
    at[0] = remI32(here, place, shape.width);
    at.insert(at.begin() + panelDim, divI32(here, place, shape.width));
    auto replaced = halide::ReadOp::create(
        here, read.getLoc(), read.getResult(0).getType(), sum, at);
    read.getResult(0).replaceAllUsesWith(replaced.getResult(0));
    read.erase();
  }
  return {sum, panel};
}

} // namespace

std::optional<PairedSum> heed::pairTerms(KernelInfo &kernel, Value sum,
                                         halide::ReadOp panel, PanelShape shape,
                                         const halide::Target &target) {
  ByteSum bytes(kernel, sum, panel, shape, target);
  if (!bytes.match())
    return std::nullopt;
  return bytes.run();
}
