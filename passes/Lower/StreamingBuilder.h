//===- StreamingBuilder.h - funcs of streaming attention --------*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_STREAMINGBUILDER_H
#define HEED_PASSES_LOWER_STREAMINGBUILDER_H

#include "dialects/Attn/Normaliser.h"
#include "passes/Lower/StreamingAttention.h"
#include "passes/Lower/TileMask.h"
#include "passes/Lower/TilePlace.h"
#include "passes/Schedule/StreamingOps.h"
#include "passes/Schedule/StreamingPlan.h"

namespace heed::streaming {

/// The tiles of \p form in the plan of \p op.
StreamingPlan planOf(attn::OnlineAttentionOp op, const halide::Target &target,
                     attn::Form form);

/// Whether what \p where says of a pair takes more than a comparison of indices
/// or of two numbers.
bool isDear(Region &where);

class Streaming {
public:
  Streaming(OpBuilder &b, StreamedAttention streamed, const IRMapping &scalars,
            TensorReads &tensors, const halide::Target &target, attn::Form form,
            const MaskBounds *bounds, MaskTiling &tiling)
      : b(b), streamed(streamed), op(streamed.online), finish(streamed.finish),
        loc(op.getLoc()), scalars(scalars), tensors(tensors), bounds(bounds),
        tiling(tiling), form(form), plan(planOf(op, target, form)),
        normaliser(attn::Normaliser::of(op)),
        bounded(form == attn::Form::Bounded),
        shifted(op.getMaximum() && !bounded), summed(op.getSum() != nullptr),
        marked(shifted && (target.isGPU() || isDear(op.getWhere()))),
        anySign(!normaliser.isNonNegative || !op.getWeight().empty()) {}

  FailureOr<StreamingResults> run();

private:
  using Body = llvm::function_ref<SmallVector<Value>(Ops &, ArrayRef<Value>)>;
  /// A func over `own` vars and then the tile and the batch; \p body gets all
  /// of them.
  halide::FuncOp func(StringRef name, ArrayRef<StringRef> own,
                      unsigned elements, Body body) {
    return func(name, own, SmallVector<Type>(elements, b.getF32Type()), body);
  }
  halide::FuncOp func(StringRef name, ArrayRef<StringRef> own,
                      ArrayRef<Type> types, Body body);
  /// What an update makes of a place of its func and of its loops.
  using UpdateBody = llvm::function_ref<SmallVector<Value>(
      Ops &, ArrayRef<Value> at, ArrayRef<Value> loops)>;
  halide::UpdateOp update(halide::FuncOp func, ArrayRef<StringRef> rvars,
                          ArrayRef<Value> extents, UpdateBody body);
  void fill(halide::UpdateOp update, Region &region, UpdateBody body);
  using Condition = llvm::function_ref<Value(Ops &, ArrayRef<Value> at,
                                             ArrayRef<Value> loops)>;
  /// \p update is of places where \p condition holds.
  void where(halide::UpdateOp update, Condition condition);

  /// \p at is the tile and the batch, and the block where the func has one.
  using ElementOf = llvm::function_ref<Value(Ops &, Value row, Value column,
                                             const TilePlace &at)>;
  /// A func \p name over the \p own vars (lane, other), or (lane, other,
  /// block), that is `element(row = lane, column = other)`, by way of
  /// transposed squares, whose funcs go to \p steps. Writer::transpose
  /// schedules it.
  halide::FuncOp turned(StringRef name, ArrayRef<StringRef> own,
                        SmallVector<halide::FuncOp> &steps, ElementOf element);
  Extent size(unsigned dim);
  Value query(Ops &o, const TilePlace &at) {
    return o.mini(o.addi(o.muli(at.tile, o.i(plan.tile)), at.lane),
                  o.last(queries));
  }
  /// Loop dims at a place: batch, query and key; the others are filled in by
  /// the caller.
  SmallVector<Value> place(Ops &o, ArrayRef<Value> batch, Value i, Value j);
  /// The batch dims, innermost first, at a place of a func's.
  SmallVector<Value> batchAt(Ops &o, ArrayRef<Value> batch);
  /// \p dims of an operand with keys: one place for all members of a group.
  SmallVector<Value> ofGroup(Ops &o, ArrayRef<Value> dims,
                             ArrayRef<Value> batch);
  /// \p row, if given, is the position on the map's axis of offsets.
  Value operand(Ops &o, Value tensor, AffineMap map, ArrayRef<Value> dims,
                Value row = {});
  Value region(Ops &o, Region &region, ArrayRef<Value> batch, Value i, Value j,
               ArrayRef<Value> more);

