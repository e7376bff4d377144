//===- SolveMasks.cpp - says which keys each tile of queries sees ---------===//
#include "passes/Masks/MaskBounds.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace heed {

#define GEN_PASS_DEF_ATTNSOLVEMASKS
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral passName = "attn-solve-masks";

/// A union of ranges, in words.
std::string join(const MaskBounds &bounds, ArrayRef<MaskPiece> pieces) {
  std::string text;
  for (const MaskPiece &p : pieces) {
    text += format("{}[{}, {})", text.empty() ? "" : " and ",
                   bounds.text(p.low), bounds.text(p.high));
    if (p.test)
      text += format(" in blocks j0..j1 with {}", bounds.text(p.test));
  }
  return text.empty() ? "none" : text;
}

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
      writeMask(op, *bounds);
      Builder b(&getContext());
      auto texts = [&](ArrayRef<MaskPiece> pieces) {
        SmallVector<Attribute> list;
        for (const MaskPiece &p : pieces) {
          SmallVector<Attribute> parts{b.getStringAttr(bounds->text(p.low)),
                                       b.getStringAttr(bounds->text(p.high))};
          if (p.test)
            parts.push_back(b.getStringAttr(bounds->text(p.test)));
          list.push_back(b.getArrayAttr(parts));
        }
        return b.getArrayAttr(list);
      };
      op->setDiscardableAttr(
          "attn.mask",
          b.getDictionaryAttr(
              {b.getNamedAttr("exact", b.getBoolAttr(bounds->exact)),
               b.getNamedAttr("full", texts(bounds->full)),
               b.getNamedAttr("reach", texts(bounds->reach))}));
      std::string what =
          format("queries i0..i1 reach keys {}, all of them see {}",
                 join(*bounds, bounds->reach), join(*bounds, bounds->full));
      for (auto [k, table] : llvm::enumerate(bounds->tables))
        what += format("{}{} in each {}",
                       k ? ", " : "; per call, least and greatest of ",
                       bounds->text(table.value),
                       table.ofKeys ? "block of keys" : "tile of queries");
      if (!bounds->exact)
        what += format("; evaluated per element: {}", bounds->unsolved);
      remarkFound(op, passName, "mask", what);
    });
  }
};

} // namespace
} // namespace heed
