// RUN: heed-opt %s -split-input-file -attn-lower-host="prefix=m" | FileCheck %s

// Checks, parameters and memory become calls with the model's handle; the module says what it holds.

// CHECK: module attributes {attn.description = {entries = [{inputs = [{extents = ["N"], name = "x", sizes = array<i64: -1>, type = f32}], name = "f"
// CHECK-SAME: params = [{bounds = array<i64: 0, 3>, names = ["layer.{0}.w"], sizes = array<i64: 4>, type = f32}]
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

// CHECK: params = [{bounds = array<i64>, names = ["layer.5.w"]
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
