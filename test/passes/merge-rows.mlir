// Rows of a batch of matrices are rows of one matrix where a weight meets them all.
// RUN: heed-opt %s --attn-form-kernels | FileCheck %s
// RUN: heed-opt %s --attn-form-kernels --remarks-filter='attn-form-kernels' 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: rows of a batch are rows of one matrix
// REMARK-NOT: rows of a batch are rows of one matrix
// REMARK: dims that lie together are one dim
// REMARK: dims that lie together are one dim
// REMARK-NOT: dims that lie together

#x = affine_map<(b, n, o, i) -> (b, n, i)>
#w = affine_map<(b, n, o, i) -> (o, i)>
#each = affine_map<(b, n, o, i) -> (b, o, i)>
#y = affine_map<(b, n, o, i) -> (b, n, o)>
#id = affine_map<(b, n, o) -> (b, n, o)>
#last = affine_map<(b, n, o) -> (o)>

// The epilogue's residual and the result are merged with the input; the bias and the weight stay as they are. The
// number of rows is an argument.
// CHECK-LABEL: func.func @batch(
// CHECK-SAME: %[[X:.*]]: tensor<?x?x8xf32>, %[[W:.*]]: tensor<4x8xf32>, %[[BIAS:.*]]: tensor<4xf32>, %[[R:.*]]: tensor<?x?x4xf32>
// CHECK-DAG: %[[B:.*]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[N:.*]] = tensor.dim %[[X]], %c1
// CHECK-DAG: %[[X2:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
// CHECK-DAG: %[[R2:.*]] = tensor.collapse_shape %[[R]] {{\[\[}}0, 1], [2]] : tensor<?x?x4xf32> into tensor<?x4xf32>
// CHECK-DAG: %[[ROWS:.*]] = arith.muli %[[B]], %[[N]]
// CHECK: %[[Y2:.*]] = call @batch_contraction({{.*}}) : ({{.*}}) -> tensor<?x4xf32>
// CHECK: %[[Y:.*]] = tensor.expand_shape %[[Y2]] {{\[\[}}0, 1], [2]] output_shape [%[[B]], %[[N]], 4] : tensor<?x4xf32> into tensor<?x?x4xf32>
// CHECK: return %[[Y]]
func.func @batch(%x: tensor<?x?x8xf32>, %w: tensor<4x8xf32>, %bias: tensor<4xf32>, %r: tensor<?x?x4xf32>) -> tensor<?x?x4xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%b, %n) : tensor<?x?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x8xf32>, tensor<4x8xf32>) outs(%f : tensor<?x?x4xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x?x4xf32>
  %q = linalg.generic {indexing_maps = [#id, #last, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %bias, %r : tensor<?x?x4xf32>, tensor<4xf32>, tensor<?x?x4xf32>) outs(%e : tensor<?x?x4xf32>) {
  ^bb0(%u: f32, %v: f32, %z: f32, %o: f32):
    %m = arith.addf %u, %v : f32
    %s = arith.addf %m, %z : f32
    linalg.yield %s : f32
  } -> tensor<?x?x4xf32>
  return %q : tensor<?x?x4xf32>
}

// Left alone: each matrix of the batch meets one of its own.
// CHECK-LABEL: func.func @own(
// CHECK-NOT: collapse_shape
// CHECK: call @own_contraction({{.*}}) : ({{.*}}) -> tensor<?x?x4xf32>
// CHECK-NOT: expand_shape
// CHECK: return
func.func @own(%x: tensor<?x?x8xf32>, %w: tensor<?x4x8xf32>) -> tensor<?x?x4xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%b, %n) : tensor<?x?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %p = linalg.generic {indexing_maps = [#x, #each, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x8xf32>, tensor<?x4x8xf32>) outs(%f : tensor<?x?x4xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x?x4xf32>
  return %p : tensor<?x?x4xf32>
}

#xh = affine_map<(n, h, e, c) -> (n, c)>
#wh = affine_map<(n, h, e, c) -> (h, e, c)>
#zh = affine_map<(n, h, e, c) -> (n, h, e)>
#three = affine_map<(n, h, e) -> (n, h, e)>
#ofHead = affine_map<(n, h, e) -> (h, e)>

// Columns of heads that lie together are columns of one matrix, with their bias; and a sum over both is one sum.
// CHECK-LABEL: func.func @heads(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<3x4x8xf32>, %[[BIAS:.*]]: tensor<3x4xf32>, %[[WO:.*]]: tensor<8x3x4xf32>
// CHECK-DAG: %[[W2:.*]] = tensor.collapse_shape %[[W]] {{\[\[}}0, 1], [2]] : tensor<3x4x8xf32> into tensor<12x8xf32>
// CHECK-DAG: %[[BIAS2:.*]] = tensor.collapse_shape %[[BIAS]] {{\[\[}}0, 1]] : tensor<3x4xf32> into tensor<12xf32>
// CHECK: %[[Z:.*]] = call @heads_contraction({{.*}}%[[W2]]{{.*}}) : ({{.*}}) -> tensor<?x12xf32>
// CHECK: %[[WO2:.*]] = tensor.collapse_shape %[[WO]] {{\[\[}}0], [1, 2]] : tensor<8x3x4xf32> into tensor<8x12xf32>
// CHECK: call @heads_contraction_0(%[[Z]], %[[WO2]]
func.func @heads(%x: tensor<?x8xf32>, %w: tensor<3x4x8xf32>, %bias: tensor<3x4xf32>, %wo: tensor<8x3x4xf32>) -> tensor<?x8xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x3x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  %p = linalg.generic {indexing_maps = [#xh, #wh, #zh], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x8xf32>, tensor<3x4x8xf32>) outs(%f : tensor<?x3x4xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x3x4xf32>
  %q = linalg.generic {indexing_maps = [#three, #ofHead, #three], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %bias : tensor<?x3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<?x3x4xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %m = arith.addf %u, %v : f32
    linalg.yield %m : f32
  } -> tensor<?x3x4xf32>
  %e2 = tensor.empty(%n) : tensor<?x8xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, d, h, e) -> (n, h, e)>, affine_map<(n, d, h, e) -> (d, h, e)>,
        affine_map<(n, d, h, e) -> (n, d)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%q, %wo : tensor<?x3x4xf32>, tensor<8x3x4xf32>) outs(%f2 : tensor<?x8xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// Left alone: the bias is one of all heads, so that a column of the matrix has no bias of its own.
// CHECK-LABEL: func.func @shared_bias(
// CHECK-NOT: into tensor<12x8xf32>
// CHECK: call @shared_bias_contraction({{.*}}) : ({{.*}}) -> tensor<?x3x4xf32>
func.func @shared_bias(%x: tensor<?x8xf32>, %w: tensor<3x4x8xf32>, %bias: tensor<4xf32>) -> tensor<?x3x4xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x3x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  %p = linalg.generic {indexing_maps = [#xh, #wh, #zh], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x8xf32>, tensor<3x4x8xf32>) outs(%f : tensor<?x3x4xf32>) {
  ^bb0(%u: f32, %v: f32, %acc: f32):
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x3x4xf32>
  %q = linalg.generic {indexing_maps = [#three, affine_map<(n, h, e) -> (e)>, #three], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %bias : tensor<?x3x4xf32>, tensor<4xf32>) outs(%e : tensor<?x3x4xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %m = arith.addf %u, %v : f32
    linalg.yield %m : f32
  } -> tensor<?x3x4xf32>
  return %q : tensor<?x3x4xf32>
}

// CHECK-LABEL: func.func private @batch_contraction(
// CHECK-SAME: tensor<?x8xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
