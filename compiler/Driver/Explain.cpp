//===- Explain.cpp - what the passes did, for people or programs ----------===//

#include "compiler/Driver/Explain.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace {

class Printer : public remark::detail::MLIRRemarkStreamerBase {
public:
  Printer(llvm::raw_ostream &os, bool json) : os(os), json(json) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    std::string line;
    llvm::raw_string_ostream text(line);
    std::string file;
    unsigned row = 0, column = 0;
    remark.getLocation()->walk([&](Location location) {
      auto place = dyn_cast<FileLineColLoc>(location);
      if (!place)
        return WalkResult::advance();
      file = place.getFilename().str();
      row = place.getLine();
      column = place.getColumn();
      return WalkResult::interrupt();
    });
    bool done = remark.getRemarkType() == llvm::remarks::Type::Passed;
    bool declined = remark.getRemarkType() == llvm::remarks::Type::Missed;
    // The text of a remark is its arguments without keys.
    std::string message;
    for (const auto &argument : remark.getArgs())
      message += argument.val;
    if (json) {
      text << llvm::json::Value(
          llvm::json::Object{{"pass", remark.getCategoryName()},
                             {"name", remark.getRemarkName()},
                             {"function", remark.getFunction()},
                             {"kind", done       ? "done"
                                      : declined ? "declined"
                                                 : "found"},
                             {"file", file},
                             {"line", int64_t(row)},
                             {"column", int64_t(column)},
                             {"message", message}});
    } else {
      if (row)
        text << file << ':' << row << ':' << column << ": ";
      text << remark.getCategoryName() << (declined ? " declined: " : ": ")
           << message;
    }
    if (seen.insert(line).second)
      os << line << '\n';
  }

private:
  llvm::raw_ostream &os;
  bool json;
  llvm::StringSet<> seen;
};

} // namespace

void heed::enableExplain(MLIRContext &context, llvm::raw_ostream &os,
                         bool json) {
  remark::RemarkCategories every{std::nullopt, ".*", ".*", ".*", ".*"};
  (void)remark::enableOptimizationRemarks(
      context, std::make_unique<Printer>(os, json),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), every);
}
