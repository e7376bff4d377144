//===- Checker.cpp - one compiled model, run beside its reference ---------===//
#include "compiler/Check/Checker.h"
#include "support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cfenv>
#include <cmath>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

using llvm::outs;

namespace heed::check {

constexpr size_t kReported = 3;

bool Comparison::hasNaN() const {
  for (const Array &array : slow.outputs)
    for (int64_t at = 0; isReal(array.type) && at < array.count(); ++at)
      if (std::isnan(array.get(at)))
        return true;
  return false;
}

static std::string position(int64_t at, const std::vector<int64_t> &shape) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0;) {
    text = format("{}{}{}", at % shape[axis], text.empty() ? "" : ",", text);
    at /= shape[axis];
  }
  return format("[{}]", text);
}

bool Checker::complain(const std::string &error) {
  outs() << "  FAIL " << error << "\n";
  return false;
}

bool Checker::openModels(std::string &error) {
  std::vector<std::string> used = options.tools.weights;
  if (!drawnWeights.empty())
    used.push_back(drawnWeights);
  others.clear();
  fast = Model::open(libraries.fast, used, entry, error);
  slow = fast ? Model::open(libraries.reference, used, entry, error) : nullptr;
  return slow != nullptr;
}

bool Checker::open(Libraries all) {
  libraries = std::move(all);
  std::string error;
  // The description is needed to draw weights before a model can be opened.
  auto description = describe(libraries.fast, error);
  if (!description)
    return complain(error);
  if (!options.tools.weights.empty() || heed_num_params(description.get()) == 0)
    return openModels(error) || complain(error);
  drawnWeights = heed::format("{}/drawn.safetensors", options.folder);
  Recipe recipe;
  recipe.level = 3;
  bool dear = false;
  auto dims = drawDims(Entry(*description, entry).signature(), *sizes, random,
                       recipe, dear);
  if (!dims)
    return complain("no sizes were found that the model accepts");
  return use(*dims, error) || complain(error);
}

/// Opens the models with weights of the sizes \p dims, unless they are.
bool Checker::use(const Dims &dims, std::string &error) {
  if (drawnWeights.empty())
    return true;
  Dims ofParams;
  for (const Sizes::Name &name : sizes->names())
    if (name.isParam)
      ofParams[name.text] = dims.at(name.text);
  if (fast && ofParams == opened)
    return true;
  opened = std::move(ofParams);
  auto description = describe(libraries.fast, error);
  return description &&
         drawWeights(description.get(), *sizes, opened, drawnWeights, random,
                     error) &&
         openModels(error);
}

/// The outputs of a reference of another kind. Empty where it cannot be had,
/// which is said.
std::vector<Array> Checker::runOther(ReferenceKind kind, Draw &draw) {
  std::string error;
  std::unique_ptr<Model> &other = others[kind];
  if (!other) {
    std::vector<std::string> used = options.tools.weights;
    if (!drawnWeights.empty())
      used.push_back(drawnWeights);
    std::string library = libraries.other(kind, error);
    other =
        library.empty() ? nullptr : Model::open(library, used, entry, error);
    if (!other) {
      complain(error);
      return {};
    }
  }
  return other->run(draw.inputs).outputs;
}

namespace {

/// Another arithmetic than the default as long as it lives.
struct Arithmetic {
  enum Kind { Flush, Up, Down };
  explicit Arithmetic(Kind kind) {
    std::fegetenv(&before);
    if (kind != Flush)
      std::fesetround(kind == Up ? FE_UPWARD : FE_DOWNWARD);
#ifdef __SSE__
    else // numbers below the least normal are 0, as in kernels
      _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  }
  ~Arithmetic() { std::fesetenv(&before); }
  std::fenv_t before;
};

} // namespace

/// Inputs whose f32 are changed by about one rounding each.
Draw Checker::nudge(const Draw &draw) {
  Draw other = draw;
  for (Array &array : other.inputs)
    for (int64_t at = 0; array.type == HEED_F32 && at < array.count(); ++at)
      array.set(at, array.get(at) * (1 + std::ldexp(random.unit(), -23)));
  return other;
}

