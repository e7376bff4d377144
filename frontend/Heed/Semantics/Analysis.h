//===- Analysis.h - The state of semantic analysis --------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to this room. An equation is treated in two walks over its tree:
// `infer` resolves names, types every expression, folds static values and
// collects what the indices range over; after `solve`, the `resolve...`
// functions take every decision and put it into nodes and steps (Resolved.h).
// Statements execute in order against an Env; functions are inlined, static
// control is decided here. No IR is built.
//
// A scalar argument of a function, and a name that such a function binds, is a
// Thunk: an expression with its scope, read wherever the name stands. So an
// inlined body may become part of several tensors.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SEMANTICS_ANALYSIS_H
#define HEED_FRONTEND_HEED_SEMANTICS_ANALYSIS_H

#include "Equation.h"
#include "Knowledge.h"
#include "frontend/Common/Builtins.h"
#include "support/Format.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace heed::sema {
class Analysis : Knowledge {
public:
  Analysis(Entry &entry, const Program &program, const FrontendOptions &options,
           const Sources &sources, Diagnostics &diags,
           std::set<std::string> &usedSettings);
  /// One entry of the model; null: the model has none, and is one.
  bool run(const ast::ModelDecl &decl, const ast::EntryDecl *own);

private:
  using Key = Equation::Key;

  //===--- Messages (Analysis.cpp) ----------------------------------------===//
  /// Always false, for `return error(...)`.
  bool error(Range place, const llvm::Twine &message,
             ArrayRef<Note> notes = {});
  void warn(Range place, const llvm::Twine &message);
  void flushPending();
  std::string hint(StringRef name, llvm::ArrayRef<StringRef> known);
  std::string str(ArrayRef<Size> shape);
  std::string describe(const Size &size);
  std::string kindOf(const Info &info);
  std::string kindOf(const Binding &binding);
  static std::string escape(StringRef text);
  static std::string unquoted(StringRef text);
  /// The source text of an expression without its blanks.
  static std::string written(const ast::Expr &expr);

  //===--- Model.cpp ------------------------------------------------------===//
  const ast::Expr *setting(StringRef name);
  bool bindConstant(const ast::Argument &arg, const EnvPtr &env);
  void bindDimsOfWeights(const ast::ModelDecl &model, const EnvPtr &env);
  bool isLeftAway(const ast::Argument &arg);
  bool fixDims(const ast::Expr &extent, const EnvPtr &env);
  bool declareInput(const ast::Argument &arg, const EnvPtr &env);
  bool bindInput(const ast::Argument &arg, ModelInput &input, const EnvPtr &env,
                 std::vector<Extents> &shapes);
  bool bindKnownDim(const ast::DimStmt &dim, const EnvPtr &env);
  bool bindSignature(const ast::ModelDecl &decl,
                     ArrayRef<const ast::Argument *> args, const EnvPtr &env);
  Size extentOf(const Tensor *tensor, unsigned axis, StringRef name,
                bool inLoop, Range place);
  std::vector<std::string> dimNames(ArrayRef<Size> shape);
  bool fixedNumber(const ast::Expr &expr, StringRef what, const EnvPtr &env,
                   ModelInput &input);
  bool finish(const ast::Name &name, bool isEntry, Frame &frame);
  bool checkResults(ArrayRef<ast::TypePtr> types, const EnvPtr &env);
  static Ty numberType(const Binding &number);
  std::optional<TensorVal> numberTensor(const Binding &number, Ty type,
                                        Range place);
  std::optional<TensorVal> resultTensor(const Binding &binding, Range place);

  //===--- Statements.cpp -------------------------------------------------===//
  bool execute(const std::vector<ast::StmtPtr> &stmts, Frame &frame);
  bool execute(const ast::Stmt &stmt, Frame &frame);
  bool executeBind(const ast::BindStmt &stmt, Frame &frame);
  bool executeReturn(const ast::ReturnStmt &stmt, Frame &frame);
  bool executeParam(const ast::ParamStmt &stmt, Frame &frame);
  bool executeDim(const ast::DimStmt &stmt, Frame &frame);
  bool executeLet(const ast::LetStmt &stmt, Frame &frame);
  bool executeIf(const ast::IfStmt &stmt, Frame &frame);

