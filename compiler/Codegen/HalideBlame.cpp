// Where libHalide's late errors belong: from its texts to ops.

#include "compiler/Codegen/HalideBlame.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace heed;

bool heed::saysGuaranteedToFail(StringRef message) {
  return message.contains("guaranteed to fail an assertion");
}

/// A promise about the region of a func (`halide.bound`, `halide.bound_extent`)
/// that is known to be wrong: without this an edited number of a schedule could
/// change results, since kernels check no promise.
static Operation *blamePromise(halide::PipelineOp pipeline,
                               std::string &message) {
  // Var, func (with a number behind '$' where libHalide has made a copy), what
  // was promised, what is computed.
  static const llvm::Regex pattern(
      "halide_error_explicit_bounds_too_small\\(\"([^\"]*)\", "
      "\"([^\"$]*)[^\"]*\", (.*), (.*), (.*), (.*)\\)");
  SmallVector<StringRef> match;
  if (!pattern.match(message, &match))
    return nullptr;
  Operation *promise = nullptr;
  pipeline->walk([&](Operation *op) {
    if (isa<halide::BoundVarOp, halide::BoundExtentOp>(op) &&
        halide::getFuncName(op->getOperand(0)) == match[2] &&
        op->getAttrOfType<StringAttr>("var").getValue() == match[1])
      promise = op;
  });
  if (promise)
    message = format("'{}' promises {} to {} for '{}' of '{}', but {} to {} is "
                     "computed (promise.c1)",
                     promise->getName().getStringRef(), match[3], match[4],
                     match[1], match[2], match[5], match[6]);
  return promise;
}

/// The first func that \p message names, null if it names none.
static halide::FuncOp firstFunc(halide::PipelineOp pipeline,
                                StringRef message) {
  size_t first = StringRef::npos;
  halide::FuncOp best;
  pipeline->walk([&](halide::FuncOp func) {
    for (char quote : {'"', ' ', '\''}) {
      size_t at = message.find((Twine(quote) + func.getName()).str());
      size_t end = at + 1 + func.getName().size();
      if (at == StringRef::npos || at >= first ||
          (end < message.size() && llvm::isAlnum(message[end])))
        continue;
      first = at;
      best = func;
    }
  });
  return best;
}

/// Whether directive \p op is about loop \p var.
static bool namesLoop(Operation *op, StringRef var) {
  if (auto single = op->getAttrOfType<StringAttr>("var"))
    return single.getValue() == var;
  auto several = op->getAttrOfType<ArrayAttr>("vars");
  return several &&
         llvm::is_contained(several.getAsValueRange<StringAttr>(), var);
}

/// The directive on \p func that \p message is about, null if that is not
/// certain.
static Operation *blameDirective(halide::FuncOp func, StringRef message) {
  // What libHalide says, and the beginning of the directives that cause it. An
  // earlier line counts first.
  static constexpr std::pair<StringLiteral, StringLiteral> causes[] = {
      {"is stored outside", "store_"},
      {"at the following invalid location", "compute_"},
      {"only vectorize", "vectorize"},
      {"only unroll", "unroll"},
      {"GPU", "gpu_"},
      {"in registers", "store_in"},
      {"Only fixed-size allocations", "store_in"},
      {"constant upper bound on extent of realization", "store_in"},
  };
  auto *cause = llvm::find_if(
      causes, [&](auto &each) { return message.contains(each.first); });
  if (cause == std::end(causes))
    return nullptr;
  // A loop is called func.sSTAGE.var, the var of a reduction with "$x" behind.
  static const llvm::Regex loop("\\.s([0-9]+)\\.([A-Za-z0-9_]+)");
  SmallVector<StringRef> match;
  uint64_t stage = 0;
  bool hasLoop =
      loop.match(message, &match) && !match[1].getAsInteger(10, stage);
  Operation *found = nullptr;
  for (Operation *user : func->getUsers()) {
    if (!halide::isScheduleOp(user) ||
        user->getOperand(0) != func->getResult(0) ||
        !user->getName().stripDialect().starts_with(cause->second))
      continue;
    auto at = user->getAttrOfType<IntegerAttr>("stage");
    if (hasLoop &&
        ((at && at.getValue() != stage) || (at && !namesLoop(user, match[2]))))
      continue;
    if (found)
      return nullptr;
    found = user;
  }
  return found;
}

Operation *heed::blame(halide::PipelineOp pipeline, std::string &message) {
  if (Operation *promise = blamePromise(pipeline, message))
    return promise;
  halide::FuncOp func = firstFunc(pipeline, message);
  if (!func)
    return pipeline;
  Operation *directive = blameDirective(func, message);
  return directive ? directive : func.getOperation();
}

/// The extent of the inner loop \p var of \p stage of \p func, if a number says
/// it.
static std::optional<int64_t> lanes(Value func, int64_t stage, StringRef var) {
  for (Operation *user : func.getUsers()) {
    if (auto split = dyn_cast<halide::SplitOp>(user))
      if (split.getStage() == uint64_t(stage) && split.getInner() == var)
        return split.getFactor();
    if (auto tile = dyn_cast<halide::TileOp>(user))
      if (tile.getStage() == uint64_t(stage))
        for (auto [name, factor] :
             llvm::zip(tile.getInner().getAsValueRange<StringAttr>(),
                       tile.getFactors()))
          if (name == var)
            return factor;
  }
  return std::nullopt;
}

Operation *heed::blameCrash(halide::PipelineOp pipeline, StringRef assertion,
                            std::string &why) {
  if (!assertion.contains("Calling a function with a bad signature"))
    return nullptr;
  // A masked vector is cut to the machine's vectors. If one lane is left over,
  // libHalide treats it as a vector and LLVM as a scalar.
  Operation *found = nullptr;
  pipeline->walk([&](halide::VectorizeOp op) {
    std::optional<int64_t> count =
        lanes(op.getFunc(), op.getStage(), op.getVar());
    if (found || !count || *count <= 4 || *count % 4 != 1)
      return;
    found = op;
    why = format("a masked vector of {} lanes leaves one lane over when it is "
                 "cut to the machine's, which libHalide's LLVM cannot compile",
                 *count);
  });
  return found;
}
