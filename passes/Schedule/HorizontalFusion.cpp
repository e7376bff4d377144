//===- HorizontalFusion.cpp - sums over one operand as one sum ------------===//
//
// Sums over the same loops that differ in one array that they read, weights of
// products with one operand, become one sum with a dim more, which counts them:
// its tile reads the operand once for all of them: horizontal fusion.
//
//===----------------------------------------------------------------------===//

#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

namespace {

bool sameExtents(ArrayRef<Extent> a, ArrayRef<Extent> b) {
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [](auto pair) {
           auto &[x, y] = pair;
           return x.value == y.value || (x.fixed && x.fixed == y.fixed);
         });
}

/// Values of the pipeline: the same, or equal constants.
bool sameOutside(Value a, Value b) {
  Attribute x, y;
  return a == b || (matchPattern(a, m_Constant(&x)) &&
                    matchPattern(b, m_Constant(&y)) && x == y);
}

/// Compares the bodies of two sums. \p reads gets the one read of each that
/// reads another array than the other's.
bool sameTerms(halide::UpdateOp a, halide::UpdateOp b,
               std::pair<halide::ReadOp, halide::ReadOp> &reads) {
  unsigned others = 0; // that differ
  IRMapping map;
  map.map(a.getFunc(), b.getFunc());
  auto isSame = [&](Value x, Value y) {
    if (Value known = map.lookupOrNull(x))
      return success(known == y);
    if (sameOutside(x, y))
      return success();
    ++others;
    return success(isa_and_nonnull<halide::BufferOp>(x.getDefiningOp()) &&
                   isa_and_nonnull<halide::BufferOp>(y.getDefiningOp()));
  };
  if (!OperationEquivalence::isRegionEquivalentTo(
          &a.getSet(), &b.getSet(), isSame,
          [&](Value x, Value y) { map.map(x, y); },
          OperationEquivalence::IgnoreLocations))
    return false;
  for (auto [x, y] : llvm::zip(a.getSet().getOps<halide::ReadOp>(),
                               b.getSet().getOps<halide::ReadOp>()))
    if (map.lookupOrDefault(x.getFunc()) != y.getFunc())
      reads = {x, y};
  return others == 1 && reads.first;
}

/// The constant that a sum starts from.
Attribute startOf(halide::FuncOp func) {
  Attribute constant;
  Operation *yield = func.getBody().front().getTerminator();
  if (yield->getNumOperands() == 1)
    matchPattern(yield->getOperand(0), m_Constant(&constant));
  return constant;
}

void eraseFunc(KernelInfo &kernel, Value func) {
  KernelFunc *f = kernel.find(func);
  for (halide::UpdateOp update : f->updates)
    update.erase();
  halide::FuncOp op = f->func;
  kernel.funcs.remove_if([&](KernelFunc &g) { return g.func == op; });
  op.erase();
}

/// Sums that are alike.
struct AlikeSums {
  SmallVector<Value> sums;
  halide::ReadOp differs;    ///< what the first one reads alone
  SmallVector<Value> arrays; ///< that each of them reads there
};

/// The sums of \p kernel if there are several, and they differ in one array
/// alone.
std::optional<AlikeSums> findAlikeSums(KernelInfo &kernel) {
  AlikeSums alike;
  for (KernelFunc &f : kernel.funcs)
    if (f.role == FuncRole::Reduction)
      alike.sums.push_back(f.func.getResult());
  if (alike.sums.size() < 2)
    return std::nullopt;
  KernelFunc *first = kernel.find(alike.sums[0]);
  if (first->updates.size() != 1)
    return std::nullopt;
  for (Value sum : alike.sums) {
    KernelFunc *f = kernel.find(sum);
    Attribute start = startOf(f->func);
    if (f->updates.size() != 1 || !start || start != startOf(first->func) ||
        !f->updates[0].getAt().empty() || !f->updates[0].getWhere().empty() ||
        !sameExtents(f->extents, first->extents) ||
        !sameExtents(f->reductions[0], first->reductions[0]) ||
        halide::getElementTypes(sum) != halide::getElementTypes(alike.sums[0]))
      return std::nullopt;
    if (sum == alike.sums[0])
      continue;
    std::pair<halide::ReadOp, halide::ReadOp> reads;
    if (!sameTerms(first->updates[0], f->updates[0], reads) ||
        (alike.differs && alike.differs != reads.first))
      return std::nullopt;
    alike.differs = reads.first;
    if (alike.arrays.empty())
      alike.arrays.push_back(alike.differs.getFunc());
    alike.arrays.push_back(reads.second.getFunc());
  }
  for (KernelFunc *output : outputsOf(kernel))
    if (!sameExtents(output->extents, first->extents) ||
        halide::getElementTypes(output->func.getResult()).size() != 1)
      return std::nullopt;
  return alike;
}

