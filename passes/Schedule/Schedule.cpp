//===- Schedule.cpp - choice of a family, and what the families share -----===//
#include "passes/Schedule/Schedule.h"
#include "passes/Algebra/ElementCost.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

StringRef heed::scheduleKernel(KernelInfo &kernel,
                               const halide::Target &target) {
  KernelFacts facts = factsOf(kernel);
  SmallVector<std::pair<StringRef, FamilyPlan>> plans;
  for (const Family &family : families(target.isGPU()))
    if (std::optional<FamilyPlan> plan = family.match(facts, target))
      plans.push_back({family.name, std::move(*plan)});
  while (!plans.empty()) {
    // Of two that gain the same, the first one of the list.
    auto *best = llvm::max_element(plans, [](auto &a, auto &b) {
      return a.second.benefit < b.second.benefit;
    });
    if (best->second.schedule(kernel))
      return best->first;
    plans.erase(best);
  }
  llvm_unreachable("a family takes every kernel");
}

KernelFunc &heed::computation(KernelInfo &kernel, unsigned number) {
  return *std::next(kernel.funcs.begin(), number);
}

SmallVector<KernelFunc *> heed::outputsOf(KernelInfo &kernel) {
  SmallVector<KernelFunc *> outputs;
  for (halide::FuncOp func : kernel.pipeline.getOutputFuncs())
    outputs.push_back(kernel.find(func.getResult()));
  return outputs;
}

OpBuilder heed::scheduleBuilder(KernelInfo &kernel) {
  return OpBuilder::atBlockEnd(&kernel.pipeline.getBody().front());
}

SmallVector<std::string> heed::varsOf(halide::FuncOp func) {
  SmallVector<std::string> vars;
  for (Attribute var : func.getVars())
    vars.push_back(cast<StringAttr>(var).str());
  return vars;
}

void heed::streamOutputs(KernelInfo &kernel, const halide::Target &target) {
  OpBuilder b = scheduleBuilder(kernel);
  for (KernelFunc *out : outputsOf(kernel))
    streamOutput(b, *out, target);
}

void heed::streamOutput(OpBuilder &b, KernelFunc &out,
                        const halide::Target &target, Value times) {
  // An array that takes a quarter of the last cache leaves it, with what is
  // read to compute it, before all of it is read.
  int64_t beyond = target.l3 / 4;
  // Rows that are shorter than a vector are stored in parts of one.
  int64_t lanes = target.lanes(std::max(32u, widestBits(out.func)));
  bool hasVectors =
      !out.extents.empty() && out.extents[0].fixed.value_or(lanes) >= lanes &&
      llvm::any_of(out.func->getUsers(), llvm::IsaPred<halide::VectorizeOp>);
  if (!hasVectors || halide::getElementTypes(out.func.getResult()).size() != 1)
    return;
  std::optional<int64_t> bytes = widestBits(out.func) / 8;
  for (const Extent &extent : out.extents)
    if (!extent.fixed)
      bytes = std::nullopt;
    else if (bytes && *bytes <= beyond)
      *bytes *= *extent.fixed;
  if (!bytes || *bytes > beyond || times)
    halide::StreamStoresOp::create(b, out.func.getLoc(), out.func.getResult(),
                                   beyond, times);
}

unsigned heed::widestBits(halide::FuncOp func) {
  unsigned bits = 8;
  for (Type type : halide::getElementTypes(func.getResult()))
    bits = std::max(bits, type.getIntOrFloatBitWidth());
  return bits;
}

SmallVector<std::string> heed::fuseLoops(OpBuilder &b, halide::FuncOp func,
                                         int64_t stage,
                                         ArrayRef<std::string> vars,
                                         FusedBody body) {
  // From the inside out, three loops at a time. The two inner ones are then
  // (f mod xy) mod x and (f mod xy) / x of the fused loop f. Where one read has
  // both as coordinates, Halide names f mod xy, and takes the remainder of a
  // name for a range: what is computed inside would be stored beside its place.
  // A var that was split has a name of its own for where it begins.
  SmallVector<std::string> loops;
  Value f = func.getResult();
  SmallVector<std::string> own = varsOf(func);
  for (; !vars.empty();
       vars = vars.drop_front(std::min<size_t>(3, vars.size()))) {
    std::string fused = vars.front();
    if (body == FusedBody::ComputesFuncs && vars.size() >= 3 &&
        llvm::is_contained(own, fused))
      halide::SplitOp::create(b, func.getLoc(), f, stage, fused, fused,
                              heed::format("{}_point", fused), 1,
                              halide::TailStrategy::RoundUp);
    for (const std::string &var : vars.take_front(3).drop_front()) {
      std::string next = heed::format("{}_{}", fused, var);
      halide::FuseOp::create(b, func.getLoc(), f, stage, fused, var, next);
      fused = next;
    }
    loops.push_back(fused);
  }
  return loops;
}

