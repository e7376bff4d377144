// What heedc runs, by name in heed-opt: from attn IR to kernels, from a host on tensors to calls of the runtime, and
// from there to LLVM.
// RUN: heedc %heed_src/models/core/causal-attention.heed --emit=attn -o - | heed-opt --heed-kernels -o %t.kernels.mlir
// RUN: FileCheck %s --check-prefix=KERNELS < %t.kernels.mlir
// RUN: heed-opt %t.kernels.mlir --heed-host -o %t.host.mlir
// RUN: FileCheck %s --check-prefix=HOST < %t.host.mlir
// RUN: heed-opt %s --heed-llvm | FileCheck %s --check-prefix=LLVM

// KERNELS-DAG: halide.pipeline @
// KERNELS-DAG: halide.call @
// KERNELS-NOT: attn.attention

// HOST-NOT: tensor<
// HOST: llvm.call @heed_host_kernel
// HOST-NOT: tensor<

// LLVM: llvm.func @first(
// LLVM-NOT: memref.load
// LLVM: llvm.load
func.func @first(%x: memref<4xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %value = memref.load %x[%zero] : memref<4xf32>
  return %value : f32
}
