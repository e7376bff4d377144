//===- RoundProducts.cpp - products with bf16 weights in bf16 -------------===//
//
// Only with --products=bf16. y[m, n] = sum_r x[m, r] * f32(w[n, r]) of a bf16
// weight becomes sum_r f32(bf16(x[m, r])) * f32(w[n, r]): what bf16 products of
// other systems compute. The rounding stands in the IR, so that every backend
// does it; how the products are then summed is the schedules' matter.
//
//===----------------------------------------------------------------------===//

#include "passes/Algebra/Weights.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

namespace heed {
#define GEN_PASS_DEF_ATTNROUNDPRODUCTS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;

namespace {

constexpr StringLiteral passName = "attn-round-products";

/// The loops of \p sum that \p value, of its body, depends on.
llvm::SmallBitVector loopsOf(linalg::GenericOp sum, Value value) {
  llvm::SmallBitVector loops(sum.getNumLoops());
  SmallVector<Value> work{value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    auto arg = dyn_cast<BlockArgument>(next);
    if (arg && arg.getOwner() == sum.getBody()) {
      for (AffineExpr at :
           sum.getIndexingMapsArray()[arg.getArgNumber()].getResults())
        for (unsigned d = 0; d < loops.size(); ++d)
          loops[d] = loops[d] || at.isFunctionOfDim(d);
      continue;
    }
    Operation *def = next.getDefiningOp();
    if (!def || def->getBlock() != sum.getBody() || !seen.insert(def).second)
      continue;
    if (auto index = dyn_cast<linalg::IndexOp>(def))
      loops.set(index.getDim());
    work.append(def->operand_begin(), def->operand_end());
  }
  return loops;
}

/// Whether \p factor, of the body of \p sum, is an element of a bf16 weight.
bool isWeight(linalg::GenericOp sum, Value factor) {
  auto wider = factor.getDefiningOp<arith::ExtFOp>();
  if (!wider || !wider.getIn().getType().isBF16() || !wider.getType().isF32())
    return false;
  Value element = wider.getIn();
  if (auto extract = element.getDefiningOp<tensor::ExtractOp>())
    return heed::isFromParameters(extract.getTensor());
  auto arg = dyn_cast<BlockArgument>(element);
  return arg && arg.getOwner() == sum.getBody() &&
         arg.getArgNumber() < sum.getNumDpsInputs() &&
         heed::isFromParameters(sum.getDpsInputs()[arg.getArgNumber()]);
}

/// Whether \p factor is exactly a bf16.
bool isRounded(Value factor) {
  auto wider = factor.getDefiningOp<arith::ExtFOp>();
  return wider && wider.getIn().getType().isBF16();
}

/// The product that \p sum adds up, where a term may have a condition; null if
/// it is another reduction.
arith::MulFOp termOf(linalg::GenericOp sum) {
  if (sum.getNumReductionLoops() == 0 || sum.getNumResults() != 1)
    return {};
  Value old = sum.getRegionOutputArgs()[0];
  for (Operation *user : old.getUsers()) {
    auto add = dyn_cast<arith::AddFOp>(user);
    if (!add)
      continue;
    Value term = add.getLhs() == old ? add.getRhs() : add.getLhs();
    if (auto guarded = term.getDefiningOp<arith::SelectOp>())
      term = guarded.getTrueValue();
    return term.getDefiningOp<arith::MulFOp>();
  }
  return {};
}

struct RoundProducts : heed::impl::AttnRoundProductsBase<RoundProducts> {
  void runOnOperation() override {
    unsigned rounded = 0, exact = 0;
    getOperation().walk([&](linalg::GenericOp sum) {
      arith::MulFOp product = termOf(sum);
      if (!product)
        return;
      bool first = isWeight(sum, product.getLhs());
      if (!first && !isWeight(sum, product.getRhs()))
        return;
      OpOperand &other =
          first ? product.getRhsMutable() : product.getLhsMutable();
      Value weight = first ? product.getLhs() : product.getRhs();
      if (isRounded(other.get())) {
        ++exact;
        return;
      }
      if (!isMatrixProduct(sum, weight, other.get())) {
        heed::remarkDeclined(
            sum, passName, "products",
            "a sum of products with a bf16 weight stays f32: it is no product "
            "with a matrix, which would have an index of its own");
        return;
      }
      OpBuilder b(product);
      Value narrow = arith::TruncFOp::create(b, product.getLoc(),
                                             b.getBF16Type(), other.get());
      Value wide =
          arith::ExtFOp::create(b, product.getLoc(), b.getF32Type(), narrow);
      other.set(wide);
      ++rounded;
    });
    if (rounded)
      heed::remarkDone(
          getOperation(), passName, "products",
          heed::format(
              "{} products with bf16 weights round their other operand "
              "to bf16 (--products=bf16)",
              rounded));
    else if (!exact)
      heed::remarkDeclined(getOperation(), passName, "products",
                           "no product has a bf16 weight as its operand");
  }

  /// Whether the columns of \p weight are its own, and both follow a loop that
  /// is summed over.
  static bool isMatrixProduct(linalg::GenericOp sum, Value weight,
                              Value other) {
    llvm::SmallBitVector ofWeight = loopsOf(sum, weight),
                         ofOther = loopsOf(sum, other);
    bool hasColumns = false, hasTerms = false;
    for (auto [d, kind] : llvm::enumerate(sum.getIteratorTypesArray()))
      if (kind == utils::IteratorType::parallel)
        hasColumns |= ofWeight[d] && !ofOther[d];
      else
        hasTerms |= ofWeight[d] && ofOther[d];
    return hasColumns && hasTerms;
  }
};

} // namespace
