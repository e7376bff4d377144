//===- Frames.h - What is under execution -----------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the semantic half of the front end: bodies, loops and scans that
// statements stand in, and what is said about them.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SEMANTICS_FRAMES_H
#define HEED_FRONTEND_HEED_SEMANTICS_FRAMES_H

#include "Equation.h"

namespace heed::sema {

struct Pending { ///< a message that waits until a loop stands
  bool isError;
  Range place;
  std::string message;
  std::vector<Note> notes;
};

struct Result {
  std::string name;
  Binding value;
  Range place;
};
struct Frame { ///< a body under execution
  EnvPtr env;
  Equation *outer = nullptr; ///< it is inlined into this equation
  std::optional<std::vector<Result>> results;
};

struct Extents { ///< a tensor whose shape binds dims
  const ast::Type *type;
  Shape shape;
  std::string name;
  Range place;
};

struct RolledLoop { ///< its variable's atom, its range, and its steps
  unsigned turn;
  Size lo, hi;
  Steps *body;
};

struct OpenScan { ///< its variable, its range, its states
  unsigned turn;
  Size lo, hi;
  const Env *env;
  std::vector<std::string> states;
  Size reversed() const { return lo + hi - 1 - Size::atom(turn); }
};

/// Where a state is first updated: the step of the entry that does it, and how
/// many atoms of sizes are known before.
struct FirstUpdate {
  size_t step, atoms;
};

/// A part of an equation that becomes a tensor of its own, before the rest.
struct Hoisted {
  SmallVector<Idx *, 4> axes;
  size_t firstGuard = 0; ///< it is evaluated under the guards from this one
  Equation::Guards guards;
};

} // namespace heed::sema

#endif // HEED_FRONTEND_HEED_SEMANTICS_FRAMES_H
