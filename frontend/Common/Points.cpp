//===- Points.cpp - At which index values is something evaluated? ---------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Points.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace heed;
using namespace heed::sema;
using llvm::DynamicAPInt;
using llvm::SmallVector;
using mlir::presburger::IntegerPolyhedron;
using mlir::presburger::PresburgerSpace;

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

void Form::add(const Form &other, const DynamicAPInt &by) {
  for (auto &[column, factor] : other.terms) {
    DynamicAPInt &sum = terms[column];
    sum += factor * by;
    if (sum == 0)
      terms.erase(column);
  }
}

Form Form::operator+(const Form &other) const {
  Form sum = *this;
  sum.add(other, DynamicAPInt(1));
  return sum;
}

Form Form::operator-(const Form &other) const {
  Form difference = *this;
  difference.add(other, DynamicAPInt(-1));
  return difference;
}

Form Form::times(const Size::Monomial &monomial, const DynamicAPInt &by) const {
  Form result;
  for (auto &[column, factor] : terms) {
    Form term;
    Size::Monomial both = column.second;
    both.insert(both.end(), monomial.begin(), monomial.end());
    llvm::sort(both);
    term.terms[{column.first, both}] = factor;
    result.add(term, by);
  }
  return result;
}

std::optional<Size> Form::asSize() const {
  Size size;
  for (auto &[column, factor] : terms) {
    if (column.first)
      return std::nullopt;
    size.terms[column.second] = factor;
  }
  return size;
}

