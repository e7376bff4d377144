// The state of blocks of two keys and what finishes it are the attention that they were: the same numbers with and without the pass.
// RUN: heed-opt %s -attn-decompose -reference-promote -canonicalize -cse -one-shot-bufferize="bufferize-function-boundaries allow-return-allocs-from-loops" \
// RUN:   -convert-linalg-to-loops -arith-expand -expand-strided-metadata -lower-affine -convert-math-to-libm -convert-scf-to-cf -convert-vector-to-llvm -convert-to-llvm -reconcile-unrealized-casts -o %t.mlir
// RUN: %mlir_runner %t.mlir -e main --entry-point-result=void --shared-libs=%mlir_lib/libmlir_c_runner_utils.so | FileCheck %s
// RUN: heed-opt %s -attn-stream-attention -o %t.online.mlir
// RUN: FileCheck %s --check-prefix=ONLINE < %t.online.mlir
// RUN: heed-opt %t.online.mlir -attn-decompose -reference-promote -canonicalize -cse -one-shot-bufferize="bufferize-function-boundaries allow-return-allocs-from-loops" \
// RUN:   -convert-linalg-to-loops -arith-expand -expand-strided-metadata -lower-affine -convert-math-to-libm -convert-scf-to-cf -convert-vector-to-llvm -convert-to-llvm -reconcile-unrealized-casts -o %t.mlir
// RUN: %mlir_runner %t.mlir -e main --entry-point-result=void --shared-libs=%mlir_lib/libmlir_c_runner_utils.so | FileCheck %s
// ONLINE-NOT: attn.attention
// ONLINE-COUNT-5: attn.finish
#plan = #attn.plan<streaming, [<tiles, queries = 2, block = 2, piece = 2>]>
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>
#query = affine_map<(i, j) -> (i)>

