//===- WriteChunk.cpp - the steps of a linear attention, by products ------===//
//
// With a_w the decay of step w, and D(t, j) the product of those behind step j
// up to step t,
//   O[t] = sum_(j <= t) D(t, j) (q_t . k_j) v_j + D(t, -1) q_t . S
//   S'   = D(last, -1) S + sum_j D(last, j) k_j v_j
// An output that reads the state before its step sees j < t, and D up to t - 1.
// Where a step erases r_t S of its value, what it writes are the rows of
//   u_t + sum_(j < t) D(t - 1, j) (r_t . k_j) u_j = v_t - D(t - 1, -1) r_t . S
// in place of v.
// Decays are multiplied forward alone: one of 0 is no division by 0.
#include "passes/Recurrence/WriteChunk.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Products.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace heed {
namespace {

class ChunkWriter {
public:
  ChunkWriter(OpBuilder &b, attn::LinearAttentionOp op,
              const LinearChunk &chunk);
  /// Solves for what steps write.
  void solve();
  Value output();
  Value state();
  /// The table of what is left of keys.
  Value between() { return decayOfPair(op.getBefore())->value; }
  /// That of what is erased.
  Value erased() { return decayOfPair(/*before=*/true)->value; }

private:
  using Op = attn::LinearAttentionOp;
  ExprRef read(unsigned which, Value tensor, unsigned at);
  ExprRef readState();
  ExprRef ofState(ExprRef query, bool before);
  ExprRef leftOfState(ExprRef query, bool before);
  ExprRef written(unsigned at);
  ExprRef less(ExprRef a, ExprRef b, bool orEqual = false);
  ExprRef times(ArrayRef<ExprRef> factors) {
    Product product; // without factors of 1
    for (ExprRef e : factors)
      flatten(exprs, e, product);
    return multiply(exprs, product.over, product.under);
  }
  ExprRef sum(ArrayRef<unsigned> over, ExprRef body) {
    return exprs.reduce(OperationName("arith.addf", exprs.context), over, body);
  }
  ExprRef lastDecay(bool before);
  ExprRef decayOfPair(bool before);
  ExprRef decayBetween(ExprRef from, ExprRef upTo, ExprRef count);
  ExprRef tensorAt(ExprRef element, ArrayRef<unsigned> vars);
  SmallVector<unsigned> vars(unsigned first, unsigned count) {
    return SmallVector<unsigned>(ArrayRef(loops).slice(first, count));
  }
  SmallVector<unsigned> outputVars() {
    SmallVector<unsigned> all = vars(0, op.firstContract());
    all.append(vars(op.firstValue(), op.getNumValue()));
    return all;
  }

  OpBuilder &b;
  attn::LinearAttentionOp op;
  LinearChunk chunk;
  Exprs exprs;
  SmallVector<unsigned> loops; ///< a variable for each loop dim
  unsigned step = 0, key = 0;  ///< the query's step, the key's
  ExprRef length = nullptr;
  Value solved; ///< batch, step and value axes: what steps write
};

ChunkWriter::ChunkWriter(OpBuilder &b, attn::LinearAttentionOp op,
                         const LinearChunk &chunk)
    : b(b), op(op), chunk(chunk), exprs(b.getContext()) {
  length = exprs.fold(chunk.length);
  for (auto [dim, size] : llvm::enumerate(op.getSizes()))
    loops.push_back(
        exprs.freshVar(dim == op.stepDim() ? length : exprs.scalar(size)));
  step = loops[op.stepDim()];
  key = exprs.freshVar(length);
}

/// The element of an operand at the loops, with \p at for the step.
ExprRef ChunkWriter::read(unsigned which, Value tensor, unsigned at) {
  SmallVector<ExprRef> indices;
  for (AffineExpr result : op.map(which).getResults()) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    indices.push_back(exprs.var(dim == op.stepDim() ? at : loops[dim]));
  }
  ExprRef element = exprs.read(tensor, indices);
  // A constant is none that need be multiplied by.
  ExprRef value = indices.empty() ? exprs.expand(element) : nullptr;
  return value ? value : element;
}

ExprRef ChunkWriter::readState() {
  SmallVector<ExprRef> indices;
  for (auto [dim, var] : llvm::enumerate(loops))
    if (dim != op.stepDim())
      indices.push_back(exprs.var(var));
  return exprs.read(chunk.state, indices);
}

ExprRef ChunkWriter::less(ExprRef a, ExprRef b, bool orEqual) {
  return exprs.compare(
      orEqual ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt, a, b);
}

/// \p element as a tensor over \p own, read where the loops are: it is computed
/// once.
ExprRef ChunkWriter::tensorAt(ExprRef element, ArrayRef<unsigned> own) {
  SmallVector<unsigned> used;
  SmallVector<ExprRef> at;
  for (unsigned v : own)
    if (element->uses(v)) {
      used.push_back(v);
      at.push_back(exprs.var(v));
    }
  return exprs.read(writeTensor(b, op.getLoc(), exprs, element, used), at);
}

