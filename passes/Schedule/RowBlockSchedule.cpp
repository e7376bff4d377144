//===- RowBlockSchedule.cpp - loops of a row block ------------------------===//
#include "passes/Schedule/RowBlock.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

void RowBlock::schedule(Value func, Value root, StringRef task) {
  KernelFunc *f = kernel.find(func);
  Member &member = members[func];
  Location loc = func.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<std::string> names = varsOf(f->func);
  std::string q = names[member.query];
  bool isCopy = member.accumulators && member.accumulators != func;
  bool inTile = member.tiled >= 0 && !isCopy;
  std::string tiled = member.tiled >= 0 ? names[member.tiled] : "";

  SmallVector<StringRef> storage{q};
  for (StringRef name : names)
    if (name != q)
      storage.push_back(name);
  if (inTile) {
    // The copy's loop over register tiles.
    Value copy;
    for (halide::ReadOp read : readsOf(func))
      if (readerOf(read) != func)
        copy = readerOf(read);
    halide::ComputeAtOp::create(b, loc, func, copy, tiled);
    fetchAhead(*f, copy, tiled);
  } else {
    halide::ComputeAtOp::create(b, loc, func, root, task);
  }
  auto *turns = turned.find(func);
  if (storage.size() > 1 && turns == turned.end())
    halide::ReorderStorageOp::create(b, loc, func, storage);
  // A reader that asks for some rows of the tile alone (`if j <= i - 2`) would
  // begin the tile at the first of them. Halide takes the last bound first: the
  // other way round it would align what has got its extent, to two tiles.
  halide::BoundExtentOp::create(b, loc, func, q, i32(b, lanes));
  halide::AlignBoundsOp::create(b, loc, func, q, lanes, 0);
  for (auto [d, name] : llvm::enumerate(names)) {
    if (name == q)
      continue;
    if (inTile && static_cast<int>(d) == member.tiled)
      halide::BoundExtentOp::create(b, loc, func, name,
                                    i32(b, member.unrolled));
    else if (inTile || shares(member.ids[d]))
      halide::BoundExtentOp::create(b, loc, func, name, i32(b, 1));
  }
  if (turns == turned.end())
    scheduleLoops(*f, tiled, isCopy);
  else
    scheduleTurned(func, turns->second);
}

/// The extent of dim \p dim of an input, where the types say it.
static std::optional<int64_t> fixedExtent(Value input, unsigned dim) {
  for (Operation *user : input.getUsers()) {
    APInt extent;
    auto bounds = dyn_cast<halide::SetBoundsOp>(user);
    if (bounds && bounds.getDim() == dim && bounds.getExtent() &&
        matchPattern(bounds.getExtent(), m_ConstantInt(&extent)))
      return extent.getSExtValue();
  }
  return std::nullopt;
}

/// Rows of an input that register tile \p f meets come from beyond the caches
/// while the ones before them are computed: the next places' of loop \p tiled
/// of
/// \p copy, or the next block's.
void RowBlock::fetchAhead(KernelFunc &f, Value copy, StringRef tiled) {
  Member &member = members[f.func.getResult()];
  Block &body = f.updates[0].getSet().front();
  size_t rank = f.extents.size();
  if (member.unrolled == 1 || f.reductions[0].size() != 1 ||
      !f.reductions[0][0].fixed)
    return;
  int64_t steps = *f.reductions[0][0].fixed;
  Value place = body.getArgument(member.tiled), step = body.getArgument(rank);
  auto follows = [&](Value coordinate, ArrayRef<Value> vars) {
    llvm::SmallPtrSet<Value, 4> of = argumentsOf(coordinate);
    return of.size() == vars.size() &&
           llvm::all_of(vars, [&](Value var) { return of.contains(var); });
  };
  OpBuilder b = scheduleBuilder(kernel);
  for (auto read : body.getOps<halide::ReadOp>()) {
    auto source = read.getFunc().getDefiningOp<halide::BufferOp>();
    if (!source || read.getCoordinates().size() < 2)
      continue;
    Value column = read.getCoordinates()[0], row = read.getCoordinates()[1];
    std::optional<int64_t> length = fixedExtent(read.getFunc(), 0);
    int64_t rows = 0, turns = steps;
    std::string over = tiled.str();
    if (member.block >= 0 && follows(column, place) &&
        follows(row, {step, body.getArgument(member.block)})) {
      rows = steps;
      turns *=
          llvm::divideCeil(*f.extents[member.tiled].fixed, member.unrolled);
      over = cast<StringAttr>(
                 kernel.find(copy)->updates[0].getRvars().getValue().back())
                 .str();
    } else if (member.block < 0 && length == steps && follows(column, step) &&
               follows(row, place)) {
      rows = member.unrolled;
    }
    unsigned bits =
        halide::getElementTypes(read.getFunc()).front().getIntOrFloatBitWidth();
    if (!rows || !length || turns <= 0)
      continue;
    constexpr int64_t lineBits = 512;
    int64_t lines =
        std::clamp<int64_t>(rows * *length * bits / lineBits, 1, 1024);
    halide::PrefetchSpreadOp::create(
        b, f.func.getLoc(), f.func.getResult(), 1, read.getFunc(),
        cast<StringAttr>(f.updates[0].getRvars()[0]).str(), rows * *length,
        copy, over, lines, 1, /*secondCache=*/false, /*inOrder=*/false,
        std::clamp<int64_t>(llvm::divideCeil(lines, turns), 1, 64),
        IntegerAttr(), IntegerAttr());
  }
}

