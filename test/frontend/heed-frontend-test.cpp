//===- heed-frontend-test.cpp - From text to attn IR alone ----------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints the attn IR of a model, or what is wrong with it. Exit code 1 after an
// error.
//
//   heed-frontend-test FILE [-I DIR] [--model-dir=DIR] [--set NAME=VALUE]..
//                      [--model=NAME] [--weight=NAME:TYPE:2x3].. [--locations]
//   heed-frontend-test --builtins     the table of built-in functions: names
//
//===----------------------------------------------------------------------===//

#include "compiler/Link/Process.h"
#include "frontend/Common/Builtins.h"
#include "frontend/Heed/Heed.h"
#include "frontend/Heed/Syntax/Parser.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

namespace cl = llvm::cl;

static cl::opt<std::string> file(cl::Positional, cl::desc("<file>"));
static cl::list<std::string> includes("I", cl::Prefix, cl::desc("folder"));
static cl::opt<std::string> modelDir("model-dir", cl::desc("configs"));
static cl::opt<std::string> model("model", cl::desc("which model"));
static cl::list<std::string> settings("set", cl::desc("name=value"));
static cl::list<std::string> weights("weight", cl::desc("name:type:shape"));
static cl::opt<bool> locations("locations", cl::desc("print locations"));
static cl::opt<bool> listBuiltins("builtins", cl::desc("print their names"));

int main(int argc, char **argv) {
  heed::prepareProcess();
  cl::ParseCommandLineOptions(argc, argv);
  if (listBuiltins) {
    for (const heed::sema::Builtin &row : heed::sema::builtins())
      llvm::outs() << row.name << "/" << row.arity << "\n";
    return 0;
  }
  heed::LoadOptions load;
  load.includeFolders.assign(includes.begin(), includes.end());
  load.modelFolder = modelDir;
  heed::Sources sources;
  heed::Diagnostics diags(sources);
  heed::FrontendOptions options;
  options.model = model;
  for (llvm::StringRef setting : settings) {
    auto [name, value] = setting.split('=');
    options.settings.emplace_back(
        name.str(), heed::parseSetting(sources.add("<set>", value), diags));
  }
  heed::WeightIndex index;
  for (llvm::StringRef weight : weights) {
    llvm::SmallVector<llvm::StringRef> parts, dims;
    weight.split(parts, ':');
    if (parts.size() > 2 && !parts[2].empty())
      parts[2].split(dims, 'x');
    heed::WeightInfo &info = index[parts[0]];
    info.type = parts[1].str();
    for (llvm::StringRef dim : dims)
      info.shape.push_back(std::stoll(dim.str()));
  }
  if (!weights.empty())
    options.weights = &index;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  heed::Program program = heed::loadProgram(file, load, sources, diags);
  if (!diags.hasErrors())
    module = heed::compileHeed(context, program, options, sources, diags);
  diags.print(llvm::errs());
  if (diags.hasErrors() || !module)
    return 1;
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo(true, false);
  module->print(llvm::outs(), flags);
  return 0;
}
