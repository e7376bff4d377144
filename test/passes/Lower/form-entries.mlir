// RUN: heed-opt %s -split-input-file -attn-form-entries | FileCheck %s

// A result becomes a destination; its extents come from a function that computes no element and makes the same checks.

// CHECK-LABEL: func.func @double(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32> {attn.name = "x", bufferization.writable = false},
// CHECK-SAME: %[[OUT:.*]]: memref<?x4xf32> {attn.name = "y", attn.result}) attributes {attn.model}
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[OUT]]
// CHECK-NEXT: return{{$}}

// CHECK-LABEL: func.func private @double.shapes(
// CHECK-SAME: -> (index, index)
// CHECK: %[[N:.*]] = tensor.dim
// CHECK: attn.require
// CHECK-NOT: linalg.generic
// CHECK: %[[C4:.*]] = arith.constant 4
// CHECK: return %[[N]], %[[C4]] : index, index
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @double(%x: tensor<?x4xf32> {attn.name = "x"}) -> (tensor<?x4xf32> {attn.name = "y"}) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %some = arith.cmpi sge, %n, %c1 : index
  attn.require %some, "extent of 'x' (axis 0) is {0}, expected at least 1" (%n) : index
  %init = tensor.empty(%n) : tensor<?x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%init : tensor<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// A function that is no model is left alone.

// CHECK-LABEL: func.func private @helper(
// CHECK-SAME: %{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NOT: shapes
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// Merged heads: the extents of the result are products. It is written before its axes are merged, where it belongs.

// CHECK-LABEL: func.func @merged(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<?x?xf32> {attn.name = "y", attn.result})
// CHECK: %[[SPLIT:.*]] = memref.expand_shape %[[OUT]] {{\[\[}}0], [1, 2]] output_shape [%{{.*}}, %{{.*}}, 4] : memref<?x?xf32> into memref<?x?x4xf32>
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[SPLIT]]

// CHECK-LABEL: func.func private @merged.shapes(
// CHECK: %[[N:.*]] = tensor.dim %{{.*}}, %c0
// CHECK: %[[H:.*]] = tensor.dim %{{.*}}, %c1
// CHECK-NOT: linalg.generic
// CHECK: %[[HE:.*]] = arith.muli %[[H]], %{{.*}} : index
// CHECK: return %[[N]], %[[HE]] : index, index
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @merged(%x: tensor<?x?x4xf32> {attn.name = "x"}) -> (tensor<?x?xf32> {attn.name = "y"}) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x4xf32>
  %h = tensor.dim %x, %c1 : tensor<?x?x4xf32>
  %init = tensor.empty(%n, %h) : tensor<?x?x4xf32>
  %y = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x?x4xf32>) outs(%init : tensor<?x?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?x?x4xf32>
  %m = tensor.collapse_shape %y [[0], [1, 2]] : tensor<?x?x4xf32> into tensor<?x?xf32>
  return %m : tensor<?x?xf32>
}

// -----

// What is kept is written where it stays: its memory stands before what computes it.

// CHECK-LABEL: func.func private @init
// CHECK: %[[SLOT:.*]] = attn.slot %{{.*}} : memref<4xf32>
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: bufferization.materialize_in_destination %[[E]] in restrict writable %[[SLOT]]
// CHECK-NOT: attn.keep
func.func private @init() attributes {attn.init, attn.slots = 1 : i64} {
  %c0 = arith.constant 0 : index
  %w = attn.param "w" : tensor<4xf32>
  %init = tensor.empty() : tensor<4xf32>
  %e = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%w : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  attn.keep %e in %c0 : tensor<4xf32>
  return
}

// -----

// Each branch starts from a tensor of its own and writes the result where it belongs.

// CHECK-LABEL: func.func @branches(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<?xf32> {attn.name = "y", attn.result})
// CHECK-COUNT-2: tensor.empty
// CHECK: scf.if
// CHECK: %[[SUM:.*]] = linalg.add {{.*}} outs(%[[A:.*]] : tensor<?xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination %[[SUM]] in restrict writable %[[OUT]]
// CHECK: } else {
// CHECK-NOT: outs(%[[A]] :
// CHECK: %[[PRODUCT:.*]] = linalg.mul
// CHECK-NEXT: bufferization.materialize_in_destination %[[PRODUCT]] in restrict writable %[[OUT]]
// CHECK: }
// CHECK-NEXT: return
func.func @branches(%x: tensor<?xf32> {attn.name = "x"}) -> (tensor<?xf32> {attn.name = "y"}) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %few = arith.cmpi sle, %n, %c4 : index
  %init = tensor.empty(%n) : tensor<?xf32>
  %y = scf.if %few -> (tensor<?xf32>) {
    %s = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%init : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %s : tensor<?xf32>
  } else {
    %s = linalg.mul ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%init : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %s : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}
