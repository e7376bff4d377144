//===- SolveMasks.cpp - says which keys each tile of queries sees
//----------===//
#include "passes/MaskBounds.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace heed {

#define GEN_PASS_DEF_ATTNSOLVEMASKS
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral passName = "attn-solve-masks";

struct SolveMasks : impl::AttnSolveMasksBase<SolveMasks> {
  void runOnOperation() override {
    getOperation()->walk([&](attn::AttentionOp op) {
      if (op.getWhere().empty())
        return;
      FailureOr<MaskBounds> bounds = solveMask(op);
      if (failed(bounds)) {
        remarkDeclined(op, passName, "mask",
                       "the mask is evaluated per element: tiles need one "
                       "query and one key dim");
        return;
      }
      Builder b(&getContext());
      auto texts = [&](ArrayRef<KeyRange> ranges) {
        SmallVector<Attribute> list;
        for (KeyRange r : ranges) {
          list.push_back(b.getStringAttr(bounds->text(r.low)));
          list.push_back(b.getStringAttr(bounds->text(r.high)));
        }
        return b.getArrayAttr(list);
      };
      op->setDiscardableAttr(
          "attn.mask",
          b.getDictionaryAttr(
              {b.getNamedAttr("exact", b.getBoolAttr(bounds->exact)),
               b.getNamedAttr("full", texts(bounds->full)),
               b.getNamedAttr("reach", texts(bounds->reach))}));
      auto join = [&](ArrayRef<KeyRange> ranges) {
        std::string text;
        for (KeyRange r : ranges)
          text += (text.empty() ? "[" : " and [") + bounds->text(r.low) + ", " +
                  bounds->text(r.high) + ")";
        return text.empty() ? std::string("none") : text;
      };
      std::string what = "queries i0..i1 reach keys " + join(bounds->reach) +
                         ", all of them see " + join(bounds->full);
      if (!bounds->exact)
        what += "; evaluated per element: " + bounds->unsolved;
      remarkFound(op, passName, "mask", what);
    });
  }
};

} // namespace
} // namespace heed