  void stageQueries();
  /// Whether numbers along the one dim of \p contract, a vector of them at
  /// least, lie side by side.
  bool isDense(AffineMap map, ArrayRef<unsigned> contract);
  /// Whether the last dim of \p contract is no whole number of vectors.
  bool isRagged(ArrayRef<unsigned> contract);
  SmallVector<Extent> sumExtents(ArrayRef<unsigned> contract, bool padded);
  void stageQuery(unsigned term, unsigned number, unsigned position);
  std::optional<unsigned> sameOperand(unsigned term, unsigned number);
  std::optional<Value> scoreFactor();
  /// Whether each lane and key has an element of its own in one of \p maps: it
  /// is read lane by lane (Halide writes 16 loads for a vector), so the loads
  /// bound the loop, whose steps are not to be unrolled as well.
  bool readsPairs(ArrayRef<AffineMap> maps);
  /// Term \p term without its funcs.
  StreamingTerm termOf(unsigned term);
  void stageTerm(StreamingStage &stage, unsigned term);
  bool onGPU() const { return plan.target.isGPU(); }
  /// Number \p operand of \p term among the operands of all terms.
  unsigned positionOf(unsigned term, unsigned operand);
  bool comesByFour(Value tensor, AffineMap map, unsigned dim);
  void shareKeys(StreamingStage &stage, unsigned term);
  void shareValues(StreamingStage &stage);
  void stageOwnWeights(StreamingStage &stage);
  halide::FuncOp lastOfGroup(StreamingStage &stage, StringRef name,
                             halide::FuncOp groups);
  /// An operand of a score term for a pair, all of them, and what the term
  /// makes of them.
  Value termOperand(Ops &o, const StreamingStage &stage, unsigned term,
                    unsigned number, const TilePlace &at,
                    ArrayRef<Value> reduction, Value row = {});
  SmallVector<Value> termOperands(Ops &o, const StreamingStage &stage,
                                  unsigned term, const TilePlace &at,
                                  ArrayRef<Value> reduction, Value row = {});
  Value termValue(Ops &o, unsigned term, ArrayRef<Value> operands);
  /// What a term over no pair is.
  Value emptySum(Ops &o, ArrayRef<unsigned> contract);
  /// \p state and one more pair of the term's sum.
  Value termSum(Ops &o, unsigned term, Value state, ArrayRef<Value> operands);
  /// The score of a pair, in its domain; where the key is absent `lowest`, or
  /// -inf (see `marked`).
  Value scoreAt(Ops &o, StreamingStage &stage, const TilePlace &at);
  /// What value terms add up to at \p d of key \p j.
  Value valueAt(Ops &o, const TilePlace &at, Value j, Value d);

  // Keys of several tensors (StreamingSegments.cpp).
  /// Keys that all operands have side by side, in one part of it each.
  struct KeySegment {
    unsigned number;
    Value first; ///< key, i32; null if it is 0
    Extent count;
    std::optional<int64_t> most; ///< of keys, where it is known

    /// Whether a block of \p size keys may be full.
    bool holds(int64_t size) const { return !most || *most >= size; }
  };
  void findSegments(Extent all);
  FailureOr<Value> readInSegment(Ops &o, Value tensor, ArrayRef<Value> at);

  LogicalResult stageBlocks();
  /// A new stage of \p segment, in blocks of \p block keys.
  StreamingStage &stageOf(const KeySegment &segment, bool partial,
                          int64_t block);
  /// Writes the funcs of full, or of partial blocks of \p segment.
  LogicalResult stage(const KeySegment &segment, bool partial);
  void cutBlocks(StreamingStage &stage);
  bool scoreChooses();
  Value scoreInGroup(Ops &o, StreamingStage &stage, const TilePlace &at);
  void stageScores(StreamingStage &stage);
  void stageWeights(StreamingStage &stage);
  Value storedScore(Ops &o, StreamingStage &stage, const TilePlace &at);
  /// What products take of a score, and the weight of sums; the first is marked
  /// where `seen` does not hold, if it is not null.
  struct Weight {
    Value ofProduct, ofSum, seen;
  };
  Weight weightAt(Ops &o, StreamingStage &stage, Value score,
                  const TilePlace &at);
  Value boundedWeight(Ops &o, Value score);
  void stageProducts(StreamingStage &stage);
  void addValues(StreamingStage &stage);
  Value valueDim(Ops &o, const TilePlace &at);
  /// What a block has for a place of the state: sums of products, maximum
  /// and sum of weights.
  struct Part {
    SmallVector<Value> accumulators;
    Value top, sum;
  };
  Part partOf(Ops &o, StreamingStage &stage, const TilePlace &at);
  void stageMerge(StreamingStage &stage);
  void beginState();
  /// The state \p old with another part of the row in it.
  SmallVector<Value> merged(Ops &o, ArrayRef<Value> old,
                            ArrayRef<Value> accumulators, Value top, Value sum);
  /// Which key blocks a tile works on: the `where` of the state's update.
  void stageWhere(StreamingStage &stage);
  Value visited(Ops &o, const StreamingStage &stage, const TilePlace &at);

