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
          bool packsInTask, const halide::Target &target)
      : kernel(kernel), f(kernel.find(sum)), update(f->updates[0]),
        body(update.getSet().front()), column(panel), shape(shape),
        packsInTask(packsInTask), target(target), loc(update.getLoc()),
        b(update), rank(f->extents.size()),
        panelDim(rank - (shape.products > 1)) {}

  /// Whether the sum is one of products of two bytes.
  bool match();
  GroupedSum run();

private:
  void chooseGroup();
  /// \p term, or the last one if it is beyond that.
  Value lastTerm(OpBuilder &inner, Value term);
  /// \p value, of term \p term, or 0 behind the last one.
  Value orZero(OpBuilder &inner, Value term, Value value);
  /// A's terms along dim 0, as i16, or as bytes that have 128 more.
  Value addRows();
  /// B's bytes, panel by panel; past the end they are those of the last column.
  Value addPanel();
  Value schedulePanel(KernelFunc &panel, size_t panelAt);
  /// As many bytes of 1 as a step has terms.
  Value addOnes();
  /// The sums of B's columns, as its products with ones, of which one
  /// instruction adds a step's: dims "lane", "panel", and \p ofColumns.
  Value addColumns(Value panel, ArrayRef<BlockArgument> ofColumns);
  Value addSum(Value rows, Value panel);
  /// Where the panels hold the term that lane, part, step and the panel's
  /// number say, and \p own of the update's other arguments.
  SmallVector<Value> placeOf(Value lane, Value part, Value step, Value number,
                             llvm::function_ref<Value(BlockArgument)> own);
  /// Gives \p func an update over groups of terms.
  halide::UpdateOp
  addUpdate(Value func,
            llvm::function_ref<Value(OpBuilder &, ValueRange)> body);
  /// \p sum at \p args with the term that they name.
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
  bool packsInTask; ///< what no init packs
  const halide::Target &target;
  Location loc;
  OpBuilder b; ///< before the update
  size_t rank, panelDim;
  int64_t group = 2; ///< terms of a step
  bool hasVnni = false;
  Extent terms{}, steps{}, panels{};
  Value lastColumn;
  Value columnSums; ///< of B, where a step has four terms
  /// The arguments of the update that A and B follow, but for terms and
  /// columns.
  SmallVector<BlockArgument> ofRows, ofPanel;
};

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
  if (terms.fixed && *terms.fixed % group == 0)
    return term;
  Value likely = halide::LikelyOp::create(inner, loc, term);
  return arith::MinSIOp::create(inner, loc, likely,
                                addI32(inner, terms.value, -1));
}

Value ByteSum::orZero(OpBuilder &inner, Value term, Value value) {
  if (terms.fixed && *terms.fixed % group == 0)
    return value;
  Value end = mutated("contraction.part-beyond-last-term")
                  ? mulI32(inner, steps.value, group)
                  : terms.value;
  Value isTerm =
      arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, term, end);
  Value likely = halide::LikelyOp::create(inner, loc, value);
  Value zero = arith::ConstantOp::create(
      inner, loc, inner.getIntegerAttr(value.getType(), 0));
  return arith::SelectOp::create(inner, loc, isTerm, likely, zero);
}