  //===--- Parameters.cpp -------------------------------------------------===//
  using Weight = WeightIndex::value_type; ///< its name in the file, its shape
  const Weight *findWeight(const ast::ParamStmt &stmt,
                           ArrayRef<std::string> names);
  bool eachTurn(ArrayRef<std::string> names, ArrayRef<Size> indices,
                size_t depth,
                llvm::function_ref<bool(ArrayRef<std::string>)> f);
  Steps &stepsOf(ArrayRef<Size> indices);
  std::vector<const Weight *> findWeights(const ast::ParamStmt &stmt,
                                          ArrayRef<std::string> names,
                                          ArrayRef<Size> indices, size_t rank);
  struct ParamAxis;
  bool parameterDims(const ast::ParamStmt &stmt, const EnvPtr &env,
                     ArrayRef<const Weight *> weights,
                     llvm::MutableArrayRef<ParamAxis> axes);
  Ty heldType(Ty ty, HeldType type);
  Ty heldType(Ty ty, ArrayRef<const Weight *> weights);
  bool bindParameter(const ast::ParamStmt &stmt, Frame &frame, Ty ty, Ty held,
                     const std::vector<std::string> &names,
                     ArrayRef<Size> indices, ArrayRef<ParamAxis> axes);
  bool parameter(const ast::ParamStmt &stmt, Frame &frame);

  //===--- BoundNames.cpp -------------------------------------------------===//
  bool changes(const ast::FnDecl &fn, StringRef state);
  void boundNames(const std::vector<ast::StmtPtr> &stmts, const ast::File &file,
                  std::vector<std::string> &names);
  void noteEnded(const std::vector<ast::StmtPtr> &stmts, StringRef text,
                 Range place, Env &env);
  void poison(const ast::Stmt &stmt, Env &env);

  //===--- Loops.cpp ------------------------------------------------------===//
  std::optional<TensorVal> namedInteger(const ast::Expr &expr, const Env &env);
  std::optional<Size> countValue(const ast::Expr &expr, const EnvPtr &env,
                                 const llvm::Twine &what);
  std::optional<std::pair<Size, Size>>
  loopRange(StringRef what, const ast::Name &var, const ast::Expr &lo,
            const ast::Expr &hi, const EnvPtr &env);
  bool executeFor(const ast::ForStmt &stmt, Frame &frame);
  using NumberTypes = std::map<std::string, Ty>; ///< by names
  void holdNumbers(const NumberTypes &types, Env &env);
  bool asOneStep(const ast::ForStmt &stmt, const Size &lo, const Size &hi,
                 Frame &frame, NumberTypes &types, bool &again);
  bool carry(const ast::ForStmt &stmt, const Env &env, RolledFor &step,
             std::vector<std::string> &carried, NumberTypes *types);
  std::string changed(StringRef name, const Binding &now, const TensorVal &old);
  bool rolledFor(const ast::ForStmt &stmt, const Size &lo, const Size &hi,
                 Frame &frame, RolledFor &step, NumberTypes *types);
  bool unrolledFor(const ast::ForStmt &stmt, int64_t lo, int64_t hi,
                   Frame &frame);
  bool surelyRuns(const RolledLoop &loop) const;

