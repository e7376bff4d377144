//===- StreamingOps.h - scalar expressions ----------------------*- C++ -*-===//
// Functions of one place of a func, in a notation near to that of mathematics.
#ifndef HEED_PASSES_SCHEDULE_STREAMINGOPS_H
#define HEED_PASSES_SCHEDULE_STREAMINGOPS_H

#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "passes/Schedule/Rewrite.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

namespace heed::streaming {

using namespace mlir;

constexpr double log2e = 1.44269504088896340736;
constexpr double ln2 = 0.69314718055994530942;
// Scores that are compared with their row's maximum are kept times this:
// weights are then powers of 4, and a finite score of any size stays finite
// (times log2 e those beyond 2.36e38 would not).
constexpr double log4e = log2e / 2;
// The maximum before any key: every finite score is at least this.
constexpr double lowest = -3.4028234663852886e38;
constexpr auto relaxed =
    arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;

/// Scalar expressions at one place.
struct Ops {
  OpBuilder &b;
  Location loc;

  Value i(int64_t value) { return constantI32(b, loc, value); }
  Value f(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  /// What a sum in registers starts from: the neutral element of addition. With
  /// +0, whose bits are zero, LLVM clears such a tile by a call of memset and
  /// keeps it in memory.
  Value zero() { return f(-0.0); }
  Value addi(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value subi(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value muli(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value mini(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
  Value maxi(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
  Value clamp(Value x, Value high) { return mini(maxi(x, i(0)), high); }
  /// \p extent, up to a multiple of \p to.
  Value alignTo(const Extent &extent, int64_t to) {
    if (extent.fixed)
      return i(llvm::alignTo(*extent.fixed, to));
    return muli(floorDiv(addi(extent.value, i(to - 1)), to), i(to));
  }
  Value last(Value extent) { return addi(extent, i(-1)); }
  /// The same, which libHalide does not take for a sum: not(-extent).
  Value opaqueLast(Value extent) {
    return arith::XOrIOp::create(b, loc, subi(i(0), extent), i(-1));
  }
  Value floorDiv(Value x, int64_t y) {
    return arith::FloorDivSIOp::create(b, loc, x, i(y));
  }
  Value ceilDiv(Value x, Value y) {
    return arith::FloorDivSIOp::create(b, loc, addi(x, last(y)), y);
  }
  Value atLeastOne(Value x) { return maxi(x, i(1)); }
  Value mod(Value x, int64_t y) {
    return halide::ModOp::create(b, loc, x, i(y));
  }
  Value less(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
  }
  Value atMost(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, x, y);
  }
  Value both(Value x, Value y) {
    return !x ? y : !y ? x : arith::AndIOp::create(b, loc, x, y).getResult();
  }
  Value negate(Value x) {
    return arith::XOrIOp::create(
        b, loc, x, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  }
  /// \p c, of which libHalide learns nothing: where a loop's number is known to
  /// be above some other, it is the larger of both to it in all places.
  Value hidden(Value c) {
    Value one = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(1));
    Value number = arith::ExtUIOp::create(b, loc, b.getI8Type(), c);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, one);
  }
  /// \p c, of which libHalide knows nothing for all places of a loop over
  /// \p place together: what is computed for them is not under it.
  Value hidden(Value c, Value place) {
    Value any = bits(halide::UnboundedOp::create(
        b, loc, arith::SIToFPOp::create(b, loc, b.getF32Type(), place)));
    Value number = arith::ExtUIOp::create(b, loc, b.getI32Type(), c);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                 arith::XOrIOp::create(b, loc, number, any),
                                 any);
  }
  Value select(Value c, Value x, Value y) {
    return c ? arith::SelectOp::create(b, loc, c, x, y).getResult() : x;
  }
  // Strict: in this order, NaN and infinities kept.
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value greater(Value x, Value y) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y);
  }
  /// x > y ? x : y, one instruction; y if either is NaN.
  Value larger(Value x, Value y) {
    return arith::SelectOp::create(b, loc, greater(x, y), x, y);
  }
  /// x + y * z as one operation where the machine has it.
  Value fma(Value x, Value y, Value z) {
    return arith::AddFOp::create(
        b, loc, x, arith::MulFOp::create(b, loc, y, z, relaxed), relaxed);
  }
  Value sum(Value x, Value y) {
    return arith::AddFOp::create(b, loc, x, y, relaxed);
  }
  Value bits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  }
  Value real(Value x) {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), x);
  }
  Value shl(Value x, int64_t n) {
    return arith::ShLIOp::create(b, loc, x, i(n));
  }
  SmallVector<Value> read(Value func, ArrayRef<Value> at) {
    auto read =
        halide::ReadOp::create(b, loc, halide::getElementTypes(func), func, at);
    return SmallVector<Value>(read.getResults());
  }
  Value read1(Value func, ArrayRef<Value> at) { return read(func, at).front(); }
  Value tree(SmallVector<Value> values,
             llvm::function_ref<Value(Value, Value)> combine) {
    while (values.size() > 1) {
      SmallVector<Value> next;
      for (size_t k = 0; k + 1 < values.size(); k += 2)
        next.push_back(combine(values[k], values[k + 1]));
      if (values.size() % 2)
        next.push_back(values.back());
      values = next;
    }
    return values.front();
  }

  /// 4^t for t <= 0.5 and for NaN: 2t is split into an integer n and f in
  /// [-1/2, 1/2], t into their halves, by adding 1.5 * 2^22, whose low bits
  /// then hold n (and the exponent's bias, 127); 2^f is a polynomial that is 1
  /// at 0 (minimax, 1.7e-7 relative in f32: one term less has 3.5e-6, of which
  /// a sum of values that cancel shows many times as much), here one of f / 2.
  /// Below 2^-120 the result is exactly 0: n becomes -127, whose power has the
  /// bits of 0.0, and no denormal number arises.
  Value exp4(Value t) {
    Value tiny =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, t, f(-60));
    t = arith::SelectOp::create(b, loc, tiny, f(-63.5), t);
    Value magic = f(6291456.0 + 63.5);
    Value z = add(t, magic);
    return mul(powerOf(sub(t, sub(z, magic))), real(shl(bits(z), 23)));
  }
  /// The same on a target whose device has an instruction for powers of 2: its
  /// error is that of the polynomial, and what is no normal number is 0.
  Value exp4(Value t, const halide::Target &target) {
    if (target.gpu != "cuda")
      return exp4(t);
    return halide::DeviceExp2Op::create(b, loc, b.getF32Type(), add(t, t));
  }
  /// The larger of two scores. On CUDA the other one of a NaN, by one
  /// instruction: a row with a NaN is one by its weight, whatever its maximum.
  Value larger(Value x, Value y, const halide::Target &target) {
    if (target.gpu != "cuda")
      return larger(x, y);
    return arith::MaxNumFOp::create(b, loc, x, y);
  }
  /// 4^y for an integer y <= 0, as power4.
  Value power4(Value y, const halide::Target &target) {
    return target.gpu == "cuda" ? exp4(y, target) : power4(y);
  }
  /// 4^t for |t| <= 1/4.
  Value powerOf(Value t) {
    Value p = f(32 * 0.00132647273);
    for (double c : {16 * 0.00967151299, 8 * 0.0555073359, 4 * 0.240222424,
                     2 * 0.693147004, 1.0})
      p = fma(f(c), p, t);
    return p;
  }
  /// 4^t times 2^\p bias, odd, for 2|t| <= \p bias < 64, and for NaN: exp4
  /// whose exponents have that bias, and no end to look for.
  Value biasedExp4(Value t, int64_t bias) {
    Value magic = f(6291456.0 + 0.5 * (127 + bias));
    Value z = add(t, magic);
    return mul(powerOf(sub(t, sub(z, magic))), real(shl(bits(z), 23)));
  }
  /// 2^t for any t: 0 and infinity where f32 ends. The power of two is applied
  /// in two halves, so that neither overflows before the product does.
  Value anyExp2(Value t) {
    Value n = math::RoundEvenOp::create(
        b, loc, clampf(t, f(-151), f(129))); // -151 if t is NaN
    Value fraction = sub(t, n);
    fraction = arith::SelectOp::create(
        b, loc,
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                              math::AbsFOp::create(b, loc, fraction), f(0.5)),
        f(0), fraction);
    Value p = f(0.00133908633);
    for (double c :
         {0.00967603177, 0.0555035696, 0.240221068, 0.693147182, 1.00000012})
      p = fma(f(c), p, fraction);
    Value whole = arith::FPToSIOp::create(b, loc, b.getI32Type(), n);
    Value half = floorDiv(whole, 2);
    Value rest = arith::SubIOp::create(b, loc, whole, half);
    auto scale = [&](Value k) { return real(shl(addi(k, i(127)), 23)); };
    return mul(mul(p, scale(half)), scale(rest));
  }
  /// Within [low, high]; low if x is NaN.
  Value clampf(Value x, Value low, Value high) {
    Value up = larger(x, low);
    return arith::SelectOp::create(b, loc, greater(high, up), up, high);
  }
  /// 4^y for an integer y <= 0 (exactly 0 below -63); any value if y is NaN.
  Value power4(Value y) {
    y = larger(y, f(-63.5)); // a constant of exp4's: registers are few
    Value n = arith::FPToSIOp::create(b, loc, b.getI32Type(), add(y, y));
    return real(shl(addi(n, i(127)), 23));
  }
};

} // namespace heed::streaming

#endif
