//===- ChooseAlgorithm.cpp - how each attention is computed ---------------===//
// The decision is an attribute, so that it can be read and changed in the IR.
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "passes/RowBlocks.h"
#include "passes/Schedule/StreamingAttention.h"

#include "mlir/IR/Builders.h"

namespace heed {
#define GEN_PASS_DEF_ATTNCHOOSEALGORITHM
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// Why the rows of \p op cannot be worked on one tile of queries after the
/// other, or an empty string if they can.
StringRef whyNotRowBlock(attn::AttentionOp op) {
  if (op.numDims(attn::DimKind::Query) == 0)
    return "it has no query dim";
  if (op.getLse())
    return "its log-sum-exp is a result, too";
  return "";
}

struct ChooseAlgorithm : heed::impl::AttnChooseAlgorithmBase<ChooseAlgorithm> {
  void runOnOperation() override {
    getOperation()->walk([&](attn::AttentionOp op) {
      if (!op->hasAttr("attn.algorithm"))
        choose(op);
    });
    int64_t number = 0;
    getOperation()->walk([&](Block *block) {
      for (ArrayRef<Operation *> group : findRowBlocks(*block)) {
        Builder b(&getContext());
        for (Operation *op : group)
          op->setAttr(kRowBlockAttr, b.getI64IntegerAttr(number));
        ++number;
        remarkDone(group.back(), "attn-choose-algorithm", "row-block",
                   "all scores of a tile of queries at once, " +
                       Twine(group.size()) + " operations in one kernel");
      }
    });
  }

  void choose(attn::AttentionOp op) {
    StringRef why = whyNotStreaming(op), rows = whyNotRowBlock(op);
    StringRef algorithm = why.empty()    ? "streaming"
                          : rows.empty() ? "row block"
                                         : "materialised";
    op->setAttr("attn.algorithm", StringAttr::get(op.getContext(), algorithm));
    if (why.empty())
      remarkDone(op, "attn-choose-algorithm", "streaming",
                 "one pass over the keys, no scores are stored");
    else if (rows.empty())
      remarkDone(op, "attn-choose-algorithm", "row-block",
                 "all scores of a tile of queries at once: " + why);
    else
      remarkDeclined(op, "attn-choose-algorithm", "materialised",
                     "the scores are stored: " + why + ", and " + rows);
  }
};

} // namespace