  //===--- Scans.cpp ------------------------------------------------------===//
  bool executeScan(const ast::ScanStmt &stmt, Frame &frame);
  std::optional<TensorVal> startOf(const ast::Carried &state,
                                   const EnvPtr &env);
  /// Does a state of type `to` take values of type `from` as they are, or
  /// rounded? What makes an integer of a real, or a number of a truth, says so.
  static bool takes(Ty to, Ty from) {
    return (from == Ty::Bool) == (to == Ty::Bool) &&
           (isReal(to) || !isReal(from));
  }
  const Tensor *afterStep(const ast::Name &state, const TensorVal &start,
                          const Binding &now, StringRef when);
  void stackRows(const OpenScan &scan, const Env &env, Scan &step,
                 std::map<std::string, Binding> &stacks);
  bool isStep(const Size &size);
  bool isState(StringRef name, const Env &env);
  std::optional<Binding> asRow(const TensorVal &row,
                               ArrayRef<std::optional<Size>> positions,
                               const Env &env, Range place);
  std::optional<TensorVal> updated(const TensorVal &state, const TensorVal &row,
                                   ArrayRef<std::optional<Size>> positions,
                                   StringRef name, Range place);
  std::optional<TensorVal> rowOfStep(const ast::ReadExpr &expr,
                                     const Stacked &stacked, const Scope &scope,
                                     Equation &eq,
                                     llvm::SmallVectorImpl<Item> &items);
  bool takeRow(const ast::ReadExpr &expr, const Scope &scope, Equation &eq,
               llvm::SmallVectorImpl<Item> &items, TensorVal &tensor);

  //===--- States.cpp -----------------------------------------------------===//
  struct UpdatePlace;
  bool addIndices(const ast::Expr &expr, Scope &scope, Equation &eq,
                  llvm::SmallVectorImpl<Idx *> &indices);
  bool isEarly(const Size &size);
  bool isEarly(const ast::Expr &expr, const Scope &scope, Equation &eq);
  bool isInjective(const ast::Expr &expr, const Idx *idx, const Scope &scope,
                   Equation &eq, bool isAlone);
  bool areDigits(ArrayRef<UpdatePlace> places, const Idx *idx,
                 const Scope &scope, Equation &eq);
  bool areDistinct(ArrayRef<UpdatePlace> places, ArrayRef<Idx *> indices,
                   bool isGuarded, const Scope &scope, Equation &eq);
  std::optional<UpdateState::Position> overIndices(const ast::Expr &expr, Ty ty,
                                                   const Scope &scope,
                                                   Equation &eq,
                                                   ArrayRef<Idx *> indices);
  bool resolvePlaces(const ast::Left &left, const Shape &shape,
                     ArrayRef<UpdatePlace> places, ArrayRef<Idx *> indices,
                     const Scope &scope, bool early, Equation &eq,
                     UpdateState &step);
  bool placesOf(const ast::Left &left, const Shape &shape, Scope &scope,
                Equation &eq, std::vector<UpdatePlace> &places,
                llvm::SmallVectorImpl<Idx *> &indices);
  bool executeCall(const ast::CallStmt &stmt, Frame &frame);
  std::optional<std::vector<Result>>
  executeCall(const ast::FnDecl &fn, const ast::CallExpr &expr, Frame &frame);
  bool executeCall(const ast::FnDecl &fn, const ast::CallExpr &expr,
                   Frame &frame, Binding &result);
  bool executeUpdate(const ast::Left &left, const ast::Expr &right,
                     const ast::Expr *where, Frame &frame, Binding &result);
  bool isModelState(StringRef name, const Env &env);
  bool assign(const ast::Name &name, Binding value, Env &env);
  bool finishStates(Frame &frame);

  //===--- Equations.cpp --------------------------------------------------===//
  bool lowerWhole(const ast::Expr &right, const Scope &scope, Equation *outer,
                  Binding &result);
  std::optional<TensorVal> lowerRight(const ast::Expr &right,
                                      const Scope &scope, Equation &eq,
                                      ArrayRef<Idx *> axes);
  std::optional<Ty> inferParts(const ast::ConcatExpr &expr, const Scope &scope,
                               Equation &eq, std::deque<Scope> &scopes,
                               llvm::SmallVectorImpl<Idx *> &own);
  bool solveJoined(const ast::ConcatExpr &expr, Idx &joined,
                   ArrayRef<Idx *> parts, Equation &eq);
  std::optional<TensorVal> lowerConcat(const ast::ConcatExpr &expr,
                                       Scope &scope, Equation &eq,
                                       ArrayRef<Idx *> axes);
  TensorVal convert(const TensorVal &tensor, Ty elem, Range place);
  bool indexed(const ast::Expr &expr, const Scope &scope, Equation *outer);
  bool isScalarBody(const ast::Expr &expr, const Scope &scope);

