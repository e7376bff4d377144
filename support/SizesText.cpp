//===- SizesText.cpp - Extents as text ------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"
#include "support/Format.h"

using namespace heed;

static std::string inParens(const std::string &text) {
  bool isOne = text.find_first_of(" */") == std::string::npos;
  return isOne ? text : heed::format("({})", text);
}

/// \p isFactor: something stands before it, "3*(N//2)".
std::string SizeTable::str(const Size::Monomial &monomial,
                           bool isFactor) const {
  std::vector<std::string> names;
  for (unsigned id : monomial) {
    const Atom &atom = atoms[id];
    std::string name;
    if (atom.kind == Atom::FloorDiv) {
      name =
          heed::format(isFactor || monomial.size() > 1 ? "({}//{})" : "{}//{}",
                       inParens(str(atom.a)), inParens(str(atom.b)));
    } else if (atom.kind == Atom::Min || atom.kind == Atom::Max) {
      name = heed::format("{}({}, {})", atom.kind == Atom::Min ? "min" : "max",
                          str(atom.a), str(atom.b));
    } else if (atom.kind == Atom::Log2) {
      name = heed::format("ilog2({})", str(atom.a));
    } else {
      name = atom.name;
    }
    names.push_back(std::move(name));
  }
  if (byName)
    llvm::sort(names);
  return heed::format("{}", fmt::join(names, "*"));
}

std::string SizeTable::str(const Size &size) const {
  if (size.terms.empty())
    return "0";
  // Positive terms first, the constant last: 2*R + 1, N - 1.
  std::vector<std::pair<Size::Monomial, llvm::DynamicAPInt>> terms(
      size.terms.begin(), size.terms.end());
  llvm::sort(terms, [](const auto &a, const auto &b) {
    return std::make_tuple(a.first.empty(), a.second < 0, a.first) <
           std::make_tuple(b.first.empty(), b.second < 0, b.first);
  });
  std::string text;
  for (auto &[monomial, factor] : terms) {
    llvm::DynamicAPInt magnitude = abs(factor);
    std::string term = monomial.empty() ? heed::printed(magnitude)
                       : magnitude == 1
                           ? str(monomial, false)
                           : heed::format("{}*{}", heed::printed(magnitude),
                                          str(monomial, true));
    if (text.empty())
      text = factor < 0 ? heed::format("-{}", term) : term;
    else
      text = heed::format("{} {} {}", text, factor < 0 ? '-' : '+', term);
  }
  return text;
}
