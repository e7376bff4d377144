//===- GroupedTerms.h - sums whose lanes take several terms ----*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_GROUPEDTERMS_H
#define HEED_PASSES_SCHEDULE_GROUPEDTERMS_H

#include "dialects/Halide/Target.h"
#include "passes/Schedule/Panels.h"

namespace heed {

/// A sum whose lanes take several terms a step. Its dims are a panel's lane,
/// then those of the sum it stands for from its rows on, the panel's number,
/// and where there are several products their number; its reduction vars are
/// "part", the terms of a step, and those of the sum.
struct GroupedSum {
  mlir::Value sum;
  mlir::Value panel;      ///< what it reads along its columns
  mlir::Value columnSums; ///< of a panel, that it starts from; or null
  bool packsInTask;       ///< the panel has no place yet
  int64_t group;          ///< terms of a step
};

/// The sum y[m, n] = sum_r A[m, r] * B[r, n] in groups of terms. What is
/// particular to the numbers that it multiplies is a class derived from it.
///
/// B is packed in panels [panel][step][column][part], A is copied with its
/// terms along dim 0.
class GroupedTerms {
public:
  /// \p panel is the read of a term that follows its columns. \p packsInTask:
  /// what cannot be packed once is packed where it is used, as a task has all
  /// rows.
  GroupedTerms(KernelInfo &kernel, mlir::Value sum, halide::ReadOp panel,
               PanelShape shape, bool packsInTask,
               const halide::Target &target);
  virtual ~GroupedTerms() = default;

  /// Whether the sum is one of products of two such numbers.
  bool match();
  /// Puts a sum of groups in the place of the sum.
  GroupedSum run();

protected:
  /// Whether \p combine adds such products.
  virtual bool isSum(mlir::Operation *combine) = 0;
  /// The factors of \p term; nothing if it is no product.
  virtual std::optional<std::pair<mlir::Value, mlir::Value>>
  factorsOf(mlir::Value term) = 0;
  /// The narrow number that \p factor widens; null if there is none.
  virtual mlir::Value narrowOf(mlir::Value factor) = 0;
  virtual void chooseGroup() {}
  /// The type of A's copy, and what it has of \p number, of term \p term.
  virtual mlir::Type rowType() = 0;
  virtual mlir::Value rowOf(mlir::OpBuilder &inner, mlir::Value term,
                            mlir::Value number) = 0;
  /// What a panel has of \p number.
  virtual mlir::Value columnOf(mlir::OpBuilder &inner, mlir::Value term,
                               mlir::Value number) = 0;
  /// \p sum and the product of \p x, of A's copy, and \p y, of a panel.
  virtual mlir::Value addProduct(mlir::OpBuilder &at, mlir::Value sum,
                                 mlir::Value x, mlir::Value y) = 0;
  /// Makes columnSums of \p panel; \p ofColumns are the sum's dims that it
  /// follows.
  virtual void addColumns(mlir::Value panel,
                          llvm::ArrayRef<mlir::BlockArgument> ofColumns) {}
  /// What the sum starts from, at the columns' place \p at.
  virtual mlir::Value startOf(mlir::OpBuilder &inner,
                              llvm::ArrayRef<mlir::Value> at) = 0;
  /// Instructions beyond the target's, for "halide.features".
  virtual llvm::StringRef features() { return {}; }

  /// \p value, of term \p term, or 0 behind the last one.
  mlir::Value orZero(mlir::OpBuilder &inner, mlir::Value term,
                     mlir::Value value);
  /// Where the panels hold the term that lane, part, step and the panel's
  /// number say, and \p own of the update's other arguments.
  llvm::SmallVector<mlir::Value>
  placeOf(mlir::Value lane, mlir::Value part, mlir::Value step,
          mlir::Value number,
          llvm::function_ref<mlir::Value(mlir::BlockArgument)> own);
  /// Gives \p func an update over groups of terms.
  halide::UpdateOp
  addUpdate(mlir::Value func,
            llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>
                body);

  KernelInfo &kernel;
  KernelFunc *f;
  halide::UpdateOp update;
  mlir::Block &body;
  halide::ReadOp column; ///< of B
  mlir::Value row;       ///< of A: its narrow number
  PanelShape shape;
  bool packsInTask; ///< what no init packs
  const halide::Target &target;
  mlir::Location loc;
  mlir::OpBuilder b; ///< before the update
  size_t rank, panelDim;
  int64_t group = 2; ///< terms of a step
  Extent terms{}, steps{}, panels{};
  mlir::Value lastColumn;
  mlir::Value columnSums; ///< what the sum starts from, or null
  /// The arguments of the update that A and B follow, but for terms and
  /// columns.
  llvm::SmallVector<mlir::BlockArgument> ofRows, ofPanel;

private:
  /// Whether a copy of A is no larger than A; finds what A follows.
  bool matchRow();
  /// \p term, or the last one if it is beyond that.
  mlir::Value lastTerm(mlir::OpBuilder &inner, mlir::Value term);
  mlir::Value addRows();
  /// B's numbers, panel by panel; past the end they are those of the last
  /// column.
  mlir::Value addPanel();
  mlir::Value schedulePanel(KernelFunc &panel, size_t panelAt);
  mlir::Value addSum(mlir::Value rows, mlir::Value panel);
  /// \p sum at \p args with the term that they name.
  mlir::Value addTerm(mlir::OpBuilder &at, mlir::ValueRange args,
                      mlir::Value sum, mlir::Value rows, mlir::Value panel);
  /// Who reads the old sum reads \p sum.
  void replaceSum(mlir::Value sum);

  /// The argument of the sum's update that counts terms.
  mlir::BlockArgument term() { return body.getArgument(rank); }
};

/// Of signed bytes, summed in i32, and of bf16, summed in f32 by the dot
/// products of the target where it may. Nothing has changed where they are
/// null: it is another sum.
std::unique_ptr<GroupedTerms> byteTerms(KernelInfo &kernel, mlir::Value sum,
                                        halide::ReadOp panel, PanelShape shape,
                                        bool packsInTask,
                                        const halide::Target &target);
std::unique_ptr<GroupedTerms> bfloatTerms(KernelInfo &kernel, mlir::Value sum,
                                          halide::ReadOp panel,
                                          PanelShape shape, bool packsInTask,
                                          const halide::Target &target);

/// Puts a sum of groups in the place of \p sum if it is of one of these kinds.
std::optional<GroupedSum> groupTerms(KernelInfo &kernel, mlir::Value sum,
                                     halide::ReadOp panel, PanelShape shape,
                                     bool packsInTask,
                                     const halide::Target &target);

/// Whether all that \p value, of a term, reads is read at loops alone, each at
/// most once: a copy is then no larger.
bool isReadAtLoops(mlir::Value value);

/// Without such instructions: what a term of \p sum rounds to bf16, and no
/// column has to do with, is rounded before, once.
void storeRoundedRows(KernelInfo &kernel, mlir::Value sum,
                      const halide::Target &target);

/// The loops of \p func inside of a panel, whose steps have \p group terms.
void scheduleGroupedPanel(mlir::OpBuilder &at, mlir::Value func,
                          PanelShape shape, int64_t group);

/// Computes what \p sum needs of a panel in loop \p loop of \p consumer, of
/// which a turn has one: it stays in the cache then.
void placePanel(KernelInfo &kernel, const GroupedSum &sum, mlir::Value consumer,
                llvm::StringRef loop, PanelShape shape);

} // namespace heed

#endif
