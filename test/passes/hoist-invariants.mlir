// What turns of a loop share is computed before it; layers that share their weights from a turn on are a loop of their own.
// RUN: heed-opt %s -split-input-file --attn-hoist-invariants --remarks-filter="attn-hoist-invariants" 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t

#x = affine_map<(d, e) -> (e)>
#w = affine_map<(d, e) -> (d, e)>
#y = affine_map<(d, e) -> (d)>
#id = affine_map<(d) -> (d)>

// The turns before the largest number of a minimum get a loop of their own; the bias of what has moved moves, what the turns carry stays.
// CHECK-LABEL: func.func @shared
// CHECK: %[[FIRST:.*]] = scf.for %{{.*}} = %c0{{.*}} to %c2
// CHECK: attn.param "a.{0}"
// CHECK: attn.param "b.{0}"
// CHECK: attn.param "a.2"
// CHECK: %[[K:.*]] = linalg.generic
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[K]] :
// CHECK: scf.for %{{.*}} = %c2{{.*}} to %c5{{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK-NOT: attn.param "a
// CHECK: attn.param "b.1"
// CHECK: func.call @f(%{{.*}}, %[[B]])
// SAID: computed once before a loop, not in each of its 3 turns
func.func @shared(%u: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %o = scf.for %t = %c0 to %c5 step %c1 iter_args(%h = %u) -> tensor<4xf32> {
    %l = arith.minsi %t, %c2 : index
    %m = arith.minsi %c1, %t : index
    %w = attn.param "a.{0}" [%l] : tensor<4x4xf32>
    %v = attn.param "b.{0}" [%m] : tensor<4x4xf32>
    %k = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<4xf32>, tensor<4x4xf32>) outs(%u : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %p = arith.mulf %a, %b : f32
      %r = arith.addf %s, %p : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%k : tensor<4xf32>) outs(%u : tensor<4xf32>) {
    ^bb0(%a: f32, %s: f32):
      %r = math.exp %a : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    %q = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]} ins(%h, %v : tensor<4xf32>, tensor<4x4xf32>) outs(%u : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %p = arith.mulf %a, %b : f32
      %r = arith.addf %s, %p : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    %n = func.call @f(%q, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %o : tensor<4xf32>
}
func.func private @f(%h: tensor<4xf32>, %k: tensor<4xf32>) -> tensor<4xf32>

// -----

#x = affine_map<(d, e) -> (e)>
#w = affine_map<(d, e) -> (d, e)>
#y = affine_map<(d, e) -> (d)>

// Each turn has weights of its own, and what they all read is computed once; a check that comes before it goes with it.
// CHECK-LABEL: func.func @own
// CHECK: attn.param "a"
// CHECK: attn.require
// CHECK: linalg.generic
// CHECK: scf.for %[[T:.*]] = %c0
// CHECK-NOT: linalg.generic
// CHECK: attn.param "b.{0}"[%[[T]]]
// CHECK: func.call @f
func.func @own(%u: tensor<4xf32>, %x: tensor<?xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %o = scf.for %t = %c0 to %c5 step %c1 iter_args(%h = %u) -> tensor<4xf32> {
    %w = attn.param "a" : tensor<4x?xf32>
    %n = tensor.dim %x, %c0 : tensor<?xf32>
    %m = tensor.dim %w, %c1 : tensor<4x?xf32>
    %is = arith.cmpi eq, %n, %m : index
    attn.require %is, "extents differ"
    %k = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<?xf32>, tensor<4x?xf32>) outs(%u : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %p = arith.mulf %a, %b : f32
      %r = arith.addf %s, %p : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    %v = attn.param "b.{0}" [%t] : tensor<4xf32>
    %s = func.call @f(%h, %k, %v) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %o : tensor<4xf32>
}
func.func private @f(%h: tensor<4xf32>, %k: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<4xf32>

// -----

#x = affine_map<(d, e) -> (e)>
#w = affine_map<(d, e) -> (d, e)>
#y = affine_map<(d, e) -> (d)>

// A check of what the turns carry comes first: what is behind it may rely on it. Nor does anything move that perhaps no turn computes.
// CHECK-LABEL: func.func @checked
// CHECK: scf.for
// CHECK: attn.require
// CHECK: linalg.generic
// CHECK: scf.for
// CHECK: linalg.generic
func.func @checked(%u: tensor<?xf32>, %x: tensor<?xf32>, %i: tensor<4xf32>, %turns: index) -> (tensor<?xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %w = attn.param "a" : tensor<4x?xf32>
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %o = scf.for %t = %c0 to %c5 step %c1 iter_args(%h = %u) -> tensor<?xf32> {
    %m = tensor.dim %h, %c0 : tensor<?xf32>
    %is = arith.cmpi eq, %n, %m : index
    attn.require %is, "extents differ"
    %k = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<?xf32>, tensor<4x?xf32>) outs(%i : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %p = arith.mulf %a, %b : f32
      %r = arith.addf %s, %p : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    %s = func.call @f(%h, %k) : (tensor<?xf32>, tensor<4xf32>) -> tensor<?xf32>
    scf.yield %s : tensor<?xf32>
  }
  %p = scf.for %t = %c0 to %turns step %c1 iter_args(%h = %i) -> tensor<4xf32> {
    %k = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<?xf32>, tensor<4x?xf32>) outs(%i : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %q = arith.mulf %a, %b : f32
      %r = arith.addf %s, %q : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    %s = func.call @g(%h, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %o, %p : tensor<?xf32>, tensor<4xf32>
}
func.func private @f(%h: tensor<?xf32>, %k: tensor<4xf32>) -> tensor<?xf32>
func.func private @g(%h: tensor<4xf32>, %k: tensor<4xf32>) -> tensor<4xf32>
