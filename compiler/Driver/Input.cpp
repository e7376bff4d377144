//===- Input.cpp - sources and IR files to attn IR ------------------------===//

#include "compiler/Driver/CheckModels.h"
#include "compiler/Driver/Compilation.h"
#include "compiler/Driver/Weights.h"
#include "frontend/Common/Diagnostics.h"
#include "frontend/Common/Source.h"
#include "frontend/Heed/Heed.h"
#include "frontend/Heed/Syntax/ASTPrinter.h"
#include "frontend/Heed/Syntax/Loader.h"
#include "frontend/Heed/Syntax/Parser.h"
#include "frontend/HuggingFace/HuggingFace.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "support/Format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace heed;

namespace {

/// Standard input has no ending that tells IR from a source. No line of a
/// source can begin with what the lines of IR begin with.
bool isIR(llvm::StringRef text) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    for (llvm::StringRef word : {"module {", "module @", "module attributes",
                                 "func.func ", "halide.pipeline "})
      if (line.starts_with(word))
        return true;
    text = rest;
  }
  return false;
}

/// What is to be compiled: a file's name, the text of standard input, or the
/// architecture of a checkpoint's folder.
struct Given {
  std::unique_ptr<llvm::MemoryBuffer> text;
  const LibraryFile *architecture = nullptr;
  bool isIR = false;
};

std::optional<Given> readGiven(const CompileOptions &options) {
  Given given;
  if (llvm::sys::fs::is_directory(options.input)) {
    std::string error;
    given.architecture = findArchitecture(options.input, error);
    if (given.architecture)
      return given;
    llvm::errs() << "heedc: error: " << error << '\n';
    return std::nullopt;
  }
  if (options.input != "-") {
    given.isIR = llvm::sys::path::extension(options.input) == ".mlir";
    return given;
  }
  auto text = llvm::MemoryBuffer::getSTDIN();
  if (!text) {
    llvm::errs() << "heedc: error: cannot read standard input: "
                 << text.getError().message() << '\n';
    return std::nullopt;
  }
  given.text = std::move(*text);
  given.isIR = isIR(given.text->getBuffer());
  return given;
}

struct Front {
  Sources sources;
  Diagnostics diagnostics{sources};
  Program program;

  bool load(const CompileOptions &options, const Given &given) {
    LoadOptions load;
    load.includeFolders = options.includes;
    load.modelFolder = options.modelDir;
    load.shippedFolder = huggingFaceFolder;
    load.shippedName = huggingFaceName;
    load.shipped = huggingFaceFiles();
    program = given.architecture
                  ? loadProgramText(heed::format("{}/{}", load.shippedFolder,
                                                 given.architecture->path),
                                    given.architecture->text, load, sources,
                                    diagnostics)
              : given.text
                  ? loadProgramText(options.input, given.text->getBuffer(),
                                    load, sources, diagnostics)
                  : loadProgram(options.input, load, sources, diagnostics);
    return program.main && !diagnostics.hasErrors();
  }
};

OwningOpRef<ModuleOp> compileSource(MLIRContext &context,
                                    const CompileOptions &options,
                                    const Given &given,
                                    std::vector<std::string> &reads) {
  Front front;
  OwningOpRef<ModuleOp> module;
  Weights weights;
  WeightIndex index;
  if (!options.weights.empty()) {
    weights = openWeights(options.weights);
    if (!weights)
      return nullptr;
    index = indexWeights(*weights);
    llvm::append_range(reads, filesOfWeights(options.weights, *weights));
  }
  if (front.load(options, given)) {
    FrontendOptions settings;
    settings.model = options.model;
    if (!options.weights.empty())
      settings.weights = &index;
    for (const std::string &setting : options.settings) {
      auto [name, value] = llvm::StringRef(setting).split('=');
      if (name.empty() || value.empty()) {
        llvm::errs() << "heedc: error: expected --set name=value, found '"
                     << setting << "'\n";
        return nullptr;
      }
      for (const auto &given : settings.settings)
        if (name == given.first) {
          llvm::errs() << "heedc: error: expected one --set " << name
                       << ", found two\n";
          return nullptr;
        }
      llvm::StringRef text = front.sources.add("--set", value);
      if (ast::ExprPtr expr = parseSetting(text, front.diagnostics))
        settings.settings.emplace_back(name.str(), std::move(expr));
    }
    if (!front.diagnostics.hasErrors())
      module = compileHeed(context, front.program, settings, front.sources,
                           front.diagnostics);
  }
  llvm::append_range(reads, front.program.reads);
  front.diagnostics.print(llvm::errs());
  if (front.diagnostics.hasErrors() ||
      (module && weights && failed(checkWeights(*module, *weights))))
    return nullptr;
  return module;
}

} // namespace

bool heed::printModel(const CompileOptions &options, llvm::raw_ostream &os) {
  std::optional<Given> given = readGiven(options);
  if (!given)
    return false;
  if (!given->architecture) {
    llvm::errs() << "heedc: error: --emit=heed prints the model of a "
                    "checkpoint's folder, '"
                 << options.input << "' is none\n";
    return false;
  }
  os << asOwnFile(*given->architecture);
  return true;
}

bool heed::printTree(const CompileOptions &options, llvm::raw_ostream &os,
                     std::vector<std::string> &reads) {
  std::optional<Given> given = readGiven(options);
  if (!given)
    return false;
  if (given->isIR) {
    llvm::errs() << "heedc: error: --emit=ast needs a source, '"
                 << options.input << "' is IR\n";
    return false;
  }
  Front front;
  bool ok = front.load(options, *given);
  llvm::append_range(reads, front.program.reads);
  front.diagnostics.print(llvm::errs());
  if (ok)
    printAST(*front.program.main, os);
  return ok;
}

OwningOpRef<ModuleOp> heed::readInput(MLIRContext &context,
                                      const CompileOptions &options,
                                      std::vector<std::string> *reads) {
  std::vector<std::string> unasked;
  if (!reads)
    reads = &unasked;
  std::optional<Given> given = readGiven(options);
  if (!given)
    return nullptr;
  if (given->isIR) {
    // What would have no effect is more likely a mistake than a wish.
    if (!options.settings.empty() || !options.weights.empty()) {
      llvm::errs() << "heedc: error: --set and --weights need a source, '"
                   << options.input << "' is IR\n";
      return nullptr;
    }
    if (!given->text)
      reads->push_back(options.input);
    ParserConfig config(&context);
    OwningOpRef<ModuleOp> module =
        given->text ? parseSourceString<ModuleOp>(given->text->getBuffer(),
                                                  config, "<stdin>")
                    : parseSourceFile<ModuleOp>(options.input, config);
    if (module && failed(checkModels(*module)))
      return nullptr;
    return module;
  }
  return compileSource(context, options, *given, *reads);
}