  //===--- LeftSides.cpp -------------------------------------------------===//
  struct Digit;
  struct LeftAxis;
  bool executeEquation(const ast::Left &left, const ast::Expr &right,
                       const ast::Expr *where, Frame &frame, Binding &result);
  bool isPosition(const ast::LeftIndex &item, const Env &env);
  bool hasPositions(const ast::Left &left, const EnvPtr &env);
  Idx *leftIndex(StringRef name, Range place, const ast::Expr *extent,
                 Scope &scope, Equation &eq);
  bool leftDots(const ast::LeftIndex &item, Scope &scope, Equation &eq,
                std::vector<LeftAxis> &axes);
  enum class Target { Tensor, Collection, State };
  bool fixPosition(const Size &position, Range place, LeftAxis &axis);
  bool leftAxis(const ast::LeftIndex &item, Target target, Scope &scope,
                Equation &eq, LeftAxis &axis);
  bool fitsCollection(const ast::Left &left, const Collection &collection,
                      ArrayRef<LeftAxis> axes, Equation &eq);
  std::optional<TensorVal> rightSide(const ast::Expr &right, Scope &scope,
                                     Equation &eq, ArrayRef<LeftAxis> axes);
  bool executeRow(const ast::Left &left, const ast::Expr &right,
                  ArrayRef<LeftAxis> axes, Target target, Scope &scope,
                  Equation &eq, Binding &result);
  std::optional<TensorVal> rightSide(const ast::Expr &right, Scope &scope,
                                     Equation &eq, ArrayRef<Idx *> indices);
  void runOverState(const ast::Left &left, ArrayRef<LeftAxis> axes, bool ifOpen,
                    const Env &env, Equation &eq);
  std::optional<Size> mergedExtent(const LeftAxis &axis, const EnvPtr &env);
  bool mergeAxes(const ast::Left &left, ArrayRef<LeftAxis> axes,
                 const EnvPtr &env, TensorVal &tensor);
  bool radix(const ast::Expr &expr, const EnvPtr &env,
             const std::vector<const ast::Expr *> &by,
             llvm::SmallVectorImpl<Digit> &digits);
  bool intoCollection(const ast::Left &left,
                      const std::shared_ptr<Collection> &collection,
                      TensorVal tensor, ArrayRef<std::optional<int64_t>> fixed,
                      Binding &result);

  //===--- Statics.cpp ----------------------------------------------------===//
  std::optional<Binding> lookupEntry(const Env &env, StringRef name);
  std::optional<Binding> lookup(const Env &env, StringRef name);
  std::vector<StringRef> visible(const Env &env);
  /// The static value of an expression; an error names `what`.
  std::optional<Binding> staticValue(const ast::Expr &expr, const EnvPtr &env,
                                     const llvm::Twine &what);
  std::optional<Size> sizeValue(const ast::Expr &expr, const EnvPtr &env,
                                const llvm::Twine &what);
  std::optional<Binding> constant(const ast::Expr &expr, const EnvPtr &env,
                                  const llvm::Twine &what);
  std::optional<Text> textValue(const ast::StringExpr &expr, const EnvPtr &env);
  bool flatten(const ast::Expr &expr, const EnvPtr &env, unsigned depth,
               Table &table, std::vector<Binding> &values);

  //===--- Folding.cpp ---------------------------------------------------===//
  bool foldBinary(const ast::BinaryExpr &expr, const Info &a, const Info &b,
                  Info &info);
  std::optional<bool> foldCompare(ast::CompareOp op, const Binding &a,
                                  const Binding &b);

