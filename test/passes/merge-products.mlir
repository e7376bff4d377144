// Products of one operand with weights alike are one kernel.
// RUN: heed-opt %s --attn-merge-products --split-input-file | FileCheck %s
// RUN: heed-opt %s --attn-merge-products --split-input-file --remarks-filter='attn-merge-products' 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: 3 products of one operand in one kernel, which saves reading [N, 4] of f32 (32*N bytes)
// REMARK: 2 products of one operand in one kernel, which saves reading [N, 4] of f32 (16*N bytes), writing and reading [N, 8] of f32 (64*N bytes)
// REMARK-NOT: products of one operand

#x = affine_map<(i, o, k) -> (i, k)>
#w = affine_map<(i, o, k) -> (o, k)>
#y = affine_map<(i, o, k) -> (i, o)>

// Three at most, of the same operand, and of one shape. What later ones read stands before the first; the kernel that
// nobody calls any more is gone.
// CHECK-LABEL: func.func @three(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32> {{.*}}, %[[Z:.*]]: tensor<?x4xf32>
// CHECK: %[[A:.*]] = attn.param "a"
// CHECK: %[[B:.*]] = attn.param "b"
// CHECK: %[[C:.*]] = attn.param "c"
// CHECK: %[[ABC:.*]]:3 = call @products(%[[X]], %[[A]], %{{.*}}, %[[B]], %[[C]])
// CHECK: %[[D:.*]] = attn.param "d"
// CHECK: %[[FOURTH:.*]] = call @product(%[[X]], %[[D]], %{{.*}})
// CHECK: %[[OTHER:.*]] = call @product(%[[Z]], %[[D]], %{{.*}})
// CHECK: return %[[ABC]]#0, %[[ABC]]#1, %[[ABC]]#2, %[[FOURTH]], %[[OTHER]]
// CHECK-LABEL: func.func private @products(
// CHECK-SAME: attn.kernel, attn.kind = "contraction"
// CHECK-COUNT-3: linalg.generic
func.func @three(%x: tensor<?x4xf32> {attn.dims = ["N", "4"], attn.name = "x"}, %z: tensor<?x4xf32> {attn.dims = ["N", "4"], attn.name = "z"})
    -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %a = attn.param "a" : tensor<8x4xf32>
  %0 = call @product(%x, %a, %n) : (tensor<?x4xf32>, tensor<8x4xf32>, index) -> tensor<?x8xf32>
  %b = attn.param "b" : tensor<8x4xf32>
  %1 = call @product(%x, %b, %n) : (tensor<?x4xf32>, tensor<8x4xf32>, index) -> tensor<?x8xf32>
  %c = attn.param "c" : tensor<8x4xf32>
  %2 = call @product(%x, %c, %n) : (tensor<?x4xf32>, tensor<8x4xf32>, index) -> tensor<?x8xf32>
  %d = attn.param "d" : tensor<8x4xf32>
  %3 = call @product(%x, %d, %n) : (tensor<?x4xf32>, tensor<8x4xf32>, index) -> tensor<?x8xf32>
  %4 = call @product(%z, %d, %n) : (tensor<?x4xf32>, tensor<8x4xf32>, index) -> tensor<?x8xf32>
  return %0, %1, %2, %3, %4 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
func.func private @product(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>, %n: index) -> tensor<?x8xf32>
    attributes {attn.kernel, attn.kind = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x4xf32>, tensor<8x4xf32>) outs(%f : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

#x = affine_map<(i, o, k) -> (i, k)>
#w = affine_map<(i, o, k) -> (o, k)>
#y = affine_map<(i, o, k) -> (i, o)>
#id = affine_map<(i, o) -> (i, o)>

// A gated layer: the second kernel takes the first one's result from its tile, and nobody stores it.
// CHECK-LABEL: func.func @gated(
// CHECK: %[[Y:.*]] = call @products(
// CHECK-NOT: call
// CHECK: return %[[Y]]
// CHECK-LABEL: func.func private @products(
// CHECK-SAME: -> tensor<?x8xf32> attributes {attn.kernel, attn.kind = "contraction"}
// CHECK: %[[U:.*]] = linalg.generic {{.*}}"reduction"
// CHECK: %[[V:.*]] = linalg.generic {{.*}}"reduction"
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[V]], %[[U]] :
// CHECK: return %[[Y]]
func.func @gated(%x: tensor<?x4xf32> {attn.dims = ["N", "4"], attn.name = "x"}) -> tensor<?x8xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %u = attn.param "u" : tensor<8x4xf32>
  %v = attn.param "v" : tensor<8x4xf32>
  %0 = call @product(%x, %u, %n) : (tensor<?x4xf32>, tensor<8x4xf32>, index) -> tensor<?x8xf32>
  %1 = call @times(%x, %v, %n, %0) : (tensor<?x4xf32>, tensor<8x4xf32>, index, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
func.func private @product(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>, %n: index) -> tensor<?x8xf32>
    attributes {attn.kernel, attn.kind = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x4xf32>, tensor<8x4xf32>) outs(%f : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
func.func private @times(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>, %n: index, %g: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {attn.kernel, attn.kind = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x4xf32>, tensor<8x4xf32>) outs(%f : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %g : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}

// -----

#x = affine_map<(i, o, k) -> (i, k)>
#w = affine_map<(i, o, k) -> (o, k)>
#y = affine_map<(i, o, k) -> (i, o)>

// Not together: right operands that an input brings, and what a call between computes from the first result.
// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-4: call @square
func.func @apart(%x: tensor<?x4xf32>, %k: tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %u = attn.param "u" : tensor<4x4xf32>
  %0 = call @square(%x, %u, %n) : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
  %1 = call @square(%x, %k, %n) : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
  %2 = call @square(%0, %u, %n) : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
  %3 = call @square(%1, %u, %n) : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
  return %2, %3 : tensor<?x4xf32>, tensor<?x4xf32>
}
func.func private @square(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>, %n: index) -> tensor<?x4xf32>
    attributes {attn.kernel, attn.kind = "contraction"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x4xf32>, tensor<4x4xf32>) outs(%f : tensor<?x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