// Masked keys hold NaN, one row has no key.
func.func @causal(%q: tensor<3x1xf32>, %k: tensor<3x1xf32>, %v: tensor<3x1xf32>) -> (tensor<3x1xf32>, tensor<3xf32>) attributes {attn.kernel} {
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
      normalise(exp divide stabilise) {attn.plan = #plan} : tensor<3x1xf32>, lse tensor<3xf32>
  return %o, %lse : tensor<3x1xf32>, tensor<3xf32>
}

// A score of -inf excludes its key, whose value is NaN; the sink is all that the second row has, and larger than the rest of the third.
func.func @sink(%s: tensor<3x3xf32>, %v: tensor<3xf32>, %t: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) attributes {attn.kernel} {
  %n = arith.constant 3 : index
  %o, %lse = attn.attention dims(batch = 0, query = 1, key = 1, contract = 0, value = 0) sizes(%n, %n)
      term(%s : tensor<3x3xf32>) maps [#pair] value(%v : tensor<3xf32>) maps [#key]
      sink(%t : tensor<3xf32>) map #query
      score (%i, %j : index, %x : f32) { attn.yield %x : f32 }
      normalise(exp divide stabilise) {attn.plan = #plan} : tensor<3xf32>, lse tensor<3xf32>
  return %o, %lse : tensor<3xf32>, tensor<3xf32>
}

// The maximum grows from block to block; a NaN takes its row.
func.func @growing(%s: tensor<3x3xf32>, %v: tensor<3xf32>) -> tensor<3xf32> attributes {attn.kernel} {
  %n = arith.constant 3 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 0, value = 0) sizes(%n, %n)
      term(%s : tensor<3x3xf32>) maps [#pair] value(%v : tensor<3xf32>) maps [#key]
      score (%i, %j : index, %x : f32) { attn.yield %x : f32 }
      normalise(exp divide stabilise) {attn.plan = #plan} : tensor<3xf32>
  return %o : tensor<3xf32>
}

// No maximum; what an empty row is, is said; axes of the result in another order. A weight of -0 is no absent key.
func.func @empty(%s: tensor<2x3x3xf32>, %v: tensor<3xf32>) -> tensor<3x2xf32> attributes {attn.kernel} {
  %n = arith.constant 3 : index
  %b = arith.constant 2 : index
  %nan = arith.constant 0x7FC00000 : f32
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 0, value = 0) sizes(%b, %n, %n)
      term(%s : tensor<2x3x3xf32>) maps [affine_map<(b, i, j) -> (b, i, j)>] value(%v : tensor<3xf32>) maps [affine_map<(b, i, j) -> (j)>]
      empty(%nan) result_map affine_map<(b, i, j) -> (i, b)>
      score (%h, %i, %j : index, %x : f32) { attn.yield %x : f32 }
      where (%h, %i, %j) {
        %c = arith.cmpi slt, %j, %i : index
        attn.yield %c : i1
      }
      normalise(identity divide) {attn.plan = #plan} : tensor<3x2xf32>
  return %o : tensor<3x2xf32>
}

// Nothing is divided; a factor at each weight.
func.func @weighted(%s: tensor<3x3xf32>, %v: tensor<3xf32>, %g: tensor<3xf32>) -> tensor<3xf32> attributes {attn.kernel} {
  %n = arith.constant 3 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 0, value = 0) sizes(%n, %n)
      term(%s : tensor<3x3xf32>) maps [#pair] value(%v : tensor<3xf32>) maps [#key]
      score (%i, %j : index, %x : f32) { attn.yield %x : f32 }
      weight (%i, %j : index, %w : f32) {
        %x = tensor.extract %g[%j] : tensor<3xf32>
        %y = arith.mulf %w, %x : f32
        attn.yield %y : f32
      }
      normalise(relu) {attn.plan = #plan} : tensor<3xf32>
  return %o : tensor<3xf32>
}

func.func @print(%x: tensor<3xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  scf.for %i = %0 to %3 step %1 {
    %e = tensor.extract %x[%i] : tensor<3xf32>
    vector.print %e : f32
  }
  return
}

func.func @main() {
  %nanKey = arith.constant dense<[[1.0], [1.0], [0x7FC00000]]> : tensor<3x1xf32>
  %q = arith.constant dense<1.0> : tensor<3x1xf32>
  %v = arith.constant dense<[[5.0], [7.0], [0x7FC00000]]> : tensor<3x1xf32>
  %o, %l = func.call @causal(%q, %nanKey, %v) : (tensor<3x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>) -> (tensor<3x1xf32>, tensor<3xf32>)
  %flat = tensor.collapse_shape %o [[0, 1]] : tensor<3x1xf32> into tensor<3xf32>
  // Row 1 sees v = 5; row 2 weighs 5 and 7 by exp(1) and exp(1), its log-sum-exp is 1 + log 2.
  // CHECK: 0
  // CHECK-NEXT: 5
  // CHECK-NEXT: 6
  // CHECK-NEXT: -inf
  // CHECK-NEXT: 1
  // CHECK-NEXT: 1.69315
  func.call @print(%flat) : (tensor<3xf32>) -> ()
  func.call @print(%l) : (tensor<3xf32>) -> ()

  %scores = arith.constant dense<[[0.0, 0xFF800000, 0.0], [0xFF800000, 0xFF800000, 0xFF800000], [0xFF800000, 0xFF800000, 0.0]]> : tensor<3x3xf32>
  %values = arith.constant dense<[2.0, 0x7FC00000, 4.0]> : tensor<3xf32>
  %sinks = arith.constant dense<[0.0, 3.0, 1.0]> : tensor<3xf32>
  %p, %m = func.call @sink(%scores, %values, %sinks) : (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  // (2 + 4) / 3; 0; 4 / (1 + e): log 3, 3, log(1 + e).
  // CHECK-NEXT: 2
  // CHECK-NEXT: 0
  // CHECK-NEXT: 1.07577
  // CHECK-NEXT: 1.09861
  // CHECK-NEXT: 3
  // CHECK-NEXT: 1.31326
  func.call @print(%p) : (tensor<3xf32>) -> ()
  func.call @print(%m) : (tensor<3xf32>) -> ()

  %steps = arith.constant dense<[[0.0, 200.0, 201.0], [0.0, 0.0, 0x7FC00000], [3.0, 0.0, 0x7F800000]]> : tensor<3x3xf32>
  %counts = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %r = func.call @growing(%steps, %counts) : (tensor<3x3xf32>, tensor<3xf32>) -> tensor<3xf32>
  // (3 + 2 / e) / (1 + 1 / e)
  // CHECK-NEXT: 2.73106
  // CHECK-NEXT: nan
  // CHECK-NEXT: nan
  func.call @print(%r) : (tensor<3xf32>) -> ()

  %signs = arith.constant dense<[[[9.0, 9.0, 9.0], [1.0, 9.0, 9.0], [1.0, 3.0, 9.0]], [[9.0, 9.0, 9.0], [-0.0, 9.0, 9.0], [2.0, 2.0, 9.0]]]> : tensor<2x3x3xf32>
  %s = func.call @empty(%signs, %counts) : (tensor<2x3x3xf32>, tensor<3xf32>) -> tensor<3x2xf32>
  %first = tensor.extract_slice %s[0, 0] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3xf32>
  %second = tensor.extract_slice %s[0, 1] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3xf32>
  // Of no key NaN; 1; (1 + 6) / 4. Of a key of weight 0 NaN, too: 0 / 0; (2 + 4) / 4.
  // CHECK-NEXT: nan
  // CHECK-NEXT: 1
  // CHECK-NEXT: 1.75
  // CHECK-NEXT: nan
  // CHECK-NEXT: nan
  // CHECK-NEXT: 1.5
  func.call @print(%first) : (tensor<3xf32>) -> ()
  func.call @print(%second) : (tensor<3xf32>) -> ()

  %mixed = arith.constant dense<[[-1.0, 3.0, 1.0], [0.5, -2.0, 0.0], [-1.0, -1.0, -1.0]]> : tensor<3x3xf32>
  %factors = arith.constant dense<[1.0, 2.0, -1.0]> : tensor<3xf32>
  %t = func.call @weighted(%mixed, %counts, %factors) : (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  // 3 * 2 * 2 - 3; 0.5; 0
  // CHECK-NEXT: 9
  // CHECK-NEXT: 0.5
  // CHECK-NEXT: 0
  func.call @print(%t) : (tensor<3xf32>) -> ()
  return
}
