//===- Contraction.cpp - schedule of sums of products, with an epilogue ---===//
//
// y[.., m, n] = epilogue(sum_r A[.., m, r] * B[.., r, n]). Vector lanes are n,
// the innermost dim of the result. B is packed in panels of T columns,
// [n/T][r][T], so that a step of r is T consecutive elements whatever B's
// layout: once if B is a weight, else in each call. A is read in its own layout
// as scalar broadcasts. A register tile of
// MR rows by NV vectors stays in registers over the whole of r. Rows and
// columns past the end are computed from clamped coordinates and not stored.
// Sums over one A are one sum with a last dim "product": the tiles of a task
// take the panels of all products in turn, while their rows of A are near.
// Measured: passes/Schedule/README.md.
#include "passes/Mutation.h"
#include "passes/Schedule/ContractionPlan.h"
#include "passes/Schedule/GroupedTerms.h"
#include "passes/Schedule/Panels.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/SmallM.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

/// Rows of a task of \p width columns: the more, the less often a panel is
/// read from memory, as long as the rows of A stay in the second cache and
/// there are tasks enough.
int64_t rowsOfTask(const KernelFunc &acc, int64_t width,
                   const halide::Target &target) {
  constexpr int64_t least = 64;
  std::optional<int64_t> columns = acc.extents[0].fixed;
  if (!columns || (*columns + width - 1) / width < 2 * target.cores)
    return least;
  int64_t row = widestBits(acc.func) / 8;
  for (const Extent &extent : acc.reductions[0])
    row *= extent.fixed.value_or(longestSum);
  return std::max(least, target.l2 * 3 / 4 / std::max<int64_t>(row, 1));
}

/// Whether B is known to be so large that it comes from memory: it is beyond
/// the second cache, or is one weight of a model and others push it out. An
/// element of it has \p bytes.
bool isBeyondCache(const KernelFunc &acc, int64_t products, int64_t bytes,
                   const halide::Target &target) {
  bytes *= acc.extents[0].fixed.value_or(0) * products;
  for (const Extent &extent : acc.reductions[0])
    bytes *= extent.fixed.value_or(1);
  return bytes > target.l2 / 4;
}

constexpr int64_t lineBytes = 64;
constexpr int64_t mostLines = 1024; ///< of prefetch_spread

/// Bytes of an element that \p read finds; all but 16-bit floats are taken for
/// as wide as the sum.
int64_t bytesOfColumn(halide::ReadOp read) {
  auto type = dyn_cast<FloatType>(read.getResult(0).getType());
  return type && type.getWidth() == 16 ? 2 : 4;
}

/// Whether what \p func does with an element of \p sum takes few instructions.
bool isShortEpilogue(halide::FuncOp func, Value sum) {
  constexpr int most = 4;
  int count = 0;
  for (Operation &op : func.getBody().front()) {
    if (auto read = dyn_cast<halide::ReadOp>(op)) {
      if (read.getFunc() != sum &&
          !read.getFunc().getDefiningOp<halide::BufferOp>())
        return false;
    } else if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op)) {
      ++count;
    } else if (!isa<arith::ConstantOp, halide::YieldOp>(op)) {
      return false;
    }
  }
  return count <= most;
}

/// The schedule of one kernel, step by step.
class TiledContraction {
public:
  TiledContraction(KernelInfo &kernel, const halide::Target &target)
      : kernel(kernel), target(target), b(scheduleBuilder(kernel)),
        isSmallM(kernel.rows == RowCount::Small),
        unrolled(isSmallM ? smallMSteps : 4) {}

  void run(const ContractionPlan &plan) {
    pack(plan);
    clampRows();
    splitSum();
    scheduleOutput();
    placeSum();
    scheduleTerms();
  }

private:
  void pack(const ContractionPlan &plan);
  void clampRows();
  void splitSum();
  void scheduleOutput();
  void placeSum();
  void placeBlocks();
  void scheduleTerms();

  /// A register tile of stage \p stage of \p func, below \p outer loops.
  void scheduleTile(Value func, int64_t stage, ArrayRef<std::string> outer);
  /// \p factor steps of the sum that one iteration of the loop adds:
  /// neighbours, or with \p parts one from each part of the sum, so that the
  /// panel is read as several streams: one stream of addresses does not exhaust
  /// the memory.
  void scheduleSteps(Value func, int64_t stage, int64_t factor, bool parts,
                     ArrayRef<std::string> outer = {});
  /// The blocks of a sum of one row as streams, each in registers of its own.
  void scheduleStreams();
  /// Bounds a tile of \p func, in \p dims dims.
  void boundTile(Value func, size_t dims);
  /// Bounds its outer dims; \p together are the products of a place, or one.
  void boundOuter(Value func, size_t dims, int64_t together);