  //===--- Dims.cpp -------------------------------------------------------===//
  bool bindShapes(ArrayRef<Extents> tensors, const EnvPtr &env, bool isModel);
  bool unfoldDots(const Extents &tensor, Env &env, bool isModel,
                  llvm::SmallVectorImpl<const ast::Expr *> &out);
  bool bindExtent(const ast::Expr &expr, const Size &actual,
                  const Extents &tensor, unsigned axis, const EnvPtr &env);
  bool requireDim(const Size &dim, Range place, const std::string &what);
  bool solveDim(const ast::Expr &expr, const ast::NameExpr &unknown,
                const Size &actual, const EnvPtr &env, const std::string &what);
  std::optional<Shape> shapeOf(const ast::Type &type, const EnvPtr &env,
                               const llvm::Twine &what);
  void freeNames(const ast::Expr &expr, const Env &env,
                 std::vector<const ast::NameExpr *> &names);
  bool isAlwaysLess(const Size &a, const Size &b);
  /// Proves a == b, or leaves one check per call, or says what differs.
  bool requireEqual(const Size &a, const Size &b, Range place,
                    const llvm::Twine &what, ArrayRef<Note> notes,
                    const llvm::Twine &atRunTime = "");
  void requireLessEqual(const Size &a, const Size &b, Range place,
                        const llvm::Twine &message);
  void requirePositive(const Size &size, Range place, const llvm::Twine &op);
  void require(Require::Kind kind, ArrayRef<Size> of, Range place,
               const llvm::Twine &message, ArrayRef<Size> values,
               ArrayRef<Size> empty = {}, bool low = false);

  //===--- BuiltinCalls.cpp -----------------------------------------------===//
  static bool isBuiltin(StringRef name);
  bool inferExtent(const ast::CallExpr &expr, const Scope &scope, Info &info);
  bool inferKind(const ast::CallExpr &expr, const Scope &scope, Info &info);
  bool inferText(const ast::CallExpr &expr, const Scope &scope, Info &info);
  bool inferLog2(const ast::CallExpr &expr, const Info &arg, Info &info);
  bool inferCast(const ast::CallExpr &expr, ast::ElementType to,
                 const Info &arg, Info &info);
  bool inferBuiltin(const ast::CallExpr &expr, const Scope &scope, Equation &eq,
                    bool weak, Info &info);
  void foldBuiltin(const Builtin &row, ArrayRef<const Info *> args, Info &info);

  //===--- Calls.cpp ------------------------------------------------------===//
  bool inferCall(const ast::CallExpr &expr, const Scope &scope, Equation &eq,
                 bool weak, Info &info);
  bool mayCall(const ast::FnDecl &fn, const ast::CallExpr &expr);
  std::optional<std::vector<Result>> call(const ast::FnDecl &fn,
                                          const ast::CallExpr &expr,
                                          const Scope &scope, Equation &eq);
  std::optional<SmallVector<const ast::Expr *>>
  givenArguments(const ast::FnDecl &fn, const ast::CallExpr &expr);
  bool bindArgument(const ast::FnDecl &fn, const ast::CallExpr &expr,
                    const ast::Argument &formal, const ast::Expr *given,
                    const Scope &scope, Equation &eq, const EnvPtr &env,
                    std::vector<Extents> &shapes);
  const ast::FnDecl *changesStates(const ast::Expr &expr,
                                   const ast::File &file);
  bool bindState(const ast::FnDecl &fn, const ast::Argument &formal,
                 const ast::Expr *given, const ast::CallExpr &expr,
                 const Scope &scope, const EnvPtr &env,
                 std::vector<Extents> &shapes);
  bool argument(const ast::Argument &formal, const ast::Expr &actual,
                const Scope &scope, Equation &eq, const std::string &what,
                Binding &binding);
  /// The tensor that an expression without indices stands for.
  std::optional<TensorVal> materialise(const ast::Expr &expr,
                                       const Scope &scope);
  std::optional<TensorVal> tensorOf(const Binding &binding, Range place);

