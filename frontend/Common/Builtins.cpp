//===- Builtins.cpp - The table of built-in functions ---------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the rows are made of comes first, in the order of the columns; the table
// stands at the end.
//
//===----------------------------------------------------------------------===//

#include "Builtins.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace heed;
using namespace heed::sema;
using namespace mlir;
using llvm::ArrayRef;

namespace {

//===----------------------------------------------------------------------===//
// Of sizes
//===----------------------------------------------------------------------===//

using Sizes = ArrayRef<Size>;

Size sameSize(SizeTable &, Sizes x) { return x[0]; }
Size minSize(SizeTable &sizes, Sizes x) { return sizes.min(x[0], x[1]); }
Size maxSize(SizeTable &sizes, Sizes x) { return sizes.max(x[0], x[1]); }
Size absSize(SizeTable &sizes, Sizes x) { return sizes.max(x[0], -x[0]); }
Size reluSize(SizeTable &sizes, Sizes x) { return sizes.max(x[0], Size(0)); }
Size clampSize(SizeTable &sizes, Sizes x) {
  return sizes.min(sizes.max(x[0], x[1]), x[2]);
}
Size signSize(SizeTable &sizes, Sizes x) {
  return sizes.min(sizes.max(x[0], Size(-1)), Size(1));
}
Size log2Size(SizeTable &sizes, Sizes x) { return sizes.log2(x[0]); }

//===----------------------------------------------------------------------===//
// Of numbers
//===----------------------------------------------------------------------===//

double minNumber(const double *x) { return std::min(x[0], x[1]); }
double maxNumber(const double *x) { return std::max(x[0], x[1]); }
double clampNumber(const double *x) {
  return std::min(std::max(x[0], x[1]), x[2]);
}
double signNumber(const double *x) {
  return x[0] > 0 ? 1.0 : x[0] < 0 ? -1.0 : x[0];
}
double rsqrtNumber(const double *x) { return 1 / std::sqrt(x[0]); }
template <double (*function)(double)> double number(const double *x) {
  return function(x[0]);
}

//===----------------------------------------------------------------------===//
// Bounds, and relations between the value and the arguments
//===----------------------------------------------------------------------===//

Bounds minBounds(Intervals &of, ArrayRef<Bounds> x) {
  return of.min(x[0], x[1]);
}
Bounds maxBounds(Intervals &of, ArrayRef<Bounds> x) {
  return of.max(x[0], x[1]);
}
Bounds clampBounds(Intervals &of, ArrayRef<Bounds> x) {
  return of.min(of.max(x[0], x[1]), x[2]);
}
Bounds absBounds(Intervals &of, ArrayRef<Bounds> x) {
  Bounds result;
  result.lower = {Size(0)};
  for (const Size &high : x[0].upper)
    for (const Size &low : x[0].lower)
      result.upper.push_back(of.sizes.max(high, -low));
  return result;
}
Bounds reluBounds(Intervals &of, ArrayRef<Bounds> x) {
  Bounds result;
  result.lower = {Size(0)};
  result.lower.append(x[0].lower);
  for (const Size &high : x[0].upper)
    for (size_t k = 0; k < x[0].lower.size(); ++k)
      result.upper.push_back(of.sizes.max(high, Size(0)));
  return result;
}

using Argument = llvm::function_ref<Form(unsigned)>;

void minRelation(Points &points, const Form &value, Argument argument) {
  for (unsigned k : {0, 1})
    points.assume(argument(k) - value);
}
void maxRelation(Points &points, const Form &value, Argument argument) {
  for (unsigned k : {0, 1})
    points.assume(value - argument(k));
}
void clampRelation(Points &points, const Form &value, Argument argument) {
  points.assume(argument(2) - value);
}
void absRelation(Points &points, const Form &value, Argument argument) {
  Form x = argument(0);
  points.assume(value - x);
  points.assume(value + x);
}
void reluRelation(Points &points, const Form &value, Argument argument) {
  points.assume(value - argument(0));
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

using Values = Builtin::Values;

/// Arithmetic in one place, on values of one type.
struct Writer {
  OpBuilder &b;
  Location at;
  mlir::Type type;

  Writer(OpBuilder &b, Location at, Values x)
      : b(b), at(at), type(x[0].getType()) {}
  Value integer(int64_t value) {
    return arith::ConstantOp::create(b, at, b.getIntegerAttr(type, value));
  }
  Value real(double value) {
    return arith::ConstantOp::create(b, at, b.getFloatAttr(type, value));
  }
  Value mul(Value u, Value v) { return arith::MulFOp::create(b, at, u, v); }
  Value add(Value u, Value v) { return arith::AddFOp::create(b, at, u, v); }
  Value div(Value u, Value v) { return arith::DivFOp::create(b, at, u, v); }
  Value neg(Value u) { return arith::NegFOp::create(b, at, u); }
  Value less(Value u, Value v) {
    return arith::CmpFOp::create(b, at, arith::CmpFPredicate::OLT, u, v);
  }
  Value select(Value condition, Value u, Value v) {
    return arith::SelectOp::create(b, at, condition, u, v);
  }
  Value min(Value u, Value v) { return arith::MinimumFOp::create(b, at, u, v); }
  Value max(Value u, Value v) { return arith::MaximumFOp::create(b, at, u, v); }
  Value sigmoid(Value u) {
    // exp overflows to inf where the result is 0: no branch is needed.
    Value e = math::ExpOp::create(b, at, neg(u));
    return div(real(1), add(real(1), e));
  }
};

template <typename Op> Value unary(OpBuilder &b, Location at, Values x) {
  return Op::create(b, at, x[0]);
}
template <typename Op> Value binary(OpBuilder &b, Location at, Values x) {
  return Op::create(b, at, x[0], x[1]);
}
/// clamp: not below x[1], not above x[2].
template <typename Max, typename Min>
Value between(OpBuilder &b, Location at, Values x) {
  return Min::create(b, at, Max::create(b, at, x[0], x[1]), x[2]);
}
Value same(OpBuilder &, Location, Values x) { return x[0]; }

Value reluIntegers(OpBuilder &b, Location at, Values x) {
  return arith::MaxSIOp::create(b, at, x[0], Writer(b, at, x).integer(0));
}
Value signIntegers(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  return arith::MaxSIOp::create(
      b, at, arith::MinSIOp::create(b, at, x[0], w.integer(1)), w.integer(-1));
}

Value reluReals(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  return w.max(x[0], w.real(0));
}
Value signReals(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  return w.select(w.less(w.real(0), x[0]), w.real(1),
                  w.select(w.less(x[0], w.real(0)), w.real(-1), x[0]));
}
Value rsqrtReals(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  return w.div(w.real(1), math::SqrtOp::create(b, at, x[0]));
}
Value sigmoidReals(OpBuilder &b, Location at, Values x) {
  return Writer(b, at, x).sigmoid(x[0]);
}
Value siluReals(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  return w.mul(x[0], w.sigmoid(x[0]));
}
Value eluReals(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  Value low = math::ExpM1Op::create(b, at, w.min(x[0], w.real(0)));
  return w.select(w.less(w.real(0), x[0]), x[0], low);
}
Value softplusReals(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  Value e =
      math::ExpOp::create(b, at, w.neg(math::AbsFOp::create(b, at, x[0])));
  return w.add(w.max(x[0], w.real(0)), math::Log1pOp::create(b, at, e));
}
Value geluReals(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  Value e = math::ErfOp::create(b, at, w.mul(x[0], w.real(std::sqrt(0.5))));
  return w.mul(w.mul(w.real(0.5), x[0]), w.add(w.real(1), e));
}
Value geluTanhReals(OpBuilder &b, Location at, Values x) {
  Writer w(b, at, x);
  Value cube = w.mul(w.mul(x[0], x[0]), x[0]);
  Value inner = w.mul(w.real(std::sqrt(2 / M_PI)),
                      w.add(x[0], w.mul(w.real(0.044715), cube)));
  return w.mul(w.mul(w.real(0.5), x[0]),
               w.add(w.real(1), math::TanhOp::create(b, at, inner)));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

constexpr auto kKeeps = Builtin::Keeps;
constexpr auto kReal = Builtin::Real;
constexpr auto kStatic = Builtin::Static;
constexpr std::nullptr_t none = nullptr;

// clang-format off
const Builtin table[] = {
    // name, arity, result, of sizes, of numbers, bounds, relation, integers, reals
    {"abs", 1, kKeeps, absSize, number<std::fabs>, absBounds, absRelation, unary<math::AbsIOp>, unary<math::AbsFOp>},
    {"sign", 1, kKeeps, signSize, signNumber, none, none, signIntegers, signReals},
    {"floor", 1, kKeeps, sameSize, number<std::floor>, none, none, same, unary<math::FloorOp>},
    {"ceil", 1, kKeeps, sameSize, number<std::ceil>, none, none, same, unary<math::CeilOp>},
    {"round", 1, kKeeps, sameSize, number<std::nearbyint>, none, none, same, unary<math::RoundEvenOp>},
    {"relu", 1, kKeeps, reluSize, none, reluBounds, reluRelation, reluIntegers, reluReals},
    {"min", 2, kKeeps, minSize, minNumber, minBounds, minRelation, binary<arith::MinSIOp>, binary<arith::MinimumFOp>},
    {"max", 2, kKeeps, maxSize, maxNumber, maxBounds, maxRelation, binary<arith::MaxSIOp>, binary<arith::MaximumFOp>},
    {"clamp", 3, kKeeps, clampSize, clampNumber, clampBounds, clampRelation, between<arith::MaxSIOp, arith::MinSIOp>,
     between<arith::MaximumFOp, arith::MinimumFOp>},
    {"exp", 1, kReal, none, number<std::exp>, none, none, none, unary<math::ExpOp>},
    {"exp2", 1, kReal, none, number<std::exp2>, none, none, none, unary<math::Exp2Op>},
    {"expm1", 1, kReal, none, number<std::expm1>, none, none, none, unary<math::ExpM1Op>},
    {"log", 1, kReal, none, number<std::log>, none, none, none, unary<math::LogOp>},
    {"log2", 1, kReal, none, number<std::log2>, none, none, none, unary<math::Log2Op>},
    {"log1p", 1, kReal, none, number<std::log1p>, none, none, none, unary<math::Log1pOp>},
    {"sqrt", 1, kReal, none, number<std::sqrt>, none, none, none, unary<math::SqrtOp>},
    {"rsqrt", 1, kReal, none, rsqrtNumber, none, none, none, rsqrtReals},
    {"sin", 1, kReal, none, number<std::sin>, none, none, none, unary<math::SinOp>},
    {"cos", 1, kReal, none, number<std::cos>, none, none, none, unary<math::CosOp>},
    {"tan", 1, kReal, none, number<std::tan>, none, none, none, unary<math::TanOp>},
    {"tanh", 1, kReal, none, number<std::tanh>, none, none, none, unary<math::TanhOp>},
    {"erf", 1, kReal, none, number<std::erf>, none, none, none, unary<math::ErfOp>},
    {"sigmoid", 1, kReal, none, none, none, none, none, sigmoidReals},
    {"elu", 1, kReal, none, none, none, none, none, eluReals},
    {"silu", 1, kReal, none, none, none, none, none, siluReals},
    {"softplus", 1, kReal, none, none, none, none, none, softplusReals},
    {"gelu", 1, kReal, none, none, none, none, none, geluReals},
    {"gelu_tanh", 1, kReal, none, none, none, none, none, geluTanhReals},
    // What these take is asked where calls are typed: a whole tensor, a size.
    {"extent", 2, kStatic, none, none, none, none, none, none},
    {"error", 1, kStatic, none, none, none, none, none, none},
    {"has", 1, kStatic, none, none, none, none, none, none},
    {"kind", 1, kStatic, none, none, none, none, none, none},
    {"ilog2", 1, kStatic, log2Size, none, none, none, none, none},
};
// clang-format on

} // namespace

ArrayRef<Builtin> heed::sema::builtins() { return table; }

const Builtin *heed::sema::findBuiltin(llvm::StringRef name) {
  for (const Builtin &row : table)
    if (row.name == name)
      return &row;
  return nullptr;
}
