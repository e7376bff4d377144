//===- Fused.cpp - whether a compiled attention is one fused kernel -------===//
#include "compiler/Check/Fused.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

namespace heed::check {

/// Whether "[B, H, N, M] of f32" has an axis of queries and one of keys. The
/// grammar calls them N and M, or both N.
static bool holdsPairs(llvm::StringRef stored) {
  unsigned found = 0;
  stored = stored.split('[').second.split(']').first;
  while (!stored.empty()) {
    auto [axis, rest] = stored.split(',');
    found += axis.contains('N') || axis.contains('M') || axis.contains('?');
    stored = rest;
  }
  return found > 1;
}

/// Long: one kind of remark after the other.
Fused readExplanation(const std::string &json) {
  Fused result;
  unsigned raised = 0, tiles = 0, narrow = 0, rows = 0;
  std::vector<std::string> against;
  for (llvm::StringRef line : llvm::split(llvm::StringRef(json), "\n")) {
    auto value = llvm::json::parse(line);
    if (!value) {
      llvm::consumeError(value.takeError());
      continue;
    }
    const llvm::json::Object *remark = value->getAsObject();
    if (!remark)
      continue;
    llvm::StringRef pass = remark->getString("pass").value_or(""),
                    name = remark->getString("name").value_or(""),
                    kind = remark->getString("kind").value_or(""),
                    message = remark->getString("message").value_or("");
    result.logarithms |= name == "log-sum-exp";
    result.overQueries |= name == "over-queries";
    if ((pass == "attn-raise-attention" && name == "distributed") ||
        (pass == "attn-reorder-products" && kind == "done") ||
        (pass == "attn-raise-linear-attention" && name == "linear-attention" &&
         kind == "done"))
      result.reordered = true;
    else if (pass == "attn-raise-attention" && kind == "done")
      ++raised;
    else if (pass == "attn-choose-algorithm" && kind == "declined")
      against.push_back(message.str());
    else if (name == "stored" && holdsPairs(message))
      against.push_back(message.str());
    else if (pass == "attn-raise-attention" && kind == "declined")
      against.push_back(message.str());
    else if (pass == "attn-to-halide" && name == "schedule") {
      ++result.kernels;
      // Called where one of the others gives up.
      if (message.ends_with("find a NaN"))
        continue;
      if (message.contains("attention schedule") ||
          message.contains("row block schedule"))
        ++(message.ends_with("a query at a time") ? rows
           : message.contains("in tiles of")      ? narrow
                                                  : tiles);
    }
  }
  // What was declined before another op was raised does not matter then.
  if (raised > 0)
    llvm::erase_if(against, [](const std::string &text) {
      return llvm::StringRef(text).starts_with("not raised");
    });
  if (raised == 0 && against.empty())
    against.push_back("no attention was found");
  if (raised > 1)
    against.push_back(format("{} attentions", raised));
  // One attention may have a pipeline for many queries, one for few, and one
  // for what lies between.
  unsigned attentions = std::max({tiles, narrow, rows});
  if (attentions != 1)
    against.push_back(
        format("{} kernels with an attention's schedule", attentions));
  result.reason = llvm::join(against, "; ");
  result.oneKernel = against.empty();
  result.raised = raised > 0;
  return result;
}

} // namespace heed::check