std::optional<Form> Form::product(const Form &a, const Form &b) {
  auto size = b.asSize();
  const Form *other = &a;
  if (!size) {
    size = a.asSize();
    other = &b;
  }
  if (!size)
    return std::nullopt;
  Form result;
  for (auto &[monomial, factor] : size->terms)
    result.add(other->times(monomial, factor), DynamicAPInt(1));
  return result;
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

void Points::restrict(const Disjunction &either) {
  // Too many cases: what is asked stands for more.
  if (parts.size() * either.size() > 32) {
    relaxed = true;
    return;
  }
  Disjunction both;
  for (const Conjunction &a : parts)
    for (const Conjunction &b : either) {
      both.push_back(a);
      both.back().insert(both.back().end(), b.begin(), b.end());
    }
  parts = std::move(both);
}

void Points::atLeast(unsigned atom, int64_t least) {
  auto [it, isNew] = leasts.try_emplace(atom, least);
  it->second = std::max(it->second, least);
}

/// Constraints and the columns that they are about.
struct Points::System {
  std::vector<Constraint> constraints;
  std::map<Form::Column, unsigned> columns;
  std::set<unsigned> atoms;
  size_t closed = 0;
  bool nonlinear = false;

  void add(const Form &form, bool isEquality = false) {
    constraints.push_back({form, isEquality});
  }
  std::vector<Form::Column> number();
  IntegerPolyhedron setOf(llvm::ArrayRef<Constraint> list) const;
};

std::optional<int64_t> Points::least(unsigned atom) const {
  int64_t known = sizes.atom(atom).least;
  if (auto it = leasts.find(atom); it != leasts.end())
    known = std::max(known, it->second);
  return known == INT64_MIN ? std::nullopt : std::optional(known);
}

bool Points::isNonNegative(const Size::Monomial &monomial) const {
  return llvm::all_of(monomial, [&](unsigned atom) {
    auto n = least(atom);
    return n && *n >= 0;
  });
}

/// Of a product a * rest that is not negative:
/// (a - least a) * (rest - least rest) >= 0.
void Points::addProduct(const Size::Monomial &monomial, System &system) const {
  Size::Monomial rest(monomial.begin() + 1, monomial.end());
  auto a = least(monomial[0]);
  if (!isNonNegative(monomial) || !a)
    return;
  DynamicAPInt b(1);
  for (unsigned atom : rest)
    b *= *least(atom);
  Form product;
  product.terms[{0, monomial}] = 1;
  system.add(product);
  product.add(Form(1).times(rest, DynamicAPInt(1)), DynamicAPInt(-*a));
  product.add(Form(Size::atom(monomial[0])), -b);
  product.add(Form(1), b * *a);
  system.add(product);
}

/// Adds what is known about every column, until there is no new one.
void Points::close(System &system) const {
  const DynamicAPInt one(1);
  for (; system.closed < system.constraints.size(); ++system.closed) {
    std::vector<Form::Column> found;
    for (auto &[column, factor] : system.constraints[system.closed].form.terms)
      if (column != Form::Column{0, {}} && system.columns.size() < 200 &&
          system.columns.try_emplace(column, system.columns.size()).second)
        found.push_back(column);
    for (auto &[id, monomial] : found) {
      for (unsigned atom : monomial)
        if (system.atoms.insert(atom).second) {
          for (const Form &fact : factsOf(atom))
            system.add(fact);
          if (auto n = least(atom))
            system.add(Form(Size::atom(atom)) - Form(*n));
        }
      if (!id && monomial.size() < 2)
        continue;
      system.nonlinear |= !monomial.empty();
      if (!id) {
        addProduct(monomial, system);
        continue;
      }
      if (!isNonNegative(monomial))
        continue;
      Form self;
      self.terms[{id, monomial}] = 1;
      for (const Form &low : variables[id - 1].lower)
        system.add(self - low.times(monomial, one));
      for (const Form &high : variables[id - 1].upper)
        system.add(high.times(monomial, one) - self);
    }
  }
}

/// What defines an atom that is made of sizes.
std::vector<Form> Points::factsOf(unsigned id) const {
  const Atom &atom = sizes.atom(id);
  Size self = Size::atom(id);
  switch (atom.kind) {
  case Atom::FloorDiv: {
    if (!sizes.nonNegative(atom.b - 1))
      return {};
    Size rest = atom.a - self * atom.b;
    return {Form(rest), Form(atom.b - 1 - rest)};
  }
  case Atom::Min:
    return {Form(atom.a - self), Form(atom.b - self)};
  case Atom::Max:
    return {Form(self - atom.a), Form(self - atom.b)};
  case Atom::Log2:
    return {Form(atom.a - 1 - self)};
  default:
    return {};
  }
}

/// Eliminating this column loses no integer point.
static bool eliminatesExactly(const IntegerPolyhedron &set, unsigned column) {
  for (unsigned k = 0; k < set.getNumEqualities(); ++k) {
    auto factor = set.atEq(k, column);
    if (factor == 1 || factor == -1)
      return true;
    if (factor != 0)
      return false;
  }
  bool lower = true, upper = true;
  for (unsigned k = 0; k < set.getNumInequalities(); ++k) {
    auto factor = set.atIneq(k, column);
    lower &= factor <= 1;
    upper &= factor >= -1;
  }
  return lower || upper;
}

/// Adds what was checked or follows from divisions, about sizes that occur.
void Points::addAssumptions(System &system) const {
  auto assumptions = sizes.assumptions();
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[size, isEquality] : assumptions) {
      bool occurs = llvm::any_of(size.terms, [&](const auto &term) {
        return !term.first.empty() &&
               system.columns.count(Form::Column{0, term.first});
      });
      if (!occurs)
        continue;
      system.add(Form(size), isEquality);
      size = Size();
      changed = true;
    }
    close(system);
  }
}

/// What must hold at a point of the part at which `mistake` holds.
Points::System Points::systemOf(const Conjunction &mistake,
                                const Conjunction &part) const {
  System system;
  for (const Conjunction *list : {&mistake, &facts, &part})
    system.constraints.insert(system.constraints.end(), list->begin(),
                              list->end());
  // Loops around that nothing mentions must still run.
  for (const Variable &variable : variables)
    if (!variable.name.empty() && !variable.upper.empty())
      system.add(variable.upper[0]);
  close(system);
  addAssumptions(system);
  return system;
}

/// The set of the constraints whose columns are all known.
IntegerPolyhedron Points::System::setOf(llvm::ArrayRef<Constraint> list) const {
  IntegerPolyhedron set(PresburgerSpace::getSetSpace(columns.size()));
  for (const Constraint &constraint : list) {
    SmallVector<DynamicAPInt> row(columns.size() + 1, DynamicAPInt(0));
    bool known = true;
    for (auto &[column, factor] : constraint.form.terms) {
      if (column == Form::Column{0, {}}) {
        row.back() = factor;
        continue;
      }
      auto it = columns.find(column);
      known &= it != columns.end();
      if (known)
        row[it->second] = factor;
    }
    if (!known)
      continue;
    if (constraint.isEquality)
      set.addEquality(row);
    else
      set.addInequality(row);
  }
  return set;
}