  // Parts of the keys on a GPU (StreamingSplit.cpp).
  void splitKeys();

  // Operands by offset (StreamingOffsets.cpp).
  /// One of them, at a tile and a block of keys. Rows are counted so that they
  /// grow with the key.
  struct Table {
    Value last;    ///< row, of the table
    Value start;   ///< row of the tile's first query and the block's first key
    Value first;   ///< row that the block reaches, none before the table
    Value reached; ///< how many rows behind that it reaches; below 0: none
    bool reversed;

    /// The position in the tensor of row \p x of those that the block reaches.
    Value position(Ops &o, Value x) const {
      Value row = o.mini(o.addi(first, x), last);
      return reversed ? o.subi(last, row) : row;
    }
  };
  Table tableAt(Ops &o, const StreamingStage &stage, Value tensor,
                AffineMap map, const TilePlace &at);
  /// Which operand of \p term is a table over offsets, if the others vary over
  /// queries alone.
  std::optional<unsigned> tableOf(unsigned term);
  /// The same if the others vary over keys alone and are summed over one dim.
  std::optional<unsigned> tableOfKeys(unsigned term);
  bool isTable(AffineMap map);
  bool hasTableValue();
  void sumTableRows(StreamingStage &stage, unsigned term, unsigned operand,
                    StreamingTerm &result);
  void findApart(unsigned term, unsigned operand, StreamingOffsets &offsets);
  void stageTableTerm(StreamingStage &stage, unsigned term, unsigned operand);
  void stageTableValue(StreamingStage &stage, unsigned value);
  /// The parts of `products` that tables make.
  void addTableValues(StreamingStage &stage);
  halide::FuncOp endWeights(StreamingStage &stage, unsigned value, bool high);
  Value tableTerm(Ops &o, StreamingStage &stage, unsigned term,
                  const TilePlace &at);
  /// Lane l of the result is lane l of row x + direction * l, where \p first
  /// yields the rows: all steps but the last.
  void shiftRows(StreamingOffsets &offsets, StringRef name, int direction,
                 Body first);
  /// One step more: rows of lanes whose number has the bit \p step.
  Value shiftedBy(Ops &o, const StreamingOffsets &offsets, const TilePlace &at,
                  int64_t step);
  /// The row that such a step fills.
  TilePlace rowOfGroup(Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops);
  /// Fills the rows of \p offsets that a block reaches, a group at a time.
  /// \p always: one at least.
  void fillRows(StreamingStage &stage, StreamingOffsets &offsets, Value tensor,
                AffineMap map, bool always, UpdateBody row);

  // Those that no query meets (StreamingWindows.cpp).
  void stageWindow(StreamingStage &stage, unsigned term, unsigned operand,
                   StreamingTerm &result);
  /// The place in the window of what a pair reads.
  Value windowPlace(Ops &o, const StreamingStage &stage, const TilePlace &at);
  /// Number \p x of the window of a block, at \p reduction of the summed dim.
  Value inWindow(Ops &o, halide::FuncOp window, Value x, const TilePlace &at,
                 ArrayRef<Value> reduction = {});
  void stageTableNumbers(StreamingStage &stage, unsigned term);
  void stageKeyTable(StreamingStage &stage, unsigned term, unsigned operand);

