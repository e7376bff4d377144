// Scores are measured from what a softmax takes back to the contraction, and live keys of a row are counted; bias, which is
// read as it stands, is no score, nor is the second operand of a product without an exponential. Loops carry the measures.
// RUN: heed-opt %s -reference-report-scores | FileCheck %s

#q = affine_map<(i, j, e) -> (i, e)>
#k = affine_map<(i, j, e) -> (j, e)>
#s = affine_map<(i, j, e) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func @capped
// CHECK-SAME: -> (tensor<2x3xf32>, tensor<f32> {attn.dims = [], attn.name = "largest score"},
// CHECK-SAME: tensor<f32> {attn.dims = [], attn.name = "fewest live keys"}, tensor<f32> {attn.dims = [], attn.name = "most live keys"})
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} :
// CHECK: %[[A:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "reduction"]} ins(%[[S]] : tensor<2x3xf32>) outs(%[[ZERO]] :
// CHECK: math.absf
// CHECK: %[[T:.*]] = linalg.generic {{.*}}["parallel", "parallel"]} ins(%[[S]], %{{.*}} :
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[T]] : tensor<2x3xf32>) outs(%[[A]] :
// CHECK: %{{.*}}, %[[LIVE:.*]] = attn.softmax
// CHECK: %[[COUNT:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[T]], %[[LIVE]] :
// CHECK: %[[FEW:.*]] = linalg.generic {{.*}} ins(%[[COUNT]] : tensor<2xf32>)
// CHECK: arith.minimumf
// CHECK: %[[MOST:.*]] = linalg.generic {{.*}} ins(%[[COUNT]] : tensor<2xf32>)
// CHECK: return %{{.*}}, %[[B]], %[[FEW]], %[[MOST]]
func.func @capped(%q: tensor<2x4xf32>, %k: tensor<3x4xf32>, %bias: tensor<2x3xf32>) -> tensor<2x3xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x4xf32>, tensor<3x4xf32>) outs(%init : tensor<2x3xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
  } -> tensor<2x3xf32>
  %t = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s, %bias : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = math.tanh %a : f32
      %r = arith.addf %m, %b : f32
      linalg.yield %r : f32
  } -> tensor<2x3xf32>
  %p, %live = attn.softmax %t axes([1]) : tensor<2x3xf32>, tensor<2x3xi1>
  return %p : tensor<2x3xf32>
}

// CHECK-LABEL: func @plain
// CHECK: %[[NONE:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: math.absf
// CHECK: return %{{.*}}, %[[NONE]],
func.func @plain(%x: tensor<2x3xf32>) -> tensor<2x3xf32> attributes {attn.model} {
  %e = tensor.empty() : tensor<2x3xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = math.exp %a : f32
      linalg.yield %r : f32
  } -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func @layers
// CHECK: %[[LOOP:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[C:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: linalg.generic {{.*}} outs(%[[C]] : tensor<f32>)
// CHECK: return %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2, %[[LOOP]]#3
func.func @layers(%x: tensor<3x3xf32>) -> tensor<3x3xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x3xf32>
  %y = scf.for %l = %c0 to %c2 step %c1 iter_args(%h = %x) -> tensor<3x3xf32> {
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x3xf32>) -> tensor<3x3xf32>
    %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%h, %h : tensor<3x3xf32>, tensor<3x3xf32>) outs(%init : tensor<3x3xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %m = arith.mulf %a, %b : f32
        %r = arith.addf %o, %m : f32
        linalg.yield %r : f32
    } -> tensor<3x3xf32>
    %p, %live = attn.softmax %s axes([1]) : tensor<3x3xf32>, tensor<3x3xi1>
    scf.yield %p : tensor<3x3xf32>
  }
  return %y : tensor<3x3xf32>
}
