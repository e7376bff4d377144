//===- Check.cpp - one source, compiled both ways and compared ------------===//
#include "compiler/Check/Check.h"
#include "compiler/Check/Checker.h"
#include "compiler/Check/Fused.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using llvm::outs;

namespace heed::check {

/// The lines of \p text that name an error; all but remarks if none does.
static std::string errorsOf(const std::string &text) {
  std::string errors;
  for (llvm::StringRef line : llvm::split(llvm::StringRef(text), "\n"))
    if (!line.starts_with("{") &&
        (line.contains("error: ") || line.contains("ERROR")))
      errors += format("    {}\n", line.str());
  if (!errors.empty())
    return errors;
  // Not the remarks.
  for (llvm::StringRef line : llvm::split(llvm::StringRef(text), "\n"))
    if (!line.empty() && !line.starts_with("{"))
      errors += format("    {}\n", line.str());
  return errors;
}

/// Long: what each step of a check needs of the one before.
bool check(const std::string &source, const std::string &title, size_t stage,
           const CheckOptions &options, std::string &explained) {
  outs() << title << "\n";
  outs().flush(); // a model may take a while, and be interrupted
  // A library of its own for every stage: the loader knows them by name.
  bool whole = stage == std::string::npos;
  std::string fastLibrary =
      format("{}/{}.so", options.folder, whole ? "fast" : format("{}", stage));
  const Tools &tools = options.tools;
  int code = whole ? tools.compileFast(source, fastLibrary, explained)
                   : tools.compileAfter(source, stage, fastLibrary, explained);
  if (code != 0) {
    outs() << "  FAIL heedc:\n" << errorsOf(explained);
    return false;
  }
  std::string origin = options.against.empty() ? source : options.against, text;
  auto after = [&](llvm::StringRef pass) {
    return tools.find(pass.str()).value_or(stage + 1) <= stage;
  };
  Fused fused = readExplanation(explained);
  if (!options.meaning.empty() &&
      (whole ? fused.raised : after("attn-raise-attention")))
    origin = options.meaning;
  std::string slowLibrary =
      format("{}/{}.so", options.folder,
             origin == options.meaning ? "meaning" : "reference");
  if (!llvm::sys::fs::exists(slowLibrary) &&
      tools.compileReference(origin, slowLibrary, text,
                             ReferenceKind::Measured) != 0) {
    outs() << "  FAIL heedc --backend=reference:\n" << errorsOf(text);
    return false;
  }
  std::string ir, error;
  if (tools.emitAttn(source, heed::format("{}/attn.mlir", options.folder),
                     ir) != 0) {
    outs() << "  FAIL heedc --emit=attn:\n" << errorsOf(ir);
    return false;
  }
  std::vector<std::unique_ptr<Sizes>> entries = Sizes::read(ir, error);
  if (entries.empty()) {
    outs() << "  FAIL heedc --emit=attn: " << error << "\n";
    return false;
  }
  auto other = [&](ReferenceKind kind, std::string &problem) {
    std::string library = heed::format("{}.{}.so", slowLibrary, int(kind)),
                said;
    if (llvm::sys::fs::exists(library) ||
        tools.compileReference(origin, library, said, kind) == 0)
      return library;
    problem = heed::format("heedc --backend=reference:\n{}", errorsOf(said));
    return std::string();
  };
  Licence licence{whole ? fused.reordered
                        : after("attn-raise-linear-attention"),
                  whole && fused.logarithms, whole && fused.overQueries};
  licence.roundsFactors = tools.products == "bf16";
  bool good = true;
  for (size_t k = 0; k < entries.size(); ++k) {
    if (entries.size() > 1)
      outs() << "  entry " << entries[k]->entry << "\n";
    Checker checker(options, std::move(entries[k]), k);
    good &= checker.open({fastLibrary, slowLibrary, other, licence}) &&
            checker.run();
  }
  return good;
}

bool bisect(const std::string &source, const CheckOptions &options) {
  std::string explained;
  const std::vector<std::string> &passes = options.tools.passes;
  for (size_t k = 0; k < passes.size(); ++k) {
    std::string name = passName(passes[k]);
    if (check(source, format("{} after {}", source, name), k, options,
              explained))
      continue;
    outs() << source << ": the first pass that differs is " << name << " (pass "
           << k + 1 << " of " << passes.size() << ")\n";
    return false;
  }
  if (check(source, source, std::string::npos, options, explained))
    return true;
  outs() << source
         << ": every pass on kernels agrees; it differs in attn-plan-memory or "
            "the host's code\n";
  return false;
}

} // namespace heed::check