/// The last step whose decay the state has that a query reads.
ExprRef ChunkWriter::lastDecay(bool before) {
  ExprRef t = exprs.var(step);
  return before != mutated("chunk.other-end")
             ? exprs.op("arith.subi", b.getIndexType(), {t, exprs.index(1)})
             : t;
}

/// The product of the decays of the steps w with from < w <= upTo (all from the
/// first without \p from), of which there are \p count. 1 where there is none.
ExprRef ChunkWriter::decayBetween(ExprRef from, ExprRef upTo, ExprRef count) {
  ExprRef one = exprs.constant(FloatAttr::get(b.getF32Type(), 1.0));
  if (!op.getDecay())
    return one;
  if (chunk.tables.powers) {
    SmallVector<ExprRef> at;
    for (AffineExpr result : op.map(Op::Decay).getResults())
      at.push_back(exprs.var(loops[cast<AffineDimExpr>(result).getPosition()]));
    at.push_back(count);
    return exprs.read(chunk.tables.powers, at);
  }
  unsigned w = exprs.freshVar(length);
  ExprRef isBetween =
      less(exprs.var(w), upTo, /*orEqual=*/!mutated("chunk.decay-ends-early"));
  if (from)
    isBetween = exprs.logicalAnd(
        less(from, exprs.var(w), mutated("chunk.decay-begins-early")),
        isBetween);
  return exprs.reduce(OperationName("arith.mulf", exprs.context), {w},
                      exprs.select(isBetween, read(Op::Decay, chunk.decay, w), one,
                                   /*guard=*/false));
}

/// What is left of a key at a query's step; 0 where it does not see it, yet or
/// at all.
ExprRef ChunkWriter::decayOfPair(bool before) {
  SmallVector<ExprRef> at;
  SmallVector<unsigned> own;
  if (!op.getDecay())
    return exprs.constant(FloatAttr::get(b.getF32Type(), 1.0));
  for (AffineExpr result : op.map(Op::Decay).getResults())
    if (unsigned dim = cast<AffineDimExpr>(result).getPosition();
        dim != op.stepDim())
      own.push_back(loops[dim]);
  own.append({step, key});
  for (unsigned v : own)
    at.push_back(exprs.var(v));
  if (Value table = before && op.getErase() ? chunk.tables.erased
                                            : chunk.tables.between)
    return exprs.read(table, at);
  ExprRef j = exprs.var(key), last = lastDecay(before);
  ExprRef distance = exprs.op("arith.subi", b.getIndexType(), {last, j});
  ExprRef zero = exprs.constant(FloatAttr::get(b.getF32Type(), 0.0));
  ExprRef decay =
      exprs.select(less(j, last, /*orEqual=*/true),
                   decayBetween(j, last, distance), zero, /*guard=*/true);
  return exprs.read(writeTensor(b, op.getLoc(), exprs, decay, own), at);
}

/// The value that the step \p at writes.
ExprRef ChunkWriter::written(unsigned at) {
  if (!solved)
    return read(Op::Values, chunk.value, at);
  SmallVector<ExprRef> indices;
  for (unsigned v : outputVars())
    indices.push_back(exprs.var(v == step ? at : v));
  return exprs.read(solved, indices);
}

/// What is left of the state at a step, times \p query.
ExprRef ChunkWriter::leftOfState(ExprRef query, bool before) {
  ExprRef last = lastDecay(before);
  ExprRef count =
      exprs.op("arith.addi", b.getIndexType(), {last, exprs.index(1)});
  ExprRef gone = decayBetween(nullptr, last, count);
  if (gone->kind == ExprKind::Reduce)
    gone = tensorAt(gone, outputVars());
  return times({gone, ofState(query, before)});
}

void ChunkWriter::solve() {
  Location loc = op.getLoc();
  Type real = b.getF32Type();
  ExprRef erase = read(Op::Erase, chunk.erase, step);
  SmallVector<unsigned> pairs = vars(0, op.getNumBatch());
  pairs.append({step, key});
  ExprRef held = sum(vars(op.firstContract(), op.getNumContract()),
                     times({erase, read(Op::Key, chunk.key, key)}));
  Value matrix = writeTensor(
      b, loc, exprs, times({held, decayOfPair(/*before=*/true)}), pairs);
  ExprRef value = read(Op::Values, chunk.value, step),
          kept = leftOfState(erase, /*before=*/true);
  if (Exprs::constantFloat(kept) != 0.0)
    value = exprs.op("arith.subf", real, {value, kept});
  Value right = writeTensor(b, loc, exprs, value, outputVars());
  solved = attn::TriangularSolveOp::create(b, loc, matrix, right);
}

