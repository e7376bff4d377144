//===- Grammar.h - attention models drawn from a grammar --------*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_GRAMMAR_H
#define HEED_COMPILER_CHECK_GRAMMAR_H

#include <cstdint>
#include <string>

namespace heed::check {

/// One attention model; the same number gives the same text.
struct DrawnModel {
  /// What is compiled: heads and layouts, score terms, maps of the score, masks
  /// and normaliser, each in one of its spellings.
  std::string source;
  /// The same model with its mask in `where`. A spelling that is raised to
  /// attention means this: a masked key is absent, whatever its value holds.
  std::string meaning;
};

DrawnModel drawModel(uint64_t number);

} // namespace heed::check

#endif
