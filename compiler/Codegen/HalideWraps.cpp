//===- HalideWraps.cpp - Integers that wrap -------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model's integers are computed in i64 and wrap. libHalide and LLVM take it
// that signed ones of 32 bits and more never do: x*x >= 0, (2*x)//2 is x. So
// what may wrap is computed unsigned. What provably stays within stays signed,
// as libHalide tells more of it: where loops begin and end, among others.

#include "compiler/Codegen/HalideWraps.h"

#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

Value heed::throughReads(Value value) {
  while (auto read = value.getDefiningOp<halide::ReadOp>()) {
    auto func = read.getFunc().getDefiningOp<halide::FuncOp>();
    if (!func || llvm::any_of(func->getUsers(), [&](Operation *user) {
          auto update = dyn_cast<halide::UpdateOp>(user);
          return update && update.getFunc() == read.getFunc();
        }))
      break;
    unsigned which = cast<OpResult>(value).getResultNumber();
    value = func.getBody().front().getTerminator()->getOperand(which);
  }
  return value;
}

namespace {
/// Of an integer x.
struct Magnitude {
  double most;        ///< |x| is no more
  bool isAny = false; ///< x comes of a tensor, of an i64 that a call is given,
                      ///< or of a constant beyond i32
};

class Magnitudes {
public:
  Magnitude of(Value value);
  double unbounded(Operation *op);

private:
  Magnitude ofOperation(Operation *op, Magnitude any);

  llvm::SmallDenseMap<Value, Magnitude> known;
};
} // namespace

/// The quotient in q * b, where it is x // b: their product is x within b.
static Operation *quotientOf(Operation *product) {
  for (unsigned k : {0, 1}) {
    Operation *quotient =
        heed::throughReads(product->getOperand(k)).getDefiningOp();
    if (isa_and_nonnull<arith::FloorDivSIOp, arith::DivSIOp>(quotient) &&
        quotient->getOperand(1) == product->getOperand(1 - k))
      return quotient;
  }
  return nullptr;
}

/// The divisor in x - (x // b) * b, the remainder.
static Value divisorOf(Operation *difference) {
  Operation *product =
      heed::throughReads(difference->getOperand(1)).getDefiningOp();
  Operation *quotient =
      isa_and_nonnull<arith::MulIOp>(product) ? quotientOf(product) : nullptr;
  return quotient && quotient->getOperand(0) == difference->getOperand(0)
             ? quotient->getOperand(1)
             : Value();
}

/// What \p op, a sum, difference or product, would be without an end of i64.
double Magnitudes::unbounded(Operation *op) {
  double a = of(op->getOperand(0)).most, b = of(op->getOperand(1)).most;
  // A remainder is below its divisor, unless the product has wrapped.
  if (Value divisor = isa<arith::SubIOp>(op) ? divisorOf(op) : Value())
    if (a + of(divisor).most < 0x1p63)
      return of(divisor).most;
  if (!isa<arith::MulIOp>(op))
    return a + b;
  if (Operation *quotient = quotientOf(op))
    return of(quotient->getOperand(0)).most + of(quotient->getOperand(1)).most;
  return a * b;
}

Magnitude Magnitudes::of(Value value) {
  value = heed::throughReads(value);
  auto [it, isNew] = known.try_emplace(value, Magnitude{0x1p63, true});
  if (!isNew)
    return it->second;
  unsigned width = value.getType().getIntOrFloatBitWidth();
  Operation *op = value.getDefiningOp();
  // Loop variables are i32.
  Magnitude any{std::ldexp(1, width == 1 ? 0 : width - 1),
                op ? true : width > 32};
  Magnitude result = op ? ofOperation(op, any) : any;
  result.most = std::min(result.most, any.most);
  known[value] = result;
  return result;
}

Magnitude Magnitudes::ofOperation(Operation *op, Magnitude any) {
  if (!isa<arith::ArithDialect>(op->getDialect())) {
    any.isAny = !isa<heed::halide::ParamOp, heed::halide::ExtentOp,
                     heed::halide::MinOp, heed::halide::FactorOp>(op) ||
                any.most > 0x1p31;
    return any;
  }
  APInt number;
  if (matchPattern(op->getResult(0), m_ConstantInt(&number))) {
    double most = number.abs().roundToDouble();
    return {most, most > 0x1p31};
  }
  // Only integers of integers below.
  if (llvm::any_of(op->getOperands(), [](Value operand) {
        return !operand.getType().isInteger();
      }))
    return any;
  SmallVector<Magnitude> x;
  for (Value operand : op->getOperands())
    x.push_back(of(operand));
  bool isAny = llvm::any_of(x, [](Magnitude m) { return m.isAny; });
  return TypeSwitch<Operation *, Magnitude>(op)
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(
          [&](auto) { return x[0]; })
      .Case<arith::AddIOp, arith::SubIOp, arith::MulIOp>(
          [&](auto) { return Magnitude{unbounded(op), isAny}; })
      .Case<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(
          [&](auto) { return Magnitude{x[0].most, isAny}; })
      .Case([&](arith::RemSIOp) {
        return Magnitude{std::min(x[0].most, x[1].most), isAny};
      })
      .Case<arith::MaxSIOp, arith::MinSIOp>([&](auto) {
        return Magnitude{std::max(x[0].most, x[1].most), isAny};
      })
      .Case([&](arith::SelectOp) {
        return Magnitude{std::max(x[1].most, x[2].most), isAny};
      })
      .Default([&](Operation *) { return Magnitude{any.most, true}; });
}

/// Whether \p op adds to an element of a func what an update of it yields:
/// libHalide knows such sums by their form, and nothing else reads them.
static bool accumulates(Operation *op) {
  auto update = op->getParentOfType<heed::halide::UpdateOp>();
  return update && isa<arith::AddIOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           auto read = operand.getDefiningOp<heed::halide::ReadOp>();
           return read && read.getFunc() == update.getFunc();
         });
}

bool heed::mayWrap(Operation *op) {
  if (!op->getResult(0).getType().isInteger(64) || accumulates(op))
    return false;
  Magnitudes magnitudes;
  bool isAny = magnitudes.of(op->getOperand(0)).isAny ||
               magnitudes.of(op->getOperand(1)).isAny;
  return isAny && magnitudes.unbounded(op) >= 0x1p63;
}
