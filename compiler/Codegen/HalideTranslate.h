// From the halide dialect to libHalide's objects. Private to this library: only
// its files include Halide.h.

#ifndef HEED_COMPILER_CODEGEN_HALIDETRANSLATE_H
#define HEED_COMPILER_CODEGEN_HALIDETRANSLATE_H

#include "Halide.h"
#include "dialects/Halide/HalideDialect.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace heed {

/// What is thrown when the IR holds something that has no counterpart. Never
/// leaves this library.
struct TranslationError {
  mlir::Operation *op;
  std::string message;
};

/// Builds Exprs from `arith`, `math` and the dialect's own scalar ops.
class HalideExpressions {
public:
  /// With \p halvesAsBits an f16 or bf16 is its bits to libHalide, which has
  /// no code for them on devices: a u16, read as f32 where something computes
  /// with it (HalideHalves.cpp).
  explicit HalideExpressions(bool halvesAsBits) : halvesAsBits(halvesAsBits) {}
  virtual ~HalideExpressions() = default;

protected:
  /// Halide's type for a scalar type that the dialect allows.
  Halide::Type typeOf(mlir::Type type) const;
  /// Translates \p op if it is an expression and records its results. False if
  /// it is none.
  bool translateExpression(mlir::Operation *op);
  Halide::Expr get(mlir::Value value);
  void set(mlir::Value value, Halide::Expr expr) {
    exprs[value] = std::move(expr);
  }
  /// The elements of func or buffer \p func at \p coordinates, one per tuple
  /// element.
  virtual std::vector<Halide::Expr>
  read(mlir::Value func, const std::vector<Halide::Expr> &coordinates) = 0;
  /// Extent or first coordinate of a dim of a caller's array.
  virtual Halide::Expr bound(mlir::Value func, int64_t dim, bool extent) = 0;

private:
  Halide::Expr translateArith(mlir::Operation *op);
  Halide::Expr translateMath(mlir::Operation *op);
  bool isBits(mlir::Type type) const;
  /// An operand as a number that can be computed with.
  Halide::Expr number(mlir::Value value);
  /// The type in which a number of \p type is computed.
  Halide::Type numberType(mlir::Type type) const;

  const bool halvesAsBits;
  llvm::DenseMap<mlir::Value, Halide::Expr> exprs;
};

/// A directive that a lowering pass carries out.
struct Directive {
  mlir::Operation *op;
  bool isMet = false; ///< something in the lowered loops answers to it
};

/// What halide.prefetch_lines, halide.prefetch_spread and halide.prefetch_next
/// ask for, in the names of libHalide's loops.
struct LinePrefetch {
  Directive *directive;
  std::string stage, at; ///< how the loop's name begins and ends
  std::string source;
  int64_t ahead = 0; ///< elements
  std::string consumer, over;
  int32_t parts = 0; ///< of prefetch_lines
  int32_t lines = 0; ///< of prefetch_spread
  int32_t turns = 0; ///< of prefetch_spread
  int32_t group = 1; ///< of prefetch_spread
  bool secondCache = false;
  bool inOrder = false;  ///< of prefetch_spread
  bool isOutput = false; ///< which is written, not read
  int32_t places = 1;
  int64_t apart = 0; ///< elements
};

/// Adds the prefetches to the lowered loops: libHalide's own directive fetches
/// all that one turn of a loop reads, which no other turn shares.
Halide::Internal::IRMutator *
makePrefetchPass(std::vector<LinePrefetch> requests);

/// What halide.stream_stores asks for: the output by libHalide's name.
struct StreamedOutput {
  Directive *directive;
  std::string name;
  int dims;
  int64_t bytes;      ///< of an element
  int64_t beyond;     ///< arrays of more bytes than these
  Halide::Expr times; ///< how often the whole is the array; undefined: once
};

/// Marks the stores of these outputs for compileBitcode.
Halide::Internal::IRMutator *
makeStreamPass(std::vector<StreamedOutput> outputs);

/// One pipeline. `translate` throws TranslationError or whatever libHalide
/// throws; `current` is the op it was at.
class HalideTranslator : public HalideExpressions {
public:
  HalideTranslator(halide::PipelineOp pipeline, bool halvesAsBits)
      : HalideExpressions(halvesAsBits), pipeline(pipeline) {}
  void translate();

  /// Directives that the lowered loops have nothing for, and what is missing.
  /// That there is a loop of that name is verified before; of one turn, or
  /// without what it read, libHalide drops it.
  std::vector<std::pair<mlir::Operation *, std::string>> unmet() const;

  Halide::Pipeline result;
  std::vector<Halide::Argument> arguments;
  mlir::Operation *current = nullptr;
  bool hasStreams = false; ///< the code is for compileBitcode to finish

private:
  using Loops = std::map<std::string, Halide::VarOrRVar>;

  std::vector<Halide::Expr>
  read(mlir::Value func, const std::vector<Halide::Expr> &coordinates) override;
  Halide::Expr bound(mlir::Value func, int64_t dim, bool extent) override;

  void translateDefinition(mlir::Operation *op);
  void define(halide::FuncOp op);
  void update(halide::UpdateOp op);
  std::vector<Halide::Expr>
  translateRegion(mlir::Region &region, const std::vector<Halide::Expr> &args);
  void constrain(mlir::Operation *op);

  // HalideSchedule.cpp
  void schedule(mlir::Operation *op);
  void scheduleStage(mlir::Operation *op, Halide::Stage stage, Loops &loops);
  template <typename Op> void prefetchLines(Op prefetch, llvm::StringRef at);
  void scheduleFunc(mlir::Operation *op, Halide::Func &func);
  Halide::VarOrRVar loop(mlir::Operation *op, Loops &loops,
                         llvm::StringRef name);
  void factor(halide::RFactorOp op);

  halide::PipelineOp pipeline;
  std::deque<Directive> directives;
  std::vector<LinePrefetch> prefetches;
  std::vector<StreamedOutput> streams;
  bool inWhere = false; ///< in the condition of an update
  llvm::DenseMap<mlir::Value, Halide::Func> funcs;
  llvm::DenseMap<mlir::Value, Halide::ImageParam> buffers;
  /// Per func, per stage: the loops by name. Halide tells Vars from RVars,
  /// names alone do not.
  llvm::DenseMap<mlir::Value, std::vector<Loops>> loops;
};

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDETRANSLATE_H
