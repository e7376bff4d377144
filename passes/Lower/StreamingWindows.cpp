//===- StreamingWindows.cpp - tables over offsets that no query meets -----===//
//
// A table of numbers, a bias T[j - i + c], needs no more than to lie in the
// right order, that of queries; and where a table T[j - i + c, e] meets keys,
// so does each of its columns. What the pairs of a tile and a block read of it,
// tile + block numbers, is the window, once for all of them:
//
//   C[x]     = T[start - x]                      t[jj][ii] = C[ii - jj + c]
//   C[e][x]  = T[start - x, e]
//
// Keys of a group share what they read of a column, in vectors that begin where
// the window's do: a register tile P, from which each key takes the queries'
// numbers at a place of its own.
//
//   P[y][x]   = sum(e) k[j,e] C[e][first(g) + x]        j = group * g + y
//   t[jj][ii] = P[y][ii - jj + c - first(g)]
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"
#include "support/Format.h"

#include <numeric>

using namespace mlir;
using namespace heed;
using namespace heed::streaming;

/// What the pairs of a block read of a table, in reverse order of its rows: a
/// vector of queries reads numbers that follow one another.
void Streaming::stageWindow(StreamingStage &stage, unsigned term,
                            unsigned number, StreamingTerm &result) {
  Value tensor = op.term(term)[number];
  AffineMap map = op.maps(term)[number];
  SmallVector<unsigned> contract = op.contractDims(term);
  bool dense = isDense(map, contract);
  bool padded = dense && isRagged(contract);
  auto element = [&](Ops &o, Value x, Value e, const TilePlace &at) {
    Table table = tableAt(o, stage, tensor, map, at);
    Value row = o.clamp(
        o.subi(o.addi(table.start, o.i(mutated("streaming.bias-of-next-offset")
                                           ? stage.block
                                           : stage.block - 1)),
               x),
        table.last);
    SmallVector<Value> dims = place(o, at.batch, o.i(0), o.i(0));
    if (!contract.empty())
      dims[contract.front()] =
          padded ? o.mini(e, o.last(size(contract.front()).value)) : e;
    return operand(o, tensor, map, dims,
                   table.reversed ? o.subi(table.last, row) : row);
  };
  SmallVector<StringRef> own{"x"};
  if (!contract.empty())
    own.push_back("e");
  own.push_back("kb");
  std::string name = heed::format("{}{}", stage.name("bias"), term);
  if (dense) {
    // Its rows are as long as vectors: read one by one, and transposed.
    result.windowSum = sumExtents(contract, padded);
    result.window = turned(name, own, result.windowSteps, element);
    return;
  }
  result.window = func(
      name, own, 1, [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
        TilePlace at = TilePlace::ofTile(args.drop_front(own.size()))
                           .inBlock(args[own.size() - 1]);
        return {element(o, args[0], args[1], at)};
      });
}

Value Streaming::windowPlace(Ops &o, const StreamingStage &stage,
                             const TilePlace &at) {
  return o.addi(o.subi(at.lane, at.key), o.i(stage.block - 1));
}

Value Streaming::inWindow(Ops &o, halide::FuncOp window, Value x,
                          const TilePlace &at, ArrayRef<Value> reduction) {
  SmallVector<Value> own{x};
  own.append(reduction.begin(), reduction.end());
  own.push_back(at.block);
  return o.read1(window.getResult(), at.with(own));
}

/// A table of numbers.
void Streaming::stageTableNumbers(StreamingStage &stage, unsigned term) {
  StreamingTerm own = termOf(term);
  stageWindow(stage, term, 0, own);
  own.func =
      func(heed::format("{}{}", stage.name("t"), term), {"ii", "jj", "kb"}, 1,
           [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
             TilePlace at = TilePlace::ofPair(args);
             return {inWindow(o, own.window, windowPlace(o, stage, at), at)};
           });
  stage.terms.push_back(std::move(own));
}