std::string heed::parallelOuter(OpBuilder &b, halide::FuncOp func,
                                int64_t stage, ArrayRef<std::string> vars,
                                size_t first, FusedBody body) {
  if (vars.size() <= first)
    return "";
  SmallVector<std::string> loops =
      fuseLoops(b, func, stage, vars.drop_front(first), body);
  for (const std::string &loop : loops)
    halide::ParallelOp::create(b, func.getLoc(), func.getResult(), stage, loop);
  return loops.front();
}

void heed::vectorizeInner(OpBuilder &b, halide::FuncOp func, int64_t stage,
                          StringRef var, int64_t lanes) {
  if (lanes < 2)
    return;
  Location loc = func.getLoc();
  std::string inner = heed::format("{}v", var);
  halide::SplitOp::create(b, loc, func.getResult(), stage, var, var, inner,
                          lanes, halide::TailStrategy::GuardWithIf);
  halide::VectorizeOp::create(b, loc, func.getResult(), stage, inner);
}

int64_t heed::vectorsOfSum(const KernelFunc &f, int64_t lanes, bool isAlone,
                           const halide::Target &target) {
  std::optional<int64_t> extent = f.extents[0].fixed;
  if (!extent || *extent % lanes || f.updates.empty())
    return 1;
  for (halide::UpdateOp update : f.updates) {
    Block &body = update.getSet().front();
    OperationCount count = countOperations(update);
    bool isSimple = !count.functions && !count.divisions && count.reals <= 2;
    for (auto read : body.getOps<halide::ReadOp>())
      isSimple &= read.getCoordinates().empty() ||
                  read.getCoordinates().front() == body.getArgument(0);
    if (!isSimple)
      return 1;
  }
  int64_t vectors = *extent / lanes, most = target.vectorRegisters / 2;
  if (isAlone)
    most = std::min(most, vectors / (2 * target.cores));
  for (; most > 1 && vectors % most; --most)
    ;
  return std::max<int64_t>(1, most);
}

SmallVector<std::string> heed::vectorizeSum(OpBuilder &b, halide::FuncOp f,
                                            int64_t stage, int64_t lanes,
                                            int64_t vectors) {
  std::string var = varsOf(f)[0], inner = heed::format("{}u", var);
  if (vectors == 1) {
    vectorizeInner(b, f, stage, var, lanes);
    return {heed::format("{}v", var)};
  }
  Location loc = f.getLoc();
  Value func = f.getResult();
  halide::SplitOp::create(b, loc, func, stage, var, var, inner, vectors * lanes,
                          halide::TailStrategy::GuardWithIf);
  halide::SplitOp::create(b, loc, func, stage, inner, inner,
                          heed::format("{}v", var), lanes,
                          halide::TailStrategy::GuardWithIf);
  halide::VectorizeOp::create(b, loc, func, stage, heed::format("{}v", var));
  halide::UnrollOp::create(b, loc, func, stage, inner);
  return {heed::format("{}v", var), inner};
}

RegisterTile heed::chooseTile(std::optional<int64_t> columns, int64_t lanes,
                              int64_t registers) {
  // One register for a broadcast, the rest for accumulators and a row of B: MR
  // * NV + NV + 1 <= registers.
  SmallVector<RegisterTile> tiles;
  if (registers >= 32)
    tiles = {{8, 3}, {6, 4}, {12, 2}, {16, 1}};
  else
    tiles = {{4, 3}, {6, 2}, {8, 1}};
  if (!columns)
    return tiles.front();
  auto padded = [&](RegisterTile t) {
    int64_t width = t.vectors * lanes;
    return (*columns + width - 1) / width * width;
  };
  // A wider tile is worth a few columns.
  RegisterTile best = tiles.front();
  for (RegisterTile t : tiles)
    if (padded(t) < padded(best) && padded(t) * 64 < padded(tiles.front()) * 63)
      best = t;
  return best;
}