/// Of inputs changed by a rounding: one sample alone may be right by chance.
constexpr int kSamples = 4;

static bool isHalf(const Array &array) {
  return array.type == HEED_F16 || array.type == HEED_BF16;
}

/// Fills in how far the outcomes are apart. What is not within the bound of
/// rounded results is compared with what f32 can give, too.
void Checker::judge(Draw &draw, Comparison &c) {
  size_t count = c.slow.outputs.size();
  Licence licence = libraries.licence;
  licence.largestScore = c.report.largest;
  auto compareAll = [&](const std::vector<Measured> &measured) {
    c.differences.clear();
    c.same = true;
    for (size_t k = 0; k < count; ++k) {
      c.differences.push_back(compare(c.fast.outputs[k], c.slow.outputs[k],
                                      measured.empty() ? nullptr : &measured[k],
                                      licence));
      c.same &= c.differences.back().ok();
    }
  };
  compareAll({});
  if (c.same)
    return;
  std::vector<Array> plain = runOther(ReferenceKind::Written, draw);
  if (plain.size() != count)
    return;
  std::vector<std::vector<Array>> others;
  for (auto kind : {Arithmetic::Flush, Arithmetic::Up, Arithmetic::Down}) {
    Arithmetic arithmetic(kind);
    others.push_back(runOther(ReferenceKind::Written, draw));
  }
  for (int sample = 0; sample < kSamples; ++sample) {
    Draw nudged = nudge(draw);
    others.push_back(slow->run(nudged.inputs).outputs);
    others.push_back(runOther(ReferenceKind::Written, nudged));
  }
  std::vector<Array> above, below;
  if (llvm::any_of(c.slow.outputs, isHalf)) {
    above = runOther(ReferenceKind::Above, draw);
    below = runOther(ReferenceKind::Below, draw);
  }
  std::vector<Measured> measured(count);
  for (size_t k = 0; k < count; ++k) {
    measured[k].written = &plain[k];
    for (const std::vector<Array> &outputs : others)
      if (k < outputs.size() && outputs[k].shape == c.slow.outputs[k].shape)
        measured[k].others.push_back(&outputs[k]);
    if (isHalf(c.slow.outputs[k]) && above.size() == count &&
        below.size() == count) {
      measured[k].above = &above[k];
      measured[k].below = &below[k];
    }
    // Beyond 87 an exponential leaves the normal numbers of f32. What is no
    // number in the inputs must be seen, however large the scores are.
    bool numbers = draw.kind != Kind::NaN && draw.kind != Kind::MinusInfinity;
    measured[k].overflows =
        draw.kind == Kind::Large || (numbers && c.report.largest > 80);
  }
  compareAll(measured);
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
  judge(draw, c);
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
             << format(" (error in its row {:.2e}, allowed {:.2e}, largest "
                       "score {:.3g})\n",
                       d.bad, d.allowed, c.report.largest);
    return;
  }
}