  KernelFunc &acc() { return *kernel.find(accFunc); }
  KernelFunc &out() { return *outputsOf(kernel)[0]; }
  /// How many steps the loop over terms has, if that is known.
  KnownExtent steps() { return acc().reductions[0][group > 1].fixed; }
  /// Whether there is one row, and it is known.
  bool isOneRow() { return acc().extents[1].fixed == 1; }
  /// Whether that row's panels come fastest in order, without being asked for.
  bool readsOneStream() { return target.oneStream && isOneRow(); }
  /// Has groups of terms, which an update of the sum adds, as vectors.
  bool addsGroups(Value func, int64_t stage) {
    return group > 1 && stage == (func == accFunc ? 1 : 2);
  }
  /// Whether dim \p dim of the sum counts its products.
  bool isProduct(size_t dim) { return products > 1 && dim == productDim; }

  static constexpr auto guard = halide::TailStrategy::GuardWithIf;

  KernelInfo &kernel;
  const halide::Target &target;
  OpBuilder b;
  const bool isSmallM;    ///< in all calls
  const int64_t unrolled; ///< steps of the sum in an iteration of their loop
  Location loc = b.getUnknownLoc();
  int64_t products = 1;
  unsigned row = kRow;   ///< of the output: of the sum it is dim 1
  size_t productDim = 0; ///< where there are several
  RegisterTile tile{};
  int64_t lanes = 1, width = 1, rowsPerTask = 1;
  int64_t group = 1;         ///< terms of a lane that one instruction adds
  int64_t columnBytes = 0;   ///< of an element that is packed, 4 for bytes
  bool beyondCache = false;  ///< what is packed comes from memory
  int64_t streams = 1;       ///< blocks of the sum that are read side by side
  SmallVector<Value> packed; ///< what the sum reads in panels
  std::optional<GroupedSum> grouped; ///< where \p group is not 1
  Value sumFunc;                     ///< the whole sum
  Value accFunc; ///< what is in registers: it, or a block of it
  bool isBlocked = false;
  SmallVector<std::string> vars, rnames; ///< of what is in registers
  Value outFunc;
  std::string task; ///< the loop of the output that is a task
};

/// Finds the sum, chooses its tile and packs what depends on columns alone.
void TiledContraction::pack(const ContractionPlan &plan) {
  products = plan.products;
  row = plan.row;
  if (products > 1)
    fuseHorizontally(kernel);
  separateOutputs(kernel);
  auto found = llvm::find_if(kernel.funcs, [](KernelFunc &f) {
    return f.role == FuncRole::Reduction;
  });
  halide::UpdateOp update = found->updates[0];
  SmallVector<halide::ReadOp> panels;
  for (unsigned number : plan.columns) {
    panels.push_back(readsOfTerms(update)[number]);
    columnBytes = std::max(columnBytes, bytesOfColumn(panels.back()));
  }
  sumFunc = accFunc = update.getFunc();
  loc = update.getLoc();
  if (row != kRow)
    swapDims(*found, kRow, row);
  productDim = found->extents.size() - 1;
  lanes = target.lanes(
      halide::getElementTypes(sumFunc).front().getIntOrFloatBitWidth());
  tile = chooseTile(found->extents[0].fixed, lanes, target.vectorRegisters);
  width = tile.vectors * lanes;
  if (found->extents[1].fixed)
    tile.rows =
        std::min(tile.rows, std::max<int64_t>(1, *found->extents[1].fixed));

  hideConditions(kernel);
  stateDenseStrides(kernel);
  beyondCache = isBeyondCache(acc(), products, columnBytes, target);
  rowsPerTask = rowsOfTask(acc(), width, target);
  PanelShape shape{lanes, width, products};
  KnownExtent all = found->extents[1].fixed;
  if (panels.size() == 1)
    grouped = groupTerms(kernel, sumFunc, panels[0], shape,
                         all && *all <= rowsPerTask, target);
  if (grouped) {
    sumFunc = accFunc = grouped->sum;
    if (!grouped->packsInTask)
      packed = {grouped->panel};
    productDim = acc().extents.size() - 1;
    group = grouped->group;
    if (columnBytes == 2) // A's copy, too, has half of f32's bytes
      rowsPerTask *= 2;
  } else {
    storeRoundedRows(kernel, sumFunc, target);
    packed = packPanels(kernel, update, panels, shape);
  }
  dropUnreadFuncs(kernel);
  dropUnreadBuffers(kernel);
}

