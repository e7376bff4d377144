//===- Pipeline.h - from attn IR to upstream ops ----------------*- C++ -*-===//
//
// The backend that defines what a model computes: no pass of passes/, no
// Halide. Entry points, bufferisation and LLVM come after it, shared with the
// fast backend.
#ifndef HEED_COMPILER_REFERENCE_PIPELINE_H
#define HEED_COMPILER_REFERENCE_PIPELINE_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace heed::reference {

struct Options {
  /// f32 results of the model become f64 and are not rounded (heed-check).
  bool f64Results = false;
  /// Further results of the model: the largest score, the fewest and the most
  /// live keys of a row (reference-report-scores).
  bool reportScores = false;
  /// Compute in the declared types, not in f64: what the equations give as they
  /// are written (heed-check).
  bool declaredTypes = false;
  /// What is rounded to 16 bits is that part of itself larger before
  /// (heed-check).
  double nudge = 0;
};

/// Module passes from attn IR (docs/ir.md, 1 or 2) to linalg, scf, arith and
/// math on tensors, in f64 unless told otherwise; `attn.param` and
/// `attn.require*` stay.
void buildPipeline(mlir::OpPassManager &pm, const Options &options = {});

} // namespace heed::reference

#endif