/// Smaller sizes that still fail, one dim at a time; prints the smallest.
void Checker::shrink(Draw draw, Comparison c, const Recipe &recipe) {
  unsigned budget = 400;
  std::string error;
  for (bool smaller = true; smaller && budget > 0;) {
    smaller = false;
    for (const Sizes::Name &name : sizes->names()) {
      int64_t size = draw.dims[name.text];
      for (int64_t next : {int64_t(1), int64_t(2), size / 2, size - 1}) {
        if (next >= size || next < 1)
          continue;
        Recipe tried = recipe;
        tried.fixed = {{name.text, next}};
        tried.near = draw.dims;
        // Values are drawn anew: a few times, for what shows by chance.
        for (unsigned k = 0; k < 8 && budget > 0; ++k, --budget) {
          bool dear = false;
          auto dims = drawDims(fast->signature(), *sizes, random, tried, dear);
          if (!dims || std::any_of(dims->begin(), dims->end(), [&](auto &d) {
                return d.second > draw.dims[d.first];
              }))
            break;
          auto other = use(*dims, error) ? drawInputs(fast->signature(), *sizes,
                                                      *dims, random, tried)
                                         : std::nullopt;
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
        if (draw.dims[name.text] == next)
          break;
      }
    }
  }
  printFailure(draw, c);
}

void Checker::note(const Draw &draw, const Comparison &c,
                   const Recipe &recipe) {
  ++ran;
  last = draw.dims;
  if (options.printDraws)
    (outs() << "  accepted " << draw.text() << "\n").flush();
  for (size_t k = 0; k < c.differences.size(); ++k) {
    worst.resize(std::max(worst.size(), k + 1));
    const Difference &d = c.differences[k];
    worst[k].maxAbs = std::max(worst[k].maxAbs, d.maxAbs);
    worst[k].judged = std::max(worst[k].judged, d.judged);
    worst[k].byRow = std::max(worst[k].byRow, d.byRow);
    worst[k].relative = std::max(worst[k].relative, d.relative);
    worst[k].ulp = std::max(worst[k].ulp, d.ulp);
  }
  for (const Sizes::Name &name : sizes->names()) {
    if (name.isScalar)
      continue;
    int64_t size = draw.dims.at(name.text);
    accepted[name.text].insert(size);
    if (size == 0)
      reached.insert("length 0");
    if (size == 1 && recipe.shape == Shape::One)
      reached.insert("length 1");
    if (size > 1 && size % 2 && recipe.shape == Shape::Odd)
      reached.insert("odd sizes");
  }
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

/// Attempts of one case, the first of them without sizes that climb.
constexpr unsigned kSame = 24, kAll = 40;

/// What the attempt of that number asks for beside the recipe.
Recipe Checker::attemptOf(const Recipe &recipe, unsigned attempt) {
  const Integers integers[] = {Integers::Any, Integers::Small, Integers::Bits,
                               Integers::Zero};
  constexpr unsigned kPlain = 8;
  Recipe tried = recipe;
  tried.integers = integers[attempt % 4];
  tried.defaults = attempt % 8 >= 4;
  // Padding may hold anything, and a cache need not have room for it: so half
  // of the time.
  tried.guarded = sizes->hasGuards() && random.below(2);
  if (attempt >= kPlain && attempt % 2)
    tried.near = last;
  if (attempt >= kSame)
    tried.climb = 1 + (attempt - kSame) / 4;
  return tried;
}

/// One case. Refused draws are drawn again: an index that data holds may be out
/// of range, and a condition may hold what no formula says. Then near the last
/// that were accepted; then sizes climb, several at once: what one of them must
/// be may follow from another by way of data alone.
Case Checker::agrees(const Recipe &recipe, Comparison *result) {
  Case came = Case::Unsolved;
  for (unsigned attempt = 0; attempt < kAll; ++attempt) {
    Recipe tried = attemptOf(recipe, attempt);
    // Weights are drawn anew only where theirs do not fit.
    bool dear = false;
    std::optional<Dims> dims;
    bool fits = !tried.climb;
    for (auto &[name, size] : opened)
      fits &= tried.fixed.insert({name, size}).first->second == size;
    if (fits)
      dims = drawDims(fast->signature(), *sizes, random, tried, dear);
    if (!dims && (!fits || !opened.empty())) {
      tried.fixed = recipe.fixed;
      dims = drawDims(fast->signature(), *sizes, random, tried, dear);
    }
    if (!dims && tried.climb)
      continue;
    if (!dims)
      return came == Case::Refused ? came
             : dear                ? Case::TooDear
                                   : Case::Unsolved;
    std::string error;
    if (!use(*dims, error)) {
      complain(error);
      return Case::Differs;
    }
    auto draw = drawInputs(fast->signature(), *sizes, *dims, random, tried);
    if (!draw && tried.climb)
      continue;
    if (!draw)
      return Case::TooDear;
    Comparison c = compareOn(*draw);
    if (!c.same) {
      shrink(std::move(*draw), std::move(c), tried);
      return Case::Differs;
    }
    came = c.ran() ? Case::Agrees : Case::Refused;
    if (c.ran()) {
      note(*draw, c, tried);
    } else {
      ++refused;
      refusal = c.slow.message;
    }
    if (result)
      *result = std::move(c);
    if (came == Case::Agrees)
      return came;
  }
  return came;
}

} // namespace heed::check
