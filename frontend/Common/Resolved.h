//===- Resolved.h - What a model means, before it is IR ---------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a front end hands to the emission: steps in the order in which they
// happen, each with all that was decided about it. Scalar expressions are trees
// of typed nodes; names, scopes and syntax are gone, functions are inlined,
// static control is done, what must hold is a step of its own. No IR is here:
// a decision is dropped by dropping its steps.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_RESOLVED_H
#define HEED_FRONTEND_COMMON_RESOLVED_H

#include "Builtins.h"
#include "Operators.h"
#include "SizeUse.h"
#include "Types.h"

#include "llvm/Support/SMLoc.h"

#include <deque>
#include <memory>
#include <variant>

namespace heed::sema {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;
/// Where something is written, for messages.
using Range = llvm::SMRange;

/// An extent that only a call knows (that of mlir::ShapedType).
constexpr int64_t kUnknown = INT64_MIN;

/// An index of an equation.
struct Idx {
  std::string name;
  Range place;
  std::optional<Size> extent;
  bool declared = false;
  std::string from; ///< what gave the extent, for messages
  Range fromPlace;
  unsigned number = 0; ///< in the order of creation
};
/// Maps are walked in an order that no address decides.
struct ByNumber {
  bool operator()(const Idx *a, const Idx *b) const {
    return a->number < b->number;
  }
};
using Axes = SmallVector<Idx *, 4>;

using Shape = SmallVector<Size, 4>;

/// A tensor of the model, or a scalar that a call gives. One step defines it.
struct Tensor {
  std::string input; ///< its name, if it is an input
};

/// A tensor, and where its elements are present (null: everywhere).
struct TensorVal {
  const Tensor *value = nullptr;
  Ty elem = Ty::F32;
  Shape shape;
  const Tensor *live = nullptr;
};

/// A constant table.
struct Table {
  Ty elem = Ty::AnyInt; ///< AnyInt, AnyReal or Bool
  SmallVector<int64_t, 4> shape;
  std::vector<int64_t> ints; ///< AnyInt and Bool
  std::vector<double> reals;
  Shape extents() const { return Shape(shape.begin(), shape.end()); }
};

struct Step;
using Steps = std::vector<Step>;

//===----------------------------------------------------------------------===//
// Scalar expressions
//===----------------------------------------------------------------------===//

struct Node;

/// A condition around a node: an expression, or that a loop has a turn.
struct EnforcedGuard {
  const Node *condition = nullptr;
  bool positive = true;
  SizeUse loop; ///< without a condition: it must be above 0
  Range loopPlace;
};
using EnforcedGuards = std::vector<EnforcedGuard>;

/// A part of what Node::Concat joins: it begins and ends there.
struct Piece {
  TensorVal tensor;
  SizeUse start, end;
};
/// A part of what Node::Slices joins: it stands at these positions.
struct Slice {
  TensorVal tensor;
  std::vector<int64_t> positions;
};

struct Node {
  enum Kind {
    Bool,    ///< flag
    Int,     ///< size
    Real,    ///< real
    Zero,    ///< the integer 0, of type i64
    Index,   ///< idx
    Scalar,  ///< tensor.value, an input without axes
    Element, ///< tensor at axes
    Extract, ///< tensor at operands
    Negate,
    Not,
    Binary,
    Compare, ///< operands compared in turn by `compares`; null: known to hold
    Logic, ///< flag: and. In branches: the right side is reached only if asked
    If,    ///< condition, then, else. In branches: likewise
    Call,  ///< builtin
    Cast,
    InF64,   ///< a decision on reals of indices alone
    Host,    ///< a number that is computed before the body, in f64
    Guarded, ///< operands: the value under `guards`, else
    Mean,    ///< operands: the sum; and how many count, or size
    Shift,   ///< operand, + size from 0 on, in i64
    IsZero,  ///< 1 if the operand is 0, else 0, in i64
    Concat,  ///< pieces along idx
    Slices   ///< slices along `fixed`, each read at axes
  };
  Kind kind;
  Ty ty = Ty::AnyInt;
  Range place;
  bool absent = false; ///< it carries where it is present
  Steps before;        ///< what happens before it is evaluated
  Steps after;         ///< Binary: when its operands have been
  SmallVector<const Node *, 3> operands;

