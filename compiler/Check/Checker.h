//===- Checker.h - one compiled model, run beside its reference -*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_CHECKER_H
#define HEED_COMPILER_CHECK_CHECKER_H

#include "compiler/Check/Check.h"
#include "compiler/Check/Compare.h"
#include "compiler/Check/Inputs.h"
#include "compiler/Check/Tools.h"
#include <functional>
#include <map>
#include <set>

namespace heed::check {

/// What the reference reports beside the outputs (reference-report-scores).
struct Report {
  double largest = 0, fewest = 0, most = 0;
};

/// One comparison: both outcomes, and how far they are apart.
struct Comparison {
  Outcome fast, slow;
  Report report;
  std::vector<Difference> differences;
  bool same = true;
  bool ran() const { return slow.status == HEED_OK; }
  bool hasNaN() const;
};

/// The libraries of one source, of which others are compiled when needed.
struct Libraries {
  std::string fast, reference;
  /// The path of the reference of another kind; empty with an error.
  std::function<std::string(ReferenceKind kind, std::string &error)> other;
  Licence licence; ///< of the fast one (compare)
};

/// What came of a case.
enum class Case {
  Agrees,
  Differs, ///< it is printed
  Refused, ///< by both, whatever was drawn
  Unsolved,
  TooDear ///< there are such sizes, but they cost more than the budget
};

/// Runs cases of one model, from small to large: the first failure is a small
/// one, and is shrunk further.
class Checker {
public:
  Checker(const CheckOptions &options, std::unique_ptr<Sizes> sizes,
          size_t entry)
      : options(options), sizes(std::move(sizes)), entry(entry),
        random(options.seed) {}

  bool open(Libraries libraries);
  /// All cases (Cases.cpp). False after a mismatch, which is printed.
  bool run();

private:
  // Checker.cpp
  bool complain(const std::string &error);
  bool openModels(std::string &error);
  bool use(const Dims &dims, std::string &error);
  Comparison compareOn(Draw &draw);
  std::vector<Array> runOther(ReferenceKind kind, Draw &draw);
  Draw nudge(const Draw &draw);
  void judge(Draw &draw, Comparison &c);
  Recipe attemptOf(const Recipe &recipe, unsigned attempt);
  Case agrees(const Recipe &recipe, Comparison *last = nullptr);
  void note(const Draw &draw, const Comparison &c, const Recipe &recipe);
  void shrink(Draw draw, Comparison c, const Recipe &recipe);
  void printFailure(const Draw &draw, const Comparison &c);

  // Cases.cpp
  bool search(Recipe recipe, unsigned tries,
              const std::function<bool(const Comparison &)> &found);
  bool large(unsigned level);
  bool everySize();
  bool everySizeOf(const std::string &name);
  bool randomSizes();
  bool oddValues();
  void summary();

  const CheckOptions &options;
  std::unique_ptr<Sizes> sizes;
  size_t entry; ///< of the model
  Random random;
  Libraries libraries;
  std::unique_ptr<Model> fast, slow;
  std::map<ReferenceKind, std::unique_ptr<Model>> others;
  std::string drawnWeights; ///< the file, if weights are drawn
  Dims opened;              ///< dims of the parameters of that file
  std::vector<Difference> worst;
  std::set<std::string> reached;
  std::map<std::string, std::set<int64_t>> accepted;
  std::set<std::string> tooDear;
  Dims last; ///< of the last accepted draw
  unsigned ran = 0, refused = 0;
  std::string refusal;
};

} // namespace heed::check

#endif
