//===- ChooseAlgorithm.cpp - how each attention is computed
//---------------------------------===//
// The decision is an attribute, so that it can be read and changed in the IR.
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "passes/Schedule/StreamingAttention.h"

namespace heed {
#define GEN_PASS_DEF_ATTNCHOOSEALGORITHM
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

struct ChooseAlgorithm : heed::impl::AttnChooseAlgorithmBase<ChooseAlgorithm> {
  void runOnOperation() override {
    getOperation()->walk([&](attn::AttentionOp op) {
      if (op->hasAttr("attn.algorithm"))
        return;
      StringRef why = whyNotStreaming(op);
      StringRef algorithm = why.empty() ? "streaming" : "materialised";
      op->setAttr("attn.algorithm",
                  StringAttr::get(op.getContext(), algorithm));
      if (why.empty())
        remarkDone(op, "attn-choose-algorithm", "streaming",
                   "one pass over the keys, no scores are stored");
      else
        remarkDeclined(op, "attn-choose-algorithm", "materialised",
                       "the scores are stored: " + why);
    });
  }
};

} // namespace
