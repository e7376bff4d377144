//===- PairTerms.cpp - score terms that no joined dim can read ------------===//
// An offset `j - i + c` of one query and one key dim ends at the ends of its
// tensor; of joined dims it would be no offset, so it is read in the score. And
// a sum over features that depends on few of the dims, as on a query and the
// row of a key, has few elements: it is computed before, once for all pairs
// that share it.
#include "dialects/Attn/Decompose.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Mutation.h"
#include "passes/Plan/AttentionParts.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;
using attn::decompose::Build;

namespace {

bool isPlain(AffineMap map) {
  return llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr>);
}

/// One term of an attention.
class PairTerm {
public:
  PairTerm(attn::AttentionOp op, unsigned number)
      : op(op), number(number), maps(op.maps(number)),
        contract(op.contractDims(number)) {}

  /// Whether it can't stay a term when dims are joined, or had better not.
  bool moves() const {
    return llvm::any_of(maps, [&](AffineMap map) {
      bool offset = hasOffset(map);
      return readsPairs(map) &&
             (contract.empty() ? offset : offset || !isPlain(map));
    });
  }
  bool hasOffset() const {
    return llvm::any_of(maps, [&](AffineMap map) { return hasOffset(map); });
  }
  /// Whether fewer numbers than there are pairs hold it.
  bool isSmall() const {
    for (unsigned d = op.firstDim(DimKind::Query);
         d < op.firstDim(DimKind::Contract); ++d)
      if (!uses(d))
        return true;
    return false;
  }
  bool isSum() const { return !contract.empty(); }

  /// A tensor of its values over the dims that it depends on, batch to key.
  Value computed(OpBuilder &b, attn::SymbolicDims &known) const;
  /// Its value in the body of the score at \p dims; \p tensor has it, or is
  /// null.
  Value read(OpBuilder &b, Value tensor, ValueRange dims) const;

private:
  bool uses(unsigned dim) const {
    return llvm::any_of(
        maps, [&](AffineMap map) { return map.isFunctionOfDim(dim); });
  }
  bool usesKind(AffineMap map, DimKind kind) const {
    for (unsigned d = op.firstDim(kind); d < op.firstDim(kind) + count(kind);
         ++d)
      if (map.isFunctionOfDim(d))
        return true;
    return false;
  }
  unsigned count(DimKind kind) const { return op.numDims(kind); }
  bool readsPairs(AffineMap map) const {
    return usesKind(map, DimKind::Query) && usesKind(map, DimKind::Key);
  }
  bool hasOffset(AffineMap map) const {
    return llvm::any_of(map.getResults(), [&](AffineExpr expr) {
      return op.offsetSign(expr).has_value();
    });
  }
  bool isOperand(unsigned operand, attn::SymbolicDims &known) const;
  /// What loops read: operands as they lie, or (no number in `of`) elements of
  /// tensors with these extents.
  struct Inputs {
    SmallVector<Value> tensors;
    SmallVector<AffineMap> maps;
    SmallVector<std::optional<unsigned>> of;
    SmallVector<SmallVector<Value>> extents;
  };
  Inputs inputs(OpBuilder &b, attn::SymbolicDims &known,
                ArrayRef<AffineExpr> loopOf, unsigned loops) const;
  Value product(Build at, ValueRange factors) const;
  Value guarded(Build at, unsigned operand, ArrayRef<Value> dims,
                ArrayRef<Value> extents) const;

  mutable attn::AttentionOp op;
  unsigned number;
  SmallVector<AffineMap> maps;
  SmallVector<unsigned> contract;
};

/// Whether loops over its axes are loops over its dims.
bool PairTerm::isOperand(unsigned operand, attn::SymbolicDims &known) const {
  AffineMap map = maps[operand];
  if (!map.isProjectedPermutation())
    return false;
  for (auto [axis, expr] : llvm::enumerate(map.getResults()))
    if (!known.equal(
            known.dim(op.term(number)[operand], axis),
            known.size(op.getSizes()[cast<AffineDimExpr>(expr).getPosition()])))
      return false;
  return true;
}