Value ChunkWriter::output() {
  bool before = op.getBefore();
  SmallVector<unsigned> contract =
                            vars(op.firstContract(), op.getNumContract()),
                        outer = outputVars();
  ExprRef t = exprs.var(step), j = exprs.var(key);
  ExprRef query = read(Op::Query, chunk.query, step);
  ExprRef score =
      sum(contract, times({query, read(Op::Key, chunk.key, key)}));
  ExprRef product = times({score, decayOfPair(before), written(key)});
  ExprRef zero = exprs.constant(FloatAttr::get(b.getF32Type(), 0.0));
  ExprRef seen = mutated("chunk.see-all") ? exprs.truth(true)
                                          : less(j, t, !before);
  ExprRef within = sum(key, exprs.select(seen, product, zero, /*guard=*/false));
  if (chunk.pairsAlone)
    return writeTensor(b, op.getLoc(), exprs, within, outer);
  ExprRef old = leftOfState(query, before);
  if (Exprs::constantFloat(old) != 0.0)
    within = exprs.op("arith.addf", b.getF32Type(),
                      {tensorAt(within, outer), old});
  // A query of no elements reads 0 of any state.
  if (llvm::any_of(contract, [&](unsigned v) {
        return !Exprs::constantInt(exprs.extent(v));
      }))
    within = exprs.unlessEmpty(contract, tensorAt(within, outer), zero);
  return writeTensor(b, op.getLoc(), exprs, within, outer);
}

/// What \p query reads of the state. There is none before the first step: the
/// first query is multiplied with its zeros alone where it reads it \p before.
ExprRef ChunkWriter::ofState(ExprRef query, bool before) {
  SmallVector<unsigned> contract =
      vars(op.firstContract(), op.getNumContract());
  ExprRef zero = exprs.constant(FloatAttr::get(b.getF32Type(), 0.0));
  ExprRef isFirst = less(exprs.var(step), exprs.index(1));
  if (!chunk.state) {
    if (!before)
      return zero;
    ExprRef zeros =
        sum(contract, exprs.op("arith.mulf", b.getF32Type(), {query, zero}));
    return exprs.select(isFirst, zeros, zero, /*guard=*/false);
  }
  ExprRef all = sum(contract, times({query, readState()}));
  if (!chunk.hasState)
    return all;
  ExprRef reads = exprs.scalar(chunk.hasState);
  if (before)
    reads = exprs.op("arith.ori", reads->type, {reads, isFirst});
  return exprs.select(reads, all, zero, /*guard=*/false);
}

Value ChunkWriter::state() {
  Type index = b.getIndexType();
  SmallVector<unsigned> batch = vars(0, op.getNumBatch()), own(loops);
  own.erase(own.begin() + op.stepDim());
  ExprRef last = exprs.op("arith.subi", index, {length, exprs.index(1)});
  ExprRef behind = exprs.op("arith.subi", index, {last, exprs.var(key)});
  SmallVector<unsigned> keyVars(batch);
  keyVars.push_back(key);
  keyVars.append(vars(op.firstContract(), op.getNumContract()));
  ExprRef rest = decayBetween(exprs.var(key), last, behind);
  ExprRef k = read(Op::Key, chunk.key, key);
  if (op.getDecay()) {
    if (rest->kind == ExprKind::Reduce)
      rest = tensorAt(rest, keyVars);
    k = tensorAt(times({k, rest}), keyVars);
  }
  ExprRef product = sum(key, times({k, written(key)}));
  if (chunk.state || op.getDecay()) {
    ExprRef total = decayBetween(nullptr, last, length);
    if (total->kind == ExprKind::Reduce)
      total = tensorAt(total, own);
    ExprRef old = chunk.state
                      ? readState()
                      : exprs.constant(FloatAttr::get(b.getF32Type(), 0.0));
    product =
        exprs.op("arith.addf", b.getF32Type(), {times({total, old}), product});
  }
  return writeTensor(b, op.getLoc(), exprs, product, own);
}

} // namespace

PowerTables makePowerTables(OpBuilder &b, attn::LinearAttentionOp op,
                            int64_t size) {
  if (!op.getDecay() || op.map(attn::LinearAttentionOp::Decay).isFunctionOfDim(op.stepDim()))
    return {};
  Exprs exprs(b.getContext());
  Type real = b.getF32Type();
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  for (AffineExpr result : op.map(attn::LinearAttentionOp::Decay).getResults()) {
    Value dim = op.getSizes()[cast<AffineDimExpr>(result).getPosition()];
    vars.push_back(exprs.freshVar(exprs.scalar(dim)));
    at.push_back(exprs.var(vars.back()));
  }
  ExprRef decay = exprs.read(op.getDecay(), at);
  SmallVector<unsigned> own(vars);
  own.push_back(exprs.freshVar(exprs.index(size + 1)));
  ExprRef exponent = exprs.op(
      "arith.sitofp", real,
      {exprs.op("arith.index_cast", b.getI64Type(), {exprs.var(own.back())})});
  Value powers =
      writeTensor(b, op.getLoc(), exprs,
                  exprs.op("math.powf", real, {decay, exponent}), own);
  LinearChunk whole;
  whole.length = b.getIndexAttr(size);
  whole.tables.powers = powers;
  ChunkWriter writer(b, op, whole);
  return {powers, writer.between(), op.getErase() ? writer.erased() : Value()};
}

std::pair<Value, Value> writeChunk(OpBuilder &b, attn::LinearAttentionOp op,
                                   const LinearChunk &chunk) {
  ChunkWriter writer(b, op, chunk);
  if (op.getErase())
    writer.solve();
  Value output = writer.output();
  return {output, writer.state()};
}

} // namespace heed