/// A func of all arrays that \p alike read, with their number as its last
/// coordinate, of extent \p number.
Value addFused(KernelInfo &kernel, KernelFunc &first, const AlikeSums &alike,
               Extent number, Location loc) {
  halide::ReadOp differs = alike.differs;
  SmallVector<std::string> names;
  for (size_t d = 0; d < differs.getCoordinates().size(); ++d)
    names.push_back(heed::format("x{}", d));
  names.push_back("product");
  SmallVector<StringRef> vars(names.begin(), names.end());
  Type element = differs.getResult(0).getType();
  SmallVector<Extent> unknown(names.size());
  unknown.back() = number;
  return addFunc(kernel, first.func, "fused", vars, element, unknown,
                 [&](OpBuilder &inner, ValueRange args) -> Value {
                   SmallVector<Value> values;
                   for (Value one : alike.arrays)
                     values.push_back(halide::ReadOp::create(inner, loc,
                                                             element, one,
                                                             args.drop_back())
                                          .getResult(0));
                   if (mutated("contraction.fused-in-reverse"))
                     std::reverse(values.begin(), values.end());
                   return halide::MuxOp::create(inner, loc, element,
                                                args.back(), values);
                 })
      .func.getResult();
}

/// A func with the dims of \p first, a sum, and their number, which starts as
/// it does and has no update yet.
KernelFunc &addWhole(KernelInfo &kernel, KernelFunc &first, Extent number,
                     Location loc) {
  SmallVector<std::string> names = varsOf(first.func);
  names.push_back("product");
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents = first.extents;
  extents.push_back(number);
  Attribute start = startOf(first.func);
  std::string name = heed::format("{}_all", first.func.getName());
  KernelFunc &whole = addFunc(
      kernel, first.func, name, vars,
      halide::getElementTypes(first.func.getResult()).front(), extents,
      [&](OpBuilder &inner, ValueRange) -> Value {
        return arith::ConstantOp::create(inner, loc, cast<TypedAttr>(start));
      });
  whole.role = FuncRole::Reduction;
  whole.reductions = first.reductions;
  return whole;
}

/// The update of \p all that is \p update for each product: what it reads of
/// its own func, and by \p differs, it reads of \p all and \p array.
halide::UpdateOp fuseUpdate(halide::UpdateOp update, halide::ReadOp differs,
                            size_t rank, Value all, Value array) {
  Location loc = update.getLoc();
  OpBuilder b(update);
  SmallVector<StringRef> rvars;
  for (Attribute rvar : update.getRvars())
    rvars.push_back(cast<StringAttr>(rvar).getValue());
  auto fresh = halide::UpdateOp::create(b, loc, all, rvars, update.getBounds());
  fresh.fill(b, fresh.getSet(),
             [&](OpBuilder &inner, Location, ValueRange args) {
               Block &body = update.getSet().front();
               IRMapping map;
               for (auto [k, arg] : llvm::enumerate(body.getArguments()))
                 map.map(arg, args[k < rank ? k : k + 1]);
               for (Operation &op : body.without_terminator()) {
                 auto read = dyn_cast<halide::ReadOp>(op);
                 bool own = read && read.getFunc() == update.getFunc();
                 if (!own && read != differs) {
                   inner.clone(op, map);
                   continue;
                 }
                 SmallVector<Value> at;
                 for (Value coordinate : read.getCoordinates())
                   at.push_back(map.lookupOrDefault(coordinate));
                 at.push_back(args[rank]);
                 auto now = halide::ReadOp::create(
                     inner, loc, read->getResultTypes(), own ? all : array, at);
                 map.map(read.getResults(), now.getResults());
               }
               return SmallVector<Value>{
                   map.lookupOrDefault(body.getTerminator()->getOperand(0))};
             });
  return fresh;
}

