//===- SizesText.cpp - Extents as text ------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"
#include "support/Format.h"

using namespace heed::sema;

static std::string inParens(const std::string &text) {
  bool isOne = text.find_first_of(" */") == std::string::npos;
  return isOne ? text : heed::format("({})", text);
}

std::string SizeTable::str(const Size::Monomial &monomial) const {
  std::string text;
  for (unsigned id : monomial) {
    const Atom &atom = atoms[id];
    std::string name;
    if (atom.kind == Atom::FloorDiv) {
      name = heed::format(monomial.size() > 1 ? "({}//{})" : "{}//{}",
                          inParens(str(atom.a)), inParens(str(atom.b)));
    } else if (atom.kind == Atom::Min || atom.kind == Atom::Max) {
      name = heed::format("{}({}, {})", atom.kind == Atom::Min ? "min" : "max",
                          str(atom.a), str(atom.b));
    } else if (atom.kind == Atom::Log2) {
      name = heed::format("ilog2({})", str(atom.a));
    } else {
      name = atom.name;
    }
    text += (text.empty() ? "" : "*") + name;
  }
  return text;
}

std::string SizeTable::str(const Size &size) const {
  if (size.terms.empty())
    return "0";
  // Positive terms first, the constant last: 2*R + 1, N - 1.
  std::vector<std::pair<Size::Monomial, int64_t>> terms(size.terms.begin(),
                                                        size.terms.end());
  llvm::sort(terms, [](const auto &a, const auto &b) {
    return std::make_tuple(a.first.empty(), a.second < 0, a.first) <
           std::make_tuple(b.first.empty(), b.second < 0, b.first);
  });
  std::string text;
  for (auto &[monomial, factor] : terms) {
    uint64_t magnitude = factor < 0 ? -uint64_t(factor) : uint64_t(factor);
    std::string term = monomial.empty() ? heed::format("{}", magnitude)
                       : magnitude == 1
                           ? str(monomial)
                           : heed::format("{}*{}", magnitude, str(monomial));
    if (text.empty())
      text = factor < 0 ? heed::format("-{}", term) : term;
    else
      text = heed::format("{} {} {}", text, factor < 0 ? '-' : '+', term);
  }
  return text;
}
