// A weight is packed once for each layer, when the model is opened; what an input is packed into is made in each call.
// RUN: heed-opt %s -split-input-file --attn-hoist-packs --remarks-filter="attn-hoist-packs" 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t

// CHECK-LABEL: func.func @layers
// CHECK: scf.for %[[L:.*]] = {{.*}} iter_args(%[[H:.*]] = %{{.*}})
// CHECK-NOT: attn.param
// The first of the slots of this function is behind the one that is taken.
// CHECK: %[[SLOT:.*]] = arith.addi %[[L]], %{{.*}} : index
// CHECK: %[[P:.*]] = attn.kept %[[SLOT]] : tensor<8x4xf32>
// CHECK: halide.call @product(%[[H]], %[[P]] :
// CHECK: func.func private @init() attributes {attn.init, attn.slots = 4 : i64} {
// CHECK: attn.keep %{{.*}} in %{{.*}} : tensor<4xf32>
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[W:.*]] = attn.param "layer.{0}.w"[%[[K]]] : tensor<4x8xf32>
// CHECK: %[[R:.*]] = halide.call @pack(%[[W]] :
// CHECK: attn.keep %[[R]] in %{{.*}} : tensor<8x4xf32>
// SAID-DAG: computed once, when the model is opened: 384 bytes in 3 instances
func.func @layers(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y = scf.for %l = %c0 to %c3 step %c1 iter_args(%h = %x) -> tensor<4x4xf32> {
    %w = attn.param "layer.{0}.w" [%l] : tensor<4x8xf32>
    %e = tensor.empty() : tensor<8x4xf32>
    %p = halide.call @pack(%w : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
    %o = tensor.empty() : tensor<4x4xf32>
    %z = halide.call @product(%h, %p : tensor<4x4xf32>, tensor<8x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %z : tensor<4x4xf32>
  }
  return %y : tensor<4x4xf32>
}
func.func private @init() attributes {attn.init, attn.slots = 1 : i64} {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<1.0> : tensor<4xf32>
  attn.keep %t in %c0 : tensor<4xf32>
  return
}
halide.pipeline @pack {
  %w = halide.buffer "w" ("j", "i") : f32
  %f = halide.func "f" (%i = "i", %j = "j") : f32 {
    %v = halide.read %w[%j, %i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
halide.pipeline @product {
  %h = halide.buffer "h" ("j", "i") : f32
  %p = halide.buffer "p" ("j", "i") : f32
  %f = halide.func "f" (%j = "j", %i = "i") : f32 {
    %u = halide.read %h[%j, %i] : f32
    %v = halide.read %p[%j, %i] : f32
    %w = arith.mulf %u, %v : f32
    halide.yield %w : f32
  }
  halide.output %f
}

// -----

// CHECK-LABEL: func.func @stays
// CHECK-NOT: attn.kept
// CHECK: halide.call @scale
// CHECK-NOT: @init
// SAID-DAG: computed from parameters in every call: it depends on an input
func.func @stays(%s: f32) -> tensor<4x8xf32> attributes {attn.model} {
  %w = attn.param "w" : tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %y = halide.call @scale(%w, %s : tensor<4x8xf32>, f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
halide.pipeline @scale {
  %w = halide.buffer "w" ("j", "i") : f32
  %s = halide.param "s" : f32
  %f = halide.func "f" (%j = "j", %i = "i") : f32 {
    %v = halide.read %w[%j, %i] : f32
    %r = arith.mulf %v, %s : f32
    halide.yield %r : f32
  }
  halide.output %f
}
