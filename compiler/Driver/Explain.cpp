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
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

using namespace mlir;
using heed::Explain;

namespace {

/// What stands as pass in remarks that are the driver's own.
constexpr llvm::StringLiteral kExplainDriver = "heedc";

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

/// What one model of one target became: what attn-to-halide says of it, how
/// its attentions are computed, and how long it took.
struct Summary {
  Summary(const remark::detail::Remark &remark, unsigned streaming,
          unsigned rowBlock, unsigned attentions)
      : said(remark), streaming(streaming), rowBlock(rowBlock),
        attentions(attentions) {
    for (const auto &argument : remark.getArgs())
      if (argument.key == "stored")
        stored.push_back(argument.val);
      else if (argument.key == "kernels")
        kernels = std::stoul(argument.val);
      else if (argument.key == "flops")
        flops = argument.val;
      else if (argument.key == "bytes")
        bytes = argument.val;
    said.message = heed::format(
        "{}{}, {}; at most {} operations and {} bytes in a call",
        heed::counted(kernels, "kernel", "kernels"),
        attentions
            ? heed::format(", {} of {} fused", streaming + rowBlock,
                           heed::counted(attentions, "attention", "attentions"))
            : "",
        stored.empty() ? "nothing stored between kernels"
                       : heed::format("the largest intermediate has {} "
                                      "elements",
                                      stored.front()),
        flops, bytes);
  }

  std::string text() const {
    return said.placeText() +
           heed::format(
               "model {}{}: {}{}\n", said.function,
               target.empty() ? "" : heed::format(" for {}", target),
               said.message,
               seconds ? heed::format("; compiled in {:.1f} s", *seconds) : "");
  }
  llvm::json::Object object() const {
    llvm::json::Object object = said.object();
    object["kind"] = "summary";
    object["target"] = target;
    object["kernels"] = int64_t(kernels);
    object["attentions"] = int64_t(attentions);
    object["streaming"] = int64_t(streaming);
    object["rowBlock"] = int64_t(rowBlock);
    object["stored"] = llvm::json::Array(stored);
    object["flops"] = flops;
    object["bytes"] = bytes;
    object["seconds"] = seconds.value_or(0);
    return object;
  }

  Said said;
  unsigned streaming, rowBlock, attentions;
  unsigned long kernels = 0;
  std::vector<std::string> stored;
  std::string flops, bytes, target;
  std::optional<double> seconds;
};

/// Whether \p said tells how an attention is computed.
bool isChoice(const Said &said) {
  return said.pass == "attn-choose-algorithm" && said.name != "cost" &&
         said.name != "large-scores" && said.name != "softmax";
}

/// Whether \p said is about a softmax that is no attention's.
bool isAlone(const Said &said) {
  return said.pass == "attn-choose-algorithm" && said.name == "softmax";
}

/// Whether \p said tells how a recurrence is computed: the first of its place
/// does, the others what became of its parts.
bool isForm(const Said &said) { return said.name == "form"; }

class Printer : public remark::detail::MLIRRemarkStreamerBase {
public:
  Printer(llvm::raw_ostream &os, Explain form) : os(os), form(form) {}
  ~Printer() override {
    for (const Summary &summary : summaries)
      print(summary);
    summarise();
  }

  /// Passes over functions say what they do from several threads.
  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    std::lock_guard<std::mutex> alone(mutex);
    Said said(remark);
    if (said.pass == "attn-to-halide" && said.name == "summary") {
      summaries.emplace_back(remark, streaming, rowBlock, attentions);
      return;
    }
    if (said.pass == kExplainDriver) {
      finishTarget(remark);
      return;
    }
    // Each attention counts, also one that a function of a library makes
    // several times at one place.
    if (isChoice(said) || isAlone(said)) {
      ++attentions;
      streaming += said.name == "streaming";
      rowBlock += said.name == "row-block";
    }
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
  /// What was said up to now is of the target that \p remark names, which took
  /// so many seconds.
  void finishTarget(const remark::detail::Remark &remark) {
    for (Summary &summary : summaries) {
      if (summary.seconds)
        continue;
      for (const auto &argument : remark.getArgs()) {
        if (argument.key == "seconds")
          summary.seconds = std::stod(argument.val);
        else
          summary.target = argument.val;
      }
    }
    attentions = streaming = rowBlock = 0;
  }

  void print(const Summary &summary) {
    if (form == Explain::Json)
      os << llvm::json::Value(summary.object()) << '\n';
    else
      os << summary.text();
  }

  /// A line for each recurrence and each attention, and below it all that was
  /// said of its place; a line for each softmax by itself, with why sums were
  /// not raised, and one for the memory.
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
      const Said *how = llvm::find_if(here, isForm),
                 *choice = llvm::find_if(here, isChoice);
      if (how != here.end())
        os << first.placeText() << "recurrence: " << how->message << '\n';
      bool isAttention = choice != here.end();
      if (isAttention)
        os << first.placeText() << "attention, " << choice->name << ": "
           << choice->message << '\n';
      for (const Said &said : here)
        if (&said == how || &said == choice)
          continue;
        else if (isAttention || how != here.end())
          os << "  " << (said.declined ? "declined: " : "") << said.message
             << '\n';
        else if (isAlone(said) || (alone && said.declined &&
                                   said.pass == "attn-raise-attention"))
          os << first.placeText() << "no attention: " << said.message << '\n';
        else if (said.done && said.pass == "attn-plan-memory")
          os << first.placeText() << "memory: " << said.message << '\n';
        else
          ++left;
    }
    if (left)
      os << heed::format("{} on other operations: --explain=all\n",
                         heed::counted(left, "remark", "remarks"));
  }

  llvm::raw_ostream &os;
  Explain form;
  std::mutex mutex;
  llvm::StringSet<> seen;
  std::vector<Said> remarks; ///< for the summary
  std::vector<Summary> summaries;
  /// Of the present target.
  unsigned attentions = 0, streaming = 0, rowBlock = 0;
};

} // namespace

void heed::explainTarget(ModuleOp module, llvm::StringRef target,
                         double seconds) {
  using Arg = remark::detail::Remark::Arg;
  remark::analysis(module.getLoc(),
                   remark::RemarkOpts::name("target").category(kExplainDriver))
      << Arg("target", target) << Arg("seconds", heed::format("{}", seconds));
}

void heed::enableExplain(MLIRContext &context, llvm::raw_ostream &os,
                         Explain form) {
  remark::RemarkCategories every{std::nullopt, ".*", ".*", ".*", ".*"};
  (void)remark::enableOptimizationRemarks(
      context, std::make_unique<Printer>(os, form),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), every);
}
