//===- Mutation.h - deliberate faults, built for a test only ----*- C++ -*-===//
//
// What shows that the generator of models and the proofs of rewrites find
// faults: test/mutations switches them on one after the other. A build without
// the CMake option HEED_MUTATIONS has none of it.
#ifndef HEED_PASSES_MUTATION_H
#define HEED_PASSES_MUTATION_H

#ifdef HEED_MUTATIONS
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#endif

namespace heed {

/// Whether the fault \p name ("pass.fault") is to be made here. Write it last
/// in a condition: that it was asked means that it would have changed what
/// happens.
#ifdef HEED_MUTATIONS
inline bool mutated(const char *name) {
  // HEED_MUTATE: names with commas; HEED_MUTATIONS_REACHED: a file that gets
  // the name of each one that was asked.
  static const std::set<std::string> chosen = [] {
    std::set<std::string> names;
    const char *list = std::getenv("HEED_MUTATE");
    std::istringstream text(list ? list : "");
    for (std::string one; std::getline(text, one, ',');)
      names.insert(one);
    return names;
  }();
  if (const char *file = std::getenv("HEED_MUTATIONS_REACHED"))
    std::ofstream(file, std::ios::app) << name << '\n';
  return chosen.count(name);
}
#else
constexpr bool mutated(const char *) { return false; }
#endif

} // namespace heed
#endif
