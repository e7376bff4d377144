// Feeds the parser of Heed, and prints the trees and the messages: every node
// and every place is looked at.
#include "frontend/Heed/Syntax/ASTPrinter.h"
#include "frontend/Heed/Syntax/Parser.h"

#include <cstdlib>

using namespace heed;

static void check(bool condition, const char *what) {
  if (condition)
    return;
  llvm::errs() << what << '\n';
  abort();
}

/// What every caller of the parser relies on.
static void checkMessages(const Sources &sources, const Diagnostics &diags) {
  for (const Diagnostic &diag : diags.all()) {
    check(!diag.message.empty(), "a message without words");
    check(sources.position(diag.range.Start).line > 0,
          "a message without a place");
    check(diag.range.Start.getPointer() <= diag.range.End.getPointer(),
          "a range that ends before it begins");
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef input(reinterpret_cast<const char *>(data), size);
  {
    Sources sources;
    Diagnostics diags(sources);
    llvm::StringRef text = sources.add("fuzz.heed", input);
    std::unique_ptr<ast::File> file = parseFile("fuzz.heed", text, diags);
    checkMessages(sources, diags);
    diags.print(llvm::nulls());
    printAST(*file, llvm::nulls());
  }
  if (size > 64)
    return 0;
  Sources sources;
  Diagnostics diags(sources);
  ast::ExprPtr value = parseSetting(sources.add("<set>", input), diags);
  checkMessages(sources, diags);
  check(bool(value) || diags.hasErrors(), "no value, and no reason");
  if (value)
    printAST(*value, llvm::nulls());
  return 0;
}