  //===--- Infer.cpp ------------------------------------------------------===//
  const Info *infer(const ast::Expr &expr, const Scope &scope, Equation &eq,
                    bool weak = false);
  bool inferNode(const ast::Expr &expr, const Scope &scope, Equation &eq,
                 bool weak, Info &info);
  bool unknownName(const ast::NameExpr &expr, const Scope &scope,
                   const Equation &eq, bool isPosition);
  bool inferName(const ast::NameExpr &expr, const Scope &scope, Equation &eq,
                 bool weak, Info &info);
  bool inferBinding(const Binding &binding, const ast::Expr &expr, Equation &eq,
                    bool weak, Info &info);
  bool merge(Info &into, const Info &from, Range place);
  bool number(const Info &info, Range place, const llvm::Twine &what);
  bool boolean(const Info &info, Range place, const llvm::Twine &what);
  const Info &info(const ast::Expr &expr, const Scope &scope,
                   const Equation &eq);

  //===--- InferOperators.cpp --------------------------------------------===//
  bool inferBinary(const ast::BinaryExpr &expr, const Scope &scope,
                   Equation &eq, bool weak, Info &info);
  bool inferCompare(const ast::CompareExpr &expr, const Scope &scope,
                    Equation &eq, bool weak, Info &info);
  bool inferIf(const ast::IfExpr &expr, const Scope &scope, Equation &eq,
               bool weak, Info &info);

  //===--- InferTensors.cpp ----------------------------------------------===//
  std::optional<Binding> readable(const ast::ReadExpr &expr, const Scope &scope,
                                  Equation &eq, bool weak);
  void inferPlainIndex(const ast::ReadExpr &expr, unsigned k, const Item &axis,
                       const Size &extent, const Scope &scope, Equation &eq,
                       bool weak, Info &info);
  const Info *inferPosition(const ast::ReadExpr &expr,
                            const ast::Expr &position, const Scope &scope,
                            Equation &eq, bool weak, Info &info);
  bool inferEntry(const ast::ReadExpr &expr, const Binding &binding, bool known,
                  int64_t flat, bool isSlice, Info &info);
  bool inferRead(const ast::ReadExpr &expr, const Scope &scope, Equation &eq,
                 bool weak, Info &info);
  bool inferReduce(const ast::ReduceExpr &expr, const Scope &scope,
                   Equation &eq, bool weak, Info &info);
  bool inferSoftmax(const ast::SoftmaxExpr &expr, const Scope &scope,
                    Equation &eq, bool weak, Info &info);

  //===--- Indices.cpp ---------------------------------------------------===//
  Idx *newIndex(StringRef name, Range place, const ast::Expr *extent,
                const Scope &scope, Equation &eq);
  bool items(const ast::ReadExpr &expr, const Scope &scope,
             llvm::SmallVectorImpl<Item> &out);
  Scope inside(const ast::ReduceExpr &expr, const Scope &scope, Equation &eq);
  bool isKept(const Idx *idx, const Size &extent, Equation &eq);
  bool solveDeclared(const Idx &idx, ArrayRef<const Equation::Use *> uses);
  bool solveFrom(Idx &idx, ArrayRef<const Equation::Use *> rule);
  /// Gives every index its range.
  bool solve(Equation &eq);

  //===--- Bounds.cpp ----------------------------------------------------===//
  std::optional<Linear> linear(const ast::Expr &expr, const Scope &scope,
                               Equation &eq);
  Bounds bounds(const ast::Expr &expr, const Scope &scope, Equation &eq);
  const ast::Expr *takenBranch(const ast::IfExpr &expr, const Scope &scope,
                               const Equation &eq);
  SmallVector<unsigned> positiveAtoms(ArrayRef<const Idx *> used);

  //===--- Reach.cpp ------------------------------------------------------===//
  struct Reach {
    Points points;
    std::map<const Idx *, unsigned, ByNumber> ids;
  };
  unsigned variable(Reach &reach, const Idx *idx);
  Reach reach(Equation &eq, bool guarded);
  Form opaque(const ast::Expr &expr, const Scope &scope, Equation &eq,
              Reach &reach);
  Form form(const ast::Expr &expr, const Scope &scope, Equation &eq,
            Reach &reach);
  Disjunction holds(const ast::Expr &expr, bool positive, const Scope &scope,
                    Equation &eq, Reach &reach);