namespace {

/// What the keys of a group read of the window: vectors of it, from the one on
/// in which the last key's first number lies.
struct GroupWindow {
  GroupWindow(const StreamingPlan &plan, int64_t block)
      : group(plan.group), lanes(plan.lanes), block(block),
        step(std::gcd(std::gcd(group, lanes), block)),
        vectors(llvm::divideCeil(lanes - step + plan.tile + group - 1, lanes)) {
  }

  /// Where the vectors of group \p g begin.
  Value first(Ops &o, Value g) const {
    return o.muli(o.floorDiv(steps(o, g), lanes / step), o.i(lanes));
  }
  /// What a pair reads, in the vectors of its key's group.
  Value place(Ops &o, const TilePlace &at) const {
    Value begins =
        o.muli(o.mod(steps(o, at.group), lanes / step),
               o.i(mutated("streaming.group-begins-with-vector") ? 0 : step));
    Value behind = o.subi(o.i(group - 1), at.inGroup);
    return o.addi(o.addi(at.lane, behind), begins);
  }

  int64_t group, lanes, block;
  int64_t step;    ///< divides where groups begin, and a vector
  int64_t vectors; ///< wherever in a vector the group begins

private:
  /// Where group \p g begins, in steps.
  Value steps(Ops &o, Value g) const {
    return o.subi(o.i((block - group) / step), o.muli(g, o.i(group / step)));
  }
};

} // namespace

/// A sum over products of keys with a table.
void Streaming::stageKeyTable(StreamingStage &stage, unsigned term,
                              unsigned number) {
  SmallVector<unsigned> contract = op.contractDims(term);
  StreamingTerm own = termOf(term);
  own.isProduct = op.pair(term).empty();
  own.contract.push_back(size(contract.front()));
  stageWindow(stage, term, number, own);
  // The sum f, whose place reads number x of the window.
  auto sumIn = [&](StringRef name, ArrayRef<StringRef> vars,
                   llvm::function_ref<std::pair<TilePlace, Value>(
                       Ops &, ArrayRef<Value>)>
                       placeOf) {
    auto f = func(heed::format("{}{}", stage.name(name), term), vars, 1,
                  [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                    return {emptySum(o, contract)};
                  });
    update(f, {own.loops.front()}, {own.contract.front().value},
           [&](Ops &o, ArrayRef<Value> args,
               ArrayRef<Value> loops) -> SmallVector<Value> {
             auto [at, x] = placeOf(o, args);
             SmallVector<Value> operands;
             for (unsigned k = 0; k < op.maps(term).size(); ++k)
               operands.push_back(
                   k == number ? inWindow(o, own.window, x, at, loops)
                               : termOperand(o, stage, term, k, at, loops));
             return {termSum(o, term, o.read1(f.getResult(), args), operands)};
           });
    return f;
  };
  GroupWindow window(plan, stage.block);
  // Accumulators, numbers of the window, and a key's.
  bool fits =
      (plan.group + 1) * window.vectors + 1 <= plan.target.vectorRegisters;
  if (!own.isProduct || !fits) {
    own.func =
        sumIn("t", {"ii", "jj", "kb"}, [&](Ops &o, ArrayRef<Value> args) {
          TilePlace at = TilePlace::ofPair(args);
          return std::pair(at, windowPlace(o, stage, at));
        });
    stage.terms.push_back(std::move(own));
    return;
  }
  own.windowLanes = window.vectors * plan.lanes;
  own.windowTile =
      sumIn("kt", {"ii", "y", "rg", "kb"}, [&](Ops &o, ArrayRef<Value> args) {
        TilePlace at = TilePlace::ofElement(args);
        at.key = o.addi(o.muli(at.group, o.i(plan.group)), at.inGroup);
        return std::pair(at, o.addi(window.first(o, at.group), at.lane));
      });
  own.func =
      func(heed::format("{}{}", stage.name("t"), term), {"ii", "jj", "kb"}, 1,
           [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
             TilePlace at = TilePlace::ofPair(args);
             at.group = o.floorDiv(at.key, plan.group);
             at.inGroup = o.mod(at.key, plan.group);
             at.lane = window.place(o, at);
             return {o.read1(own.windowTile.getResult(), at.element())};
           });
  stage.terms.push_back(std::move(own));
}
