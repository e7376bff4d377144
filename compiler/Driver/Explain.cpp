//===- Explain.cpp - what the passes did, for people or programs ----------===//

#include "compiler/Driver/Explain.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "support/Format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>
#include <vector>

using namespace mlir;
using heed::Explain;

namespace {

/// A remark, apart from the engine that holds it only while it is sent.
struct Said {
  explicit Said(const remark::detail::Remark &remark)
      : pass(remark.getCategoryName()), name(remark.getRemarkName()),
        function(remark.getFunction()),
        done(remark.getRemarkType() == llvm::remarks::Type::Passed),
        declined(remark.getRemarkType() == llvm::remarks::Type::Missed) {
    remark.getLocation()->walk([&](Location location) {
      auto at = dyn_cast<FileLineColLoc>(location);
      if (!at)
        return WalkResult::advance();
      file = at.getFilename().str();
      row = at.getLine();
      column = at.getColumn();
      return WalkResult::interrupt();
    });
    // The text of a remark is its arguments without keys.
    for (const auto &argument : remark.getArgs())
      message += argument.val;
  }

  auto place() const { return std::tie(file, row, column); }
  std::string placeText() const {
    return row ? heed::format("{}:{}:{}: ", file, row, column) : "";
  }
  llvm::json::Object object() const {
    return llvm::json::Object{{"pass", pass},
                              {"name", name},
                              {"function", function},
                              {"kind", done       ? "done"
                                       : declined ? "declined"
                                                  : "found"},
                              {"file", file},
                              {"line", int64_t(row)},
                              {"column", int64_t(column)},
                              {"message", message}};
  }

  std::string pass, name, function, file, message;
  unsigned row = 0, column = 0;
  bool done, declined;
};

/// Whether \p said tells how an attention is computed.
bool isChoice(const Said &said) {
  return said.pass == "attn-choose-algorithm" && said.name != "cost" &&
         said.name != "softmax";
}

/// Whether \p said is about a softmax that is no attention's.
bool isAlone(const Said &said) {
  return said.pass == "attn-choose-algorithm" && said.name == "softmax";
}

class Printer : public remark::detail::MLIRRemarkStreamerBase {
public:
  Printer(llvm::raw_ostream &os, Explain form) : os(os), form(form) {}
  ~Printer() override { summarise(); }

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    Said said(remark);
    std::string line;
    llvm::raw_string_ostream text(line);
    if (form == Explain::Json)
      text << llvm::json::Value(said.object());
    else
      text << said.placeText() << said.pass
           << (said.declined ? " declined: " : ": ") << said.message;
    if (!seen.insert(line).second)
      return;
    if (form == Explain::Summary)
      remarks.push_back(std::move(said));
    else
      os << line << '\n';
  }

private:
  /// A line for each attention, and below it all that was said of its place; a
  /// line for each softmax by itself, with why sums were not raised, and one
  /// for the memory.
  void summarise() {
    llvm::stable_sort(remarks, [](const Said &a, const Said &b) {
      return a.place() < b.place();
    });
    bool alone = llvm::any_of(remarks, isAlone);
    size_t left = 0;
    for (size_t begin = 0, end; begin < remarks.size(); begin = end) {
      const Said &first = remarks[begin];
      for (end = begin;
           end < remarks.size() && remarks[end].place() == first.place();)
        ++end;
      llvm::ArrayRef<Said> here(&first, end - begin);
      const Said *choice = llvm::find_if(here, isChoice);
      bool isAttention = choice != here.end();
      if (isAttention)
        os << first.placeText() << "attention, " << choice->name << ": "
           << choice->message << '\n';
      for (const Said &said : here)
        if (isAttention && &said != choice)
          os << "  " << (said.declined ? "declined: " : "") << said.message
             << '\n';
        else if (isAlone(said) || (alone && said.declined &&
                                   said.pass == "attn-raise-attention"))
          os << first.placeText() << "no attention: " << said.message << '\n';
        else if (said.done && said.pass == "attn-plan-memory")
          os << first.placeText() << "memory: " << said.message << '\n';
        else if (&said != choice)
          ++left;
    }
    if (left)
      os << heed::format("{} on other operations: --explain=all\n",
                         heed::counted(left, "remark", "remarks"));
  }

  llvm::raw_ostream &os;
  Explain form;
  llvm::StringSet<> seen;
  std::vector<Said> remarks; ///< for the summary
};

} // namespace

void heed::enableExplain(MLIRContext &context, llvm::raw_ostream &os,
                         Explain form) {
  remark::RemarkCategories every{std::nullopt, ".*", ".*", ".*", ".*"};
  (void)remark::enableOptimizationRemarks(
      context, std::make_unique<Printer>(os, form),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), every);
}
