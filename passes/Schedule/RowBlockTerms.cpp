//===- RowBlockTerms.cpp - terms of a row block's sums --------------------===//
//
// Products of weights and values, which a condition leaves out: as
// multiply-adds under a mask, of weights that are computed once.
#include "passes/Mutation.h"
#include "passes/Schedule/RowBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

static constexpr auto sums =
    arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;

/// Adds a term that is 0 where its condition fails, old + (c ? x * y : 0), as c
/// ? old + x * y : old: a multiply-add under a mask is one instruction, where
/// the other form takes three.
void RowBlock::maskTerms(Value func) {
  KernelFunc *f = kernel.find(func);
  for (halide::UpdateOp update : f->updates) {
    unsigned number = 0;
    auto add = dyn_cast_or_null<arith::AddFOp>(combinerOf(update, number));
    auto term = add ? add->getOperand(number).getDefiningOp<arith::SelectOp>()
                    : arith::SelectOp();
    if (!term || !term->hasOneUse() ||
        !matchPattern(term.getFalseValue(), m_AnyZeroFloat()))
      continue;
    auto sums = arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;
    if (auto product = term.getTrueValue().getDefiningOp<arith::MulFOp>())
      product.setFastmath(sums);
    OpBuilder b(add);
    Value old = add->getOperand(1 - number);
    Value sum =
        arith::AddFOp::create(b, add.getLoc(), old, term.getTrueValue(), sums);
    if (mutated("row-block.add-absent"))
      old = sum;
    add->replaceAllUsesWith(arith::SelectOp::create(
        b, add.getLoc(), term.getCondition(), sum, old));
    add.erase();
    term.erase();
  }
}

namespace {

/// old + weight * value, where \p condition holds if there is one.
struct Term {
  Value old, weight, value, condition;
};

bool uses(Value value, Value argument) {
  return argumentsOf(value).contains(argument);
}

/// Real operations from \p value to what it reads.
unsigned countReals(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || !isa<arith::ArithDialect>(def->getDialect()) ||
      isa<arith::ConstantOp>(def))
    return 0;
  unsigned count = isa<FloatType>(value.getType());
  for (Value operand : def->getOperands())
    count += countReals(operand);
  return count;
}

/// The term that \p update adds, if its weight and condition are the same at
/// all places of \p tiled and the weight is mixed of several numbers.
std::optional<Term> mixedTerm(halide::UpdateOp update, Value tiled,
                              Value query) {
  Term term;
  Value yielded = update.getSet().front().getTerminator()->getOperand(0);
  if (auto select = yielded.getDefiningOp<arith::SelectOp>()) {
    term.condition = select.getCondition();
    term.old = select.getFalseValue();
    yielded = select.getTrueValue();
    if (uses(term.condition, tiled))
      return std::nullopt;
  }
  auto add = yielded.getDefiningOp<arith::AddFOp>();
  if (!add || !add.getType().isF32())
    return std::nullopt;
  for (unsigned k : {0, 1}) {
    auto read = add->getOperand(k).getDefiningOp<halide::ReadOp>();
    auto product = add->getOperand(1 - k).getDefiningOp<arith::MulFOp>();
    if (!read || read.getFunc() != update.getFunc() || !product ||
        (term.condition && term.old != add->getOperand(k)))
      continue;
    term.old = add->getOperand(k);
    for (unsigned side : {0, 1}) {
      term.weight = product->getOperand(side);
      term.value = product->getOperand(1 - side);
      if (countReals(term.weight) > 1 && !uses(term.weight, tiled) &&
          uses(term.weight, query) && uses(term.value, tiled))
        return term;
    }
  }
  return std::nullopt;
}

/// An absent weight is a NaN that no live one is: all of these become one NaN.
/// Halide takes `ne` and `sle` for the opposite of another comparison and swaps
/// what is chosen, which LLVM then makes no multiply-add under a mask of.
constexpr int32_t absentBits = std::numeric_limits<int32_t>::max(),
                  liveNaN = 0x7FC00000;

Value bitsOf(OpBuilder &b, Location loc, Value real) {
  return arith::BitcastOp::create(b, loc, b.getI32Type(), real);
}

Value marked(OpBuilder &b, Location loc, Value real, Value isThere) {
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, real, real);
  Value bits = arith::SelectOp::create(
      b, loc, isNaN, constantI32(b, loc, liveNaN), bitsOf(b, loc, real));
  bits = arith::SelectOp::create(b, loc, isThere, bits,
                                 constantI32(b, loc, absentBits));
  return arith::BitcastOp::create(b, loc, real.getType(), bits);
}

Value isLive(OpBuilder &b, Location loc, Value real) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                               bitsOf(b, loc, real),
                               constantI32(b, loc, liveNaN + 1));
}

} // namespace

/// Weights that are mixed of several numbers are computed once, not for each
/// tile of places: stored, with a mark where they are absent.
void RowBlock::stageWeights(Value func) {
  Member member = members[func];
  KernelFunc *f = kernel.find(func);
  if (member.tiled < 0 || member.unrolled == 1 ||
      !f->extents[member.tiled].fixed ||
      *f->extents[member.tiled].fixed <= member.unrolled)
    return;
  for (auto [number, update] : llvm::enumerate(f->updates)) {
    Block &body = update.getSet().front();
    std::optional<Term> term = mixedTerm(update, body.getArgument(member.tiled),
                                         body.getArgument(member.query));
    if (!term)
      continue;
    Location loc = update.getLoc();
    Operation *yield = body.getTerminator();
    OpBuilder b(yield);
    llvm::SmallPtrSet<Value, 4> used = argumentsOf(term->weight);
    Value value = term->weight;
    if (term->condition) {
      used.insert_range(argumentsOf(term->condition));
      value = marked(b, loc, value, term->condition);
    }
    Value weight = stage(func, body, f->reductions[number], value, b, used);
    Value sum = arith::AddFOp::create(
        b, loc, term->old,
        arith::MulFOp::create(b, loc, weight, term->value, sums), sums);
    if (term->condition && !mutated("row-block.forget-staged-mark"))
      sum = arith::SelectOp::create(b, loc, isLive(b, loc, weight), sum,
                                    term->old);
    yield->setOperand(0, sum);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (&op != yield && op.use_empty())
        op.erase();
  }
}
