//===- RowSum.cpp - sums of weights that no value meets -------------------===//
//
// A normaliser that stands beside something, (sum_j w v) / (sum_j w + eps), is
// a sum of its own over the same pairs. As an attention whose values are 1 it
// stores none of them.
#include "passes/Raise/RowSum.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Algebra/Weights.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace heed {

bool readPairsAlone(Exprs &exprs, ArrayRef<ExprRef> reads,
                    ArrayRef<unsigned> rows,
                    llvm::SetVector<Operation *> &reductions) {
  llvm::SetVector<Operation *> pairs; // ops whose elements are of pairs
  std::function<void(ExprRef, ArrayRef<unsigned>)> visit =
      [&](ExprRef e, ArrayRef<unsigned> keys) {
        Exprs::walk(e, [&](ExprRef read) {
          Operation *def = read->kind == ExprKind::Read
                               ? read->value.getDefiningOp()
                               : nullptr;
          if (def && read->usesAny(keys) && read->usesAny(rows) &&
              pairs.insert(def) && Exprs::isElementwise(def))
            if (ExprRef inner = exprs.expand(read))
              visit(inner, keys);
        });
      };
  for (ExprRef read : reads) {
    reductions.insert(read->value.getDefiningOp());
    SmallVector<unsigned> keys;
    ExprRef body = exprs.open(exprs.expand(read), keys);
    visit(body, keys);
  }
  return llvm::all_of(pairs, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return pairs.contains(user) || reductions.contains(user);
    });
  });
}

ExprRef timesOne(OpBuilder &builder, Location loc, Exprs &exprs, ExprRef sum) {
  SmallVector<unsigned> keys;
  ExprRef body = exprs.open(sum, keys);
  ExprRef one = exprs.constant(FloatAttr::get(body->type, 1.0));
  SmallVector<ExprRef> at;
  for (unsigned v : keys)
    at.push_back(exprs.var(v));
  ExprRef value = exprs.read(writeTensor(builder, loc, exprs, one, keys), at);
  auto times = [&](ExprRef weight) {
    return exprs.op("arith.mulf", body->type, {weight, value});
  };
  bool isGuarded = (body->kind == ExprKind::If || body->isOp("arith.select")) &&
                   Exprs::constantFloat(body->operand(2)) == 0.0;
  body = isGuarded ? exprs.select(body->operand(0), times(body->operand(1)),
                                  body->operand(2), body->kind == ExprKind::If)
                   : times(body);
  return exprs.reduce(OperationName("arith.addf", exprs.context), keys, body);
}

bool hasKeysOfCall(const AttentionMatch &match) {
  for (const AttentionTerm &term : match.terms)
    for (ExprRef operand : term.operands)
      if (operand->usesAny(match.key) && operand->kind == ExprKind::Read &&
          !isFromParameters(operand->value))
        return true;
  return false;
}

} // namespace heed