/// Numbers the columns: variables first, then sizes. Gives them in this order.
std::vector<Form::Column> Points::System::number() {
  std::vector<Form::Column> order;
  for (bool isSize : {false, true})
    for (auto &entry : columns)
      if ((entry.first.first == 0) == isSize)
        order.push_back(entry.first);
  for (unsigned k = 0; k < order.size(); ++k)
    columns[order[k]] = k;
  return order;
}

/// The conditions of `set`, of sizes alone; those that hold in all of `domain`
/// do not tell.
std::vector<Points::Condition> Points::conditions(
    const IntegerPolyhedron &set, llvm::ArrayRef<Form::Column> columns,
    const std::vector<Constraint> &domain, const System &system) const {
  std::vector<Condition> when;
  auto condition = [&](auto &&at, bool negate) {
    Size size;
    for (unsigned k = 0; k <= set.getNumVars(); ++k) {
      DynamicAPInt factor = negate ? -at(k) : at(k);
      size.add(k < set.getNumVars() ? columns[k].second : Size::Monomial(),
               factor);
    }
    if (sizes.nonNegative(size))
      return;
    const Form form(size), opposite = -form;
    bool isKnown = llvm::any_of(domain, [&](const Constraint &known) {
      return known.form.terms == form.terms ||
             (known.isEquality && known.form.terms == opposite.terms);
    });
    std::vector<Constraint> other = domain;
    other.push_back({Form(-1) - form});
    when.push_back({size, !isKnown && !system.setOf(other).isIntegerEmpty()});
  };
  for (unsigned k = 0; k < set.getNumEqualities(); ++k)
    for (bool negate : {false, true})
      condition([&](unsigned c) { return set.atEq(k, c); }, negate);
  for (unsigned k = 0; k < set.getNumInequalities(); ++k)
    condition([&](unsigned c) { return set.atIneq(k, c); }, false);
  return when;
}

/// The point as text: i = 0, N = 3.
std::string Points::sampleText(llvm::ArrayRef<Form::Column> columns,
                               llvm::ArrayRef<DynamicAPInt> point) const {
  std::string text;
  for (auto [column, value] : llvm::zip(columns, point)) {
    std::string name = column.first ? variables[column.first - 1].name
                                    : sizes.str(Size::atom(column.second[0]));
    if (!name.empty())
      text += heed::format("{}{} = {}", text.empty() ? "" : ", ", name,
                           printed(value));
  }
  return text;
}

Points::Answer Points::ask(const Conjunction &mistake) const {
  Answer answer;
  answer.kind = Answer::Never;
  for (const Conjunction &part : parts) {
    System system = systemOf(mistake, part);
    std::vector<Form::Column> order = system.number();
    IntegerPolyhedron set = system.setOf(system.constraints);
    std::vector<Constraint> domain = system.constraints;
    domain.erase(domain.begin(), domain.begin() + mistake.size());
    auto sample = set.findIntegerSample();
    if (!sample)
      continue;
    answer.kind = Answer::Unknown;
    if (relaxed || system.nonlinear)
      return answer;
    answer.sample = sampleText(order, *sample);
    // For which sizes?
    unsigned numVariables = llvm::count_if(
        order, [](const Form::Column &column) { return column.first != 0; });
    for (unsigned k = numVariables; k-- > 0;) {
      if (!eliminatesExactly(set, k))
        return answer;
      set.projectOut(k, 1);
    }
    set.removeRedundantConstraints();
    auto when = conditions(set, llvm::ArrayRef(order).drop_front(numVariables),
                           domain, system);
    if (llvm::none_of(when, [](const Condition &one) { return one.tells; })) {
      answer.kind = Answer::Always;
      return answer;
    }
    answer.when.push_back(when);
    answer.kind = Answer::BySizes;
  }
  if (!answer.when.empty())
    answer.kind = Answer::BySizes;
  return answer;
}
