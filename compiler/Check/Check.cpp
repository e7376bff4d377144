//===- Check.cpp - one source, compiled both ways and compared ------------===//
#include "compiler/Check/Check.h"
#include "compiler/Check/Compare.h"
#include "compiler/Check/Fused.h"
#include "compiler/Check/Inputs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <set>

using llvm::outs;

namespace heed::check {

namespace {

/// What the reference reports beside the outputs (reference-report-scores).
struct Report {
  double largest = 0, fewest = 0, most = 0;
};
constexpr size_t kReported = 3;

bool holdsNaN(const Outcome &outcome) {
  for (const Array &array : outcome.outputs)
    for (int64_t at = 0; isReal(array.type) && at < array.count(); ++at)
      if (std::isnan(array.get(at)))
        return true;
  return false;
}

/// One comparison: both outcomes, and how far they are apart.
struct Comparison {
  Outcome fast, slow;
  Report report;
  double tolerance = 0;
  std::vector<Difference> differences;
  bool same = true;
  bool ran() const { return slow.status == HEED_OK; }
  bool hasNaN() const { return holdsNaN(slow); }
};

/// The lines of \p text that name an error; all but remarks if none does.
std::string errorsOf(const std::string &text) {
  std::string errors;
  for (llvm::StringRef line : llvm::split(llvm::StringRef(text), "\n"))
    if (!line.starts_with("{") &&
        (line.contains("error: ") || line.contains("ERROR")))
      errors += "    " + line.str() + "\n";
  if (!errors.empty())
    return errors;
  // Not the remarks.
  for (llvm::StringRef line : llvm::split(llvm::StringRef(text), "\n"))
    if (!line.empty() && !line.starts_with("{"))
      errors += "    " + line.str() + "\n";
  return errors;
}

std::string position(int64_t at, const std::vector<int64_t> &shape) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0;) {
    text = std::to_string(at % shape[axis]) + (text.empty() ? "" : ",") + text;
    at /= shape[axis];
  }
  return "[" + text + "]";
}

/// Cases of one model, from small to large: the first failure is a small one,
/// and is shrunk further.
class Checker {
public:
  Checker(const CheckOptions &options)
      : options(options), random(options.seed) {}

  bool open(const std::string &fastLibrary, const std::string &slowLibrary);
  bool run();

private:
  Comparison compareOn(Draw &draw);
  bool agrees(const Recipe &recipe, Comparison *last = nullptr);
  bool search(Recipe recipe, unsigned tries,
              const std::function<bool(const Comparison &)> &found);
  void note(const Draw &draw, const Comparison &c, const Recipe &recipe);
  void shrink(Draw draw, Comparison c, const Recipe &recipe);
  void printFailure(const Draw &draw, const Comparison &c);
  bool large(unsigned level);
  void summary();

  const CheckOptions &options;
  Random random;
  Dims fixed;
  std::unique_ptr<Model> fast, slow;
  std::vector<Difference> worst;
  std::set<std::string> reached;
  unsigned ran = 0, refused = 0;
  std::string refusal;
};

bool Checker::open(const std::string &fastLibrary,
                   const std::string &slowLibrary) {
  std::string error;
  auto fail = [&] {
    outs() << "  FAIL " << error << "\n";
    return false;
  };
  // The description is needed to draw weights before a model can be opened.
  std::vector<std::string> used = options.weights;
  auto description = describe(fastLibrary, error);
  if (!description)
    return fail();
  if (used.empty() && heed_num_params(description.get()) > 0) {
    std::string path = options.folder + "/drawn.safetensors";
    if (!drawWeights(description.get(), path, random, fixed, error))
      return fail();
    used.push_back(path);
  }
  fast = Model::open(fastLibrary, used, error);
  slow = fast ? Model::open(slowLibrary, used, error) : nullptr;
  return slow ? true : fail();
}

