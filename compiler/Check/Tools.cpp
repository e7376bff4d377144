//===- Tools.cpp - heedc and heed-opt as the checker runs them ------------===//
#include "compiler/Check/Tools.h"
#include "compiler/Check/Compare.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

namespace heed::check {

/// Seconds after which a compiler counts as hanging.
constexpr unsigned kPatience = 600;

int execute(const std::vector<std::string> &list, std::string &text) {
  llvm::SmallString<128> log;
  if (llvm::sys::fs::createTemporaryFile("heed-check", "txt", log)) {
    text = "cannot make a temporary file\n";
    return 1;
  }
  llvm::FileRemover remover(log);
  std::vector<llvm::StringRef> args(list.begin(), list.end());
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, log.str(),
                                                log.str()};
  std::string problem;
  int code = llvm::sys::ExecuteAndWait(list[0], args, std::nullopt, redirects,
                                       kPatience, 0, &problem);
  text.clear();
  if (auto file = llvm::MemoryBuffer::getFile(log))
    text = (*file)->getBuffer().str();
  if (!problem.empty())
    text += format("{}: {}\n", list[0], problem);
  return code;
}

/// Splits at commas that stand outside of brackets.
static std::vector<std::string> splitPasses(llvm::StringRef text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    depth += c == '(' || c == '{' ? 1 : c == ')' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  if (!part.empty())
    parts.push_back(part);
  return parts;
}

bool Tools::readPasses(std::string &error) {
  std::string text;
  // The pipeline is printed before it runs; that an empty file is no model,
  // which is said after it, is nothing to us.
  execute({heedOpt, "--heed-kernels", "--dump-pass-pipeline", "/dev/null"},
          text);
  // Printed over many lines and indented: builtin.module(a, func.func(b)).
  std::string line;
  bool inOptions = false;
  for (char c : text) {
    inOptions = c == '{' || (inOptions && c != '}');
    if (c != '\n' && (c != ' ' || inOptions))
      line += c;
  }
  llvm::StringRef pipeline = line;
  size_t open = pipeline.find("builtin.module(");
  size_t close = open;
  for (int depth = 0; close < pipeline.size(); ++close) {
    depth += pipeline[close] == '(' ? 1 : pipeline[close] == ')' ? -1 : 0;
    if (depth == 0 && pipeline[close] == ')')
      break;
  }
  if (open == llvm::StringRef::npos || close >= pipeline.size()) {
    error = format("{}: expected a pipeline, found: {}", heedOpt, text);
    return false;
  }
  open += llvm::StringRef("builtin.module(").size();
  passes = splitPasses(pipeline.slice(open, close));
  return true;
}

std::string passName(const std::string &pipeline) {
  llvm::StringRef name = pipeline;
  name = name.take_until([](char c) { return c == '{'; });
  name = name.rsplit('(').second.empty() ? name : name.rsplit('(').second;
  return name.take_until([](char c) { return c == ')'; }).str();
}

std::optional<size_t> Tools::find(const std::string &name, size_t from) const {
  for (size_t k = from; k < passes.size(); ++k)
    if (passes[k] == name || passName(passes[k]) == name)
      return k;
  return std::nullopt;
}

std::vector<std::string> Tools::sourceFlags(const std::string &source) const {
  std::vector<std::string> flags;
  if (!products.empty())
    flags.push_back(heed::format("--products={}", products));
  if (llvm::sys::path::extension(source) == ".mlir")
    return flags;
  for (const std::string &setting : settings)
    flags.push_back(heed::format("--set={}", setting));
  for (const std::string &file : weights)
    flags.push_back(heed::format("--weights={}", file));
  if (!weightsType.empty())
    flags.push_back(heed::format("--weights-type={}", weightsType));
  llvm::SmallString<128> beside(llvm::sys::path::parent_path(source));
  llvm::sys::path::append(beside, "check");
  if (!modelDir.empty())
    flags.push_back(heed::format("--model-dir={}", modelDir));
  else if (llvm::sys::fs::is_directory(beside))
    flags.push_back(heed::format("--model-dir={}", beside.str().str()));
  return flags;
}

int Tools::compileFast(const std::string &source, const std::string &output,
                       std::string &text) const {
  std::vector<std::string> list{
      heedc, source, "--emit=shared", "--explain=json", "-o", output};
  if (!cache)
    list.push_back("--no-cache");
  if (!target.empty())
    list.push_back(heed::format("--target={}", target));
  llvm::append_range(list, sourceFlags(source));
  return execute(list, text);
}

int Tools::compileReference(const std::string &source,
                            const std::string &output, std::string &text,
                            ReferenceKind kind) const {
  std::vector<std::string> list{
      // Its loops are many and their sizes small: what LLVM makes of them
      // takes far longer than they do.
      heedc, source, "--emit=shared", "--backend=reference",
      "-O0", "-o",   output};
  if (kind == ReferenceKind::Measured)
    list.push_back("--report-scores");
  if (kind == ReferenceKind::Written)
    list.push_back("--declared-types");
  if (kind == ReferenceKind::Above || kind == ReferenceKind::Below)
    list.push_back(heed::format(
        "--nudge={}", kind == ReferenceKind::Above ? kBound : -kBound));
  llvm::append_range(list, sourceFlags(source));
  return execute(list, text);
}

int Tools::emitAttn(const std::string &source, const std::string &output,
                    std::string &text) const {
  std::vector<std::string> list{heedc, source, "--emit=attn", "-o", output};
  llvm::append_range(list, sourceFlags(source));
  if (int code = execute(list, text))
    return code;
  auto ir = llvm::MemoryBuffer::getFile(output);
  if (!ir) {
    text = format("{}: {}\n", output, ir.getError().message());
    return 1;
  }
  text = (*ir)->getBuffer().str();
  return 0;
}

int Tools::compileAfter(const std::string &source, size_t last,
                        const std::string &output, std::string &text) const {
  std::string before = heed::format("{}.before.mlir", output),
              after = heed::format("{}.after.mlir", output);
  if (int code = emitAttn(source, before, text))
    return code;
  std::string pipeline;
  for (size_t k = 0; k <= last; ++k)
    pipeline += (k ? "," : "") + passes[k];
  std::vector<std::string> list{
      heedOpt, before, "-o", after,
      format("--pass-pipeline=builtin.module({})", pipeline)};
  if (!plugin.empty())
    list.push_back(heed::format("--load-pass-plugin={}", plugin));
  if (int code = execute(list, text))
    return code;
  auto ir = llvm::MemoryBuffer::getFile(after);
  if (!ir || !(*ir)->getBuffer().contains("halide.pipeline @"))
    return compileReference(after, output, text, ReferenceKind::Plain);
  return execute({heedc, after, "--emit=shared", "--no-memory-plan",
                  "--no-cache", "-o", output},
                 text);
}

} // namespace heed::check
