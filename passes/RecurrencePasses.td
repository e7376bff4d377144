//===- RecurrencePasses.td - recurrences: what their steps are ----------------------===//
#ifndef HEED_PASSES_RECURRENCEPASSES_TD
#define HEED_PASSES_RECURRENCEPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnLowerScans : Pass<"attn-lower-scans", "::mlir::func::FuncOp"> {
  let summary = "Recurrences as loops over their steps";
  let description = [{
    A recurrence that no other form was found for is its definition: a loop that carries the states, and the outputs,
    of which each step writes its row. The passes behind this one know loops alone.

    ```mlir
    func.func @f(%x: tensor<?x4xf32>, %S0: tensor<4xf32>, %N: index) -> (tensor<4xf32>, tensor<?x4xf32>) {
      %zero = arith.constant 0 : index
      %e = tensor.empty(%N) : tensor<?x4xf32>
      %S, %o = attn.scan %t = %zero to %N states(%s = %S0 : tensor<4xf32>) rows(%e axis 0 : tensor<?x4xf32>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
        attn.step states(%row : tensor<4xf32>) rows(%s : tensor<4xf32>)
      }
      return %S, %o : tensor<4xf32>, tensor<?x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<?x4xf32>, %S0: tensor<4xf32>, %N: index) -> (tensor<4xf32>, tensor<?x4xf32>) {
      %zero = arith.constant 0 : index
      %e = tensor.empty(%N) : tensor<?x4xf32>
      %one = arith.constant 1 : index
      %r:2 = scf.for %t = %zero to %N step %one iter_args(%s = %S0, %o = %e) -> (tensor<4xf32>, tensor<?x4xf32>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
        %p = arith.subi %t, %zero : index
        %i = tensor.insert_slice %s into %o[%p, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
        scf.yield %row, %i : tensor<4xf32>, tensor<?x4xf32>
      }
      return %r#0, %r#1 : tensor<4xf32>, tensor<?x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
}

#endif