/// Rows past the end read the last one.
void TiledContraction::clampRows() {
  Block &body = acc().updates[0].getSet().front();
  Value row = body.getArgument(1), lastRow;
  {
    OpBuilder before(acc().func);
    lastRow = addI32(before, acc().extents[1].value,
                     mutated("contraction.clamp-before-last-row") ? -2 : -1);
  }
  OpBuilder in(&body, body.begin());
  Value clampedRow = arith::MinSIOp::create(in, loc, row, lastRow);
  for (auto read : body.getOps<halide::ReadOp>()) {
    if (read.getFunc() == accFunc)
      continue;
    for (OpOperand &operand : read->getOpOperands())
      if (operand.get() == row)
        operand.set(clampedRow);
  }
  // Row numbers inside of coordinate arithmetic, too.
  for (Operation &op : body)
    if (!isa<halide::ReadOp>(op) && &op != clampedRow.getDefiningOp())
      op.replaceUsesOfWith(row, clampedRow);
}

/// A long sum is one of blocks, which register tiles hold. Blocks of a length
/// that is known have no condition in their loop; what is left is short where
/// the whole may be.
void TiledContraction::splitSum() {
  KnownExtent terms = steps();
  if (terms)
    *terms *= group;
  int64_t longest = !terms     ? 256
                    : isSmallM ? smallMBlock(width * columnBytes, target)
                               : longestSum;
  // The panels of all products are in use at once, unless blocks are outside.
  if (terms && !isSmallM && products > 1 &&
      products * *terms * width * columnBytes > target.l2 / 4)
    longest /= 2;
  // Numbers of 16 bits make one row as many instructions for half the bytes.
  if (isOneRow() && columnBytes == 2 && beyondCache && terms &&
      !(readsOneStream() && group == 1) &&
      acc().reductions[0].size() == (group > 1 ? 2 : 1))
    if (int64_t block = streamBlock(*terms)) {
      longest = block;
      streams = streamsOfRow;
    }
  if (Value block = sumByBlocks(kernel, sumFunc, longest)) {
    isBlocked = true;
    accFunc = block;
  }
  vars = varsOf(acc().func);
  for (Attribute name : acc().updates[0].getRvars())
    rnames.push_back(cast<StringAttr>(name).str());
  if (group > 1)
    rnames.erase(rnames.begin());
}

/// The output: panels outside of blocks of rows, at least 64 rows a task.
void TiledContraction::scheduleOutput() {
  outFunc = out().func.getResult();
  SmallVector<std::string> ov = varsOf(out().func);
  std::string n = ov[0], m = ov[row];
  int64_t blocks = (rowsPerTask + tile.rows - 1) / tile.rows;
  halide::SplitOp::create(b, loc, outFunc, 0, n, "np", "ni", width, guard);
  halide::SplitOp::create(b, loc, outFunc, 0, "ni", "nj", "nv", lanes, guard);
  halide::SplitOp::create(b, loc, outFunc, 0, m, "mb", "mi", tile.rows, guard);
  halide::SplitOp::create(b, loc, outFunc, 0, "mb", "mt", "mb", blocks, guard);
  SmallVector<std::string> loops{"nv", "nj", "mi", "mb", "np", "mt"};
  for (unsigned dim = kRow; dim < ov.size(); ++dim)
    if (dim != row)
      loops.push_back(ov[dim]);
  halide::ReorderOp::create(b, loc, outFunc, 0,
                            SmallVector<StringRef>(loops.begin(), loops.end()));
  halide::VectorizeOp::create(b, loc, outFunc, 0, "nv");
  // A short epilogue takes the tile from its registers.
  KnownExtent columns = out().extents[0].fixed;
  if (!isBlocked && products == 1 && columns && *columns % width == 0 &&
      isShortEpilogue(out().func, sumFunc))
    for (StringRef loop : {"nj", "mi"})
      halide::UnrollOp::create(b, loc, outFunc, 0, loop);
  task = parallelOuter(b, out().func, 0, loops, 4, FusedBody::ComputesFuncs);
  if (grouped)
    placePanel(kernel, *grouped, outFunc, task, {lanes, width, products});
}

