// Upstream one-shot bufferisation writes a call's outs in place: one allocation for a chain through one buffer's lifetime.
// RUN: heed-opt %s --one-shot-bufferize="bufferize-function-boundaries" | FileCheck %s

halide.pipeline @twice {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    %w = arith.addf %v, %v : f32
    halide.yield %w : f32
  }
  halide.output %f
}

// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[X:.*]]: memref<?xf32
func.func @chain(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e0 = tensor.empty(%n) : tensor<?xf32>
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK-NOT: memref.copy
  // CHECK: halide.call @twice(%[[X]] : memref<?xf32, {{.*}}>) outs(%[[A]] : memref<?xf32>)
  %a = halide.call @twice(%x : tensor<?xf32>) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
  %e1 = tensor.empty(%n) : tensor<?xf32>
  // CHECK: %[[B:.*]] = memref.alloc
  // CHECK-NOT: memref.copy
  // CHECK: halide.call @twice(%[[A]] : memref<?xf32>) outs(%[[B]] : memref<?xf32>)
  %b = halide.call @twice(%a : tensor<?xf32>) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  return %b : tensor<?xf32>
}

// A value that is still read later must not be overwritten: here the out is a copy.
// CHECK-LABEL: func.func @keeps
func.func @keeps(%x: tensor<?xf32>, %old: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  // CHECK: %[[COPY:.*]] = memref.alloc
  // CHECK: halide.call @twice({{.*}}) outs(%[[COPY]]
  %a = halide.call @twice(%x : tensor<?xf32>) outs(%old : tensor<?xf32>) -> tensor<?xf32>
  return %a, %old : tensor<?xf32>, tensor<?xf32>
}

// What is passed by name is a memref, too.
halide.pipeline @scaled {
  %x = halide.buffer "x" ("i") : f32
  %s = halide.buffer "s" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    %w = halide.read %s[%i] : f32
    %p = arith.mulf %v, %w : f32
    halide.yield %p : f32
  }
  halide.output %f
}

// CHECK-LABEL: func.func @named
// CHECK-SAME: %[[X:.*]]: memref<?xf32, {{.*}}>, %[[S:.*]]: memref<?xf32
func.func @named(%x: tensor<?xf32>, %s: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK: halide.call @scaled(%[[X]] : {{.*}}) with("s" = %[[S]] : memref<?xf32, {{.*}}>) outs(%[[A]] : memref<?xf32>)
  %a = halide.call @scaled(%x : tensor<?xf32>) with("s" = %s : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %a : tensor<?xf32>
}