Value PairTerm::product(Build at, ValueRange factors) const {
  if (!op.pair(number).empty() && !mutated("join-dims.pair-as-product"))
    return at.inlined(op.pair(number), factors);
  Value result = factors.front();
  for (Value factor : factors.drop_front())
    result = arith::MulFOp::create(at.b, at.loc, result, factor);
  return result;
}

/// An operand of pairs that may be masked: 0 beyond the ends of its tensor.
Value PairTerm::guarded(Build at, unsigned operand, ArrayRef<Value> dims,
                        ArrayRef<Value> extents) const {
  OpBuilder &b = at.b;
  Value zero = arith::ConstantIndexOp::create(b, at.loc, 0), inside;
  SmallVector<Value> position;
  for (auto [axis, expr] : llvm::enumerate(maps[operand].getResults())) {
    Value p = at.expand(expr, dims, op.getSymbols());
    if (op.offsetSign(expr)) {
      Value last =
          arith::SubIOp::create(b, at.loc, extents[axis],
                                arith::ConstantIndexOp::create(b, at.loc, 1));
      p = arith::MaxSIOp::create(
          b, at.loc, arith::MinSIOp::create(b, at.loc, p, last), zero);
    }
    position.push_back(p);
    if (isa<AffineDimExpr>(expr))
      continue;
    Value from = arith::CmpIOp::create(b, at.loc, arith::CmpIPredicate::sle,
                                       zero, p),
          to = arith::CmpIOp::create(b, at.loc, arith::CmpIPredicate::slt, p,
                                     extents[axis]);
    Value both = arith::AndIOp::create(b, at.loc, from, to);
    inside = inside ? arith::AndIOp::create(b, at.loc, inside, both) : both;
  }
  auto element = [&](Build in) {
    return in.wide(tensor::ExtractOp::create(
        in.b, in.loc, op.term(number)[operand], position));
  };
  return inside ? at.guarded(inside, at.real(b.getF32Type(), 0), element)
                : element(at);
}

PairTerm::Inputs PairTerm::inputs(OpBuilder &b, attn::SymbolicDims &known,
                                  ArrayRef<AffineExpr> loopOf,
                                  unsigned loops) const {
  Build at{b, op.getLoc()};
  Inputs result;
  llvm::BitVector measured(op.numLoopDims());
  for (unsigned k = 0; k < maps.size(); ++k) {
    Value tensor = op.term(number)[k];
    result.of.emplace_back();
    auto &extents = result.extents.emplace_back();
    if (!isOperand(k, known)) {
      for (unsigned axis = 0; axis < maps[k].getNumResults(); ++axis)
        extents.push_back(attn::makeExtent(b, at.loc, tensor, axis));
      continue;
    }
    result.of.back() = result.tensors.size();
    result.tensors.push_back(tensor);
    SmallVector<AffineExpr> axes;
    for (AffineExpr expr : maps[k].getResults()) {
      unsigned d = cast<AffineDimExpr>(expr).getPosition();
      measured.set(d);
      axes.push_back(loopOf[d]);
    }
    result.maps.push_back(AffineMap::get(loops, 0, axes, b.getContext()));
  }
  // What nothing else measures.
  for (unsigned d : contract)
    if (!measured.test(d)) {
      result.tensors.push_back(
          at.empty({getAsOpFoldResult(op.getSizes()[d])}, b.getI1Type()));
      result.maps.push_back(
          AffineMap::get(loops, 0, loopOf[d], b.getContext()));
    }
  return result;
}

