//===- Formulas.cpp - integer expressions over sizes ----------------------===//
#include "compiler/Check/Formulas.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cctype>
#include <functional>

namespace heed::check {

Formulas::Node Formulas::constant(int64_t value) {
  entries.push_back({Constant, value});
  return Node(entries.size()) - 1;
}

Formulas::Node Formulas::unknown() {
  entries.push_back({Unknown});
  return Node(entries.size()) - 1;
}

Formulas::Node Formulas::name(const std::string &name) {
  auto [at, isNew] = nodeOf.insert({name, Node(entries.size())});
  if (isNew) {
    entries.push_back({Name, int64_t(nameOf.size())});
    nameOf.push_back(name);
  }
  return at->second;
}

Formulas::Node Formulas::make(Op op, Node a, Node b, Node c) {
  entries.push_back({op, 0, a, b, c});
  return Node(entries.size()) - 1;
}

namespace {

/// Reads the text of an extent.
struct Reader {
  Formulas &into;
  const std::string &text;
  size_t at = 0;
  bool good = true;

  char peek() {
    while (at < text.size() && text[at] == ' ')
      ++at;
    return at < text.size() ? text[at] : '\0';
  }
  bool accept(char c) {
    if (peek() != c)
      return false;
    ++at;
    return true;
  }
  Formulas::Node fail() {
    good = false;
    return into.unknown();
  }
  Formulas::Node bracket() {
    Formulas::Node value = sum();
    good &= accept(')');
    return value;
  }
  Formulas::Node factor() {
    if (accept('('))
      return bracket();
    if (accept('-'))
      return into.make(Formulas::Sub, into.constant(0), factor());
    peek();
    size_t start = at;
    // "w.extent1": an extent of a parameter that has no name of its own.
    while (at < text.size() &&
           (isalnum(text[at]) || text[at] == '_' || text[at] == '.'))
      ++at;
    std::string word = text.substr(start, at - start);
    if (word.empty())
      return fail();
    if (isdigit(word[0]))
      return word.size() <= 18 && llvm::all_of(word, isdigit)
                 ? into.constant(std::stoll(word))
                 : fail();
    if ((word == "min" || word == "max") && accept('(')) {
      Formulas::Node a = sum();
      good &= accept(',');
      return into.make(word == "min" ? Formulas::Min : Formulas::Max, a,
                       bracket());
    }
    if (word == "ilog2" && accept('(')) {
      Formulas::Node a = bracket();
      return into.make(Formulas::Log2, a, a);
    }
    return into.name(word);
  }
  Formulas::Node product() {
    Formulas::Node value = factor();
    while (good && (peek() == '*' || peek() == '/')) {
      if (accept('*')) {
        value = into.make(Formulas::Mul, value, factor());
        continue;
      }
      accept('/');
      accept('/');
      value = into.make(Formulas::FloorDiv, value, factor());
    }
    return value;
  }
  Formulas::Node sum() {
    Formulas::Node value = product();
    while (good && (peek() == '+' || peek() == '-')) {
      Formulas::Op op = text[at++] == '+' ? Formulas::Add : Formulas::Sub;
      value = into.make(op, value, product());
    }
    return value;
  }
};

} // namespace

Formulas::Node Formulas::parse(const std::string &text) {
  Reader reader{*this, text};
  Node node = reader.sum();
  return reader.good && !reader.peek() ? node : unknown();
}

/// What \p op makes of two known values.
static std::optional<int64_t> apply(Formulas::Op op, int64_t a, int64_t b) {
  int64_t result;
  switch (op) {
  case Formulas::Add:
    return __builtin_add_overflow(a, b, &result) ? std::nullopt
                                                 : std::optional(result);
  case Formulas::Sub:
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt
                                                 : std::optional(result);
  case Formulas::Mul:
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt
                                                 : std::optional(result);
  case Formulas::FloorDiv:
    return b == 0 ? std::nullopt
                  : std::optional(a / b - (a % b != 0 && (a < 0) != (b < 0)));
  case Formulas::Div:
    return b == 0 ? std::nullopt : std::optional(a / b);
  case Formulas::Rem:
    return b == 0 ? std::nullopt : std::optional(a % b);
  case Formulas::Log2:
    return a <= 0 ? std::nullopt
                  : std::optional<int64_t>(63 - __builtin_clzll(a));
  case Formulas::Min:
    return std::min(a, b);
  case Formulas::Max:
    return std::max(a, b);
  case Formulas::Equal:
    return a == b;
  case Formulas::Less:
    return a < b;
  case Formulas::And:
    return a & b;
  case Formulas::Or:
    return a | b;
  case Formulas::Xor:
    return a ^ b;
  default:
    return std::nullopt;
  }
}

Formulas::Values Formulas::evaluate(const Values &sizes) const {
  Values values;
  evaluate(sizes, values);
  return values;
}

void Formulas::evaluate(const Values &sizes, Values &values) const {
  values.assign(entries.size(), std::nullopt);
  for (size_t k = 0; k < entries.size(); ++k) {
    const Entry &e = entries[k];
    if (e.op == Constant) {
      values[k] = e.value;
    } else if (e.op == Name) {
      values[k] = sizes[e.value];
    } else if (e.op == Select) {
      if (values[e.a])
        values[k] = *values[e.a] ? values[e.b] : values[e.c];
    } else if (e.op != Unknown) {
      const auto &a = values[e.a], &b = values[e.b];
      if (a && b)
        values[k] = apply(e.op, *a, *b);
      else if (int64_t settles = e.op == Or;
               (e.op == And || e.op == Or) &&
               ((a && *a == settles) || (b && *b == settles)))
        values[k] = settles;
    }
  }
}

Formulas::Values Formulas::evaluate(const Dims &dims) const {
  Values sizes(nameOf.size());
  for (size_t k = 0; k < nameOf.size(); ++k)
    if (auto found = dims.find(nameOf[k]); found != dims.end())
      sizes[k] = found->second;
  return evaluate(sizes);
}

std::vector<bool> Formulas::divisors() const {
  std::vector<bool> names(nameOf.size());
  for (const Entry &e : entries)
    if (e.op == FloorDiv || e.op == Div || e.op == Rem) {
      std::vector<bool> used = namesIn(e.b);
      for (size_t k = 0; k < used.size(); ++k)
        names[k] = names[k] || used[k];
    }
  return names;
}

std::vector<bool> Formulas::namesIn(Node node) const {
  std::vector<bool> needed(entries.size()), names(nameOf.size());
  needed[node] = true;
  for (Node k = node; k >= 0; --k) {
    const Entry &e = entries[k];
    if (!needed[k] || e.op == Constant || e.op == Unknown)
      continue;
    if (e.op == Name) {
      names[e.value] = true;
      continue;
    }
    needed[e.a] = needed[e.b] = true;
    if (e.op == Select)
      needed[e.c] = true;
  }
  return names;
}

} // namespace heed::check