Value ByteSum::addRows() {
  SmallVector<std::string> names{"term"};
  SmallVector<Extent> extents{{mulI32(b, steps.value, group), {}}};
  if (steps.fixed)
    extents[0].fixed = *steps.fixed * group;
  for (BlockArgument arg : ofRows) {
    unsigned at = arg.getArgNumber();
    names.push_back(heed::format("a{}", at));
    extents.push_back(at < rank ? f->extents[at] : f->reductions[0][at - rank]);
  }
  Type type = b.getIntegerType(group == 4 ? 8 : 16);
  SmallVector<StringRef> vars(names.begin(), names.end());
  KernelFunc &rows =
      addFunc(kernel, update, "rows", vars, type, extents,
              [&](OpBuilder &inner, ValueRange args) -> Value {
                IRMapping map;
                map.map(term(), lastTerm(inner, args[0]));
                for (auto [arg, dim] : llvm::zip(ofRows, args.drop_front()))
                  map.map(arg, dim);
                Value byte = cloneSlice(inner, row.getResult(0), map);
                if (group == 4)
                  return arith::XOrIOp::create(
                      inner, loc, byte,
                      arith::ConstantOp::create(inner, loc,
                                                inner.getI8IntegerAttr(-128)));
                return orZero(inner, args[0],
                              arith::ExtSIOp::create(inner, loc, type, byte));
              });
  OpBuilder at = scheduleBuilder(kernel);
  halide::ComputeRootOp::create(at, loc, rows.func.getResult());
  vectorizeInner(at, rows.func, 0, "term",
                 target.lanes(type.getIntOrFloatBitWidth()));
  parallelOuter(at, rows.func, 0, names, 1, FusedBody::Alone);
  return rows.func.getResult();
}

Value ByteSum::addPanel() {
  // Outer dims of the sum are outside of a panel, all else is inside.
  SmallVector<std::string> names{"part", "lane", "step"};
  SmallVector<Extent> extents{{Value(), group}, {Value(), shape.width}, steps};
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
            inner, loc, mulI32(inner, args[2], group), args[0]);
        map.map(this->term(), lastTerm(inner, term));
        for (auto [k, arg] : llvm::enumerate(order))
          map.map(arg, args[k < inside ? 3 + k : 4 + k]);
        Value byte = cloneSlice(inner, column.getResult(0), map);
        return group == 4 ? orZero(inner, term, byte) : byte;
      });
  return schedulePanel(panel, panelAt);
}

Value ByteSum::schedulePanel(KernelFunc &panel, size_t panelAt) {
  auto schedule = [&](OpBuilder &at, KernelFunc &own) {
    SmallVector<std::string> names = varsOf(own.func);
    scheduleBytePanel(at, own.func.getResult(), shape, group);
    parallelOuter(at, own.func, 0, names, panelAt, FusedBody::Alone);
  };
  Value func = panel.func.getResult();
  if (Value buffer = packOnce(kernel, func, schedule)) {
    packsInTask = false;
    return buffer;
  }
  // What several batches share is packed once for them.
  for (size_t dim = 2; dim < panelDim; ++dim)
    packsInTask &= llvm::is_contained(ofPanel, body.getArgument(dim));
  if (packsInTask)
    return func;
  OpBuilder at = scheduleBuilder(kernel);
  halide::ComputeRootOp::create(at, loc, func);
  schedule(at, panel);
  return func;
}

