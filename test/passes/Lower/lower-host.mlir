// RUN: heed-opt %s -split-input-file -attn-lower-host="prefix=m" | FileCheck %s

// Checks, parameters and memory become calls with the model's handle; the module says what it holds.

// CHECK: module attributes {attn.description = {entries = [{inputs = [{extents = ["N"], name = "x", sizes = array<i64: -1>, type = f32}], name = "f"
// CHECK-SAME: params = [{bounds = array<i64: 0, 3>, extents = ["4"], names = ["layer.{0}.w"], sizes = array<i64: 4>, type = f32}]
// CHECK-SAME: prefix = "m"
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[MODEL:[a-z0-9]+]]: !llvm.ptr,
// CHECK: %[[BYTES:.*]] = llvm.call @heed_host_bytes
// CHECK: llvm.call @heed_host_alloc(%[[MODEL]], %[[BYTES]])
// CHECK: scf.if
// CHECK: llvm.call @heed_host_require_failed(%[[MODEL]]
// CHECK: scf.for
// CHECK: llvm.call @heed_host_param(%[[MODEL]]
// CHECK: llvm.call @heed_host_free(%[[MODEL]]
// CHECK-LABEL: func.func @m.f.run(
// CHECK-LABEL: func.func @m.f.ask(
module {
  func.func @f(%x: memref<?xf32> {attn.name = "x", attn.dims = ["N"]}, %y: memref<?xf32> {attn.name = "y", attn.result})
      attributes {attn.model} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %t = memref.alloc(%n) : memref<?xf32>
    %ok = arith.cmpi sgt, %n, %c3 : index
    attn.require %ok, "expected more than 3, found {0}" (%n) : index
    scf.for %l = %c0 to %c3 step %c1 {
      %w = attn.param "layer.{0}.w" [%l] : memref<4xf32>
      %e = memref.load %w[%c0] : memref<4xf32>
      memref.store %e, %y[%l] : memref<?xf32>
    }
    memref.dealloc %t : memref<?xf32>
    return
  }
  func.func private @f.shapes(%x: memref<?xf32>) -> index {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    return %n : index
  }
}

// -----

// A constant index stands in the name, so that no other layer is asked for.

// CHECK: params = [{bounds = array<i64>, extents = ["4"], names = ["layer.5.w"]
module {
  func.func @g(%y: memref<4xf32> {attn.name = "y", attn.result}) attributes {attn.model} {
    %c5 = arith.constant 5 : index
    %w = attn.param "layer.{0}.w" [%c5] : memref<4xf32>
    memref.copy %w, %y : memref<4xf32> to memref<4xf32>
    return
  }
  func.func private @g.shapes() -> index {
    %c4 = arith.constant 4 : index
    return %c4 : index
  }
}

// -----

// What init keeps, and who reads it. The cost of a kernel is computed from the sizes of the call.