  bool flag = false;
  bool branches = false; ///< control flow keeps reads in range
  double real = 0;
  SizeUse size;
  const Idx *idx = nullptr;
  TensorVal tensor;
  SmallVector<Idx *, 4> axes, fixed;
  const Builtin *builtin = nullptr;
  EnforcedGuards guards;
  std::vector<Piece> pieces;
  std::vector<Slice> slices;
  std::vector<std::pair<CompareOp, Range>> compares;
  BinaryOp op = BinaryOp::Add;
  std::optional<int64_t> exponent; ///< of a power, if it is a literal
  bool isProduct = false;          ///< a power is a product of its base
  bool mayDivideByZero = true;     ///< an integer division, where data decides
  bool isNonNegative = false;      ///< both operands of it are
};

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// A tensor with one element for each turn of its loops.
struct Elementwise {
  Axes axes;
  SizeUses shape;
  Ty elem = Ty::F32;
  bool f64 = false; ///< computed in f64
  const Node *node = nullptr;
  const Tensor *result = nullptr;
  const Tensor *live = nullptr; ///< also where the node is present
  Range place;
};

/// A reduction over `ids`; the accumulators have type `ty`.
struct Reduction {
  ReduceOp op = ReduceOp::Sum;
  Axes axes, ids;
  SizeUses shape, idExtents;
  Ty ty = Ty::F32;
  bool f64 = false;
  EnforcedGuards guards;
  const Node *where = nullptr, *operand = nullptr;
  bool inBranch = false; ///< the operand is reached only where `where` holds
  const Tensor *result = nullptr;
  /// Of a mean with `where`: how many count.
  EnforcedGuards countGuards;
  const Node *countWhere = nullptr;
  const Tensor *count = nullptr;
  Range place;
};

/// The least, the greatest or the sum of an i64 over `ids`, and of 0.
struct Extreme {
  enum Kind { Least, Greatest, Sum } kind = Sum;
  Axes axes, ids;
  SizeUses shape, idExtents;
  const Node *node = nullptr;
  const Tensor *result = nullptr;
  Range place;
};

struct Softmax {
  std::string map; ///< softmax, log_softmax, sparsemax, ...
  bool isLog = false;
  Axes axes;
  SizeUses shape, sinkShape;
  SmallVector<int64_t, 2> positions; ///< of the axes that it normalises over
  const Tensor *scores = nullptr, *sink = nullptr;
  const Node *where = nullptr;
  const Tensor *result = nullptr, *live = nullptr;
  Range place;
};

using Groups = SmallVector<SmallVector<int64_t, 2>>;
/// Axes become one (h*E + e); of an extent of 0 there is nothing to take.
struct Collapse {
  const Tensor *from = nullptr, *to = nullptr;
  SizeUses shape;
  Groups groups;
  bool isEmpty = false;
  Range place;
};
/// An axis becomes several.
struct Expand {
  const Tensor *from = nullptr, *to = nullptr;
  SizeUses shape;
  Groups groups;
  Range place;
};
struct Zeros {
  Ty elem = Ty::F32;
  SizeUses shape;
  const Tensor *result = nullptr;
  Range place;
};
/// A constant tensor; by bits: reals in f64, which a body takes apart.
struct TableData {
  std::shared_ptr<Table> table;
  Ty elem = Ty::F32;
  bool byBits = false;
  const Tensor *result = nullptr;
  Range place;
};

/// The size is computed here, if it was not before.
struct Evaluate {
  SizeUse size;
  Range place;
};
/// From here on the atom is an extent of the tensor, or that size; of a number
/// that a call is given, the number, or 0 if it is less.
struct BindAtom {
  unsigned atom = 0;
  const Tensor *tensor = nullptr;
  std::optional<unsigned> axis; ///< none: the tensor is a number
  SizeUse size;
  bool inLoop = false;
  Range place;
};

/// What must hold when the model is called: an error if it does not.
struct Require {
  enum Kind {
    Equal,     ///< sizes[0] == sizes[1]
    LessEqual, ///< sizes[0] <= sizes[1]
    NotZero,   ///< sizes[0]
    AnyLess,   ///< sizes[2*k] < sizes[2*k + 1] for one k
    InRange    ///< sizes[1] < sizes[2], and 0 <= sizes[0] if `low`
  } kind = Equal;
  SizeUses sizes;
  SizeUses values; ///< what the message shows
  bool low = false;
  SizeUses empty; ///< it holds where one of these loops has no turn
  /// It holds where one of these rolled loops (from, to) has no turn.
  std::vector<std::pair<SizeUse, SizeUse>> emptyLoops;
  bool inLoop = false; ///< checked in each turn of the loop around
  std::string message;
  Range place;
};
/// All elements of a tensor of positions are below the limit, and not below 0.
struct RequireInRange {
  const Tensor *positions = nullptr;
  SizeUse limit;
  std::string what, name;
  Range place;
};

struct Parameter {
  std::vector<std::string> names; ///< alternatives; {k} is indices[k]
  SizeUses indices;
  SmallVector<int64_t> dims;
  Ty elem = Ty::F32;
  Ty held = Ty::F32;                 ///< elem, or a narrower type in memory
  std::vector<std::string> dimNames; ///< if an extent comes from the file
  bool inLoop = false;
  const Tensor *result = nullptr;
  Range place;
};

/// A loop that stays one. Carried tensors: what they are before, in a turn,
/// after a turn, and at the end.
struct RolledFor {
  unsigned turn = 0;
  SizeUse lo, hi;
  SmallVector<const Tensor *> inits, inside, yields, results;
  Steps body;
  Range place;
};

/// What `from` has at positions of these axes, which lie in it.
struct ReadRow {
  const Tensor *from = nullptr, *to = nullptr;
  SmallVector<unsigned, 2> axes;
  SizeUses positions, shape; ///< of the axes, and the extents of the others
  Range place;
};
/// `from` with `row` at positions of these axes, which lie in it.
struct WriteRow {
  const Tensor *from = nullptr, *row = nullptr, *to = nullptr;
  SmallVector<unsigned, 2> axes;
  SizeUses positions, shape; ///< of the axes, and the extents of the others
  Range place;
};

/// `from` with `values`, those of `where` alone, at places that lie in it and
/// are distinct, which is checked unless it is known. An axis has the number of
/// an index of the values, or that of a position, counted back from -1: a size,
/// or a tensor of i64 over some of the indices.
struct UpdateState {
  struct Position {
    const Tensor *tensor = nullptr; ///< null: `size`
    SmallVector<unsigned, 2> indices;
    SizeUse size;
  };
  const Tensor *from = nullptr, *values = nullptr, *to = nullptr;
  SmallVector<int64_t, 6> axes;
  std::vector<Position> positions;
  Position where; ///< without a tensor: all
  bool isDistinct = true;
  std::string name; ///< for messages
  Range place;
};

/// A recurrence. Its states: what they are before the first step, in a step,
/// after it, and after the last one. Each step leaves rows, which `stacks`
/// hold.
struct Scan {
  struct Stack {
    const Tensor *row = nullptr, *result = nullptr;
    Ty elem = Ty::F32;
    unsigned axis = 0; ///< of the steps
    bool isReversed = false;
    SizeUses shape;
  };
  unsigned turn = 0;
  SizeUse lo, hi;
  SmallVector<const Tensor *> starts, inside, after, results;
  std::vector<Stack> stacks;
  Steps body;
  Range place;
};

struct Step : std::variant<Elementwise, Reduction, Extreme, Softmax, Collapse,
                           Expand, Zeros, TableData, Evaluate, BindAtom,
                           Require, RequireInRange, Parameter, RolledFor,
                           ReadRow, WriteRow, UpdateState, Scan> {
  using variant::variant;
};

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

struct ModelInput {
  std::string name;
  Ty elem = Ty::F32;
  bool isTensor = false;
  SmallVector<int64_t> dims; ///< kUnknown: a dim of the call
  std::vector<std::string> dimNames;
  std::optional<std::variant<bool, int64_t, double>>
      defaultValue; ///< a scalar's; of a state its elements at first
  const Tensor *tensor = nullptr;
  Range place;
  bool isState = false; ///< it lives from call to call
  Ty held = Ty::F32;    ///< elem, or a state's narrower type in memory
  Shape shape = {};     ///< a tensor's, of the dims that it binds or has
};
struct ModelOutput {
  std::string name;
  const Tensor *tensor = nullptr;
  std::vector<std::string> dimNames;
  Ty elem = Ty::F32;
  Shape shape;
  bool isState = false; ///< what the state of this name is after the call
};

/// What one call computes. A model without entries is one, of its name.
struct Entry {
  std::string name;
  Range place, namePlace;
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;
  Steps steps;
  SizeTable sizes;
  // What steps point to.
  std::deque<Tensor> tensors;
  std::deque<Node> nodes;
  std::deque<Idx> indices;
};

struct Model {
  std::string name, source;
  Range place;
  std::deque<Entry> entries;
};

} // namespace heed::sema

#endif // HEED_FRONTEND_COMMON_RESOLVED_H
