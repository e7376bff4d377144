//===- GroupedTerms.cpp - sums whose lanes take several terms a step ------===//
//
// y[m, n] = sum_r A[m, r] * B[r, n] of narrow numbers. A step of the sum is one
// instruction that multiplies as many numbers as fit beside each other in a
// lane of the sum, and adds them: sum_k (A[m, 2k] B[2k, n] + A[m, 2k + 1]
// B[2k + 1, n]).
//
// B is packed in panels [panel][k][column][part], its numbers as they are; A is
// copied, so that a lane takes its terms of a step at once, with what adds
// nothing behind the last term.
#include "passes/Schedule/GroupedTerms.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

GroupedTerms::GroupedTerms(KernelInfo &kernel, Value sum, halide::ReadOp panel,
                           PanelShape shape, bool packsInTask,
                           const halide::Target &target)
    : kernel(kernel), f(kernel.find(sum)), update(f->updates[0]),
      body(update.getSet().front()), column(panel), shape(shape),
      packsInTask(packsInTask), target(target), loc(update.getLoc()), b(update),
      rank(f->extents.size()), panelDim(rank - (shape.products > 1)) {}

bool GroupedTerms::match() {
  unsigned number = 0;
  Operation *combine = combinerOf(update, number);
  Operation *yield = f->func.getBody().front().getTerminator();
  if (!combine || !isSum(combine) || f->updates.size() != 1 ||
      !update.getWhere().empty() || !update.getAt().empty() ||
      !(matchPattern(yield->getOperand(0), m_Zero()) ||
        matchPattern(yield->getOperand(0), m_PosZeroFloat())))
    return false;
  auto factors = factorsOf(combine->getOperand(number));
  if (!factors)
    return false;
  Value x = narrowOf(factors->first), y = narrowOf(factors->second);
  Value ofColumns = column.getResult(0);
  row = x == ofColumns ? y : x;
  if (!row || row == ofColumns || (x != ofColumns && y != ofColumns) ||
      !matchRow())
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

bool heed::isReadAtLoops(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (!def || isa<halide::PipelineOp>(def->getParentOp()) ||
        !seen.insert(def).second)
      continue;
    auto read = dyn_cast<halide::ReadOp>(def);
    if (!read) {
      work.append(def->operand_begin(), def->operand_end());
      continue;
    }
    llvm::SmallPtrSet<Value, 4> ofRead;
    for (Value at : read.getCoordinates())
      if (isa<BlockArgument>(at) ? !ofRead.insert(at).second
                                 : !argumentsOf(at).empty())
        return false;
  }
  return true;
}

bool GroupedTerms::matchRow() {
  llvm::SmallPtrSet<Value, 4> used = argumentsOf(row);
  if (!used.contains(term()) || used.contains(body.getArgument(0)) ||
      !isReadAtLoops(row))
    return false;
  for (BlockArgument arg : body.getArguments())
    if (arg != term() && used.contains(arg))
      ofRows.push_back(arg);
  return true;
}

Value GroupedTerms::lastTerm(OpBuilder &inner, Value term) {
  if (terms.fixed && *terms.fixed % group == 0)
    return term;
  Value likely = halide::LikelyOp::create(inner, loc, term);
  return arith::MinSIOp::create(inner, loc, likely,
                                addI32(inner, terms.value, -1));
}

Value GroupedTerms::orZero(OpBuilder &inner, Value term, Value value) {
  if (terms.fixed && *terms.fixed % group == 0)
    return value;
  Value end = mutated("contraction.part-beyond-last-term")
                  ? mulI32(inner, steps.value, group)
                  : terms.value;
  Value isTerm =
      arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, term, end);
  Value likely = halide::LikelyOp::create(inner, loc, value);
  Value zero =
      arith::ConstantOp::create(inner, loc, inner.getZeroAttr(value.getType()));
  return arith::SelectOp::create(inner, loc, isTerm, likely, zero);
}

