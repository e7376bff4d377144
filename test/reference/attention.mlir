// The definition, run: causal attention over three keys, where the masked keys hold NaN and one row has no key.
// RUN: heed-opt %s -attn-decompose -reference-promote -canonicalize -cse -one-shot-bufferize=bufferize-function-boundaries \
// RUN:   -convert-linalg-to-loops -arith-expand -expand-strided-metadata -lower-affine -convert-math-to-libm -convert-scf-to-cf -convert-vector-to-llvm -convert-to-llvm -reconcile-unrealized-casts -o %t.mlir
// RUN: %mlir_runner %t.mlir -e main --entry-point-result=void --shared-libs=%mlir_lib/libmlir_c_runner_utils.so | FileCheck %s
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>

func.func @attention(%q: tensor<3x1xf32>, %k: tensor<3x1xf32>, %v: tensor<3x1xf32>) -> (tensor<3x1xf32>, tensor<3xf32>) {
  %n = arith.constant 3 : index
  %1 = arith.constant 1 : index
  %o, %lse = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %1, %1)
      term(%q, %k : tensor<3x1xf32>, tensor<3x1xf32>) maps [#q, #k]
      value(%v : tensor<3x1xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      where (%i, %j) {
        %c = arith.cmpi slt, %j, %i : index
        attn.yield %c : i1
      }
      normalise(exp divide stabilise) : tensor<3x1xf32>, lse tensor<3xf32>
  return %o, %lse : tensor<3x1xf32>, tensor<3xf32>
}

// Row 0 has no key; row 1 sees v = 5; row 2 weighs 5 and 7 by exp(1) and exp(1). Its log-sum-exp is 1 + log 2.
// CHECK: 0
// CHECK-NEXT: -inf
// CHECK-NEXT: 5
// CHECK-NEXT: 1
// CHECK-NEXT: 6
// CHECK-NEXT: 1.69315
func.func @main() {
  %q = arith.constant dense<1.0> : tensor<3x1xf32>
  %k = arith.constant dense<[[1.0], [1.0], [0x7FC00000]]> : tensor<3x1xf32>
  %v = arith.constant dense<[[5.0], [7.0], [0x7FC00000]]> : tensor<3x1xf32>
  %o, %l = func.call @attention(%q, %k, %v) : (tensor<3x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>) -> (tensor<3x1xf32>, tensor<3xf32>)
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  scf.for %i = %0 to %3 step %1 {
    %x = tensor.extract %o[%i, %0] : tensor<3x1xf32>
    %y = tensor.extract %l[%i] : tensor<3xf32>
    vector.print %x : f32
    vector.print %y : f32
  }
  return
}
