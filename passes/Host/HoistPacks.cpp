//===- HoistPacks.cpp - weights are packed once ---------------------------===//
//
// Schedules of kernels want weights packed, by pipelines that AttnToHalide has
// the host call: of what is the same in every call these calls move to the
// function that runs when the model is opened (passes/Plan/Hoisting.h).
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Passes.h"
#include "passes/Plan/Hoisting.h"

namespace heed {
#define GEN_PASS_DEF_ATTNHOISTPACKS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

struct HoistPacks : heed::impl::AttnHoistPacksBase<HoistPacks> {
  void runOnOperation() override {
    hoist(getOperation(),
          {"attn-hoist-packs",
           [](Operation *op) { return isa<halide::CallOp>(op); },
           // A pipeline moves every element that it packs.
           [](Operation *) { return false; }});
  }
};

} // namespace