SmallVector<Value>
ByteSum::placeOf(Value lane, Value part, Value step, Value number,
                 llvm::function_ref<Value(BlockArgument)> own) {
  SmallVector<Value> place{part, lane, step};
  auto isOuter = [&](BlockArgument arg) {
    return arg.getArgNumber() < panelDim;
  };
  for (BlockArgument arg : ofPanel)
    if (!isOuter(arg))
      place.push_back(own(arg));
  place.push_back(number);
  for (BlockArgument arg : ofPanel)
    if (isOuter(arg))
      place.push_back(own(arg));
  return place;
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

Value ByteSum::addColumns(Value panel, ArrayRef<BlockArgument> ofColumns) {
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
  return func;
}

halide::UpdateOp
ByteSum::addUpdate(Value func,
                   llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  SmallVector<StringRef> rvars{"part"};
  for (Attribute name : update.getRvars())
    rvars.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> bounds{i32(b, 0), i32(b, group), i32(b, 0), steps.value};
  llvm::append_range(bounds, update.getBounds().drop_front(2));
  auto add = halide::UpdateOp::create(b, loc, func, rvars, bounds);
  add.fill(b, add.getSet(), [&](OpBuilder &at, Location, ValueRange args) {
    return SmallVector<Value>{body(at, args)};
  });
  KernelFunc *grouped = kernel.find(func);
  grouped->role = FuncRole::Reduction;
  grouped->updates.push_back(add);
  SmallVector<Extent> reductions{{i32(b, group), group}, steps};
  llvm::append_range(reductions, ArrayRef(f->reductions[0]).drop_front());
  grouped->reductions.push_back(reductions);
  return add;
}

Value ByteSum::addTerm(OpBuilder &at, ValueRange args, Value sum, Value rows,
                       Value panel) {
  Type i32Type = at.getI32Type();
  // Where an argument of the sum's update stands here.
  auto own = [&](BlockArgument arg) {
    unsigned k = arg.getArgNumber();
    return args[k < panelDim ? k : k < rank ? k + 1 : k + 2];
  };
  Value part = args[rank + 1], step = args[rank + 2];
  SmallVector<Value> ofA{
      arith::AddIOp::create(at, loc, mulI32(at, step, group), part)};
  for (BlockArgument arg : ofRows)
    ofA.push_back(own(arg));
  SmallVector<Value> ofB = placeOf(args[0], part, step, args[panelDim], own);
  auto read = [&](Value from, ValueRange coordinates, Type type) -> Value {
    return halide::ReadOp::create(at, loc, type, from, coordinates)
        .getResult(0);
  };
  Value x = group == 4 ? arith::ExtUIOp::create(at, loc, i32Type,
                                                read(rows, ofA, at.getI8Type()))
                             .getResult()
                       : arith::ExtSIOp::create(
                             at, loc, i32Type, read(rows, ofA, at.getI16Type()))
                             .getResult();
  Value y = arith::ExtSIOp::create(at, loc, i32Type,
                                   read(panel, ofB, at.getI8Type()));
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
  SmallVector<BlockArgument> ofColumns;
  for (BlockArgument arg : ofPanel)
    if (arg.getArgNumber() < rank)
      ofColumns.push_back(arg);
  if (group == 4)
    columnSums = addColumns(panel, ofColumns);
  KernelFunc &grouped = addFunc(
      kernel, update, heed::format("{}_grouped", f->func.getName()), vars,
      b.getI32Type(), extents, [&](OpBuilder &inner, ValueRange args) -> Value {
        if (!columnSums)
          return i32(inner, 0);
        SmallVector<Value> at{args[0], args[panelDim]};
        for (BlockArgument arg : ofColumns)
          at.push_back(
              args[arg.getArgNumber() + (arg.getArgNumber() >= panelDim)]);
        Value sum = halide::ReadOp::create(inner, loc, inner.getI32Type(),
                                           columnSums, at)
                        .getResult(0);
        return mulI32(inner, sum, -128);
      });
  Value sum = grouped.func.getResult();
  addUpdate(sum, [&](OpBuilder &at, ValueRange args) {
    return addTerm(at, args, sum, rows, panel);
  });
  return sum;
}

GroupedSum ByteSum::run() {
  chooseGroup();
  terms = f->reductions[0][0];
  steps = {divI32(b, addI32(b, terms.value, group - 1), group), {}};
  if (terms.fixed)
    steps.fixed = (*terms.fixed + group - 1) / group;
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
  if (hasVnni)
    kernel.pipeline->setAttr("halide.features",
                             b.getStringAttr("avx512_cannonlake-avx512_zen4"));
  return {sum, panel, columnSums, packsInTask, group};
}

} // namespace

std::optional<GroupedSum> heed::groupTerms(KernelInfo &kernel, Value sum,
                                           halide::ReadOp panel,
                                           PanelShape shape, bool packsInTask,
                                           const halide::Target &target) {
  ByteSum bytes(kernel, sum, panel, shape, packsInTask, target);
  if (!bytes.match())
    return std::nullopt;
  return bytes.run();
}