/// Who reads \p sum reads product \p number of \p all; then \p sum is gone.
void replaceSum(KernelInfo &kernel, Value sum, int64_t number, Value all,
                Location loc) {
  Type type = halide::getElementTypes(sum).front();
  for (Operation *user : llvm::make_early_inc_range(sum.getUsers())) {
    auto read = dyn_cast<halide::ReadOp>(user);
    if (!read || isa<halide::UpdateOp>(read->getParentOp()))
      continue;
    OpBuilder at(read);
    SmallVector<Value> coordinates(read.getCoordinates());
    coordinates.push_back(
        i32(at, mutated("contraction.first-of-fused-sums") ? 0 : number));
    auto now = halide::ReadOp::create(at, loc, type, all, coordinates);
    read.getResult(0).replaceAllUsesWith(now.getResult(0));
    read.erase();
  }
  eraseFunc(kernel, sum);
}

} // namespace

void heed::joinOutputs(KernelInfo &kernel) {
  SmallVector<halide::OutputOp> outputs(
      kernel.pipeline.getBody().front().getOps<halide::OutputOp>());
  SmallVector<KernelFunc *> written = outputsOf(kernel);
  if (outputs.size() < 2 || llvm::any_of(written, [&](KernelFunc *f) {
        return !sameExtents(f->extents, written[0]->extents) ||
               halide::getElementTypes(f->func.getResult()).size() != 1;
      }))
    return;
  SmallVector<Value> funcs;
  SmallVector<Type> types;
  for (halide::OutputOp output : outputs) {
    funcs.push_back(output.getFunc());
    types.push_back(halide::getElementTypes(output.getFunc()).front());
  }
  Location loc = outputs.back().getLoc();
  KernelFunc *first = kernel.find(funcs[0]);
  SmallVector<std::string> names = varsOf(first->func);
  SmallVector<StringRef> vars(names.begin(), names.end());
  KernelFunc joined;
  joined.extents = first->extents;
  OpBuilder b(outputs.back());
  joined.func = halide::FuncOp::create(
      b, loc, "results", vars, types,
      [&](OpBuilder &inner, Location, ValueRange args) {
        SmallVector<Value> values;
        for (auto [func, type] : llvm::zip(funcs, types))
          values.push_back(halide::ReadOp::create(inner, loc, type, func, args)
                               .getResult(0));
        return values;
      });
  Value result = joined.func.getResult();
  halide::OutputOp::create(b, loc, result);
  for (auto [k, func] : llvm::enumerate(funcs))
    for (Operation *user : llvm::make_early_inc_range(func.getUsers()))
      if (isa<halide::SetBoundsOp, halide::SetStrideOp>(user)) {
        if (k > 0) {
          user->erase();
          continue;
        }
        user->replaceUsesOfWith(func, result);
        user->moveAfter(joined.func);
      }
  for (halide::OutputOp output : outputs)
    output.erase();
  kernel.funcs.push_back(std::move(joined));
}

bool heed::hasAlikeSums(KernelInfo &kernel) {
  return findAlikeSums(kernel).has_value();
}

void heed::fuseHorizontally(KernelInfo &kernel) {
  AlikeSums alike = *findAlikeSums(kernel);
  halide::UpdateOp update = kernel.find(alike.sums[0])->updates[0];
  separateOutputs(kernel);
  joinOutputs(kernel);
  KernelFunc *first = kernel.find(alike.sums[0]);
  Location loc = update.getLoc();
  int64_t count = alike.sums.size();
  Extent number;
  {
    OpBuilder before(first->func);
    number = {i32(before, count), count};
  }
  Value array = addFused(kernel, *first, alike, number, loc);
  KernelFunc &whole = addWhole(kernel, *first, number, loc);
  Value all = whole.func.getResult();
  whole.updates.push_back(
      fuseUpdate(update, alike.differs, first->extents.size(), all, array));
  for (auto [k, sum] : llvm::enumerate(alike.sums))
    replaceSum(kernel, sum, k, all, loc);
}