Value PairTerm::computed(OpBuilder &b, attn::SymbolicDims &known) const {
  Build at{b, op.getLoc()};
  SmallVector<unsigned> loops, reduced; // over these dims; which of them sum
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> loopOf(op.numLoopDims()), outer;
  for (unsigned d = 0; d < op.numLoopDims(); ++d) {
    if (!uses(d))
      continue;
    loopOf[d] = b.getAffineDimExpr(loops.size());
    if (op.dimKind(d) == DimKind::Contract) {
      reduced.push_back(loops.size());
    } else {
      outer.push_back(loopOf[d]);
      sizes.push_back(getAsOpFoldResult(op.getSizes()[d]));
    }
    loops.push_back(d);
  }
  Inputs in = inputs(b, known, loopOf, loops.size());
  in.maps.push_back(AffineMap::get(loops.size(), 0, outer, b.getContext()));
  Value sum = at.filled(sizes, at.real(b.getF32Type(), 0));
  return at.generic(
      in.tensors, sum, in.maps, reduced,
      [&](OpBuilder &inner, ValueRange args) -> SmallVector<Value> {
        Build body{inner, at.loc};
        SmallVector<Value> dims(op.numLoopDims()), factors;
        for (auto [loop, d] : llvm::enumerate(loops))
          dims[d] = linalg::IndexOp::create(inner, at.loc, loop);
        for (unsigned k = 0; k < maps.size(); ++k)
          factors.push_back(in.of[k] ? body.wide(args[*in.of[k]])
                                     : guarded(body, k, dims, in.extents[k]));
        return {arith::AddFOp::create(inner, at.loc, args.back(),
                                      product(body, factors))};
      })[0];
}

Value PairTerm::read(OpBuilder &b, Value tensor, ValueRange dims) const {
  Build at{b, op.getLoc()};
  if (tensor) {
    SmallVector<Value> position;
    for (unsigned d = 0; d < dims.size(); ++d)
      if (uses(d))
        position.push_back(dims[d]);
    return tensor::ExtractOp::create(b, at.loc, tensor, position);
  }
  SmallVector<Value> factors;
  for (auto [operand, map] : llvm::zip(op.term(number), maps))
    factors.push_back(at.read(op, operand, map, SmallVector<Value>(dims)));
  return product(at, factors);
}

} // namespace

attn::AttentionOp heed::withoutPairTerms(OpBuilder &b, attn::AttentionOp op,
                                         StringRef &why) {
  AttentionParts parts(op);
  parts.terms.clear();
  parts.numbers.clear();
  AttentionParts all(op);
  SmallVector<unsigned> moved;
  for (unsigned number = 0; number < op.numTerms(); ++number) {
    PairTerm term(op, number);
    bool moves = term.moves() && (!term.isSum() || term.isSmall());
    if (!moves && term.moves() && term.hasOffset()) {
      why = "a product of its scores depends on an offset and on all dims";
      return nullptr;
    }
    if (moves) {
      moved.push_back(number);
      continue;
    }
    parts.numbers.push_back(number);
    parts.terms.push_back(all.terms[number]);
  }
  for (unsigned value = 0; value < op.getValues().size(); ++value)
    if (llvm::any_of(op.valueMap(value).getResults(), [&](AffineExpr expr) {
          return op.offsetSign(expr).has_value();
        })) {
      why = "its values depend on an offset";
      return nullptr;
    }
  if (parts.terms.empty()) {
    why = "its scores depend on offsets alone";
    return nullptr;
  }
  if (moved.empty())
    return op;
  attn::SymbolicDims known;
  SmallVector<Value> tensors;
  for (unsigned number : moved) {
    PairTerm term(op, number);
    tensors.push_back(term.isSum() ? term.computed(b, known) : Value());
  }
  attn::AttentionOp fresh = parts.build(b, op);
  Block &score = fresh.getScore().front();
  OpBuilder inner = OpBuilder::atBlockBegin(&score);
  unsigned first = op.firstDim(DimKind::Contract);
  ValueRange dims = ValueRange(score.getArguments()).take_front(first);
  for (auto [number, tensor] : llvm::zip(moved, tensors))
    score.getArgument(first + number)
        .replaceAllUsesWith(PairTerm(op, number).read(inner, tensor, dims));
  for (unsigned number : llvm::reverse(moved))
    score.eraseArgument(first + number);
  op.getOutput().replaceAllUsesWith(fresh.getOutput());
  if (op.getLse())
    op.getLse().replaceAllUsesWith(fresh.getLse());
  return fresh;
}
