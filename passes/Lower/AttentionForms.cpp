//===- AttentionForms.cpp - pipelines of one attention --------------------===//
#include "passes/Lower/AttentionForms.h"
#include "passes/MaskBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

SmallVector<AttentionForm> heed::formsOf(attn::AttentionOp op,
                                         const halide::Target &target) {
  SmallVector<AttentionForm> forms{{StreamingForm::Rows, "_few"}};
  // Tables of a mask are cut as tiles are: one width.
  bool tables = false;
  if (!op.getWhere().empty()) {
    FailureOr<MaskBounds> bounds = solveMask(op);
    tables = failed(bounds) || bounds->needsTables();
  }
  // Terms of pairs are much code already.
  SmallVector<AffineMap> maps;
  for (unsigned term = 0; term < op.numTerms(); ++term)
    maps.append(op.maps(term));
  for (unsigned value = 0; value < op.getValues().size(); ++value)
    maps.push_back(op.valueMap(value));
  bool pairs = llvm::any_of(maps, [&](AffineMap map) {
    return map.isFunctionOfDim(op.firstDim(DimKind::Query)) &&
           map.isFunctionOfDim(op.firstDim(DimKind::Key));
  });
  if (!tables && !pairs && tileVectors(target, StreamingForm::Tiles) > 1)
    forms.push_back({StreamingForm::Narrow, "_narrow"});
  forms.push_back({StreamingForm::Tiles, ""});
  return forms;
}

Value heed::isFastest(OpBuilder &b, Location loc, attn::AttentionOp op,
                      const halide::Target &target,
                      ArrayRef<AttentionForm> forms, size_t number,
                      Value queries, Value keys, Value members) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto atMost = [&](Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ule, x, y);
  };
  if (forms[number].form == StreamingForm::Rows) {
    // What may be constant is on the right: there it folds.
    auto both = [&](Value x, Value y) {
      return b.createOrFold<arith::AndIOp>(loc, x, y);
    };
    auto either = [&](Value x, Value y) {
      return b.createOrFold<arith::OrIOp>(loc, x, y);
    };
    Value few = atMost(queries, constant(fewQueries(target)));
    if (members)
      few = either(both(atMost(constant(2), members),
                        atMost(queries, constant(mostQueriesOfRows(target)))),
                   few);
    return either(both(atMost(constant(leastKeysOfRows), keys), few),
                  atMost(queries, constant(1)));
  }
  auto add = [&](Value x, Value y) {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  };
  auto mul = [&](Value x, Value y) {
    return b.createOrFold<arith::MulIOp>(loc, x, y);
  };
  // Time of a tile and a key, measured: a tile of two vectors takes less than
  // two of one. Of a mask each tile sees the keys before it: with T tiles of W
  // queries, M - N and W (T + 1) / 2 of them.
  auto cost = [&](StreamingForm form) -> Value {
    int64_t vectors = tileVectors(target, form);
    int64_t width = vectors * target.lanes(32);
    int64_t time = vectors == 1 ? 6 : vectors * 5;
    Value tiles = b.createOrFold<arith::DivUIOp>(
        loc, add(queries, constant(width - 1)), constant(width));
    Value all = mul(tiles, constant(time));
    if (op.getWhere().empty())
      return all;
    Value more = b.createOrFold<arith::SubIOp>(
        loc, b.createOrFold<arith::MaxUIOp>(loc, keys, queries), queries);
    Value seen = add(mul(more, constant(2)),
                     mul(add(tiles, constant(1)), constant(width)));
    return mul(all, seen);
  };
  return atMost(cost(forms[number].form), cost(StreamingForm::Tiles));
}

SmallVector<Value> heed::groupsOf(OpBuilder &b, Location loc,
                                  attn::AttentionOp op,
                                  function_ref<Value(Value)> number) {
  std::optional<SharedKeys> shared = sharedKeys(op);
  if (!shared)
    return {};
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value one = constant(1);
  auto atLeastOne = [&](Value x) -> Value {
    return b.createOrFold<arith::MaxUIOp>(loc, x, one);
  };
  auto divide = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::DivUIOp>(loc, x, y);
  };
  /// \p x if \p y is a multiple of \p of, else \p other.
  auto ifMultiple = [&](Value y, Value of, Value x, Value other) -> Value {
    Value left = b.createOrFold<arith::RemUIOp>(loc, y, of);
    Value none = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                               left, constant(0));
    return b.createOrFold<arith::SelectOp>(loc, none, x, other);
  };
  auto valueOf = [&](AffineExpr expr) -> Value {
    if (auto fixed = dyn_cast<AffineConstantExpr>(expr))
      return constant(fixed.getValue());
    return number(op.getSymbols()[cast<AffineSymbolExpr>(expr).getPosition()]);
  };
  Value all = number(op.getSizes()[op.numDims(DimKind::Batch) - 1]);
  Value alike = atLeastOne(all);
  if (shared->count) {
    Value groups = atLeastOne(valueOf(shared->groups)),
          count = atLeastOne(valueOf(shared->count));
    alike = ifMultiple(count, groups, divide(count, groups), one);
    alike = ifMultiple(all, alike, alike, one);
  }
  Value members = one;
  for (int64_t count = 2; count <= mostMembers; ++count)
    members = ifMultiple(alike, constant(count), constant(count), members);
  return {members, divide(alike, members)};
}