  // A query at a time (StreamingRow.cpp, StreamingRowBlock.cpp).
  LogicalResult rows(SmallVector<Extent> batch);
  /// The keys in blocks, so many of which are a part.
  struct RowParts {
    Value blocks, length, count;
  };
  RowParts cutParts(ArrayRef<Extent> batch);
  void rowStages(const RowParts &parts);
  void segmentStages(const RowParts &parts, const KeySegment &segment,
                     Value before, Value blocks);
  void rowStage(const KeySegment &segment, bool partial, Value blocks,
                Condition visited);
  /// A var of tasks, as one number of digits: each a coordinate of `part`.
  struct Digit {
    unsigned coordinate;
    Value radix;
  };
  using Number = SmallVector<Digit, 2>;
  SmallVector<Number> cutTasks(ArrayRef<Extent> batch, Value parts);
  void writeTasks(ArrayRef<Number> tasks);
  void mergeParts(ArrayRef<Number> tasks, Value parts);
  void sumByLanes(StreamingStage &stage, unsigned term, StreamingTerm &own,
                  StringRef name);
  void rowTerm(StreamingStage &stage, unsigned term);
  void rowScores(StreamingStage &stage);
  void rowWeights(StreamingStage &stage);
  SmallVector<Value> pairOfGroup(Ops &o, ArrayRef<Value> args, Value group);
  SmallVector<Value> allLanes(Ops &o, halide::FuncOp lanes,
                              ArrayRef<Value> args);
  void rowProducts(StreamingStage &stage);
  void cutGroups();
  KnownExtent knownMembers();
  bool hasShortRows();
  SmallVector<Value> initialState(Ops &o);

  /// First key of block kb of the stage, counted in its segment.
  Value firstRow(Ops &o, const StreamingStage &stage, Value kb);
  /// The key that is \p row of the segment.
  Value keyOf(Ops &o, const StreamingStage &stage, Value row);
  /// The number of the place's key; in a partial block inside [0, M).
  Value key(Ops &o, const StreamingStage &stage, const TilePlace &at);
  /// Whether the place's query sees its key; null where all do.
  Value live(Ops &o, const StreamingStage &stage, const TilePlace &at);

  Value present(Ops &o, const StreamingStage &stage, Value s,
                const TilePlace &at);
  bool anyFull();

  /// The weight of score \p s; \p top is the rounded maximum of its block.
  Value weightOf(Ops &o, Value s, Value top);
  /// What marks the weight of an absent key, and whether \p p is another.
  Value absentWeight(Ops &o);
  Value isLive(Ops &o, Value p);

  /// The maximum and the sum of a row at its end, sink included, and what its
  /// accumulators are to be multiplied by since; the sum without the sink.
  struct Total {
    Value top, sum, rescale, keysAlone;
  };
  Total total(Ops &o, const TilePlace &at);
  /// The result of a lane at value \p d.
  Value resultAt(Ops &o, const TilePlace &at, Value d);
  void lookForNaN();
  Value ifItStands(Ops &o, Value x, const TilePlace &at);
  void stageScale();
  void divide();
  void turnRows();
  void stageLse();
  void writeRowsWithLse(Value columns);
  halide::FuncOp
  result(StringRef name, Type element, AffineMap map,
         llvm::function_ref<Value(Ops &, ArrayRef<Value> dims)> valueAt);
  Value withQueriesKept(Ops &o, Value value, const TilePlace &at);
  StreamingResults results();
  StreamingResults resultsWithLse();

  OpBuilder &b;
  StreamedAttention streamed;
  attn::OnlineAttentionOp op;
  attn::FinishOp finish;
  Location loc;
  const IRMapping &scalars;
  TensorReads &tensors;
  const MaskBounds *bounds; ///< of the mask, where it was solved
  MaskTiling &tiling;
  std::optional<TileMask> mask;
  attn::Form form;
  StreamingPlan plan;

  const attn::Normaliser &normaliser;
  bool bounded; ///< scores are small: no maximum, weights times a constant
  bool shifted; ///< scores are taken less a running maximum
  bool summed;  ///< weights are divided by their sum
  /// What a mask says of a pair costs much: scores of absent keys are -inf, so
  /// that weights need not ask it again. On a GPU always: an instruction is
  /// one.
  bool marked;
  bool anySign; ///< weights may be any number, else they are at least 0
  /// Scores are kept times this: the exponential is one of 4, or of 2 where it
  /// takes the score as it is.
  double domain() {
    if (shifted || bounded)
      return log4e;
    return normaliser.takesExponential ? log2e : 1;
  }
  // Elements of the state behind the accumulators.
  int64_t topElement() const { return plan.group; }
  int64_t sumElement() const { return plan.group + shifted; }

  unsigned batchDims = 0, numDims = 0; ///< of funcs
  Value queries, keys;
  SmallVector<KeySegment, 1> segments;
  const KeySegment *segment = nullptr; ///< whose stage is being written
  DenseMap<Value, Value> inputs;       ///< of tensors that are read as they are
  SmallVector<Value> staged; ///< per term operand: its transposed func, or null
  /// The whole score region, if it is a product with this.
  std::optional<Value> factor;
  bool failedRead = false;
};

} // namespace heed::streaming

#endif
