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
// DecayProducts.h has D. Where channels of keys decay each by its own, D has
// contract dims, and D(t, j) k_j is a tensor in place of k.
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

private:
  using Op = attn::LinearAttentionOp;
  ExprRef read(unsigned which, Value tensor, unsigned at);
  ExprRef readState();
  ExprRef leftOfZeros(ExprRef left);
  ExprRef ofState(ExprRef query, bool before);
  ExprRef written(unsigned at);
  ExprRef less(ExprRef a, ExprRef b, bool orEqual = false);
  ExprRef times(ArrayRef<ExprRef> factors) {
    Product product; // without factors of 1
    for (ExprRef e : factors)
      flatten(exprs, e, product);
    return multiply(exprs, product.over, product.under);
  }
  ExprRef number(double value) {
    return exprs.constant(FloatAttr::get(b.getF32Type(), value));
  }
  ExprRef mul(ExprRef x, ExprRef y) {
    return exprs.op("arith.mulf", b.getF32Type(), {x, y});
  }
  ExprRef sum(ArrayRef<unsigned> over, ExprRef body) {
    return exprs.reduce(OperationName("arith.addf", exprs.context), over, body);
  }
  ExprRef scores(ExprRef query, bool before);
  ExprRef sumSeen(ExprRef query, bool before);
  ExprRef readDecay(Value products, ArrayRef<unsigned> dims, bool ofSteps);
  ExprRef tensorAt(ExprRef element, ArrayRef<unsigned> vars);
  ExprRef readAt(Value tensor, ArrayRef<unsigned> own) {
    SmallVector<ExprRef> at;
    for (unsigned v : own)
      at.push_back(exprs.var(v));
    return exprs.read(tensor, at);
  }
  SmallVector<unsigned> vars(unsigned first, unsigned count) {
    return SmallVector<unsigned>(ArrayRef(loops).slice(first, count));
  }
  SmallVector<unsigned> contractVars() {
    return vars(op.firstContract(), op.getNumContract());
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

/// What is left where the loops are, of products with these axes.
ExprRef ChunkWriter::readDecay(Value products, ArrayRef<unsigned> dims,
                               bool ofSteps) {
  SmallVector<ExprRef> at;
  if (ofSteps)
    at.push_back(exprs.var(step));
  for (unsigned dim : dims)
    at.push_back(exprs.var(dim == op.stepDim() ? key : loops[dim]));
  return exprs.read(products, at);
}

/// The products of \p query and of the key, by what is left of that.
ExprRef ChunkWriter::scores(ExprRef query, bool before) {
  ExprRef k = read(Op::Key, chunk.key, key);
  if (chunk.left) {
    SmallVector<ExprRef> at;
    for (unsigned v : vars(0, op.firstContract()))
      at.push_back(exprs.var(v));
    at.push_back(exprs.var(key));
    return times(
        {sum(contractVars(), times({query, k})), exprs.read(chunk.left, at)});
  }
  if (!chunk.decays)
    return sum(contractVars(), times({query, k}));
  ExprRef left = readDecay(chunk.decays.ofKeys(b, chunk.length, before),
                           chunk.decays.keyDims(), /*ofSteps=*/true);
  if (!chunk.decays.holdsKeys())
    return times({sum(contractVars(), times({query, k})), left});
  SmallVector<unsigned> own = vars(0, op.getNumBatch());
  own.append({step, key});
  return tensorAt(sum(contractVars(), times({query, left})), own);
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

/// What is left of zeros, 0 or NaN, where \p left is left of the state. Decays
/// that are the same in each step begin with 1 in all chunks: one of them
/// tells.
ExprRef ChunkWriter::leftOfZeros(ExprRef left) {
  if (!chunk.sameDecay)
    return left;
  ExprRef decay = read(Op::Decay, chunk.sameDecay, step);
  std::optional<double> known = Exprs::constantFloat(decay);
  return known && std::isfinite(*known) ? number(0.0) : mul(decay, number(0.0));
}

/// What \p query reads of what is left of the state. There is none before the
/// first step: the first query is multiplied with its zeros alone where it
/// reads it \p before.
ExprRef ChunkWriter::ofState(ExprRef query, bool before) {
  SmallVector<unsigned> contract = contractVars();
  ExprRef isFirst = less(exprs.var(step), exprs.index(1));
  ExprRef left = nullptr, none = number(0.0), reads = nullptr;
  if (chunk.decays) {
    left = readDecay(chunk.decays.ofState(b, chunk.length, before),
                     chunk.decays.stateDims(), /*ofSteps=*/true);
    if (!op.getFresh())
      none = leftOfZeros(left);
  }
  if (!chunk.state)
    reads = exprs.truth(false);
  else if (chunk.hasState)
    reads = exprs.scalar(chunk.hasState);
  if (reads && before && !op.getFresh())
    reads = exprs.op("arith.ori", reads->type, {reads, isFirst});
  auto ifRead = [&](ExprRef value, ExprRef otherwise) {
    return reads ? exprs.select(reads, value, otherwise, /*guard=*/false)
                 : value;
  };
  auto sumHeld = [&](ExprRef query) {
    return sum(contract, chunk.state ? times({query, readState()})
                                     : mul(query, number(0.0)));
  };
  if (left && chunk.decays.holdsKeys()) {
    SmallVector<unsigned> own = vars(0, op.firstContract());
    own.append(contract);
    query = tensorAt(ifRead(times({query, left}), none), own);
    return sumHeld(query);
  }
  if (!chunk.state && (!before || op.getFresh()))
    return none;
  ExprRef all = sumHeld(query);
  return ifRead(left && chunk.state ? times({left, all}) : all, none);
}

void ChunkWriter::solve() {
  Location loc = op.getLoc();
  ExprRef erase = read(Op::Erase, chunk.erase, step);
  SmallVector<unsigned> pairs = vars(0, op.getNumBatch());
  pairs.append({step, key});
  Value matrix =
      writeTensor(b, loc, exprs, scores(erase, /*before=*/true), pairs);
  ExprRef value = read(Op::Values, chunk.value, step),
          kept = ofState(erase, /*before=*/true);
  if (Exprs::constantFloat(kept) != 0.0)
    value = exprs.op("arith.subf", b.getF32Type(), {value, kept});
  Value right = writeTensor(b, loc, exprs, value, outputVars());
  solved = attn::TriangularSolveOp::create(b, loc, matrix, right);
}

/// What \p query reads of the keys that its step sees.
ExprRef ChunkWriter::sumSeen(ExprRef query, bool before) {
  ExprRef t = exprs.var(step), j = exprs.var(key);
  ExprRef product = times({scores(query, before), written(key)});
  ExprRef seen =
      mutated("chunk.see-all") ? exprs.truth(true) : less(j, t, !before);
  if (chunk.seen) {
    SmallVector<ExprRef> at;
    for (unsigned v : vars(0, op.getNumBatch()))
      at.push_back(exprs.var(v));
    at.push_back(j);
    seen = exprs.logicalAnd(seen, exprs.read(chunk.seen, at));
  }
  return sum(key, exprs.select(seen, product, number(0.0), /*guard=*/false));
}

Value ChunkWriter::output() {
  bool before = op.getBefore();
  SmallVector<unsigned> outer = outputVars();
  ExprRef query = read(Op::Query, chunk.query, step), zero = number(0.0);
  ExprRef within =
      chunk.ownOutput ? readAt(chunk.ownOutput, outer) : sumSeen(query, before);
  if (chunk.pairsAlone)
    return writeTensor(b, op.getLoc(), exprs, within, outer);
  ExprRef old = ofState(query, before);
  if (Exprs::constantFloat(old) != 0.0)
    within =
        exprs.op("arith.addf", b.getF32Type(),
                 {chunk.ownOutput ? within : tensorAt(within, outer), old});
  // A query of no elements reads 0 of any state.
  SmallVector<unsigned> contract = contractVars();
  if (llvm::any_of(contract, [&](unsigned v) {
        return !Exprs::constantInt(exprs.extent(v));
      }))
    within = exprs.unlessEmpty(contract, tensorAt(within, outer), zero);
  return writeTensor(b, op.getLoc(), exprs, within, outer);
}

Value ChunkWriter::state() {
  SmallVector<unsigned> own(loops), keyVars = vars(0, op.getNumBatch());
  own.erase(own.begin() + op.stepDim());
  keyVars.push_back(key);
  keyVars.append(contractVars());
  ExprRef k = read(Op::Key, chunk.key, key), old = nullptr;
  if (chunk.decays) {
    if (!chunk.ownState) {
      ExprRef left = readDecay(chunk.decays.lastOfKeys(b, chunk.length),
                               chunk.decays.keyDims(), /*ofSteps=*/false);
      k = chunk.decays.holdsKeys() ? left : tensorAt(times({k, left}), keyVars);
    }
    old = readDecay(chunk.decays.afterStep(b, chunk.length),
                    chunk.decays.stateDims(), /*ofSteps=*/false);
    ExprRef none = op.getFresh() ? number(0.0) : leftOfZeros(old);
    if (!chunk.state)
      old = none;
    else if (chunk.hasState)
      old = exprs.select(exprs.scalar(chunk.hasState), old, none,
                         /*guard=*/false);
  }
  ExprRef made = chunk.ownState ? readAt(chunk.ownState, own)
                                : sum(key, times({k, written(key)}));
  Type type = b.getF32Type();
  if (chunk.longState) {
    type = b.getF64Type();
    made = exprs.op("arith.extf", type,
                    {chunk.ownState ? made : tensorAt(made, own)});
    ExprRef state = readAt(chunk.longState, own);
    old = old ? exprs.op("arith.mulf", type,
                         {exprs.op("arith.extf", type, {old}), state})
              : state;
  } else if (chunk.state) {
    old = old ? times({old, readState()}) : readState();
  }
  ExprRef all = made;
  if (old && Exprs::constantFloat(old) != 0.0)
    all = exprs.op("arith.addf", type, {old, all});
  return writeTensor(b, op.getLoc(), exprs, all, own);
}

} // namespace

std::pair<Value, Value> writeChunk(OpBuilder &b, attn::LinearAttentionOp op,
                                   const LinearChunk &chunk) {
  ChunkWriter writer(b, op, chunk);
  if (op.getErase())
    writer.solve();
  Value state = writer.state();
  return {writer.output(), state};
}

} // namespace heed