/// The loops of each stage of \p f: queries as lanes, then the places of the
/// register tile, by \p tiled, if it has one; a copy goes over all tiles.
void RowBlock::scheduleLoops(KernelFunc &f, StringRef tiled, bool isCopy) {
  Value func = f.func.getResult();
  Member &member = members[func];
  Location loc = func.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<std::string> names = varsOf(f.func);
  std::string q = names[member.query];
  bool inTile = member.tiled >= 0 && !isCopy;
  for (int64_t stage = 0, end = f.updates.size(); stage <= end; ++stage) {
    SmallVector<std::string> order{q};
    if (isCopy) {
      halide::SplitOp::create(b, loc, func, stage, tiled, tiled, "place",
                              member.unrolled, halide::TailStrategy::RoundUp);
      order.push_back("place");
      order.push_back(tiled.str());
    } else if (inTile) {
      order.push_back(tiled.str());
    }
    if (stage)
      for (Attribute r : f.updates[stage - 1].getRvars())
        order.push_back(cast<StringAttr>(r).str());
    for (StringRef name : names)
      if (!llvm::is_contained(order, name))
        order.push_back(name.str());
    halide::ReorderOp::create(
        b, loc, func, stage,
        SmallVector<StringRef>(order.begin(), order.end()));
    halide::VectorizeOp::create(b, loc, func, stage, q);
    if (isCopy)
      halide::UnrollOp::create(b, loc, func, stage, "place");
    else if (inTile)
      halide::UnrollOp::create(b, loc, func, stage, tiled);
  }
}

/// A root with a tile: its loops, then the funcs inside of them.
void RowBlock::scheduleRoot(Value root) {
  chooseLanes(root);
  for (Value func : SmallVector<Value>(group))
    splitSum(func);
  for (Value func : group)
    maskTerms(func);
  for (Value func : SmallVector<Value>(group))
    stageWeights(func);
  for (Value func : SmallVector<Value>(group))
    stageReads(func);
  turned.clear();
  for (Value func : SmallVector<Value>(group))
    stageRows(func);
  for (Value func : group)
    clampReads(func);
  stageResults(root);
  for (auto &[func, how] : turned)
    turn(func, how);

  KernelFunc *out = kernel.find(root);
  Location loc = root.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  auto guard = halide::TailStrategy::GuardWithIf;
  bool isOutput = llvm::is_contained(outputsOf(kernel), out);
  if (!isOutput)
    halide::ComputeRootOp::create(b, loc, root);
  SmallVector<std::string> names = varsOf(out->func), order;
  std::string q = names[query];
  int64_t width = vector;
  for (Type type : halide::getElementTypes(root))
    width =
        std::min<int64_t>(width, 32 * vector / type.getIntOrFloatBitWidth());
  halide::SplitOp::create(b, loc, root, 0, q, "tile", "row", lanes, guard);
  if (query == 0) {
    halide::VectorizeOp::create(b, loc, root, 0, "row");
    order.push_back("row");
  } else if (!(out->extents[0].fixed && *out->extents[0].fixed < width)) {
    vectorizeInner(b, out->func, 0, names[0], width);
    order.push_back(heed::format("{}v", names[0]));
  }
  SmallVector<std::string> outer{"tile"};
  for (auto [d, name] : llvm::enumerate(names)) {
    if (static_cast<int>(d) == query)
      continue;
    (shares(d) ? outer : order).push_back(name);
  }
  if (query != 0)
    order.push_back("row");
  size_t first = order.size();
  order.append(outer);
  halide::ReorderOp::create(b, loc, root, 0,
                            SmallVector<StringRef>(order.begin(), order.end()));
  std::string task =
      parallelOuter(b, out->func, 0, order, first, FusedBody::ComputesFuncs);
  // The last tile needs no loops of its own.
  halide::PartitionOp::create(b, loc, root, 0, task, halide::Partition::Never);
  for (Value func : group)
    if (isStored(*kernel.find(func)))
      schedule(func, root, task);
}

/// A root without a tile: rows of its own reductions, or elementwise.
void RowBlock::scheduleAlone(Value root) {
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<Value> funcs(group);
  funcs.push_back(root);
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  for (Value func : funcs) {
    KernelFunc *f = kernel.find(func);
    if (f->role == FuncRole::Pure && func != root)
      continue;
    if (!llvm::is_contained(outputs, f))
      halide::ComputeRootOp::create(b, func.getLoc(), func);
    SmallVector<std::string> vars = varsOf(f->func);
    for (int64_t stage = 0, end = f->updates.size(); stage <= end; ++stage)
      parallelOuter(b, f->func, stage, vars, vars.size() > 1 ? 1 : 0,
                    FusedBody::Alone);
  }
}
