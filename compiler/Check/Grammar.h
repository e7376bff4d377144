//===- Grammar.h - attention models drawn from a grammar
//--------------------===//
#ifndef HEED_COMPILER_CHECK_GRAMMAR_H
#define HEED_COMPILER_CHECK_GRAMMAR_H

#include <cstdint>
#include <string>

namespace heed::check {

/// The source of one attention model; the same seed gives the same text.
/// It draws heads, score terms, maps of the score, mask, normaliser and sink.
std::string drawModel(uint64_t seed);

} // namespace heed::check

#endif
