//===- Plan.cpp - how an attention is computed: checks and access ---------===//
#include "dialects/Attn/Dialect.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed::attn;

LogicalResult
PipelineAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     Form form, int64_t queries, int64_t block, int64_t piece) {
  if (queries < 1 || piece < 1 || block < 1 || block % piece != 0)
    return emitError() << heed::format(
               "pipeline '{}' has tiles of {} queries, blocks of {} keys and "
               "pieces of {}, expected positive numbers and whole pieces in a "
               "block (pipeline.c1)",
               stringifyForm(form), queries, block, piece);
  return success();
}

LogicalResult
PlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 Algorithm algorithm, bool, bool,
                 ArrayRef<PipelineAttr> pipelines) {
  bool streams = algorithm == Algorithm::Streaming;
  if (streams == pipelines.empty())
    return emitError() << heed::format(
               "plan '{}' has {}, expected {} (plan.c1)",
               stringifyAlgorithm(algorithm),
               heed::counted(pipelines.size(), "pipeline", "pipelines"),
               streams ? "one at least" : "none");
  for (size_t k = 1; k < pipelines.size(); ++k)
    if (pipelines[k - 1].getForm() >= pipelines[k].getForm())
      return emitError() << heed::format(
                 "plan has pipeline '{}' behind '{}', expected each form once, "
                 "in the order rows, split, narrow, tiles, bounded (plan.c1)",
                 stringifyForm(pipelines[k].getForm()),
                 stringifyForm(pipelines[k - 1].getForm()));
  return success();
}

PipelineAttr PlanAttr::pipeline(Form form) const {
  for (PipelineAttr pipeline : getPipelines())
    if (pipeline.getForm() == form)
      return pipeline;
  return {};
}

LogicalResult KeysOp::verify() {
  size_t reach = getReachTests().size(), full = getFullTests().size();
  if (getReach().size() != 2 * reach || getFull().size() != 2 * full)
    return emitOpError() << heed::format(
               "has {} and {} ends for {} and {} pieces, expected a first key "
               "and an end each (keys.c1)",
               getReach().size(), getFull().size(), reach, full);
  if (getOfKeys().size() != getTables().size())
    return emitOpError() << heed::format(
               "says of {} tables whether they are of keys, expected it of {} "
               "(keys.c2)",
               getOfKeys().size(), getTables().size());
  return success();
}

LogicalResult heed::attn::verifyMask(AttentionLike op) {
  Region &mask = op.getMask();
  if (mask.empty())
    return success();
  auto fail = [&]() { return op->emitOpError() << "region 'mask' "; };
  auto keys = mask.hasOneBlock() && mask.front().mightHaveTerminator()
                  ? dyn_cast<KeysOp>(mask.front().getTerminator())
                  : nullptr;
  if (!keys)
    return fail() << "must be one block that ends with attn.keys "
                     "(attention.c15)";
  Builder b(op->getContext());
  SmallVector<Type> expected(op.numDims(DimKind::Batch) + kMaskIndices,
                             b.getIndexType());
  for (Type type : keys.getTables().getTypes()) {
    expected.append(2, type);
    if (isa<FloatType>(type))
      expected.push_back(b.getI1Type());
  }
  if (op.getWhere().empty() || op.numDims(DimKind::Query) != 1 ||
      op.numDims(DimKind::Key) != 1 ||
      !llvm::equal(mask.getArgumentTypes(), expected))
    return fail() << "takes (" << mask.getArgumentTypes() << "), expected ("
                  << expected
                  << ") beside a where of one query and one key dim "
                     "(attention.c15)";
  return success();
}
