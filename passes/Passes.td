//===- Passes.td - every pass of ours, one entry each --------------------------------------===//
// An entry's description holds the IR before and after; its lit test has the same case. Keep DESIGN.md's order.

#ifndef HEED_PASSES_PASSES_TD
#define HEED_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnFuseElementwise : Pass<"attn-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Elementwise producers are computed where they are read";
  let description = [{
    An elementwise `linalg.generic` is inlined into the ops that read it, as an operand or through `tensor.extract` at
    any coordinates, so that between two contractions stands one elementwise body, and head splits, casts and
    conditions leave no tensor behind. Stored, with a remark: what is read many times or by several ops and costs more than a load,
    what stands outside of the reader's loop, and tables in f64. A table over i and j that depends on j - i alone
    becomes a table over the offset.

    ```mlir
    %a = linalg.generic ins(%x) ... {mulf %x, %c}
    %b = linalg.generic ins(%a) ... {tanh %a}
    ```
    becomes
    ```mlir
    %b = linalg.generic ins(%x) ... {mulf %x, %c; tanh}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AttnRaiseAttention : Pass<"attn-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "Contraction, score, normaliser, contraction to attn.attention";
  let description = [{
    Finds, by meaning and not by spelling, a sum over keys of a weight times a value, where the weight is a softmax of
    scores, or any other function of a contraction of queries with keys. A score of -inf (a select, an added mask)
    becomes `where`; softmax may be written out with max, exp and sum, its division may stand after the second
    product; a term beside the sum is the sink; sigmoid, relu and other weights without a row sum are raised too; what multiplies a
    weight after the normaliser is `weight`. What varies over pairs is taken apart, what varies over one side stays a
    tensor. A clipped offset becomes a table over offsets. What only transposes or narrows the whole output (merged heads)
    becomes `result_map`. A quotient that is written out keeps its NaN in rows without a key of weight (`empty`). Left alone, with a remark: weights that are read elsewhere
    too, heads that mix, a chain of plain products (attn-reorder-products).

    ```mlir
    %s = linalg.generic ins(%q, %k) ... {mulf, addf}                        // N x M scores
    %p, %live = attn.softmax %s axes([1]) where (%i, %j) {...}
    %o = linalg.generic ins(%p, %live, %v) ... {mulf, select, addf}
    ```
    becomes
    ```mlir
    %o = attn.attention dims(...) sizes(...) term(%q, %k) maps [...] value(%v) maps [...]
        score (%i, %j, %t) {...} where (%i, %j) {...} normalise(exp divide stabilise)
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnReorderProducts : Pass<"attn-reorder-products", "::mlir::func::FuncOp"> {
  let summary = "Chains of contractions in their cheapest order";
  let description = [{
    A sum over products one of which is itself a contraction may be summed in another order: (Q K^T) V costs N M (E + F),
    Q (K^T V) costs (N + M) E F. Factors that do not depend on what is summed (a normaliser, scales of a
    query) move out of the sums. Known sizes decide here; symbolic ones by `scf.if` on the host, in each call. A chain of four of known
    sizes is reordered step by step. Left alone, with a remark: a sum with a condition over pairs (causal), a sum over more than three factors at
    once. Products with parameters alone keep their order.

    ```mlir
    %a = linalg.generic ins(%q, %k) ...     // N x M
    %o = linalg.generic ins(%a, %v) ...     // N x F
    ```
    becomes
    ```mlir
    %kv = linalg.generic ins(%k, %v) ...    // E x F
    %o = linalg.generic ins(%q, %kv) ...    // N x F
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AttnSolveMasks : Pass<"attn-solve-masks", "::mlir::func::FuncOp"> {
  let summary = "Which keys each tile of queries sees";
  let description = [{
    For a tile of queries i0..i1 the `where` of an attention is solved for the key: outside of `reach` no query of the
    tile sees a key, in `full` every query sees every key. Both are unions of pieces: a range of keys, and perhaps a
    condition on the block of keys j0..j1. Comparisons of integers that separate into a part of i and a part of j become
    ranges, exactly (shifts, products, floor divisions, min, max, abs of them; two bounds of j - i that leave nothing
    make an empty piece); `and` intersects, `or` unites. What depends on data is known by its least and greatest value over
    a tile, or over a block (`tile`, `block` are their indices): a part of i alone bounds ranges, anything else is
    evaluated on intervals, to: nowhere, somewhere, everywhere. That is right for any data, and exact for lengths,
    spans, flags, sorted documents. What is left, is evaluated per element: it reaches all keys and fills none. The pieces
    are attached as text; schedules ask `solveMask` (MaskBounds.h) for them as expressions.

    ```mlir
    attn.attention ... where (%i, %j) { j <= i and i - j < 64 }
    ```
    becomes
    ```mlir
    attn.attention ... {attn.mask = {exact = true, reach = [["max(0, i0 - 63)", "min(M, i1 + 1)"]], full = ...}}
    ```
  }];
}

def AttnChooseAlgorithm : Pass<"attn-choose-algorithm"> {
  let summary = "How each attention is computed";
  let description = [{
    Sets `attn.algorithm` on every `attn.attention` that has none: "streaming" (one pass over the keys, nothing of
    size N x M is stored) where the schedule family can do it, else "row block" (its definition, one tile of queries
    after the other, the scores of a tile in scratch), else "materialised" (its definition, scores stored).

    Operations that no attention op can say, with a row-wise one between scores and values (heads that mix, norms of
    scores, softmax renormalised; or a softmax whose weights are a result), get `attn.row_block = number` where they
    share loops over queries and are read by each other alone: attn-form-kernels makes each number one kernel.

    ```mlir
    %o = attn.attention ... normalise(exp divide stabilise) : tensor<?x?x?x?xf32>
    // becomes
    %o = attn.attention ... normalise(exp divide stabilise) {attn.algorithm = "streaming"} : tensor<?x?x?x?xf32>
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect"];
}

def AttnFormKernels : Pass<"attn-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Outlines the tensor mathematics of a model as kernels";
  let description = [{
    What one kernel can compute without storing what is between is one function with `attn.kernel`: elementwise
    producers, the epilogue of a contraction, reductions over the same rows. Equal kernels are one function. What
    stays in the model is its host code (docs/ir.md, section 3). The predicate of a softmax is recomputed where
    its `live` is read.

    ```mlir
    func.func @scale(%x: tensor<?xf32>, %c: f32, %n: index) -> tensor<?xf32> attributes {attn.model} {
      %e = tensor.empty(%n) : tensor<?xf32>
      %y = linalg.generic ... ins(%x) outs(%e) { arith.mulf %in, %c ... }
      return %y
    }
    // becomes
    func.func @scale(%x, %c, %n) -> tensor<?xf32> attributes {attn.model} {
      %y = call @scale_elementwise(%x, %c, %n)
      return %y
    }
    func.func private @scale_elementwise(%x, %c, %n) -> tensor<?xf32> attributes {attn.kernel} { ... }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AttnRelaxMath : Pass<"attn-relax-math", "::mlir::ModuleOp"> {
  let summary = "Lets the arithmetic of kernels leave the error bounds";
  let description = [{
    Only with `--fast-math`. Sums, differences, products and quotients that the model states may be reordered and
    contracted; comparisons, f64 tables and what schedules bring with them stay as they are.

    ```mlir
    %y = arith.mulf %x, %c : f32
    // becomes
    %y = arith.mulf %x, %c fastmath<reassoc,contract> : f32
    ```
  }];
}

def AttnToHalide : Pass<"attn-to-halide", "::mlir::ModuleOp"> {
  let summary = "Kernels become Halide pipelines with a schedule";
  let description = [{
    Every function with `attn.kernel` becomes a `halide.pipeline`, and its calls `halide.call` with destinations
    (docs/ir.md, section 4). The algorithm is translated first; then the schedule family that fits appends its ops,
    from the description of the target.

    ```mlir
    %y = call @scale_elementwise(%x, %c, %n) : (tensor<?xf32>, f32, index) -> tensor<?xf32>
    // becomes
    %e = tensor.empty(%n) : tensor<?xf32>
    %y = halide.call @scale_elementwise (%x, %c, %n : tensor<?xf32>, f32, index) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    ```
  }];
  let dependentDialects = ["::heed::halide::HalideDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnPlanMemory : Pass<"attn-plan-memory", "::mlir::func::FuncOp"> {
  let summary = "One arena from the lifetimes of the host's buffers";
  let description = [{
    Runs on memrefs, after bufferisation and before deallocation. Buffers whose lifetimes do not meet share a slot;
    the slots lie one after the other in one allocation, aligned to 64 bytes. Sizes may be symbolic: a slot is as
    large as its largest buffer. A buffer in a branch of an `scf.if` counts in calls that take the branch. Left alone: a
    buffer that leaves its block (a result, or carried to the next iteration), or whose size or branch is not known
    where the arena is made.

    ```mlir
    %a = memref.alloc(%n) : memref<?xf32>            // in use until %b is written
    %b = memref.alloc(%n) : memref<?xf32>
    %c = memref.alloc(%n) : memref<?xf32>            // in use after %a
    ```
    becomes
    ```mlir
    %arena = memref.alloc(%total) {alignment = 64 : i64} : memref<?xi8>
    %a = memref.view %arena[%o0][%n] : memref<?xi8> to memref<?xf32>
    %b = memref.view %arena[%o1][%n] : memref<?xi8> to memref<?xf32>
    %c = memref.view %arena[%o0][%n] : memref<?xi8> to memref<?xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def AttnFormEntries : Pass<"attn-form-entries", "::mlir::ModuleOp"> {
  let summary = "Models to functions that write their results where the caller says";
  let description = [{
    A model (`attn.model`) gets one memref argument per result (`attn.result`) and returns nothing. Beside it stands
    `@<model>.shapes`, which takes the same arguments, makes the same checks of sizes and returns the extents of all
    results; it computes no element. Runs on tensors, right before bufferisation; inputs are marked as not writable.

    ```mlir
    func.func @m(%x: tensor<?xf32>) -> (tensor<?xf32> {attn.name = "y"}) attributes {attn.model} {
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      ...
      return %y : tensor<?xf32>
    }
    // becomes
    func.func @m(%x: tensor<?xf32>, %out: memref<?xf32> {attn.name = "y", attn.result}) attributes {attn.model} {
      ...
      bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
      return
    }
    func.func private @m.shapes(%x: tensor<?xf32>) -> index {
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      return %n : index
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
}

def AttnLowerHost : Pass<"attn-lower-host", "::mlir::ModuleOp"> {
  let summary = "What the host asks of the runtime becomes calls of its C functions";
  let description = [{
    On memrefs. Every function gets the model handle as its first argument; `attn.param`, `attn.require`,
    `attn.require_in_range`, `memref.alloc`, `memref.dealloc` and `halide.call` become calls into runtime/host.h.
    Each model gets two C functions that unpack `heed_buffer`s, and the module gets `attn.description`: entries,
    parameters and kernels, from which code generation makes the model's constant. Kernels get the model's prefix.

    ```mlir
    %w = attn.param "layer.{0}.w" [%l] : memref<4xf32>
    // becomes
    %p = llvm.call @heed_host_param(%model, %number, %indices) : (!llvm.ptr, i32, !llvm.ptr) -> !llvm.ptr
    ```
  }];
  let options = [Option<"prefix", "prefix", "std::string", "\"heed\"", "what the model's symbols begin with">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

//===--- contracts between stations: docs/ir.md ------------------------------------------------------------===//

class AttnVerify<string station, int section, string what> : Pass<"attn-verify-" # station, "::mlir::ModuleOp"> {
  let summary = "Checks " # what;
  let description = "Fails at the first op that breaks a rule of section " # section # [{ of docs/ir.md and names the rule.
    heedc runs it between its stations; it changes nothing.
  }];
}
def AttnVerifyFrontEnd : AttnVerify<"front-end", 1, "the IR that a front end makes">;
def AttnVerifyAttention : AttnVerify<"attention", 2, "attentions before kernels are formed">;
def AttnVerifyKernels : AttnVerify<"kernels", 3, "kernels and the host that calls them">;
def AttnVerifyHalide : AttnVerify<"halide", 4, "pipelines and the host that calls them">;
def AttnVerifyHost : AttnVerify<"host", 5, "host code before it becomes LLVM">;

#endif
