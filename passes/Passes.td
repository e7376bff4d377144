//===- Passes.td - every pass of ours, one entry each --------------------------------------===//
// An entry's description holds the IR before and after; its lit test has the same case. Keep DESIGN.md's order.

#ifndef HEED_PASSES_PASSES_TD
#define HEED_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnPlanMemory : Pass<"attn-plan-memory", "::mlir::func::FuncOp"> {
  let summary = "One arena from the lifetimes of the host's buffers";
  let description = [{
    Runs on memrefs, after bufferisation and before deallocation. Buffers whose lifetimes do not meet share a slot;
    the slots lie one after the other in one allocation, aligned to 64 bytes. Sizes may be symbolic: a slot is as
    large as its largest buffer. Left alone: a buffer that leaves its block (a result, or carried to the next
    iteration), or whose size is not known where the arena is made.

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

#endif