Comparison Checker::compareOn(Draw &draw) {
  Comparison c;
  c.fast = fast->run(draw.inputs);
  c.slow = slow->run(draw.inputs);
  if (options.corrupt && !c.fast.outputs.empty())
    if (Array &first = c.fast.outputs[0]; first.count())
      first.set(first.count() / 2, first.get(first.count() / 2) + 1);
  if (c.fast.status != c.slow.status) {
    c.same = false;
    return c;
  }
  if (!c.ran())
    return c;
  auto &outputs = c.slow.outputs;
  c.report = {outputs[outputs.size() - 3].get(0),
              outputs[outputs.size() - 2].get(0),
              outputs[outputs.size() - 1].get(0)};
  outputs.resize(outputs.size() - kReported);
  // DESIGN.md, "Error of an element": eight roundings of the largest score.
  c.tolerance = std::max(1e-5, 8 * std::ldexp(1.0, -24) * c.report.largest);
  for (size_t k = 0; k < outputs.size(); ++k) {
    c.differences.push_back(compare(c.fast.outputs[k], outputs[k], c.tolerance,
                                    draw.kind == Kind::Large));
    c.same &= c.differences.back().ok();
  }
  return c;
}

void Checker::printFailure(const Draw &draw, const Comparison &c) {
  outs() << "  FAIL " << draw.text() << ": ";
  if (c.fast.status != c.slow.status) {
    outs() << "the fast backend says " << heed_status_name(c.fast.status)
           << " (" << c.fast.message << "), the reference "
           << heed_status_name(c.slow.status) << " (" << c.slow.message
           << ")\n";
    return;
  }
  for (size_t k = 0; k < c.differences.size(); ++k) {
    const Difference &d = c.differences[k];
    const Array &x = c.fast.outputs[k], &r = c.slow.outputs[k];
    if (d.ok())
      continue;
    if (d.shapeDiffers)
      outs() << "'" << r.name
             << "' has another shape or type than the reference\n";
    else
      outs() << x.name << position(d.firstBad, r.shape) << " = "
             << x.get(d.firstBad) << ", the reference has " << r.get(d.firstBad)
             << " (judged error " << llvm::format("%.2e", d.judged)
             << ", allowed " << llvm::format("%.2e", c.tolerance)
             << ", largest score " << llvm::format("%.3g", c.report.largest)
             << ")\n";
    return;
  }
}

/// Smaller sizes that still fail, one dim at a time; prints the smallest.
void Checker::shrink(Draw draw, Comparison c, const Recipe &recipe) {
  unsigned budget = 400;
  std::vector<std::string> names = freeDims(fast->signature(), fixed);
  for (bool smaller = true; smaller && budget > 0;) {
    smaller = false;
    for (const std::string &name : names) {
      int64_t size = draw.dims[name];
      for (int64_t next : {int64_t(1), int64_t(2), size / 2, size - 1}) {
        if (next >= size || next < 1)
          continue;
        // Values are drawn anew: a few times, for what shows by chance.
        for (unsigned k = 0; k < 8 && budget > 0; ++k, --budget) {
          Recipe tried = recipe;
          tried.fixed = draw.dims;
          tried.fixed[name] = next;
          auto other = drawInputs(fast->signature(), random, tried);
          if (!other)
            break;
          Comparison result = compareOn(*other);
          if (result.same)
            continue;
          draw = std::move(*other);
          c = std::move(result);
          smaller = true;
          break;
        }
        if (draw.dims[name] == next)
          break;
      }
    }
  }
  printFailure(draw, c);
}

void Checker::note(const Draw &draw, const Comparison &c,
                   const Recipe &recipe) {
  ++ran;
  for (size_t k = 0; k < c.differences.size(); ++k) {
    worst.resize(std::max(worst.size(), k + 1));
    const Difference &d = c.differences[k];
    worst[k].maxAbs = std::max(worst[k].maxAbs, d.maxAbs);
    worst[k].judged = std::max(worst[k].judged, d.judged);
    worst[k].relative = std::max(worst[k].relative, d.relative);
    worst[k].ulp = std::max(worst[k].ulp, d.ulp);
  }
  if (recipe.sizes == Sizes::Odd)
    reached.insert("odd sizes");
  if (recipe.sizes == Sizes::One)
    reached.insert("length 1");
  for (auto &[name, size] : draw.dims)
    if (size == 0)
      reached.insert("length 0");
  bool counted = c.report.fewest <= c.report.most;
  if (counted && c.report.fewest == 0)
    reached.insert(c.report.most > 0 ? "empty rows" : "all masked");
  if (c.report.largest >= 5e3)
    reached.insert("scores of 1e4");
  if (recipe.kind == Kind::NaN && c.ran())
    reached.insert(c.hasNaN() ? "live NaN" : "masked NaN");
  if (recipe.kind == Kind::MinusInfinity && !c.hasNaN())
    reached.insert("-inf");
}

