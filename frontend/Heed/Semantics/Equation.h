//===- Equation.h - One equation under analysis -----------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the semantic half of the front end: indices and scopes, what the
// first walk finds out about each expression, and where it will stand.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SEMANTICS_EQUATION_H
#define HEED_FRONTEND_HEED_SEMANTICS_EQUATION_H

#include "Values.h"

#include <set>

namespace heed::sema {

/// Names of an expression: indices before the environment.
struct Scope {
  EnvPtr env;
  std::map<std::string, Idx *, std::less<>> indices;
  std::optional<SmallVector<Idx *, 4>> dots;
};

/// What `infer` found out about an expression.
struct Info {
  Ty ty = Ty::AnyInt;
  bool pure = true;     ///< of indices, dims and static values alone
  bool hasReal = false; ///< something in it is real
  bool mayBeAbsent = false;
  std::optional<Binding> fixed; ///< its value, if static
  std::optional<Binding> named; ///< what it names, if a name or a call
  std::optional<Shape> whole;   ///< the shape, of a whole tensor
  SmallVector<Idx *, 4> used;

  /// None or a string: nothing to compute with.
  bool isNoValue() const { return fixed && fixed->isNoValue(); }
};

/// A condition that must hold for what stands in its scope to be evaluated:
/// an expression, or that the loop of an index has a turn.
/// `in`: the body whose control flow makes sure of it.
struct Body;
struct Guard {
  const ast::Expr *condition;
  bool positive;
  const Scope *scope;
  const Body *in;
  const Idx *loop = nullptr;
};

/// One position of a read, `..` unfolded: a plain index, or an expression.
struct Item {
  Idx *idx = nullptr;
  const ast::Expr *expr = nullptr;
};

/// A reduction's tensor, and for a mean with `where` how many counted.
struct Reduced {
  TensorVal value, count;
};

/// One equation under analysis.
struct Equation {
  struct Use {
    Idx *idx;
    Size extent;
    std::string what;
    Range place;
    bool weak;         ///< in a branch of an `if`
    bool kept = false; ///< whose condition alone keeps it in range
  };
  using Key = std::pair<const void *, const Env *>;
  SmallVector<Idx *, 8> pool; ///< its indices; the model owns them
  std::map<Key, Info> infos;
  std::map<Key, SmallVector<Idx *, 2>> binders;
  std::map<Key, Binding> calls;
  std::vector<Use> uses;
  SmallVector<Idx *, 4> whole; ///< axes of whole tensors
  std::vector<EnvPtr> keep;    ///< environments that keys point to
  SmallVector<Guard, 4> guards;
  bool wholeAllowed = true; ///< no indices on the left
  /// An expression may stand in several places, once it is inlined: the guards
  /// around (a condition or an index, and its side), and the loops that run.
  using Guards = std::vector<std::pair<const void *, bool>>;
  using Loops = std::vector<const Idx *>;
  std::map<std::pair<Key, Loops>, bool> proven; ///< reads: in range
  /// Reads and divisors that were checked.
  std::set<std::tuple<Key, Guards, Loops>> checked;
  // What stands as a tensor already, and the guards that it is under.
  using Place = std::pair<Key, Guards>;
  std::map<Place, std::pair<TensorVal, Axes>> tables;
  std::map<Place, std::pair<Reduced, Axes>> reduced;
  std::map<Place, std::pair<TensorVal, Axes>> softmaxes;
  std::map<Key, std::pair<TensorVal, SmallVector<Item>>> splits;
};

/// Where an expression will be evaluated.
struct Body {
  enum Kind {
    Generic, ///< of linalg.generic: plain reads are operands
    Where,   ///< of attn.softmax: indices are block arguments
    Host     ///< no region: scalars of the function itself
  } kind;
  SmallVector<Idx *, 6> loops;
  bool f64 = false; ///< reals are f64

  /// Are these axes some of its loops, each once?
  bool hasLoops(ArrayRef<Idx *> axes) const {
    for (auto [k, idx] : llvm::enumerate(axes))
      if (!llvm::is_contained(loops, idx) ||
          llvm::is_contained(axes.take_front(k), idx))
        return false;
    return true;
  }
};

/// sum of factor * index, plus an offset.
struct Linear {
  std::map<Idx *, Size, ByNumber> factors;
  Size offset;
};

} // namespace heed::sema

#endif // HEED_FRONTEND_HEED_SEMANTICS_EQUATION_H