  //===--- Ranges.cpp -----------------------------------------------------===//
  Shape shapeOf(const Binding &binding);
  bool proven(const Item &item, const Size &extent, const Scope &scope,
              Equation &eq);
  bool provenRead(const ast::ReadExpr &expr, const Scope &scope, Equation &eq);
  bool checkRead(const ast::ReadExpr &expr, const Scope &scope, Equation &eq);
  bool checkAxis(const ast::ReadExpr &expr, unsigned axis, const Item &item,
                 const Size &extent, const Scope &scope, Equation &eq);
  Form form(const Item &item, const Scope &scope, Equation &eq, Reach &reach);
  bool firstUnderGuards(const ast::Expr &expr, const Scope &scope,
                        Equation &eq);
  void requireNone(const Points::Answer &answer, Range place,
                   const llvm::Twine &message, ArrayRef<Size> values);
  Size overLoops(Size end, bool greatest);
  bool checkRange(const Size &first, const Size &last, const Size &extent,
                  const std::string &what, Range place);
  bool checkData(const Item &item, bool under, bool over, const Size &extent,
                 SmallVector<Idx *, 4> used, const std::string &what,
                 Range place, const Scope &scope, Equation &eq);
  const Tensor *extreme(Extreme::Kind kind, ArrayRef<Idx *> axes,
                        ArrayRef<Idx *> ids, Range place,
                        llvm::function_ref<Node *(Body &)> fill);
  bool checkDivisor(const ast::BinaryExpr &expr, const Scope &scope,
                    Equation &eq);

  //===--- Resolve.cpp ----------------------------------------------------===//
  std::optional<Ty> tyOf(ast::ElementType type, Range place);
  Node *newNode(Node::Kind kind, Ty ty, Range place,
                ArrayRef<const Node *> operands = {});
  /// What `make` puts into `sink` happens before its node is evaluated.
  Node *collecting(llvm::function_ref<Node *()> make);
  Node *resolve(Body &body, const ast::Expr &expr, const Scope &scope,
                Equation &eq);
  Node *resolveNode(Body &body, const ast::Expr &expr, const Scope &scope,
                    Equation &eq);
  Node *fixedNode(const Binding &binding, Range place);
  Node *indexNode(const Idx *idx, Range place, Ty ty = Ty::AnyInt);
  Node *elementNode(const TensorVal &tensor, ArrayRef<Idx *> axes, Range place);
  Node *resolveBinding(Body &body, const Binding &binding,
                       const ast::Expr &expr, Equation &eq);
  Node *resolveTable(Body &body, const ast::Expr &expr, const Scope &scope,
                     Equation &eq);
  Node *resolveCall(Body &body, const ast::CallExpr &expr, const Scope &scope,
                    Equation &eq);

  //===--- ResolveOperators.cpp -------------------------------------------===//
  Node *resolveBinary(Body &body, const ast::BinaryExpr &expr,
                      const Scope &scope, Equation &eq);
  Node *resolveCompare(Body &body, const ast::CompareExpr &expr,
                       const Scope &scope, Equation &eq);
  Node *resolveLogic(Body &body, const ast::LogicExpr &expr, const Scope &scope,
                     Equation &eq);
  Node *resolveIf(Body &body, const ast::IfExpr &expr, const Scope &scope,
                  Equation &eq);

  //===--- Reads.cpp ------------------------------------------------------===//
  Node *resolveRead(Body &body, const ast::ReadExpr &expr, const Scope &scope,
                    Equation &eq);
  TensorVal tableTensor(const std::shared_ptr<Table> &table, bool f64,
                        Range place);
  std::optional<SmallVector<std::pair<int64_t, int64_t>, 4>>
  reached(const Collection &collection, ArrayRef<Item> items,
          const Scope &scope, Equation &eq, Range place);
  std::optional<TensorVal> assemble(const Collection &collection,
                                    ArrayRef<std::pair<int64_t, int64_t>> box,
                                    Range place);
  const TensorVal *slice(const Collection &collection, ArrayRef<Item> items,
                         const Scope &scope, Equation &eq);
  std::optional<TensorVal> source(const ast::ReadExpr &expr, const Scope &scope,
                                  Equation &eq, bool f64,
                                  llvm::SmallVectorImpl<Item> &items);
  bool split(const ast::ReadExpr &expr, const Scope &scope, Equation &eq,
             llvm::SmallVectorImpl<Item> &items, TensorVal &tensor);
  std::optional<SmallVector<Idx *, 4>> wholeAxes(ArrayRef<Item> items,
                                                 const TensorVal &tensor);
  std::optional<TensorVal> plainRead(const ast::Expr &expr, const Scope &scope,
                                     Equation &eq, ArrayRef<Idx *> axes,
                                     Ty elem);

