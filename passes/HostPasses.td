//===- HostPasses.td - from host tensors to calls of the runtime -------------------===//
#ifndef HEED_PASSES_HOSTPASSES_TD
#define HEED_PASSES_HOSTPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnPlanMemory : Pass<"attn-plan-memory", "::mlir::func::FuncOp"> {
  let summary = "One arena from the lifetimes of the host's buffers";
  let description = [{
    Runs on memrefs, after bufferisation and before deallocation. Buffers whose lifetimes do not meet share a slot;
    the slots lie one after the other in one allocation, aligned to 64 bytes. Sizes may be symbolic: a slot is as
    large as its largest buffer. A buffer in a branch of an `scf.if` counts in calls that take the branch. Left alone: a
    buffer that leaves its block (a result, or carried to the next iteration), or whose size or branch is not known
    where the arena is made.

    ```mlir
    func.func @f(%x: memref<20xf32>, %y: memref<20xf32>) {
      %a = memref.alloc() : memref<20xf32>
      memref.copy %x, %a : memref<20xf32> to memref<20xf32>
      %b = memref.alloc() : memref<20xf32>
      memref.copy %a, %b : memref<20xf32> to memref<20xf32>
      %c = memref.alloc() : memref<20xf32>
      memref.copy %b, %c : memref<20xf32> to memref<20xf32>
      memref.copy %c, %y : memref<20xf32> to memref<20xf32>
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<20xf32>, %y: memref<20xf32>) {
      %c0 = arith.constant 0 : index
      %c128 = arith.constant 128 : index
      %arena = memref.alloc() {alignment = 64 : i64} : memref<256xi8>
      %a = memref.view %arena[%c0][] : memref<256xi8> to memref<20xf32>
      memref.copy %x, %a : memref<20xf32> to memref<20xf32>
      %b = memref.view %arena[%c128][] : memref<256xi8> to memref<20xf32>
      memref.copy %a, %b : memref<20xf32> to memref<20xf32>
      memref.copy %b, %a : memref<20xf32> to memref<20xf32>
      memref.copy %a, %y : memref<20xf32> to memref<20xf32>
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def AttnHoistPacks : Pass<"attn-hoist-packs", "::mlir::ModuleOp"> {
  let summary = "Weights are packed once, when the model is opened";
  let description = [{
    Schedules read weights in an order of their own, which a pipeline of each makes (`attn-to-halide`). Calls of pipelines
    that are the same in every call of the model move to the function with `attn.init`, as `attn-hoist-weights` moves
    tensor mathematics. Left alone, with a remark: a call that depends on an input, or on a size that is known in a call only.

    ```mlir
    func.func @transposed(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) attributes {attn.model} {
      %w = attn.param "w" : tensor<4x8xf32>
      %e = tensor.empty() : tensor<8x4xf32>
      %p = halide.call @pack(%w : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
      %y = halide.call @pack(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
      return %p, %y : tensor<8x4xf32>, tensor<8x4xf32>
    }
    halide.pipeline @pack {
      %w = halide.buffer "w" ("j", "i") : f32
      %f = halide.func "f" (%i = "i", %j = "j") : f32 {
        %v = halide.read %w[%j, %i] : f32
        halide.yield %v : f32
      }
      halide.output %f
    }
    ```
    becomes
    ```mlir
    module {
      func.func @transposed(%arg0: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) attributes {attn.model} {
        %0 = tensor.empty() : tensor<8x4xf32>
        %c0 = arith.constant 0 : index
        %1 = attn.kept %c0 : tensor<8x4xf32>
        %2 = halide.call @pack(%arg0 : tensor<4x8xf32>) outs(%0 : tensor<8x4xf32>) -> tensor<8x4xf32>
        return %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
      }
      halide.pipeline @pack {
        %w = halide.buffer "w" ("j", "i") : f32
        %f = halide.func "f" (%i = "i", %j = "j") : f32 {
          %0 = halide.read %w[%j, %i] : f32
          halide.yield %0 : f32
        }
        halide.output %f
      }
      func.func private @init() attributes {attn.init, attn.slots = 1 : i64} {
        %c0 = arith.constant 0 : index
        %0 = attn.param "w" : tensor<4x8xf32>
        %1 = tensor.empty() : tensor<8x4xf32>
        %2 = halide.call @pack(%0 : tensor<4x8xf32>) outs(%1 : tensor<8x4xf32>) -> tensor<8x4xf32>
        attn.keep %2 in %c0 : tensor<8x4xf32>
        return
      }
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::scf::SCFDialect"];
}

def AttnFormEntries : Pass<"attn-form-entries", "::mlir::ModuleOp"> {
  let summary = "Models to functions that write their results where the caller says";
  let description = [{
    A model (`attn.model`) gets one memref argument per result (`attn.result`) and returns nothing. Beside it stands
    `@<model>.shapes`, which takes the same arguments, makes the same checks of sizes and returns the extents of all
    results; it computes no element. Runs on tensors, right before bufferisation; inputs are marked as not writable.

    ```mlir
    func.func @double(%x: tensor<?xf32>) -> (tensor<?xf32> {attn.name = "y"}) attributes {attn.model} {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %e = tensor.empty(%n) : tensor<?xf32>
      %y = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      return %y : tensor<?xf32>
    }
    ```
    becomes
    ```mlir
    func.func @double(%x: tensor<?xf32> {bufferization.writable = false},
                      %out: memref<?xf32> {attn.name = "y", attn.result}) attributes {attn.model} {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %e = tensor.empty(%n) : tensor<?xf32>
      %y = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
      return
    }
    func.func private @double.shapes(%x: tensor<?xf32> {bufferization.writable = false}) -> index
        attributes {attn.shapes_of = @double} {
      %c0 = arith.constant 0 : index
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
    Each model gets two C functions that unpack `heed_argument`s, and the module gets `attn.description`: entries,
    parameters and kernels, from which code generation makes the model's constant. Kernels get the model's prefix.

    ```mlir
    func.func @f(%y: memref<4xf32> {attn.name = "y", attn.result}) attributes {attn.model} {
      %w = attn.param "w" [] : memref<4xf32>
      memref.copy %w, %y : memref<4xf32> to memref<4xf32>
      return
    }
    func.func private @f.shapes() -> index {
      %n = arith.constant 4 : index
      return %n : index
    }
    ```
    becomes
    ```mlir
    ...
      func.func private @f(%model: !llvm.ptr, %y: memref<4xf32>) attributes {attn.model} {
        ...
        %p = llvm.call @heed_host_param(%model, %number, %indices) : (!llvm.ptr, i32, !llvm.ptr) -> !llvm.ptr
        ...
        memref.copy %w, %y : memref<4xf32> to memref<4xf32>
        return
      }
      func.func private @f.shapes(%model: !llvm.ptr) -> index {
    ...
      func.func @heed.f.run(%model: !llvm.ptr, %inputs: !llvm.ptr, %outputs: !llvm.ptr) -> i32 {
        ...
        call @f(%model, %y) : (!llvm.ptr, memref<4xf32>) -> ()
        return %ok : i32
      }
      func.func @heed.f.ask(%model: !llvm.ptr, %inputs: !llvm.ptr, %outputs: !llvm.ptr) -> i32 {
    ...
    ```
  }];
  let options = [Option<"prefix", "prefix", "std::string", "\"heed\"", "what the model's symbols begin with">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

//===--- contracts between stations: docs/ir.md ------------------------------------------------------------===//

#endif