/// One case. Refused draws are drawn again: an index may be out of range, an
/// extent may have to divide another.
bool Checker::agrees(const Recipe &recipe, Comparison *last) {
  const int64_t bounds[] = {-1, 1, 0};
  for (unsigned attempt = 0; attempt < 24; ++attempt) {
    Recipe tried = recipe;
    if (recipe.bound < 0 && attempt)
      tried.bound = bounds[attempt % 3];
    // Not every dim may be odd: halves of heads, multiples of groups.
    if (attempt >= 6 && recipe.sizes != Sizes::Level) {
      tried.some = true;
      tried.level = 1 + attempt % 3;
    }
    auto draw = drawInputs(fast->signature(), random, tried);
    if (!draw)
      return true;
    Comparison c = compareOn(*draw);
    if (!c.same) {
      shrink(std::move(*draw), std::move(c), tried);
      return false;
    }
    bool accepted = c.ran();
    if (accepted) {
      note(*draw, c, tried);
    } else {
      ++refused;
      refusal = c.slow.message;
    }
    if (last)
      *last = std::move(c);
    if (accepted)
      return true;
  }
  return true;
}

/// Draws until \p found holds, at most \p tries times. False after a mismatch.
bool Checker::search(Recipe recipe, unsigned tries,
                     const std::function<bool(const Comparison &)> &found) {
  for (unsigned k = 0; k < tries; ++k) {
    recipe.level = 1 + k % 3;
    Comparison c;
    if (!agrees(recipe, &c))
      return false;
    if (c.ran() && found(c))
      return true;
  }
  return true;
}

/// Scales the inputs until the largest score is about 1e4.
bool Checker::large(unsigned level) {
  Recipe recipe;
  recipe.level = level;
  recipe.fixed = fixed;
  // Without scores large inputs would only try the range of f32.
  if (Comparison c; !agrees(recipe, &c))
    return false;
  else if (!c.ran() || c.report.largest == 0)
    return true;
  recipe.kind = Kind::Large;
  for (unsigned k = 0; k < 4; ++k) {
    Comparison c;
    if (!agrees(recipe, &c))
      return false;
    if (!c.ran() || c.report.largest == 0)
      return true;
    double off = 1e4 / c.report.largest;
    if (off > 0.5 && off < 2)
      return true;
    recipe.scale = std::min(1e4, recipe.scale * std::sqrt(off));
  }
  return true;
}

bool Checker::run() {
  Recipe plain;
  plain.fixed = fixed;
  // Random sizes from small to large.
  for (unsigned k = 0; k < options.draws; ++k) {
    Recipe recipe = plain;
    recipe.level = k * 6 / options.draws;
    if (!agrees(recipe))
      return false;
  }
  std::vector<std::string> names = freeDims(fast->signature(), fixed);
  for (Sizes sizes : {Sizes::One, Sizes::Odd, Sizes::Odd}) {
    Recipe recipe = plain;
    recipe.sizes = sizes;
    if (!agrees(recipe))
      return false;
  }
  for (const std::string &name : names) {
    Recipe recipe = plain;
    recipe.level = 2;
    recipe.fixed[name] = 0;
    if (!agrees(recipe))
      return false;
  }
  for (unsigned level : {1, 2, 4})
    if (!large(level))
      return false;
  // A live NaN makes its row NaN and no other, a masked one shows nowhere;
  // NaN or -inf may be anywhere, and both ways are looked for.
  Recipe spoilt = plain;
  spoilt.kind = Kind::NaN;
  for (bool live : {true, false})
    if (!search(spoilt, 16,
                [&](const Comparison &c) { return c.hasNaN() == live; }))
      return false;
  // Beside positive numbers alone: q * (k + r) may become q * k + q * r, and
  // the difference of two infinities is a NaN that may appear earlier.
  spoilt.kind = Kind::MinusInfinity;
  spoilt.positive = true;
  unsigned clean = 0;
  if (!search(spoilt, 16, [&](const Comparison &c) {
        clean += !c.hasNaN();
        return clean == 4;
      }))
    return false;
  Recipe masked = plain;
  masked.kind = Kind::AllMasked;
  for (unsigned level : {1, 3}) {
    masked.level = level;
    if (!agrees(masked))
      return false;
  }
  if (!search(plain, 12, [&](const Comparison &) {
        return reached.count("empty rows") > 0;
      }))
    return false;
  if (ran == 0) {
    outs() << "  FAIL no drawn input was accepted: " << refusal << "\n";
    return false;
  }
  summary();
  return true;
}

