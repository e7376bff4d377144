//===- Values.h - What names and expressions stand for ----------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the semantic half of the front end: static values, and what a name
// means.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SEMANTICS_VALUES_H
#define HEED_FRONTEND_HEED_SEMANTICS_VALUES_H

#include "frontend/Common/Resolved.h"
#include "frontend/Heed/Syntax/AST.h"

#include "llvm/ADT/SmallVector.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace heed::sema {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// A string whose parts may be sizes known only inside a rolled loop.
struct Text {
  struct Part {
    std::string text;
    std::optional<Size> size;
  };
  std::vector<Part> parts;
  std::optional<std::string> plain() const;
};

struct Scope;
struct Note { ///< beside a message
  Range place;
  std::string text;
};

struct Thunk {
  const ast::Expr *expr;
  std::shared_ptr<Scope> scope;
};

/// `let`: slices by their static positions. All slices fix the same axes.
struct Collection {
  Ty elem = Ty::F32;
  Shape shape;
  SmallVector<unsigned, 4> fixed;
  std::map<std::vector<int64_t>, TensorVal> slices;
  std::string name;
};

/// What a step of a scan leaves: a tensor of which only the row of this step is
/// there, at `position` of `axis`; of scans in scans one for each of them.
struct Stacked {
  struct Axis {
    unsigned axis;
    unsigned turn; ///< the variable of the scan
    Size position, extent;
    bool isReversed;
  };
  TensorVal row; ///< over the other axes
  SmallVector<Axis, 2> axes;
  Shape shape() const;
};

/// What a name means.
struct Binding {
  enum Kind {
    Poison, ///< an error was said about it
    None,
    Record, ///< of a config
    List,   ///< a table of strings
    Bool,
    Int,
    Real,
    String,
    Table,
    Tensor,
    Scalar, ///< run time: an argument of the model
    Thunk,
    Collection,
    Stacked
  } kind = Poison;
  bool flag = false;
  Size size;
  double real = 0;
  Text text;
  std::shared_ptr<sema::Table> table;       ///< Table; of a List its shape
  std::shared_ptr<std::vector<Text>> texts; ///< List
  const ast::RecordExpr *record = nullptr;
  TensorVal tensor; ///< Scalar: its value and type
  std::shared_ptr<sema::Thunk> thunk;
  std::shared_ptr<sema::Collection> collection;
  std::shared_ptr<sema::Stacked> stacked;
  Range place;        ///< where it was defined
  bool isDim = false; ///< an extent, which `dim` may constrain

  bool isStatic() const { return kind >= None && kind <= Table; }
  /// None, a string, a record: nothing to compute with.
  bool isNoValue() const {
    return kind == None || kind == String || kind == Record || kind == List;
  }
  /// A number or a truth, known or given by a call, that is no tensor.
  bool isNumber() const {
    return kind == Bool || kind == Int || kind == Real || kind == Scalar;
  }
  /// An integer, or a number that a call is given or a state is.
  bool isOneNumber() const {
    return kind == Int || kind == Scalar ||
           (kind == Tensor && tensor.shape.empty());
  }
  /// The value as a real, if it is a number that is known.
  std::optional<double> number() const;
  static Binding of(const Size &size);
  static Binding of(double real);
  static Binding ofBool(bool flag);
  static Binding of(TensorVal tensor, Range place = {});
};

/// The names of one body. `dots`: what `..` stands for.
struct Env {
  const ast::File *file = nullptr;
  std::map<std::string, Binding, std::less<>> names;
  std::optional<Shape> dots;
  std::set<std::string, std::less<>> states; ///< names that lines may update
  /// Names that a loop or a scan had for itself, and what to say of them.
  std::map<std::string, Note, std::less<>> ended;
};
using EnvPtr = std::shared_ptr<Env>;

} // namespace heed::sema

#endif // HEED_FRONTEND_HEED_SEMANTICS_VALUES_H
