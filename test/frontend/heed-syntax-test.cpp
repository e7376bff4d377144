//===- heed-syntax-test.cpp - The front half of the language alone --------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads files with all that they import and prints the tree of each, or what
// is wrong. Exit code 1 after an error.
//
//   heed-syntax-test FILE.. [-I DIR] [--model-dir=DIR] [--quiet] [--set VALUE]
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Syntax/ASTPrinter.h"
#include "frontend/Heed/Syntax/Loader.h"
#include "frontend/Heed/Syntax/Parser.h"

#include "llvm/Support/CommandLine.h"

namespace cl = llvm::cl;

static cl::list<std::string> files(cl::Positional, cl::desc("<files>"));
static cl::list<std::string> includes("I", cl::Prefix, cl::desc("folder"));
static cl::opt<std::string> modelDir("model-dir", cl::desc("configs"));
static cl::opt<bool> quiet("quiet", cl::desc("print no tree"));
static cl::list<std::string> settings("set", cl::desc("a value to parse"));

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  heed::LoadOptions options;
  options.includeFolders.assign(includes.begin(), includes.end());
  options.modelFolder = modelDir;
  bool failed = false;
  for (const std::string &file : files) {
    heed::Sources sources;
    heed::Diagnostics diags(sources);
    heed::Program program = heed::loadProgram(file, options, sources, diags);
    diags.print(llvm::errs());
    failed |= diags.hasErrors();
    if (!quiet && !diags.hasErrors() && program.main)
      heed::printAST(*program.main, llvm::outs());
  }
  for (const std::string &setting : settings) {
    heed::Sources sources;
    heed::Diagnostics diags(sources);
    llvm::StringRef text = sources.add("<set>", setting);
    heed::ast::ExprPtr value = heed::parseSetting(text, diags);
    diags.print(llvm::errs());
    failed |= !value;
    if (value) {
      heed::printAST(*value, llvm::outs());
      llvm::outs() << '\n';
    }
  }
  return failed;
}
