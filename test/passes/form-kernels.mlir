// What becomes one kernel, what does not, and why.
// RUN: heed-opt %s --attn-form-kernels | FileCheck %s
// RUN: heed-opt %s --attn-form-kernels --remarks-filter='attn-form-kernels' 2>&1 | FileCheck %s --check-prefix=REMARK

#x = affine_map<(n, o, i) -> (n, i)>
#w = affine_map<(n, o, i) -> (o, i)>
#y = affine_map<(n, o, i) -> (n, o)>
#id = affine_map<(n, o) -> (n, o)>
#swap = affine_map<(n, o) -> (o, n)>
#row = affine_map<(n, o) -> (n)>

// A bias and what follows it are the epilogue of a contraction. Both layers have equal kernels: one function.
// CHECK-LABEL: func.func @two_layers
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[A:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8x8xf32>)
// CHECK-NOT: linalg
// CHECK: %[[H:.*]] = call @two_layers_contraction(%[[X]], %[[A]], %{{.*}})
// CHECK-NEXT: %[[R:.*]] = call @two_layers_contraction(%[[H]], %[[B]], %{{.*}})
// CHECK-NEXT: return %[[R]]
func.func @two_layers(%x: tensor<?x8xf32>, %a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<?x8xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %s = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %a : tensor<?x8xf32>, tensor<8x8xf32>) outs(%f : tensor<?x8xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %m = arith.mulf %p, %q : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%p: f32, %q: f32):
    %r = math.tanh %p : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  %s2 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t, %b : tensor<?x8xf32>, tensor<8x8xf32>) outs(%f : tensor<?x8xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %m = arith.mulf %p, %q : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  %t2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s2 : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%p: f32, %q: f32):
    %r = math.tanh %p : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  return %t2 : tensor<?x8xf32>
}
// REMARK: remark: [Passed] fused {{.*}}2 operations in one contraction kernel, which saves writing and reading [?, 8] of f32
// REMARK: remark: [Missed] not-fused {{.*}}not in one kernel with the contraction before it: {{.*}}
// REMARK: remark: [Passed] shared {{.*}}shares the kernel two_layers_contraction

// Centred rows: the mean is read with the elements that it is a mean of, in one kernel.
// CHECK-LABEL: func.func @centre
// CHECK-NOT: linalg
// CHECK: call @centre_row
// CHECK-NOT: call
// CHECK: return
func.func @centre(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x8xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %r = arith.addf %acc, %p : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x8xf32>, tensor<?xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %eight = arith.constant 8.0 : f32
    %mean = arith.divf %q, %eight : f32
    %r = arith.subf %p, %mean : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// A value that two kernels read is stored by a kernel of its own, and the reader that transposes a dear one, too.
// CHECK-LABEL: func.func @both
// CHECK: %[[E:.*]] = call @both_elementwise(
// CHECK: %[[T:.*]] = call @both_elementwise_0(%[[E]]
// CHECK: return %[[E]], %[[T]]
func.func @both(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %r = math.exp %p : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %e2 = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x?xf32>) outs(%e2 : tensor<?x?xf32>) {
  ^bb0(%p: f32, %acc: f32):
    linalg.yield %p : f32
  } -> tensor<?x?xf32>
  return %y, %z : tensor<?x?xf32>, tensor<?x?xf32>
}
// REMARK: not in one kernel with the elementwise before it:

// Which elements of a softmax are present is read off their bits: no tensor of i1 leaves a kernel but as a result.
// CHECK-LABEL: func.func @live
// CHECK: call @live_softmax
// CHECK: call @live_row
// CHECK: return
func.func @live(%x: tensor<?x?xf32>, %v: tensor<?xf32>) -> tensor<?xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %p, %live = attn.softmax %x axes([1]) where (%i, %j) {
    %c = arith.cmpi sle, %j, %i : index
    attn.yield %c : i1
  } : tensor<?x?xf32>, tensor<?x?xi1>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, affine_map<(n, o) -> (o)>, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p, %live, %v : tensor<?x?xf32>, tensor<?x?xi1>, tensor<?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %l: i1, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.select %l, %m, %zero : f32
    %r = arith.addf %acc, %s : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// Host code without mathematics is left alone.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: call
// CHECK: return
func.func @nothing(%x: tensor<?x4xf32>) -> tensor<?xf32> attributes {attn.model} {
  %y = tensor.collapse_shape %x [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func private @live_row
// CHECK-SAME: -> tensor<?xf32>
// CHECK: arith.bitcast
// CHECK: arith.cmpi sgt