void TiledContraction::scheduleTile(Value func, int64_t stage,
                                    ArrayRef<std::string> outer) {
  halide::SplitOp::create(b, loc, func, stage, vars[0], "nj", "nv", lanes,
                          stage ? guard : halide::TailStrategy::RoundUp);
  SmallVector<StringRef> loops{"nv", "nj", vars[1]};
  loops.append(outer.begin(), outer.end());
  const bool isGrouped = addsGroups(func, stage);
  if (isGrouped)
    loops.insert(loops.begin(), "part");
  halide::ReorderOp::create(b, loc, func, stage, loops);
  if (isGrouped)
    halide::VectorizeOp::create(b, loc, func, stage, "part");
  halide::VectorizeOp::create(b, loc, func, stage, "nv");
  halide::UnrollOp::create(b, loc, func, stage, "nj");
  halide::UnrollOp::create(b, loc, func, stage, vars[1]);
}

void TiledContraction::scheduleSteps(Value func, int64_t stage, int64_t factor,
                                     bool parts, ArrayRef<std::string> outer) {
  std::string unrolled = parts ? "stream" : "ru";
  SmallVector<std::string> inner{unrolled};
  inner.append(rnames);
  inner.append(outer.begin(), outer.end());
  halide::SplitOp::create(b, loc, func, stage, rnames[0],
                          parts ? unrolled : rnames[0],
                          parts ? rnames[0] : unrolled, factor, guard);
  scheduleTile(func, stage, inner);
  halide::UnrollOp::create(b, loc, func, stage, unrolled);
}

void TiledContraction::boundOuter(Value func, size_t dims, int64_t together) {
  for (size_t d = 2; d < dims; ++d)
    halide::BoundExtentOp::create(b, loc, func, vars[d],
                                  i32(b, isProduct(d) ? together : 1));
}

void TiledContraction::boundTile(Value func, size_t dims) {
  halide::BoundExtentOp::create(b, loc, func, vars[0], i32(b, width));
  halide::BoundExtentOp::create(b, loc, func, vars[1], i32(b, tile.rows));
  boundOuter(func, dims, 1);
}

/// The blocks of a long sum are outside of the tiles of a task: a block's part
/// of the panel is read from the second cache by all of them.
void TiledContraction::placeBlocks() {
  KernelFunc *sum = kernel.find(sumFunc);
  halide::ComputeAtOp::create(b, loc, sumFunc, outFunc, task);
  halide::BoundExtentOp::create(b, loc, sumFunc, vars[0], i32(b, width));
  halide::AlignBoundsOp::create(b, loc, sumFunc, vars[1], tile.rows, 0);
  boundOuter(sumFunc, sum->extents.size(), products);
  for (int64_t stage = 0, end = sum->updates.size(); stage <= end; ++stage) {
    SmallVector<std::string> around{"mb"};
    if (products > 1)
      around.push_back("product");
    if (stage == 1 && streams > 1) {
      std::string blocks = heed::format("{}_b", rnames.back());
      halide::SplitOp::create(b, loc, sumFunc, stage, blocks, blocks, "stream",
                              streams, guard);
      around.insert(around.begin(), "stream");
      halide::UnrollOp::create(b, loc, sumFunc, stage, "stream");
    }
    if (stage == 1)
      around.push_back(heed::format("{}_b", rnames.back()));
    halide::SplitOp::create(b, loc, sumFunc, stage, vars[1], "mb", vars[1],
                            tile.rows, guard);
    KnownExtent left;
    if (stage == 2)
      left = sum->reductions[1][group > 1].fixed;
    if (addsGroups(sumFunc, stage))
      halide::AtomicOp::create(b, loc, sumFunc, stage);
    if (left && *left % unrolled == 0) {
      scheduleSteps(sumFunc, stage, unrolled, false, around);
      continue;
    }
    SmallVector<std::string> steps;
    if (stage == 2)
      steps = rnames;
    steps.append(around);
    scheduleTile(sumFunc, stage, steps);
  }
  halide::ComputeAtOp::create(b, loc, accFunc, sumFunc, "mb");
  boundTile(accFunc, acc().extents.size() - 1);
  halide::BoundExtentOp::create(b, loc, accFunc, vars.back(), i32(b, streams));
}

void TiledContraction::scheduleStreams() {
  scheduleTile(accFunc, 0, {vars.back()});
  scheduleTile(accFunc, 1, {vars.back(), rnames[0]});
  for (int64_t stage : {0, 1})
    halide::UnrollOp::create(b, loc, accFunc, stage, vars.back());
}