Value GroupedTerms::addRows() {
  SmallVector<std::string> names{"term"};
  SmallVector<Extent> extents{{mulI32(b, steps.value, group), {}}};
  if (steps.fixed)
    extents[0].fixed = *steps.fixed * group;
  for (BlockArgument arg : ofRows) {
    unsigned at = arg.getArgNumber();
    names.push_back(heed::format("a{}", at));
    extents.push_back(at < rank ? f->extents[at] : f->reductions[0][at - rank]);
  }
  Type type = rowType();
  SmallVector<StringRef> vars(names.begin(), names.end());
  KernelFunc &rows =
      addFunc(kernel, update, "rows", vars, type, extents,
              [&](OpBuilder &inner, ValueRange args) -> Value {
                IRMapping map;
                map.map(term(), lastTerm(inner, args[0]));
                for (auto [arg, dim] : llvm::zip(ofRows, args.drop_front()))
                  map.map(arg, dim);
                return rowOf(inner, args[0], cloneSlice(inner, row, map));
              });
  OpBuilder at = scheduleBuilder(kernel);
  halide::ComputeRootOp::create(at, loc, rows.func.getResult());
  vectorizeInner(at, rows.func, 0, "term",
                 target.lanes(type.getIntOrFloatBitWidth()));
  parallelOuter(at, rows.func, 0, names, 1, FusedBody::Alone);
  return rows.func.getResult();
}

Value GroupedTerms::addPanel() {
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
        return columnOf(inner, term,
                        cloneSlice(inner, column.getResult(0), map));
      });
  return schedulePanel(panel, panelAt);
}

Value GroupedTerms::schedulePanel(KernelFunc &panel, size_t panelAt) {
  auto schedule = [&](OpBuilder &at, KernelFunc &own) {
    SmallVector<std::string> names = varsOf(own.func);
    scheduleGroupedPanel(at, own.func.getResult(), shape, group);
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
GroupedTerms::placeOf(Value lane, Value part, Value step, Value number,
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

halide::UpdateOp GroupedTerms::addUpdate(
    Value func, llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
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

Value GroupedTerms::addTerm(OpBuilder &at, ValueRange args, Value sum,
                            Value rows, Value panel) {
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
  auto read = [&](Value from, ValueRange coordinates) -> Value {
    return halide::ReadOp::create(at, loc,
                                  halide::getElementTypes(from).front(), from,
                                  coordinates)
        .getResult(0);
  };
  Value x = read(rows, ofA), y = read(panel, ofB);
  return addProduct(at, read(sum, args.take_front(rank + 1)), x, y);
}

Value GroupedTerms::addSum(Value rows, Value panel) {
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
  addColumns(panel, ofColumns);
  KernelFunc &grouped = addFunc(
      kernel, update, heed::format("{}_grouped", f->func.getName()), vars,
      halide::getElementTypes(f->func.getResult()).front(), extents,
      [&](OpBuilder &inner, ValueRange args) -> Value {
        SmallVector<Value> at{args[0], args[panelDim]};
        for (BlockArgument arg : ofColumns)
          at.push_back(
              args[arg.getArgNumber() + (arg.getArgNumber() >= panelDim)]);
        return startOf(inner, at);
      });
  Value sum = grouped.func.getResult();
  addUpdate(sum, [&](OpBuilder &at, ValueRange args) {
    return addTerm(at, args, sum, rows, panel);
  });
  return sum;
}

void GroupedTerms::replaceSum(Value sum) {
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
}

GroupedSum GroupedTerms::run() {
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

  replaceSum(sum);
  if (!features().empty())
    kernel.pipeline->setAttr("halide.features", b.getStringAttr(features()));
  return {sum, panel, columnSums, packsInTask, group};
}

std::optional<GroupedSum> heed::groupTerms(KernelInfo &kernel, Value sum,
                                           halide::ReadOp panel,
                                           PanelShape shape, bool packsInTask,
                                           const halide::Target &target) {
  for (auto kind : {byteTerms, bfloatTerms})
    if (std::unique_ptr<GroupedTerms> found =
            kind(kernel, sum, panel, shape, packsInTask, target))
      return found->run();
  return std::nullopt;
}
