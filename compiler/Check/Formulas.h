//===- Formulas.h - integer expressions over sizes --------------*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_FORMULAS_H
#define HEED_COMPILER_CHECK_FORMULAS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heed::check {

using Dims = std::map<std::string, int64_t>;

/// Integer expressions over named sizes: extents like "2*R+1", conditions like
/// N % w == 0. Nodes are numbered, operands before what reads them, so one pass
/// over all of them evaluates everything; a value may be unknown as long as a
/// name that it depends on is.
class Formulas {
public:
  enum Op {
    Constant,
    Name,
    Unknown, ///< what no formula says; never known
    Add,
    Sub,
    Mul,
    FloorDiv,
    Div,  ///< towards zero
    Rem,  ///< of Div
    Log2, ///< of a, rounded down; b is a
    Min,
    Max,
    Equal,
    Less,
    And, ///< of 0 and 1; known as soon as one side is 0
    Or,  ///< known as soon as one side is 1
    Xor,
    Select
  };
  using Node = int;
  using Values = std::vector<std::optional<int64_t>>;

  Node constant(int64_t value);
  Node name(const std::string &name);
  Node unknown();
  Node make(Op op, Node a, Node b, Node c = 0);
  /// The node of an extent's text: sums, products, floor divisions, min(a, b),
  /// max(a, b) and ilog2(a) of names and numbers. An unknown one if it is none.
  Node parse(const std::string &text);

  const std::vector<std::string> &names() const { return nameOf; }
  /// The value of every node, where \p sizes gives those of `names()`. An
  /// overflow or a division by zero is an unknown value.
  Values evaluate(const Values &sizes) const;
  void evaluate(const Values &sizes, Values &values) const;
  /// The same for named sizes.
  Values evaluate(const Dims &dims) const;
  /// Which names \p node depends on.
  std::vector<bool> namesIn(Node node) const;
  /// Which names something is divided by.
  std::vector<bool> divisors() const;

private:
  struct Entry {
    Op op;
    int64_t value = 0; ///< of a constant; a name's position
    Node a = 0, b = 0, c = 0;
  };
  std::vector<Entry> entries;
  std::vector<std::string> nameOf;
  std::map<std::string, Node> nodeOf;
};

} // namespace heed::check

#endif