/// Where the sum is computed.
void TiledContraction::placeSum() {
  if (isBlocked) {
    placeBlocks();
  } else if (products > 1) {
    // One register tile a product, whose result waits for the others.
    Value tiles = addTiles(kernel, accFunc);
    halide::ComputeAtOp::create(b, loc, tiles, outFunc, "mb");
    halide::BoundExtentOp::create(b, loc, tiles, vars[0], i32(b, width));
    halide::BoundExtentOp::create(b, loc, tiles, vars[1], i32(b, tile.rows));
    boundOuter(tiles, acc().extents.size(), products);
    scheduleTile(tiles, 0, {"product"});
    halide::ComputeAtOp::create(b, loc, accFunc, tiles, "product");
    boundTile(accFunc, acc().extents.size());
  } else {
    halide::ComputeAtOp::create(b, loc, sumFunc, outFunc, "mb");
    boundTile(sumFunc, acc().extents.size());
  }
}

/// The loop over the terms of a register tile, and what it fetches.
void TiledContraction::scheduleTerms() {
  if (group > 1)
    halide::AtomicOp::create(b, loc, accFunc, 1);
  if (streams > 1)
    return scheduleStreams();
  scheduleTile(accFunc, 0, {});
  KnownExtent steps = this->steps();
  if (!steps) {
    scheduleTile(accFunc, 1, rnames);
    return;
  }
  bool isOnePanel = rnames.size() == 1 && packed.size() == 1;
  int64_t bytes = group > 1 && columnBytes != 2 ? 1 : columnBytes;
  int64_t elements = *steps * group * width * (isBlocked ? 1 : products);
  int64_t lines = std::max<int64_t>(1, elements * bytes / lineBytes);
  if (isSmallM && isOnePanel && lines <= mostLines) {
    // The next block, or panel, comes into the second cache while the tiles of
    // this one are computed, however many they are.
    scheduleSteps(accFunc, 1, unrolled, false);
    halide::PrefetchSpreadOp::create(
        b, loc, accFunc, 1, packed[0], rnames[0], elements,
        isBlocked ? sumFunc : outFunc,
        !isBlocked     ? task
        : products > 1 ? "product"
                       : heed::format("{}_b", rnames[0]),
        lines, 1, /*secondCache=*/true, /*inOrder=*/true, /*group=*/1,
        IntegerAttr(), IntegerAttr());
    return;
  }
  // Halide sees no sum, whose terms may come in any order, where they have a
  // condition.
  bool allTerms = !acc()
                       .updates[0]
                       .getSet()
                       .front()
                       .getTerminator()
                       ->getOperand(0)
                       .getDefiningOp<arith::SelectOp>();
  if (beyondCache && allTerms && !readsOneStream() &&
      kernel.rows == RowCount::Any && *steps % (4 * streamsOfRow) == 0) {
    Value isShort =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                              acc().extents[1].value, i32(b, 2 * tile.rows));
    auto version = halide::SpecializeOp::create(
        b, loc, accFunc, b.getI64IntegerAttr(1), isShort);
    OpBuilder::InsertionGuard inside(b);
    b.setInsertionPointToStart(&version.getBody().emplaceBlock());
    scheduleSteps(accFunc, 1, *steps / streamsOfRow, true);
  }
  scheduleSteps(accFunc, 1, unrolled, false);
  // What comes from memory comes while the panel before it is computed: each
  // iteration of the loop over tiles of rows asks for one line of the next
  // panel, and the tiles of a panel share its lines.
  if (beyondCache && isOnePanel && !readsOneStream())
    halide::PrefetchLinesOp::create(
        b, loc, accFunc, 1, packed[0], rnames[0],
        *steps * group * width * (isBlocked ? 1 : products),
        isBlocked ? sumFunc : outFunc, "mb",
        llvm::divideCeil(unrolled * group * width * bytes, lineBytes));
}

} // namespace

static std::optional<FamilyPlan>
matchContraction(const KernelFacts &facts, const halide::Target &target) {
  std::optional<ContractionPlan> plan = planContraction(facts);
  if (!plan)
    return std::nullopt;
  return FamilyPlan{Benefit::Tiles,
                    [plan = *plan, &target](KernelInfo &kernel) {
                      TiledContraction(kernel, target).run(plan);
                      return true;
                    }};
}

namespace heed {
Family contractionFamily() {
  Family family{"contraction", matchContraction};
  family.versions = contractionVersions;
  return family;
}
} // namespace heed
