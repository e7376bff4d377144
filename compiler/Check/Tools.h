//===- Tools.h - heedc and heed-opt as the checker runs them ----*- C++ -*-===//
// In processes of their own: a compiler that crashes is one more thing to
// report.
#ifndef HEED_COMPILER_CHECK_TOOLS_H
#define HEED_COMPILER_CHECK_TOOLS_H

#include <optional>
#include <string>
#include <vector>

namespace heed::check {

/// What a library of the reference is for.
enum class ReferenceKind {
  Plain,
  Measured, ///< with the results of reference-report-scores
  Written,  ///< in the declared types, not in f64
  /// What is rounded to 16 bits is a little larger, or smaller, before.
  Above,
  Below
};

/// How the compiler is called for every source of a run.
struct Tools {
  std::string heedc, heedOpt;
  std::vector<std::string> settings; ///< --set of heedc
  std::vector<std::string> weights;  ///< --weights of heedc
  std::string weightsType;           ///< --weights-type; empty: its default
  std::string target;   ///< of the fast backend; empty: heedc's default
  std::string products; ///< --products; empty: its default
  std::string modelDir; ///< of heedc; empty: `check` beside the source, if any
  std::string plugin;   ///< heed-opt's --load-pass-plugin, for tests
  bool cache = true;    ///< kernels that heedc compiled before may be taken
  /// Passes on modules, each as heed-opt's --pass-pipeline writes it.
  std::vector<std::string> passes;

  /// Asks heed-opt for the driver's passes. False with \p error set if it does
  /// not answer.
  bool readPasses(std::string &error);

  /// The position of \p name in `passes`; the whole text of an entry or its
  /// innermost pass. Nothing if it is no pass.
  std::optional<size_t> find(const std::string &name, size_t from = 0) const;

  /// Compiles \p source to a shared library.
  /// \p text: what it said. The exit code, negative after a crash.
  int compileFast(const std::string &source, const std::string &output,
                  std::string &text) const;
  int compileReference(const std::string &source, const std::string &output,
                       std::string &text, ReferenceKind kind) const;
  /// The front end's IR in \p text; \p output is a file for it.
  int emitAttn(const std::string &source, const std::string &output,
               std::string &text) const;
  /// Compiles what \p source has become after passes[0..last]: attn IR by the
  /// reference, halide IR by Halide (then the host without a memory plan).
  int compileAfter(const std::string &source, size_t last,
                   const std::string &output, std::string &text) const;

private:
  std::vector<std::string> sourceFlags(const std::string &source) const;
};

/// The first pass in "func.func(attn-raise-attention)", without options.
std::string passName(const std::string &pipeline);

/// Runs a tool; what it says goes to \p text. Its exit code, negative after a
/// crash.
int execute(const std::vector<std::string> &list, std::string &text);

} // namespace heed::check

#endif
