//===- Cases.cpp - which sizes and values a model is checked on -----------===//
#include "compiler/Check/Checker.h"
#include "support/Format.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using llvm::outs;

namespace heed::check {

/// Keys of a block (passes/Schedule/StreamingPlan.cpp). A size above two of
/// them has a first, a middle and a last block, whatever its place.
constexpr int64_t kBlock = 64, kTwoBlocks = 2 * kBlock + 1;

/// Sizes where kernels take other ways: 1 and 2, vectors of 8 and 16, tiles of
/// 24 and 32 rows, one block and two, beyond L2; and their neighbours.
constexpr int64_t kSizes[] = {
    1,   2,  7,  9,  15, 17,         23,
    25,  31, 33, 63, 65, kTwoBlocks, 2 * kTwoBlocks - 1,
    4097};
/// Those of a short check.
constexpr int64_t kFewSizes[] = {17, kTwoBlocks};
constexpr unsigned kShort = 8;

/// Draws until \p found holds, at most \p tries times. False after a mismatch.
bool Checker::search(Recipe recipe, unsigned tries,
                     const std::function<bool(const Comparison &)> &found) {
  for (unsigned k = 0; k < tries; ++k) {
    recipe.level = 1 + k % 3;
    Comparison c;
    Case came = agrees(recipe, &c);
    if (came == Case::Differs)
      return false;
    if (came == Case::Agrees && found(c))
      return true;
  }
  return true;
}

/// Scales the inputs until the largest score is about 1e4, by way of 300, where
/// exponentials overflow in f32 alone.
bool Checker::large(unsigned level) {
  Recipe recipe;
  recipe.level = level;
  // Without scores large inputs would only try the range of f32.
  Comparison c;
  Case came = agrees(recipe, &c);
  if (came != Case::Agrees || c.report.largest == 0)
    return came != Case::Differs;
  recipe.kind = Kind::Large;
  recipe.scale = 17;
  for (unsigned k = 0; k < 5; ++k) {
    came = agrees(recipe, &c);
    if (came != Case::Agrees || c.report.largest == 0)
      return came != Case::Differs;
    double off = 1e4 / c.report.largest;
    if (off > 0.5 && off < 2)
      return true;
    recipe.scale = std::min(1e4, recipe.scale * std::sqrt(off));
  }
  return true;
}

/// Each of kSizes and 0 for \p name, or the next larger one that the model
/// accepts; the others small. False after a mismatch, or where the model has
/// larger sizes and none above two blocks was accepted.
bool Checker::everySizeOf(const std::string &name) {
  bool dear = false;
  Recipe recipe;
  recipe.level = 2;
  recipe.fixed[name] = 0;
  if (agrees(recipe) == Case::Differs)
    return false;
  llvm::ArrayRef<int64_t> all(kSizes), few(kFewSizes);
  for (int64_t least : options.draws < kShort ? few : all) {
    // What is above two blocks is tried where it costs little.
    recipe.budget = least > kTwoBlocks ? 5e6 : least == kTwoBlocks ? 2e8 : 1e7;
    Case came = Case::Unsolved;
    // One above two blocks must be found: of images, it may be a multiple of
    // patches, windows and halves.
    int64_t last = least == kTwoBlocks ? 2 * least : least + 16;
    for (int64_t size = least; size <= last; ++size) {
      recipe.fixed[name] = size;
      came = agrees(recipe);
      if (came == Case::Differs)
        return false;
      dear |= came == Case::TooDear && least == kTwoBlocks;
      if (came != Case::Unsolved)
        break;
    }
  }
  const std::set<int64_t> &sizesOf = accepted[name];
  if (!sizesOf.empty() && *sizesOf.rbegin() >= kTwoBlocks)
    return true;
  if (dear) {
    tooDear.insert(name);
    return true;
  }
  if (sizes->isBounded(name, kTwoBlocks, {}))
    return true;
  outs() << "  FAIL no accepted input has " << name << " above "
         << kTwoBlocks - 1 << ", the largest is "
         << (sizesOf.empty() ? 0 : *sizesOf.rbegin())
         << (refusal.empty() ? "" : ": ") << refusal << "\n";
  return false;
}

bool Checker::everySize() {
  for (const Sizes::Name &name : sizes->names())
    if (!name.isScalar && !everySizeOf(name.text))
      return false;
  return true;
}

/// Random sizes from small to large, then sizes of 1 and odd ones.
bool Checker::randomSizes() {
  for (unsigned k = 0; k < options.draws; ++k) {
    Recipe recipe;
    recipe.level = k * 6 / options.draws;
    if (agrees(recipe) == Case::Differs)
      return false;
  }
  for (Shape shape : {Shape::One, Shape::Odd, Shape::Odd, Shape::Several,
                      Shape::Several, Shape::Several}) {
    Recipe recipe;
    recipe.shape = shape;
    if (agrees(recipe) == Case::Differs)
      return false;
  }
  return true;
}

bool Checker::oddValues() {
  for (unsigned level : {1, 2, 4})
    if (!large(level))
      return false;
  // A live NaN makes its row NaN and no other, a masked one shows nowhere;
  // NaN or -inf may be anywhere, and both ways are looked for.
  Recipe spoilt;
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
  Recipe masked;
  masked.kind = Kind::AllMasked;
  for (unsigned level : {1, 3}) {
    masked.level = level;
    if (agrees(masked) == Case::Differs)
      return false;
  }
  return search({}, 12, [&](const Comparison &) {
    return reached.count("empty rows") > 0;
  });
}

bool Checker::run() {
  if (!randomSizes() || !oddValues() || !everySize())
    return false;
  if (ran == 0)
    return complain(heed::format("no drawn input was accepted: {}", refusal));
  summary();
  return true;
}

void Checker::summary() {
  for (size_t k = 0; k < worst.size(); ++k)
    outs() << format("  {}: max abs {:.2e}, judged {:.2e}, by row {:.2e}, "
                     "relative {:.2e}, {:.0f} ulp\n",
                     fast->signature().outputs[k]->name, worst[k].maxAbs,
                     worst[k].judged, worst[k].byRow, worst[k].relative,
                     worst[k].ulp);
  for (auto &[name, values] : accepted) {
    outs() << "  " << name << " =";
    for (int64_t value : values)
      outs() << " " << value;
    outs() << (tooDear.count(name) ? "; two blocks would cost too much\n"
                                   : "\n");
  }
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

} // namespace heed::check