// CHECK: module attributes {attn.description = {{.*}} init = @m.open, kept = 1 : i64, kernels = ["k"]
// CHECK-LABEL: func.func private @h(
// CHECK: llvm.call @heed_host_kept(%{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i32, i64) -> !llvm.ptr
// CHECK: %[[N:.*]] = arith.sitofp %{{.*}} : i64 to f64
// CHECK: %[[TWO:.*]] = arith.constant 8.000000e+00 : f64
// CHECK: %[[FLOPS:.*]] = arith.mulf %[[N]], %[[TWO]] : f64
// CHECK: llvm.call @heed_host_kernel({{.*}}, %[[FLOPS]], %{{.*}}) : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, i32, i32, f64, f64) -> i32
// CHECK-LABEL: func.func private @init(
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(16 : i64) : i64
// CHECK: llvm.call @heed_host_keep(%{{.*}}, %{{.*}}, %[[BYTES]]) : (!llvm.ptr, i32, i64) -> !llvm.ptr
// CHECK-LABEL: func.func @m.open(
// CHECK: call @init
module {
  halide.pipeline @k attributes {attn.cost = {flops = affine_map<()[s0] -> (s0 * 8)>, bytes = affine_map<()[s0] -> (s0 * 4 + 16)>, names = ["x"], axes = array<i64: 0>}} {
    %x = halide.buffer "x" ("i") : f32
    %w = halide.buffer "w" ("i") : f32
    %f = halide.func "f" (%i = "i") : f32 {
      %v = halide.read %x[%i] : f32
      halide.yield %v : f32
    }
    halide.output %f
  }
  func.func @h(%x: memref<?xf32>, %y: memref<?xf32> {attn.name = "y", attn.result}) attributes {attn.model} {
    %c0 = arith.constant 0 : index
    %w = attn.kept %c0 : memref<4xf32>
    halide.call @k(%x, %w : memref<?xf32>, memref<4xf32>) outs(%y : memref<?xf32>)
    return
  }
  func.func private @h.shapes(%x: memref<?xf32>) -> index {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    return %n : index
  }
  func.func private @init() attributes {attn.init, attn.slots = 1 : i64} {
    %c0 = arith.constant 0 : index
    %m = attn.slot %c0 : memref<4xf32>
    return
  }
}

// -----

// Two unknown extents in one group of a view: sizes and strides say it.
// CHECK-LABEL: func.func private @view(
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%{{.*}}, %{{.*}}, 4], strides: [%{{.*}}, 4, 1] : memref<f32> to memref<?x?x4xf32>
// CHECK-NOT: memref.expand_shape
module {
  halide.pipeline @k {
    %x = halide.buffer "x" ("i", "n", "b") : f32
    %f = halide.func "f" (%i = "i", %n = "n") : f32 {
      %c0 = arith.constant 0 : i32
      %v = halide.read %x[%i, %n, %c0] : f32
      halide.yield %v : f32
    }
    halide.output %f
  }
  func.func @view(%x: memref<?x4xf32>, %z: memref<?x?xf32>, %y: memref<?x4xf32> {attn.name = "y", attn.result}) attributes {attn.model} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = memref.dim %z, %c0 : memref<?x?xf32>
    %n = memref.dim %z, %c1 : memref<?x?xf32>
    %v = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, %n, 4] : memref<?x4xf32> into memref<?x?x4xf32>
    halide.call @k(%v : memref<?x?x4xf32>) outs(%y : memref<?x4xf32>)
    return
  }
  func.func private @view.shapes(%x: memref<?x4xf32>, %z: memref<?x?xf32>) -> (index, index) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %m = memref.dim %x, %c0 : memref<?x4xf32>
    return %m, %c4 : index, index
  }
}

// -----

// An array with gaps is copied by loops: upstream's function for it is not the runtime's. One without stays a copy.

// CHECK-LABEL: func.func {{.*}}@gaps(
// CHECK-NOT: memref.copy
// CHECK: linalg.generic
// CHECK: memref.copy
// CHECK-NOT: linalg.generic
module {
  func.func @gaps(%x: memref<4x6xf32> {attn.name = "x", attn.dims = ["4", "6"]}, %y: memref<4x8xf32> {attn.name = "y", attn.result}, %z: memref<4x6xf32> {attn.name = "z", attn.result})
      attributes {attn.model} {
    %s = memref.subview %y[0, 1] [4, 6] [1, 1] : memref<4x8xf32> to memref<4x6xf32, strided<[8, 1], offset: 1>>
    memref.copy %x, %s : memref<4x6xf32> to memref<4x6xf32, strided<[8, 1], offset: 1>>
    memref.copy %x, %z : memref<4x6xf32> to memref<4x6xf32>
    return
  }
  func.func private @gaps.shapes(%x: memref<4x6xf32>) -> (index, index, index, index) {
    %c4 = arith.constant 4 : index
    %c6 = arith.constant 6 : index
    %c8 = arith.constant 8 : index
    return %c4, %c8, %c4, %c6 : index, index, index, index
  }
}
