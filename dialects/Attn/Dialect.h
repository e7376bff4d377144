//===- Dialect.h - the attn dialect and its ops -----------------*- C++ -*-===//
#ifndef HEED_DIALECTS_ATTN_DIALECT_H
#define HEED_DIALECTS_ATTN_DIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Attn/Dialect.h.inc"
#include "dialects/Attn/Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Attn/Attrs.h.inc"

namespace heed::attn {

/// The kinds of loop dims of `attn.attention`, in the order in which they
/// stand.
enum class DimKind : unsigned { Batch, Query, Key, Contract, Value };

/// What a failed check writes: the status of the call.
struct FailureResource : mlir::SideEffects::Resource::Base<FailureResource> {
  llvm::StringRef getName() final { return "<Failure>"; }
};

/// What `init` computes from the weights, see `attn.keep`.
struct KeptResource : mlir::SideEffects::Resource::Base<KeptResource> {
  llvm::StringRef getName() final { return "<Kept>"; }
};

/// Names of discardable attributes (docs/ir.md).
inline constexpr llvm::StringLiteral kModelAttr = "attn.model";
/// On an argument and a result of the same name: what a state is before a call
/// and after it.
inline constexpr llvm::StringLiteral kStateAttr = "attn.state";
/// On such an argument: what heed_state_trim() may do with it, "count",
/// "recurrent" or "ring".
inline constexpr llvm::StringLiteral kTrimAttr = "attn.trim";
/// On an `attn.require` whose condition data decides, not sizes.
inline constexpr llvm::StringLiteral kOfDataAttr = "attn.of_data";
inline constexpr llvm::StringLiteral kKernelAttr = "attn.kernel";
/// On the function that runs once when a model is opened.
inline constexpr llvm::StringLiteral kInitAttr = "attn.init";
/// On it: how many slots `attn.keep` fills, an i64.
inline constexpr llvm::StringLiteral kSlotsAttr = "attn.slots";
inline constexpr llvm::StringLiteral kNameAttr = "attn.name";
inline constexpr llvm::StringLiteral kDimsAttr = "attn.dims";
inline constexpr llvm::StringLiteral kDefaultAttr = "attn.default";
inline constexpr llvm::StringLiteral kSourceAttr = "attn.source";
/// On a module: stores of weights are traced, pair by pair (--count-pairs).
inline constexpr llvm::StringLiteral kCountPairsAttr = "attn.count_pairs";
/// On an attention, a PlanAttr.
inline constexpr llvm::StringLiteral kPlanAttr = "attn.plan";

/// Lets one-shot bufferisation turn `attn.param`, `attn.kept` and
/// `attn.require_in_range` on tensors into the same ops on memrefs.
void registerBufferization(mlir::DialectRegistry &registry);

class AttentionLike;

/// What the interface's methods of the same names do.
namespace detail {
unsigned firstDim(llvm::ArrayRef<int64_t> dims, DimKind kind);
DimKind dimKind(llvm::ArrayRef<int64_t> dims, unsigned dim);
mlir::OperandRange term(AttentionLike op, unsigned term);
llvm::SmallVector<mlir::AffineMap> maps(AttentionLike op, unsigned term);
llvm::SmallVector<unsigned> contractDims(AttentionLike op, unsigned term);
std::optional<int> offsetSign(AttentionLike op, mlir::AffineExpr position);
} // namespace detail

} // namespace heed::attn

#include "dialects/Attn/Interfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Attn/Ops.h.inc"

namespace heed::attn {

/// Arguments of the region `mask` behind the batch indices and before those of
/// tables: i, j, i0, i1, j0, j1, N, M.
constexpr unsigned kMaskIndices = 8;

/// Checks attention.c15.
llvm::LogicalResult verifyMask(AttentionLike op);

} // namespace heed::attn

#endif
