//===- Emitter.h - The state of emission ------------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to this room. Steps become ops one after the other; what was decided
// about them lies in them, and nothing can fail.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_EMIT_EMITTER_H
#define HEED_FRONTEND_EMIT_EMITTER_H

#include "frontend/Common/Resolved.h"
#include "frontend/Common/Source.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <set>

namespace heed::sema {

/// A value in a body. `live`: an i1, null if always present.
struct TV {
  mlir::Value value;
  Ty ty = Ty::AnyInt;
  mlir::Value live;
};

/// A region under construction.
struct Code {
  enum Kind { Generic, Where, Host };
  Code(Kind kind, mlir::OpBuilder builder) : kind(kind), builder(builder) {}
  Kind kind;
  mlir::OpBuilder builder;
  mlir::Block *block = nullptr;
  SmallVector<const Idx *, 6> loops;
  std::map<const Idx *, mlir::Value> at;
  SmallVector<mlir::Value, 4> operands;
  SmallVector<mlir::AffineMap, 4> maps;
  bool f64 = false; ///< reals are f64
};

class Emitter {
public:
  Emitter(mlir::MLIRContext &context, const Entry &entry,
          const Sources &sources);
  /// Adds the entry's function to the module.
  mlir::func::FuncOp run(mlir::ModuleOp module);

private:
  using At = mlir::Location;
  using Value = mlir::Value;
  using Values = SmallVector<Value, 2>;

  //===--- Emit.cpp -------------------------------------------------------===//
  At loc(Range range);
  void signature(mlir::func::FuncOp func);
  void outputs(mlir::func::FuncOp func);
  Value stateAfter(const ModelOutput &output);
  mlir::ArrayAttr strings(ArrayRef<std::string> texts);

  //===--- Steps.cpp ------------------------------------------------------===//
  void emit(const Steps &steps);
  void emit(const Collapse &step);
  void emit(const Expand &step);
  void emit(const Zeros &step);
  void emit(const TableData &step);
  void emit(const Evaluate &step);
  void emit(const BindAtom &step);
  void emit(const Parameter &step);
  void emit(const RolledFor &step);
  void emit(const ReadRow &step);
  void emit(const WriteRow &step);
  void emit(const UpdateState &step);
  void emit(const Scan &step);
  /// A tensor of its declared type.
  Value value(const Tensor *tensor);
  /// The same as it lies in memory: a parameter or a state may be of a narrower
  /// type, which whoever reads an element widens.
  Value held(const Tensor *tensor) const { return tensors.at(tensor); }
  /// \p value is \p to, and as wide as \p from.
  void holdAs(const Tensor *from, const Tensor *to, Value value);
  /// The same elements, each as type \p elem. \p like, if given, has the same
  /// extents.
  Value withElements(Value value, mlir::Type elem, Value like = {});

  //===--- SizeCode.cpp ---------------------------------------------------===//
  /// The SSA value of a size; at the entry, once, where that is possible.
  Value emit(const SizeUse &use, Range place);
  Value sizeCode(mlir::OpBuilder &b, At at, const Size &size,
                 const SizeUse &use);
  Value atomCode(mlir::OpBuilder &b, At at, unsigned id, const SizeUse &use);

  //===--- Checks.cpp -----------------------------------------------------===//
  void emit(const Require &step);
  Value condition(const Require &step, mlir::OpBuilder &b,
                  ArrayRef<Value> sizes, ArrayRef<Value> empty);
  void emit(const RequireInRange &step);

  //===--- Bodies.cpp -----------------------------------------------------===//
  using Fill = llvm::function_ref<Values(Code &, ArrayRef<Value>)>;
  Value emptyTensor(mlir::Type elem, ArrayRef<SizeUse> shape, Range place);
  Value filled(mlir::TypedAttr value, ArrayRef<SizeUse> shape, Range place);
  /// A linalg.generic; `fill` writes its body and gives what it yields.
  Values generic(Range place, ArrayRef<Idx *> parallel, ArrayRef<Idx *> reduced,
                 ArrayRef<SizeUse> reducedExtents, ArrayRef<Value> inits,
                 bool f64, Fill fill);
  void emit(const Elementwise &step);
  void emit(const Extreme &step);

