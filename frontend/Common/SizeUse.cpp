//===- SizeUse.cpp - Sizes that a model computes --------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizeUse.h"

using namespace heed;
using namespace heed::sema;

/// The floor divisions in \p size, innermost first.
static void collectDivisions(const SizeTable &sizes, const Size &size,
                             SizeUse &use) {
  for (auto &term : size.terms)
    for (unsigned id : term.first) {
      const Atom &atom = sizes.atom(id);
      bool isNew = llvm::none_of(use.divisions, [&](const auto &division) {
        return division.atom == id;
      });
      if (atom.kind < Atom::FloorDiv || !isNew)
        continue;
      collectDivisions(sizes, atom.a, use);
      collectDivisions(sizes, atom.b, use);
      if (atom.kind == Atom::FloorDiv)
        use.divisions.push_back({id, sizes.nonNegative(atom.b - 1)});
    }
}

SizeUse heed::sema::useOf(const SizeTable &sizes, const Size &size) {
  SizeUse result{size, {}, sizes.isInLoop(size)};
  collectDivisions(sizes, size, result);
  return result;
}
