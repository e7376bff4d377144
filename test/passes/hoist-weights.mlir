// What is the same in every call moves to init; a layer's own is kept per layer. What depends on a call stays, and why is said.
// RUN: heed-opt %s -split-input-file --attn-hoist-weights --remarks-filter="attn-hoist-weights" 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: func.func @layers
// CHECK: scf.for %[[L:.*]] = {{.*}} iter_args(%[[H:.*]] = %{{.*}})
// CHECK-NOT: attn.param
// CHECK: %[[T:.*]] = attn.kept %[[L]] : tensor<4x4xf32>
// CHECK: linalg.generic {{.*}} ins(%[[H]], %[[T]] :
// The second is kept behind the six instances of the first.
// CHECK: %[[SIX:.*]] = arith.constant 6 : index
// CHECK: %[[U:.*]] = attn.kept %[[SIX]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[U]]
// CHECK: func.func private @init() attributes {attn.init, attn.slots = 7 : i64} {
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[W:.*]] = attn.param "layer.{0}.w"[%[[K]]] : tensor<4x4xf32>
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[W]] :
// CHECK: attn.keep %[[R]] in %[[K]] : tensor<4x4xf32>
// CHECK: attn.keep %{{.*}} in %{{.*}} : tensor<4xf32>
// SAID-DAG: computed once, when the model is opened: 384 bytes in 6 instances
// SAID-DAG: computed once, when the model is opened: 16 bytes
func.func @layers(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>) attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %N = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%N) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %s = tensor.empty() : tensor<4x4xf32>
  %z = scf.for %l = %c0 to %c6 step %c1 iter_args(%h = %x) -> tensor<?x4xf32> {
    %w = attn.param "layer.{0}.w" [%l] : tensor<4x4xf32>
    %t = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<4x4xf32>) outs(%s : tensor<4x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<4x4xf32>
    %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %t : tensor<?x4xf32>, tensor<4x4xf32>) outs(%f : tensor<?x4xf32>) {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %m = arith.mulf %a, %b : f32
      %r = arith.addf %acc, %m : f32
      linalg.yield %r : f32
    } -> tensor<?x4xf32>
    scf.yield %p : tensor<?x4xf32>
  }
  // A table: no parameter, but f64 for every element.
  %v = tensor.empty() : tensor<4xf32>
  %u = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%v : tensor<4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    %d = arith.sitofp %j : i64 to f64
    %c = math.cos %d : f64
    %r = arith.truncf %c : f64 to f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %z, %u : tensor<?x4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @stays
// CHECK-NOT: attn.kept
// CHECK-NOT: @init
// SAID-DAG: computed from parameters in every call: it depends on an input
// SAID-DAG: computed from parameters in every call: its size is known in a call only
// SAID-DAG: computed from parameters in every call: it is cheaper to compute again than to read
func.func @stays(%scale: f32, %n: index) -> (tensor<4xf32>, tensor<?xf32>, tensor<64x4xf32>) attributes {attn.model} {
  %w = attn.param "w" : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%w : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.mulf %in, %scale : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %pos = attn.param "pos" : tensor<512xf32>
  %f = tensor.empty(%n) : tensor<?xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%f : tensor<?xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %x = tensor.extract %pos[%i] : tensor<512xf32>
    %r = math.exp %x : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %g = tensor.empty() : tensor<64x4xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<4xf32>) outs(%g : tensor<64x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<64x4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<?xf32>, tensor<64x4xf32>
}
