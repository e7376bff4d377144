//===- Scores.h - the scores of an attention, in upstream ops ---*- C++ -*-===//
#ifndef HEED_DIALECTS_ATTN_SCORES_H
#define HEED_DIALECTS_ATTN_SCORES_H

#include "dialects/Attn/Decompose.h"

namespace heed::attn::decompose {

/// The parts of an attention, each a tensor over batch, query and key dims; of
/// all keys, or of a block of them.
struct Scores {
  AttentionLike op;
  Build at;
  Value firstKey; ///< of the block, or null: all keys
  unsigned pairs = op.firstDim(DimKind::Contract); ///< batch, query, key dims
  SmallVector<OpFoldResult> sizes = getAsOpFoldResult(op.getSizes());
  AffineMap all = AffineMap::getMultiDimIdentityMap(pairs, op->getContext());

  Scores(AttentionLike op, Build at) : op(op), at(at) {}
  /// Of \p count keys from \p first on; there is one key dim.
  Scores(AttentionLike op, Build at, Value first, Value count)
      : Scores(op, at) {
    firstKey = first;
    sizes[op.firstDim(DimKind::Key)] = count;
  }

  SmallVector<Value> indices(OpBuilder &b, unsigned count) {
    SmallVector<Value> list;
    for (unsigned d = 0; d < count; ++d) {
      list.push_back(linalg::IndexOp::create(b, at.loc, d));
      if (firstKey && d == op.firstDim(DimKind::Key))
        list.back() = arith::AddIOp::create(b, at.loc, list.back(), firstKey);
    }
    return list;
  }
  ArrayRef<OpFoldResult> pairSizes() {
    return ArrayRef<OpFoldResult>(sizes).take_front(pairs);
  }

  /// i1: which keys are live.
  Value where() {
    if (op.getWhere().empty())
      return at.filled(pairSizes(), at.truth(true));
    return at.generic(
        {}, {at.empty(pairSizes(), at.b.getI1Type())}, {all}, {},
        [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
          return {Build{b, at.loc}.inlined(op.getWhere(), indices(b, pairs))};
        })[0];
  }

  /// Score term \p t, 0 where \p where is false: nothing is read there.
  Value term(unsigned t, Value where) {
    SmallVector<unsigned> contract = op.contractDims(t), reduced;
    // The term's own loops: the pairs', then its contract dims.
    unsigned loops = pairs + contract.size();
    MLIRContext *context = op->getContext();
    SmallVector<AffineExpr> pairExprs, contractExprs;
    SmallVector<OpFoldResult> contractSizes;
    for (unsigned d = 0; d < pairs; ++d)
      pairExprs.push_back(getAffineDimExpr(d, context));
    for (auto [k, d] : llvm::enumerate(contract)) {
      reduced.push_back(pairs + k);
      contractExprs.push_back(getAffineDimExpr(pairs + k, context));
      contractSizes.push_back(sizes[d]);
    }
    AffineMap pairMap = AffineMap::get(loops, 0, pairExprs, context);
    SmallVector<Value> ins{where};
    SmallVector<AffineMap> maps{pairMap};
    if (!contract.empty()) { // tells linalg how far they run
      ins.push_back(at.empty(contractSizes, at.b.getI1Type()));
      maps.push_back(AffineMap::get(loops, 0, contractExprs, context));
    }
    maps.push_back(pairMap);
    Type f32 = at.b.getF32Type();
    return at.generic(
        ins, {at.filled(pairSizes(), at.real(f32, 0))}, maps, reduced,
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          SmallVector<Value> own = indices(b, loops);
          SmallVector<Value> dims(op.numLoopDims());
          std::copy(own.begin(), own.begin() + pairs, dims.begin());
          for (auto [k, d] : llvm::enumerate(contract))
            dims[d] = own[pairs + k];
          return {Build{b, at.loc}.guarded(v[0], v.back(), [&](Build in) {
            SmallVector<Value> elements;
            for (auto [k, operand] : llvm::enumerate(op.term(t)))
              elements.push_back(in.read(op, operand, op.maps(t)[k], dims));
            Value product;
            if (op.pair(t).empty()) {
              product = elements[0];
              for (Value factor : ArrayRef<Value>(elements).drop_front())
                product = arith::MulFOp::create(in.b, in.loc, product, factor);
            } else {
              product = in.inlined(op.pair(t), elements);
            }
            return arith::AddFOp::create(in.b, in.loc, v.back(), product)
                .getResult();
          })};
        })[0];
  }

  /// What the value terms add up to at \p dims.
  Value valueAt(Build in, ArrayRef<Value> dims) {
    Value sum;
    for (auto [k, operand] : llvm::enumerate(op.getValues())) {
      Value element = in.read(op, operand, op.valueMap(k), dims);
      sum = sum ? arith::AddFOp::create(in.b, in.loc, sum, element).getResult()
                : element;
    }
    return sum;
  }

  /// The scores, -inf where \p where is false.
  Value scores(Value where) {
    SmallVector<Value> ins{where};
    for (unsigned t = 0; t < op.numTerms(); ++t)
      ins.push_back(term(t, where));
    SmallVector<AffineMap> maps(ins.size() + 1, all);
    Type f32 = at.b.getF32Type();
    return at.generic(ins, {at.empty(pairSizes(), f32)}, maps, {},
                      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                        SmallVector<Value> args = indices(b, pairs);
                        args.append(v.begin() + 1,
                                    v.begin() + 1 + op.numTerms());
                        Build in{b, at.loc};
                        return {in.guarded(v[0], in.lowest(f32), [&](Build in) {
                          return in.inlined(op.getScore(), args);
                        })};
                      })[0];
  }
};

} // namespace heed::attn::decompose
#endif
