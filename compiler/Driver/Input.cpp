//===- Input.cpp - sources and IR files to attn IR ------------------------===//

#include "compiler/Driver/Compile.h"
#include "frontend/Heed/ASTPrinter.h"
#include "frontend/Heed/Diagnostics.h"
#include "frontend/Heed/Loader.h"
#include "frontend/Heed/Parser.h"
#include "frontend/Heed/Semantics.h"
#include "frontend/Heed/Source.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "runtime/io/Safetensors.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace heed;

namespace {

bool readWeights(const std::vector<std::string> &files, WeightIndex &index) {
  std::vector<const char *> paths;
  for (const std::string &file : files)
    paths.push_back(file.c_str());
  heed_weights *weights = nullptr;
  heed_io_error error;
  if (!heed_weights_open(paths.data(), paths.size(), &weights, &error)) {
    llvm::errs() << "heedc: error: " << error.text << '\n';
    return false;
  }
  for (size_t k = 0; k < heed_weights_count(weights); ++k) {
    const heed_safetensor *tensor = heed_weights_at(weights, k);
    WeightInfo &info = index[tensor->name];
    info.type = tensor->dtype;
    info.shape.assign(tensor->array.shape,
                      tensor->array.shape + tensor->array.rank);
  }
  heed_weights_close(weights);
  return true;
}

struct Front {
  Sources sources;
  Diagnostics diagnostics{sources};
  Program program;

  bool load(const CompileOptions &options) {
    LoadOptions load;
    load.includeFolders = options.includes;
    load.modelFolder = options.modelDir;
    program = loadProgram(options.input, load, sources, diagnostics);
    return program.main && !diagnostics.hasErrors();
  }
};

OwningOpRef<ModuleOp> compileSource(MLIRContext &context,
                                    const CompileOptions &options) {
  Front front;
  OwningOpRef<ModuleOp> module;
  WeightIndex weights;
  if (!options.weights.empty() && !readWeights(options.weights, weights))
    return nullptr;
  if (front.load(options)) {
    FrontendOptions settings;
    settings.model = options.model;
    if (!options.weights.empty())
      settings.weights = &weights;
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
  front.diagnostics.print(llvm::errs());
  if (front.diagnostics.hasErrors())
    return nullptr;
  return module;
}

} // namespace

namespace heed {

/// --emit=ast.
bool printTree(const CompileOptions &options, llvm::raw_ostream &os) {
  Front front;
  bool ok = front.load(options);
  front.diagnostics.print(llvm::errs());
  if (ok)
    printAST(*front.program.main, os);
  return ok;
}

} // namespace heed

OwningOpRef<ModuleOp> heed::readInput(MLIRContext &context,
                                      const CompileOptions &options) {
  if (llvm::sys::path::extension(options.input) == ".mlir") {
    // What would have no effect is more likely a mistake than a wish.
    if (!options.settings.empty() || !options.weights.empty()) {
      llvm::errs() << "heedc: error: --set and --weights need a source, '"
                   << options.input << "' is IR\n";
      return nullptr;
    }
    llvm::SourceMgr sources;
    return parseSourceFile<ModuleOp>(options.input, ParserConfig(&context));
  }
  return compileSource(context, options);
}