void Checker::summary() {
  for (size_t k = 0; k < worst.size(); ++k)
    outs() << "  " << fast->signature().outputs[k].name
           << llvm::format(
                  ": max abs %.2e, judged %.2e, relative %.2e, %.0f ulp\n",
                  worst[k].maxAbs, worst[k].judged, worst[k].relative,
                  worst[k].ulp);
  outs() << "  " << ran << " inputs agree, " << refused << " refused by both";
  // What the model's own sizes and masks never allow is said, not hidden.
  const char *wanted[] = {"odd sizes",     "length 1",   "length 0",
                          "empty rows",    "all masked", "-inf",
                          "scores of 1e4", "live NaN",   "masked NaN"};
  std::string never;
  for (const char *name : wanted)
    if (!reached.count(name))
      never += (never.empty() ? "" : ", ") + std::string(name);
  if (!never.empty())
    outs() << "; never: " << never;
  outs() << "\n";
}

} // namespace

bool check(const std::string &source, const std::string &title, size_t stage,
           const CheckOptions &options, std::string &explained) {
  outs() << title << "\n";
  outs().flush(); // a model may take a while, and be interrupted
  // A library of its own for every stage: the loader knows them by name.
  bool whole = stage == std::string::npos;
  std::string fastLibrary =
      options.folder + "/" + (whole ? "fast" : std::to_string(stage)) + ".so";
  const Tools &tools = options.tools;
  int code = whole ? tools.compileFast(source, fastLibrary, explained)
                   : tools.compileAfter(source, stage, fastLibrary, explained);
  if (code != 0) {
    outs() << "  FAIL heedc:\n" << errorsOf(explained);
    return false;
  }
  std::string origin = options.against.empty() ? source : options.against, text;
  if (!options.meaning.empty() &&
      (whole ? readExplanation(explained).raised
             : tools.find("attn-raise-attention").value_or(stage + 1) <= stage))
    origin = options.meaning;
  std::string slowLibrary =
      options.folder + "/" +
      (origin == options.meaning ? "meaning" : "reference") + ".so";
  if (!llvm::sys::fs::exists(slowLibrary) &&
      tools.compileReference(origin, slowLibrary, text,
                             /*reportScores=*/true) != 0) {
    outs() << "  FAIL heedc --backend=reference:\n" << errorsOf(text);
    return false;
  }
  Checker checker(options);
  return checker.open(fastLibrary, slowLibrary) && checker.run();
}

bool bisect(const std::string &source, const CheckOptions &options) {
  std::string explained;
  const std::vector<std::string> &passes = options.tools.passes;
  for (size_t k = 0; k < passes.size(); ++k) {
    std::string name = passName(passes[k]);
    if (check(source, source + " after " + name, k, options, explained))
      continue;
    outs() << source << ": the first pass that differs is " << name << " (pass "
           << k + 1 << " of " << passes.size() << ")\n";
    return false;
  }
  if (check(source, source, std::string::npos, options, explained))
    return true;
  outs() << source
         << ": every pass on kernels agrees; it differs in attn-plan-memory or "
            "the host's code\n";
  return false;
}

} // namespace heed::check
