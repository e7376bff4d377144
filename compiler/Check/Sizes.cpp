//===- Sizes.cpp - sizes that satisfy what a model requires ---------------===//
//
// Solved by search: names get values one after another, and a value that
// falsifies a condition is dropped as soon as the condition is known. Which
// name drives and which follows comes out of the order: where the heads stand
// first, a width is looked for that they divide; where the width does, heads
// that divide it.
#include "compiler/Check/Sizes.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

namespace heed::check {

/// The largest size that is looked for, for a name whose others are known.
constexpr int64_t kLargest = 4096;

std::optional<int64_t> Sizes::extent(const std::string &text,
                                     const Dims &dims) const {
  auto found = texts.find(text);
  if (found == texts.end())
    return std::nullopt;
  auto value = formulas.evaluate(dims)[found->second];
  return value && *value >= 0 ? value : std::nullopt;
}

double Sizes::sum(const std::vector<Formulas::Node> &nodes,
                  const Dims &dims) const {
  Formulas::Values values = formulas.evaluate(dims);
  double sum = 0;
  for (Formulas::Node node : nodes) {
    if (!values[node])
      return std::numeric_limits<double>::infinity();
    sum += double(std::max<int64_t>(0, *values[node]));
  }
  return sum;
}

double Sizes::cost(const Dims &dims) const { return sum(costs, dims); }

double Sizes::weights(const Dims &dims) const { return sum(params, dims); }

std::optional<std::pair<int64_t, int64_t>>
Sizes::range(const std::string &name, const Dims &dims, bool guarded) const {
  std::optional<std::pair<int64_t, int64_t>> both;
  Formulas::Values values = formulas.evaluate(dims);
  for (const Range &range : ranges) {
    if (range.input != name || !values[range.low] || !values[range.high] ||
        (range.guarded && !guarded))
      continue;
    if (!both)
      both = {*values[range.low], *values[range.high]};
    both->first = std::max(both->first, *values[range.low]);
    both->second = std::min(both->second, *values[range.high]);
  }
  return both;
}

bool Sizes::hasGuards() const {
  return llvm::any_of(ranges, [](const Range &range) { return range.guarded; });
}

bool Sizes::forbidden(const Formulas::Values &values, bool guarded) const {
  auto fails = [&](Formulas::Node node) {
    return values[node] && !*values[node];
  };
  if (llvm::any_of(conditions, fails) ||
      (guarded && llvm::any_of(underGuards, fails)))
    return true;
  for (Formulas::Node node : extents)
    if (values[node] && *values[node] < 0)
      return true;
  return false;
}

bool Sizes::isBounded(const std::string &name, int64_t least,
                      const Dims &fixed) const {
  Dims dims = fixed;
  for (int64_t value = least; value <= kLargest; ++value) {
    dims[name] = value;
    if (!forbidden(formulas.evaluate(dims), false))
      return false;
  }
  return true;
}

/// One search in one order of the names.
struct Sizes::Solver {
  const Sizes &sizes;
  const std::vector<std::vector<int64_t>> &candidates;
  const std::vector<size_t> &order;
  const std::function<bool(const Dims &)> &accept;
  bool guarded;
  Formulas::Values values;
  Formulas::Values scratch; ///< of every node, for the values so far
  unsigned budget = 6000, found = 12;

  Dims dims() const {
    Dims dims;
    for (size_t k = 0; k < values.size(); ++k)
      dims[sizes.known[k].text] = *values[k];
    return dims;
  }

  bool place(size_t step) {
    if (step == order.size())
      return accept(dims()) || (--found, false);
    size_t name = order[step];
    auto fits = [&](int64_t value) {
      if (budget == 0 || found == 0)
        return false;
      --budget;
      values[name] = value;
      sizes.formulas.evaluate(values, scratch);
      return !sizes.forbidden(scratch, guarded) && place(step + 1);
    };
    const std::vector<int64_t> &first = candidates[name];
    for (int64_t value : first)
      if (fits(value))
        return true;
    for (int64_t value = 2; value <= kLargest && budget && found; ++value)
      if (!llvm::is_contained(first, value) && fits(value))
        return true;
    if (fits(1) || fits(0))
      return true;
    values[name].reset();
    return false;
  }
};

std::optional<Dims> Sizes::solve(
    const Dims &fixed,
    const std::function<std::vector<int64_t>(const Name &)> &candidates,
    Random &random, bool guarded,
    const std::function<bool(const Dims &)> &accept) const {
  std::vector<size_t> order;
  Formulas::Values start(known.size());
  for (size_t k = 0; k < known.size(); ++k)
    if (auto found = fixed.find(known[k].text); found != fixed.end())
      start[k] = found->second;
    else
      order.push_back(k);
  if (forbidden(formulas.evaluate(start), guarded))
    return std::nullopt;
  for (unsigned attempt = 0; attempt < 4; ++attempt) {
    for (size_t k = order.size(); k-- > 1;)
      std::swap(order[k], order[random.below(k + 1)]);
    // Windows and heads before what they divide: the other way round most
    // sizes have no divisor but 1.
    if (attempt % 2 == 0)
      std::stable_partition(order.begin(), order.end(),
                            [&](size_t k) { return known[k].drives; });
    std::vector<std::vector<int64_t>> wanted(known.size());
    for (size_t k : order)
      wanted[k] = candidates(known[k]);
    Solver solver{*this, wanted, order, accept, guarded, start, {}};
    if (solver.place(0))
      return solver.dims();
  }
  return std::nullopt;
}

} // namespace heed::check