  //===--- Definitions.cpp ------------------------------------------------===//
  const Tensor *newTensor();
  Idx &newIdx(Equation &eq);
  Shape shapeOf(ArrayRef<Idx *> axes);
  SizeUses uses(ArrayRef<Size> all);
  void evaluate(const Size &size, Range place);
  static Equation::Loops loopsOf(ArrayRef<Idx *> a, ArrayRef<Idx *> b = {});
  const Node *bodyNode(ArrayRef<Idx *> axes, ArrayRef<Idx *> ids, bool f64,
                       llvm::function_ref<Node *(Body &)> fill);
  /// `withLive`: also a tensor that says where the elements are present.
  std::optional<TensorVal> elementwise(ArrayRef<Idx *> axes, Ty elem,
                                       Range place, bool f64,
                                       llvm::function_ref<Node *(Body &)> fill,
                                       bool withLive = false);
  bool underGuards(Body &body, Equation &eq, size_t first, EnforcedGuards &out,
                   llvm::function_ref<bool()> then);
  Node *underGuards(Body &body, Equation &eq, size_t first, Ty ty, Range place,
                    llvm::function_ref<Node *()> then, const Node *otherwise);

  //===--- Reductions.cpp ------------------------------------------------===//
  /// The type of the accumulators of a reduction over values of a type.
  static Ty accumulator(Ty ty);
  std::optional<Reduced> reduction(const ast::ReduceExpr &expr,
                                   const Scope &scope, Equation &eq,
                                   ArrayRef<Idx *> axes, size_t firstGuard,
                                   bool f64);
  Node *resolveReduced(Body &body, const ast::ReduceExpr &expr,
                       const Scope &scope, Equation &eq);
  void inLoopOrder(llvm::SmallVectorImpl<Idx *> &axes, const Body &body);

  //===--- Softmax.cpp ---------------------------------------------------===//
  std::optional<TensorVal> partOfSoftmax(const ast::Expr &part, Range place,
                                         const Scope &scope, Equation &eq,
                                         ArrayRef<Idx *> axes,
                                         size_t firstGuard);
  std::optional<TensorVal> softmax(const ast::SoftmaxExpr &expr,
                                   const Scope &scope, Equation &eq,
                                   ArrayRef<Idx *> axes, size_t firstGuard);
  Node *resolveNestedSoftmax(Body &body, const ast::SoftmaxExpr &expr,
                             const Scope &scope, Equation &eq);

  //===--- Guards.cpp ----------------------------------------------------===//
  bool anyPart(const ast::Expr &expr, const Scope &scope, Equation &eq,
               llvm::function_ref<bool(const ast::Expr &, const Scope &)> of);
  /// Does `expr` hold a read that only a guard may keep in range?
  bool needsGuard(const ast::Expr &expr, const Scope &scope, Equation &eq);
  Hoisted hoist(ArrayRef<const ast::Expr *> parts, const Scope &scope,
                Equation &eq, ArrayRef<Idx *> used, ArrayRef<Idx *> bound);
  SmallVector<const Idx *, 4> neededLoops(ArrayRef<const ast::Expr *> parts,
                                          const Scope &scope, Equation &eq,
                                          const Equation::Loops &own);
  void addGuardIndices(Equation &eq, llvm::SmallVectorImpl<Idx *> &used);
  static Equation::Guards guardsFrom(const Equation &eq, size_t first);
};

} // namespace heed::sema

#endif // HEED_FRONTEND_HEED_SEMANTICS_ANALYSIS_H