  //===--- Reductions.cpp -------------------------------------------------===//
  mlir::TypedAttr neutral(ReduceOp op, Ty ty, bool f64);
  void emit(const Reduction &step);
  Values accumulate(Code &code, const Reduction &step, mlir::TypedAttr zero,
                    ArrayRef<Value> acc);
  Value count(const Reduction &step);
  Values argmax(Code &code, const Reduction &step, Value x, Value counts,
                ArrayRef<Value> acc);
  void emit(const Softmax &step);

  //===--- Nodes.cpp ------------------------------------------------------===//
  TV emit(Code &code, const Node *node);
  TV emitNode(Code &code, const Node &node);
  TV emitMean(Code &code, const Node &node);
  Value concat(Code &code, const Node &node, size_t first);
  Value slices(Code &code, const Node &node, size_t first);
  Value indexValue(Code &code, const Idx *idx, At at);
  TV loaded(Code &code, Value raw, Ty ty, At at);
  Value operand(Code &code, Value tensor, ArrayRef<Idx *> axes, At at);
  TV element(Code &code, const TensorVal &tensor, ArrayRef<Idx *> axes, At at);
  TV extract(Code &code, const Node &node);

  //===--- Operators.cpp --------------------------------------------------===//
  TV emitBinary(Code &code, const Node &node);
  Value ofReals(Code &code, const Node &node, const TV &x, const TV &y);
  Value ofIntegers(Code &code, const Node &node, const TV &x, const TV &y);
  Value divide(Code &code, const Node &node, Value u, Value v);
  TV emitCompare(Code &code, const Node &node);
  TV emitLogic(Code &code, const Node &node);
  TV emitIf(Code &code, const Node &node);
  TV emitCall(Code &code, const Node &node);
  /// scf.if over `types`.
  Values ifElse(Code &code, Value condition, mlir::TypeRange types, At at,
                llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);
  Values underGuards(Code &code, const EnforcedGuards &guards, size_t first,
                     mlir::TypeRange types, At at,
                     llvm::function_ref<Values()> then,
                     llvm::function_ref<Values()> otherwise);
  TV branch(Code &code, Value condition, Ty ty, bool mayBeAbsent, At at,
            llvm::function_ref<TV()> then, llvm::function_ref<TV()> otherwise);

  //===--- Casts.cpp ------------------------------------------------------===//
  TV emitCast(Code &code, Ty to, const TV &tv, At at);
  Value saturated(Code &code, Value x, unsigned bits, At at);

  //===--- Types.cpp ------------------------------------------------------===//
  mlir::Type irType(Ty ty);
  SmallVector<int64_t> extents(ArrayRef<SizeUse> shape);
  mlir::RankedTensorType tensorType(mlir::Type elem, ArrayRef<SizeUse> shape);
  mlir::Type realType(const Code &code);
  mlir::Type bodyType(const Code &code, Ty ty);
  Value realConstant(Code &code, double value, At at);
  Value asReal(Code &code, const TV &tv, At at);
  Value asI64(Code &code, const TV &tv, At at);
  Value asIndex(Code &code, const TV &tv, At at);
  Value asType(Code &code, const TV &tv, Ty ty, At at);
  Value toStorage(Code &code, const TV &tv, Ty ty, At at);
  static Value toType(mlir::OpBuilder &b, Value value, mlir::Type type, At at);
  std::pair<Value, Value> asIntegers(Code &code, const TV &x, const TV &y,
                                     At at);
  static Value boolConstant(mlir::OpBuilder &b, bool value, At at);

  //===--- State ----------------------------------------------------------===//
  const Entry &entry;
  const Sources &sources;
  mlir::OpBuilder builder;         ///< where mathematics goes
  mlir::OpBuilder prologue;        ///< where dims and checks go
  mlir::Operation *mark = nullptr; ///< ends the prologue
  llvm::DenseMap<const Tensor *, Value> tensors;
  /// Declared types of those that are held in a narrower one.
  llvm::DenseMap<const Tensor *, Ty> narrow;
  llvm::DenseMap<unsigned, Value> atoms;
  std::map<Size, Value> atEntry; ///< sizes in the prologue
  /// Nodes whose steps are done: one may be evaluated in two bodies.
  std::set<const Node *> seen;
};

} // namespace heed::sema

#endif // HEED_FRONTEND_EMIT_EMITTER_H
