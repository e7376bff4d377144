//===- LogSumExp.cpp - an attention's rows as log-sum-exps ----------------===//
//
// Which attention has the scores nobody needs to see: each of the block is
// given the result, and the proof says whether it is the one. Else an attention
// of these scores is made, as of a quotient whose values are 1.
#include "passes/Raise/LogSumExp.h"
#include "dialects/Attn/Normaliser.h"
#include "passes/Algebra/Axioms.h"
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/Weights.h"
#include "passes/Mutation.h"
#include "passes/Raise/RaiseAttentionMatch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace heed {

using attn::DimKind;

//===----------------------------------------------------------------------===//
// Who reads scores
//===----------------------------------------------------------------------===//

/// Whether nothing but the logarithm is taken of \p value, or of it and a sink.
static bool takesLogarithm(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<math::LogOp>(user) ||
           (isa<arith::AddFOp>(user) &&
            llvm::all_of(user->getUsers(),
                         [](Operation *of) { return isa<math::LogOp>(of); }));
  });
}

static bool contains(Operation *op, llvm::function_ref<bool(Operation *)> is) {
  return op
      ->walk([&](Operation *inner) {
        return is(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool isExponential(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op>(op);
}

bool isOfLogSumExp(linalg::LinalgOp reduction) {
  if (reduction->getNumResults() != 1 || !reduction.getNumReductionLoops())
    return false;
  Operation *combiner =
      reduction.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  bool sums = isa_and_nonnull<arith::AddFOp>(combiner) &&
              contains(reduction, isExponential);
  if (!sums && !isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(combiner))
    return false;
  return llvm::all_of(reduction->getUses(), [&](OpOperand &use) {
    auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!user)
      return false;
    if (sums)
      return takesLogarithm(user.getMatchingBlockArgument(&use));
    return contains(user, [](Operation *op) { return isa<math::LogOp>(op); }) ||
           (user.getNumReductionLoops() && isOfLogSumExp(user));
  });
}

attn::AttentionOp withLse(OpBuilder &b, attn::AttentionOp op) {
  SmallVector<int64_t> shape;
  AffineMap map = op.outputMap();
  auto output = cast<RankedTensorType>(op.getOutput().getType());
  for (unsigned dim = 0; dim < op.firstDim(DimKind::Key); ++dim)
    shape.push_back(
        output.getDimSize(*map.getResultPosition(b.getAffineDimExpr(dim))));
  OperationState state(op.getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addAttributes(op->getAttrs());
  state.addTypes({output, RankedTensorType::get(shape, b.getF32Type())});
  SmallVector<int32_t> segments{1, 1, 0};
  if (op.getWeights()) {
    state.addTypes(op.getWeights().getType());
    segments.back() = 1;
  }
  state.attributes.set("resultSegmentSizes", b.getDenseI32ArrayAttr(segments));
  for (Region &region : op->getRegions()) {
    IRMapping mapping;
    region.cloneInto(state.addRegion(), mapping);
  }
  return cast<attn::AttentionOp>(b.create(state));
}

namespace {

//===----------------------------------------------------------------------===//
// The result of an attention
//===----------------------------------------------------------------------===//

/// Takes what nothing but \p ops reads for made: tables of their operands that
/// were written with them. What was written down before reads it, too.
void adoptOperands(Attempt &attempt, ArrayRef<Operation *> ops) {
  SmallVector<Operation *> readers(ops);
  for (size_t k = 0; k < readers.size(); ++k)
    for (Value input : inputsOf(readers[k])) {
      Operation *def = input.getDefiningOp();
      if (def && isa<linalg::LinalgOp>(def) && !attempt.made(def) &&
          llvm::all_of(def->getUsers(), [&](Operation *user) {
            return llvm::any_of(readers, [&](Operation *reader) {
              return reader->isAncestor(user);
            });
          })) {
        attempt.adopt(def);
        readers.push_back(def);
      }
    }
}

class Raiser {
public:
  Raiser(OpBuilder &builder, Operation *root, Exprs &exprs,
         SmallVectorImpl<RaisedLogSumExp> &raised)
      : builder(builder), root(root), exprs(exprs), raised(raised) {}
  Value raise(ExprRef element, ArrayRef<unsigned> vars);

private:
  struct Written {
    ExprRef whole, sum, maximum; ///< log(sum), or maximum + log(sum)
    ExprRef sumRead = nullptr, maximumRead = nullptr; ///< the reductions
    SmallVector<unsigned> rows = {};
  };
  std::optional<Written> matchWritten(ExprRef e);
  ExprRef attach(const Written &written);
  ExprRef attachTo(attn::AttentionOp op, const Written &written);
  bool moveBeforeRoot(const Attempt &attempt, Operation *op);
  ExprRef alone(const Written &written);
  std::optional<AttentionMatch> matchAlone(const Written &written);
  bool readsScoresAlone(const Written &written);
  ExprRef proven(attn::AttentionOp op, const Written &written,
                 ArrayRef<unsigned> rows, Attempt &attempt);
  ExprRef nanWithoutScore(attn::AttentionOp op, ExprRef lse,
                          ArrayRef<unsigned> rows);

  OpBuilder &builder;
  Operation *root;
  Exprs &exprs;
  SmallVectorImpl<RaisedLogSumExp> &raised;
  std::string axioms; ///< of the last proof
  SmallVector<Operation *> made;
};

} // namespace

/// \p lse, but NaN in a row that has keys, and no score but -inf: what the
/// maximum leaves of them is -inf less itself.
ExprRef Raiser::nanWithoutScore(attn::AttentionOp op, ExprRef lse,
                                ArrayRef<unsigned> rows) {
  if (mutated("raise-attention.lse-without-nan"))
    return lse;
  auto real = [&](const APFloat &value) {
    return exprs.constant(FloatAttr::get(builder.getF32Type(), value));
  };
  const auto &f32 = APFloat::IEEEsingle();
  ExprRef none = exprs.compare(arith::CmpFPredicate::OEQ, lse,
                               real(APFloat::getInf(f32, /*Negative=*/true)));
  SmallVector<unsigned> keys;
  SmallVector<ExprRef> at;
  for (unsigned v : rows)
    at.push_back(exprs.var(v));
  for (unsigned k = 0; k < op.numDims(DimKind::Key); ++k) {
    Value size = op.getSizes()[op.firstDim(DimKind::Key) + k];
    std::optional<int64_t> fixed = getConstantIntValue(size);
    keys.push_back(
        exprs.freshVar(fixed ? exprs.index(*fixed) : exprs.scalar(size)));
    at.push_back(exprs.var(keys.back()));
  }
  ExprRef nan = real(APFloat::getQNaN(f32));
  if (op.getWhere().empty())
    return exprs.select(none, exprs.unlessEmpty(keys, nan, lse), lse,
                        /*guard=*/false);
  ExprRef where = exprs.block(op.getWhere().front(), at);
  if (!where)
    return nullptr;
  ExprRef some =
      exprs.reduce(OperationName("arith.ori", exprs.context), keys, where);
  at.clear();
  for (unsigned v : some->freeVars)
    at.push_back(exprs.var(v));
  some = exprs.read(
      writeTensor(builder, root->getLoc(), exprs, some, some->freeVars), at);
  return exprs.select(exprs.logicalAnd(none, some), nan, lse, /*guard=*/false);
}

/// The log-sum-exp of \p op, whose batch and query dims are \p rows, if it is
/// proven to be what is written; what it is read from is \p attempt's.
ExprRef Raiser::proven(attn::AttentionOp op, const Written &written,
                       ArrayRef<unsigned> rows, Attempt &attempt) {
  SmallVector<ExprRef> at;
  for (unsigned v : rows)
    at.push_back(exprs.var(v));
  ExprRef lse = exprs.read(op.getLse(), at);
  if (written.maximum && !(lse = nanWithoutScore(op, lse, rows)))
    return nullptr;
  Value whole = lse->kind == ExprKind::Read
                    ? Value(op.getLse())
                    : writeTensor(builder, root->getLoc(), exprs, lse, rows);
  // A maximum that the row subtracts is in its log-sum-exp again: it is the
  // same with one or without.
  bool stabilise = op.getStabilise();
  op.setStabilise(written.maximum != nullptr);
  Proof proof = prove(exprs, written.whole, whole, rows, attempt);
  op.setStabilise(stabilise);
  axioms = proof.axioms;
  if (proof.holds && stabilise != (written.maximum != nullptr)) {
    StringRef name = textOf(Axiom::RowMaximum).name;
    if (!StringRef(axioms).contains(name))
      axioms += (axioms.empty() ? "" : ", ") + name.str();
  }
  return proof.holds ? lse : nullptr;
}

ExprRef Raiser::attachTo(attn::AttentionOp op, const Written &written) {
  OpBuilder::InsertionGuard guard(builder);
  Attempt attempt(builder);
  attn::AttentionOp whole = op;
  builder.setInsertionPointAfter(op);
  if (op.getLse())
    attempt.adopt(op);
  else
    whole = withLse(builder, op);
  adoptOperands(attempt, {op, whole});
  SmallVector<unsigned> rows(written.rows);
  ExprRef lse = nullptr;
  do {
    bool fits = true;
    for (auto [axis, v] : llvm::enumerate(rows))
      fits &= exprs.extentOf(whole.getLse(), axis) == exprs.extent(v);
    if (fits)
      lse = proven(whole, written, rows, attempt);
  } while (!lse && std::next_permutation(rows.begin(), rows.end()));
  if (lse && root->isBeforeInBlock(op) && !moveBeforeRoot(attempt, whole))
    lse = nullptr;
  if (!lse) {
    attempt.undo();
    return nullptr;
  }
  if (whole != op) {
    op.getOutput().replaceAllUsesWith(whole.getOutput());
    if (op.getWeights())
      op.getWeights().replaceAllUsesWith(whole.getWeights());
    op.erase();
  }
  llvm::append_range(made, attempt.operations());
  raised.push_back({whole, /*alone=*/false, axioms});
  return lse;
}

/// False if \p op needs what comes of the root.
bool Raiser::moveBeforeRoot(const Attempt &attempt, Operation *op) {
  IRRewriter rewriter(builder.getContext());
  SmallVector<Operation *> ops(attempt.operations());
  if (!llvm::is_contained(ops, op))
    ops.insert(ops.begin(), op);
  for (Operation *each : ops) {
    if (failed(moveOperationDependencies(rewriter, each, root)))
      return false;
    each->moveBefore(root);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What is written
//===----------------------------------------------------------------------===//

/// The element of a reduction that \p e is, maybe with something beside it
/// (a sink), combined as in the reduction; or null.
static ExprRef reductionIn(Exprs &exprs, ExprRef e,
                           ArrayRef<StringRef> combiners) {
  while (e->kind == ExprKind::Read) {
    Operation *def = e->value.getDefiningOp();
    ExprRef inner =
        def && Exprs::isExpressible(def) ? exprs.expand(e) : nullptr;
    if (!inner)
      return nullptr;
    for (StringRef combiner : combiners)
      if (inner->isReduceBy(combiner))
        return e;
    e = inner;
  }
  for (StringRef combiner : combiners)
    if (e->isOp(combiner))
      for (ExprRef side : e->operands)
        if (ExprRef found = reductionIn(exprs, side, combiners))
          return found;
  return nullptr;
}

static bool sumsExponentials(Exprs &exprs, ExprRef sumRead) {
  SmallVector<unsigned> keys;
  ExprRef body = exprs.expandReads(
      exprs.open(exprs.expand(sumRead), keys), [&](ExprRef read) {
        Operation *def = read->value.getDefiningOp();
        return def && read->usesAny(keys) && Exprs::isElementwise(def);
      });
  bool found = false;
  Exprs::walk(body, [&](ExprRef e) {
    found |= e->isOp("math.exp") || e->isOp("math.exp2");
  });
  return found;
}

/// log(sum(j) exp(s)), maybe with a sink beside the sum; or that and a maximum.
std::optional<Raiser::Written> Raiser::matchWritten(ExprRef e) {
  if (!e->type.isF32())
    return std::nullopt;
  auto match = [&](ExprRef log, ExprRef maximum) -> std::optional<Written> {
    if (!log->isOp("math.log"))
      return std::nullopt;
    Written written{e, log->operand(0), maximum};
    written.sumRead = reductionIn(exprs, written.sum, {"arith.addf"});
    if (maximum)
      written.maximumRead =
          reductionIn(exprs, maximum, {"arith.maximumf", "arith.maxnumf"});
    if (!written.sumRead || (maximum && !written.maximumRead) ||
        !sumsExponentials(exprs, written.sumRead))
      return std::nullopt;
    written.rows.assign(e->freeVars.begin(), e->freeVars.end());
    return written;
  };
  if (!e->isOp("arith.addf"))
    return match(e, nullptr);
  std::optional<Written> first = match(e->operand(0), e->operand(1));
  return first ? first : match(e->operand(1), e->operand(0));
}

ExprRef Raiser::attach(const Written &written) {
  SmallVector<attn::AttentionOp> ops;
  for (auto op : root->getBlock()->getOps<attn::AttentionOp>())
    if (attn::Normaliser::of(op).isShiftable && op.getDivide() &&
        op.firstDim(DimKind::Key) == written.rows.size())
      ops.push_back(op);
  for (attn::AttentionOp op : ops)
    if (ExprRef lse = attachTo(op, written))
      return lse;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// An attention of its own
//===----------------------------------------------------------------------===//

/// Whether the scores are there for this log-sum-exp alone.
bool Raiser::readsScoresAlone(const Written &written) {
  llvm::SetVector<Operation *> reductions, pairs;
  // Ops whose elements are of pairs.
  std::function<void(ExprRef, ArrayRef<unsigned>)> visit =
      [&](ExprRef e, ArrayRef<unsigned> keys) {
        Exprs::walk(e, [&](ExprRef read) {
          Operation *def = read->kind == ExprKind::Read
                               ? read->value.getDefiningOp()
                               : nullptr;
          if (def && read->usesAny(keys) && read->usesAny(written.rows) &&
              pairs.insert(def) && Exprs::isElementwise(def))
            if (ExprRef inner = exprs.expand(read))
              visit(inner, keys);
        });
      };
  for (ExprRef read : {written.sumRead, written.maximumRead})
    if (read) {
      reductions.insert(read->value.getDefiningOp());
      SmallVector<unsigned> keys;
      ExprRef body = exprs.open(exprs.expand(read), keys);
      visit(body, keys);
    }
  auto isOnlyOfThis = [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return pairs.contains(user) || reductions.contains(user);
    });
  };
  return llvm::all_of(pairs, isOnlyOfThis) &&
         llvm::all_of(reductions, [](Operation *op) {
           return isOfLogSumExp(cast<linalg::LinalgOp>(op));
         });
}

/// The match of sum(j) w[j] * 1 / sum(j) w[j], where it is more than a row's
/// function of tensors that are there.
std::optional<AttentionMatch> Raiser::matchAlone(const Written &written) {
  SmallVector<unsigned> keys;
  ExprRef body = exprs.open(exprs.expand(written.sumRead), keys);
  ExprRef one = exprs.constant(FloatAttr::get(body->type, 1.0));
  SmallVector<ExprRef> at;
  for (unsigned v : keys)
    at.push_back(exprs.var(v));
  Location loc = root->getLoc();
  ExprRef value = exprs.read(writeTensor(builder, loc, exprs, one, keys), at);
  auto times = [&](ExprRef weight) {
    return exprs.op("arith.mulf", body->type, {weight, value});
  };
  bool isGuarded = (body->kind == ExprKind::If || body->isOp("arith.select")) &&
                   Exprs::constantFloat(body->operand(2)) == 0.0;
  body = isGuarded ? exprs.select(body->operand(0), times(body->operand(1)),
                                  body->operand(2), body->kind == ExprKind::If)
                   : times(body);
  ExprRef sum =
      exprs.reduce(OperationName("arith.addf", exprs.context), keys, body);
  std::string why;
  FailureOr<AttentionMatch> match =
      matchAttention(exprs, sum, written.rows, written.sum, why);
  if (failed(match) || !match->divide || match->weight ||
      !match->notes.empty() || match->map != attn::Map::Exp)
    return std::nullopt;
  // Weights as keys: a product that packs them is faster.
  for (const AttentionTerm &term : match->terms)
    for (ExprRef operand : term.operands)
      if (operand->usesAny(match->key) && operand->kind == ExprKind::Read &&
          !isFromParameters(operand->value))
        return *match;
  return std::nullopt;
}

ExprRef Raiser::alone(const Written &written) {
  if (!readsScoresAlone(written))
    return nullptr;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(root);
  Attempt attempt(builder);
  std::optional<AttentionMatch> match = matchAlone(written);
  FailureOr<Value> value = failure();
  std::string why;
  ExprRef lse = nullptr;
  if (match) {
    match->lse = true;
    match->empty = EmptyRow::Zero;
    SmallVector<unsigned> rows(match->batch);
    llvm::append_range(rows, match->query);
    value = buildAttention(builder, root->getLoc(), exprs, *match, written.rows,
                           written.whole->type, why);
    if (succeeded(value)) {
      auto op = value->getDefiningOp<attn::AttentionOp>();
      if ((lse = proven(op, written, rows, attempt)))
        raised.push_back({op, /*alone=*/true, axioms});
    }
  }
  if (lse)
    llvm::append_range(made, attempt.operations());
  else
    attempt.undo();
  return lse;
}

Value Raiser::raise(ExprRef element, ArrayRef<unsigned> vars) {
  // A maximum first: what stands within it is a logarithm, too.
  ExprRef other = element;
  for (bool withMaximum : {true, false})
    other = exprs.rewrite(other, [&](ExprRef e) -> ExprRef {
      if (withMaximum != e->isOp("arith.addf"))
        return nullptr;
      std::optional<Written> written = matchWritten(e);
      if (!written)
        return nullptr;
      ExprRef lse = attach(*written);
      return lse ? lse : alone(*written);
    });
  if (other == element)
    return {};
  builder.setInsertionPoint(root);
  SmallVector<ExprRef> at;
  for (unsigned v : vars)
    at.push_back(exprs.var(v));
  bool plain = other->kind == ExprKind::Read &&
               ArrayRef<ExprRef>(other->operands) == ArrayRef<ExprRef>(at);
  Value result = plain
                     ? other->value
                     : writeTensor(builder, root->getLoc(), exprs, other, vars);
  for (Operation *op : llvm::reverse(made))
    if (op != result.getDefiningOp() && isOpTriviallyDead(op))
      op->erase();
  return result;
}

Value raiseLogSumExps(OpBuilder &builder, Operation *root, Exprs &exprs,
                      ExprRef element, ArrayRef<unsigned> vars,
                      SmallVectorImpl<RaisedLogSumExp> &raised) {
  return Raiser(builder, root, exprs, raised).raise(element, vars);
}

} // namespace heed
