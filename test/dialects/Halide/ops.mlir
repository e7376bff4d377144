// Every op of the dialect survives printing and parsing. Each example of the op reference stands here.
// RUN: heed-opt %s | heed-opt | FileCheck %s

// CHECK-LABEL: halide.pipeline @algorithm
halide.pipeline @algorithm {
  // CHECK: %x = halide.buffer "x" ("j", "i") : f32
  %x = halide.buffer "x" ("j", "i") : f32
  // CHECK: halide.buffer "bias" () : f16
  %bias = halide.buffer "bias" () : f16
  // CHECK: %n = halide.param "n" : i32
  %n = halide.param "n" : i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // CHECK: halide.extent %x, 1 : i32
  %rows = halide.extent %x, 1 : i32
  // CHECK: halide.min %x, 0 : i32
  %first = halide.min %x, 0 : i32
  // CHECK: halide.set_bounds %x, 0 from %{{.*}} extent %n
  halide.set_bounds %x, 0 from %zero extent %n
  // CHECK: halide.set_bounds %x, 1 from %{{[^ ]*$}}
  halide.set_bounds %x, 1 from %zero
  // CHECK: halide.set_stride %x, 0 to
  halide.set_stride %x, 0 to %one
  // CHECK: halide.set_host_alignment %x to 64
  halide.set_host_alignment %x to 64
  // CHECK: %f = halide.func "f" (%i = "i", %j = "j") : f32, f32 {
  // CHECK:   %[[V:.*]] = halide.read %x[%i, %j] : f32
  // CHECK:   halide.likely %{{.*}} : f32
  // CHECK:   halide.device_exp2 %{{.*}}
  // CHECK:   halide.mux %{{.*}}, [%[[V]], %{{.*}} : f32, f32] : f32
  // CHECK:   halide.undef : f32
  // CHECK:   halide.yield
  %f = halide.func "f" (%i = "i", %j = "j") : f32, f32 {
    %v = halide.read %x[%i, %j] : f32
    %two = arith.constant 2 : i32
    %odd = halide.mod %i, %two : i32
    %c = arith.constant 1.0 : f32
    %l = halide.likely %c : f32
    %e = halide.device_exp2 %l
    %m = halide.mux %odd, [%v, %l : f32, f32] : f32
    %u = halide.undef : f32
    halide.yield %m, %u : f32, f32
  }
  // CHECK: %g = halide.func "g" (%j = "j") : f32 {
  %g = halide.func "g" (%j = "j") : f32 {
    %b = halide.read %bias[] : f16
    %w = arith.extf %b : f16 to f32
    halide.yield %w : f32
  }
  // CHECK: halide.update %g over ("r" from %{{.*}} extent %n, "s" from %{{.*}} extent %{{.*}}) where (%j, %r, %s) {
  // CHECK: } at (%j, %r, %s) {
  // CHECK: } set (%j, %r, %s) {
  halide.update %g over ("r" from %zero extent %n, "s" from %zero extent %one) where (%j, %r, %s) {
    %p = arith.cmpi slt, %r, %j : i32
    halide.yield %p : i1
  } at (%j, %r, %s) {
    halide.yield %j : i32
  } set (%j, %r, %s) {
    %old = halide.read %g[%j] : f32
    %v:2 = halide.read %f[%r, %j] : f32, f32
    %new = arith.addf %old, %v#0 fastmath<reassoc,contract> : f32
    halide.yield %new : f32
  }
  // CHECK: halide.update %g set (%j) {
  halide.update %g set (%j) {
    %old = halide.read %g[%j] : f32
    halide.yield %old : f32
  }
  halide.compute_root %f
  // CHECK: halide.output %g
  halide.output %g
}

// CHECK-LABEL: halide.pipeline @schedule attributes {look_back = 400 : i64, on_host, registers = 168 : i64}
halide.pipeline @schedule attributes {look_back = 400 : i64, on_host, registers = 168 : i64} {
  %x = halide.buffer "x" ("j", "i") : f32
  %n = halide.extent %x, 0 : i32
  %m = halide.extent %x, 1 : i32
  %zero = arith.constant 0 : i32
  %small = arith.cmpi slt, %n, %m : i32
  %f = halide.func "f" (%j = "j", %i = "i") : f32 {
    %v = halide.read %x[%j, %i] : f32
    halide.yield %v : f32
  }
  %s = halide.func "s" (%i = "i") : f32 {
    %c = arith.constant 0.0 : f32
    halide.yield %c : f32
  }
  halide.update %s over ("r" from %zero extent %n) set (%i, %r) {
    %old = halide.read %s[%i] : f32
    %v = halide.read %f[%r, %i] : f32
    %new = arith.addf %old, %v fastmath<reassoc> : f32
    halide.yield %new : f32
  }
  %o = halide.func "o" (%j = "j", %i = "i") : f32 {
    %v = halide.read %s[%i] : f32
    halide.yield %v : f32
  }
  halide.output %o
  // CHECK: halide.stream_stores %o beyond 4096 times %{{.*}}
  halide.stream_stores %o beyond 4096 times %n
  // CHECK: halide.split %s stage 1, "r" into ("ro", "ri") by 16 tail GuardWithIf
  halide.split %s stage 1, "r" into ("ro", "ri") by 16 tail GuardWithIf
  // CHECK: %s_part = halide.rfactor %s stage 1, ("ri") to ("u")
  %p = halide.rfactor %s stage 1, ("ri") to ("u")
  // CHECK: halide.compute_at %s_part, %s, "i"
  halide.compute_at %p, %s, "i"
  // CHECK: halide.vectorize %s_part stage 1, "u"
  halide.vectorize %p stage 1, "u"
  // CHECK: halide.atomic %s stage 1 unproved
  halide.atomic %s stage 1 unproved
  // CHECK: halide.split %o, "j" into ("jo", "ji") by %{{.*}}
  halide.split %o, "j" into ("jo", "ji") by %n
  // CHECK: halide.factor %o, "ji" : i32
  %by = halide.factor %o, "ji" : i32
  // CHECK: halide.factor %s stage 1, "ri" : i32
  %by_1 = halide.factor %s stage 1, "ri" : i32
  // CHECK: halide.tile %o, ("ji", "i") into ("jt", "it"), ("jv", "iv") by [8, 4] tail ShiftInwards
  halide.tile %o, ("ji", "i") into ("jt", "it"), ("jv", "iv") by [8, 4] tail ShiftInwards
  // CHECK: halide.reorder %o, ("jv", "iv", "jt", "it")
  halide.reorder %o, ("jv", "iv", "jt", "it")
  // CHECK: halide.fuse %o, ("jo", "it") into "task"
  halide.fuse %o, ("jo", "it") into "task"
  // CHECK: halide.rename %o, "jt" to "piece"
  halide.rename %o, "jt" to "piece"
  // CHECK: halide.vectorize %o, "jv"
  halide.vectorize %o, "jv"
  // CHECK: halide.unroll %o, "iv"
  halide.unroll %o, "iv"
  // CHECK: halide.parallel %o, "task"
  halide.parallel %o, "task"
  // CHECK: halide.serial %o, "piece"
  halide.serial %o, "piece"
  // CHECK: halide.partition %o, "piece" Never
  halide.partition %o, "piece" Never
  // CHECK: halide.compute_at %f, %o, "piece"
  halide.compute_at %f, %o, "piece"
  // CHECK: halide.store_at %f, %o, "task"
  halide.store_at %f, %o, "task"
  // CHECK: halide.hoist_storage_root %f
  halide.hoist_storage_root %f
  // CHECK: halide.store_in %f, Heap
  halide.store_in %f, Heap
  // CHECK: halide.bound %f, "j" from %{{.*}} extent %{{.*}}
  halide.bound %f, "j" from %zero extent %n
  // CHECK: halide.bound_extent %f, "i" extent %{{.*}}
  halide.bound_extent %f, "i" extent %m
  // CHECK: halide.align_bounds %f, "i" modulus 8 remainder 1
  halide.align_bounds %f, "i" modulus 8 remainder 1
  // CHECK: halide.align_storage %f, "j" modulus 16
  halide.align_storage %f, "j" modulus 16
  // CHECK: halide.trace_stores %f
  halide.trace_stores %f
  // CHECK: halide.reorder_storage %f, ("i", "j")
  halide.reorder_storage %f, ("i", "j")
  // CHECK: halide.prefetch %f, %x at "i" from "i" offset 2
  halide.prefetch %f, %x at "i" from "i" offset 2
  // CHECK: halide.prefetch_lines %f, %x at "j" ahead 64 over %o, "piece" by 12
  halide.prefetch_lines %f, %x at "j" ahead 64 over %o, "piece" by 12
  // CHECK: halide.prefetch_spread %f, %x at "j" ahead 64 over %o, "piece" lines 8 turns 1{{$}}
  halide.prefetch_spread %f, %x at "j" ahead 64 over %o, "piece" lines 8 turns 1
  // CHECK: halide.prefetch_spread %f, %x at "j" ahead 64 over %o, "piece" lines 8 turns 2 by 3 second_cache places 4 apart 512
  halide.prefetch_spread %f, %x at "j" ahead 64 over %o, "piece" lines 8 turns 2 by 3 second_cache places 4 apart 512
  // CHECK: halide.prefetch_spread %f, %x at "j" ahead 64 over %o, "piece" lines 8 turns 1 by 1 in_order
  halide.prefetch_spread %f, %x at "j" ahead 64 over %o, "piece" lines 8 turns 1 by 1 in_order
  // CHECK: halide.prefetch_next %f, %x at "j" over %o, "piece"
  halide.prefetch_next %f, %x at "j" over %o, "piece"
  // CHECK: halide.specialize %f if %{{.*}} {
  // CHECK-NEXT: halide.unroll %f, "i"
  halide.specialize %f if %small {
    halide.unroll %f, "i"
  }
  // CHECK: halide.compute_at %s, %o, "piece"
  halide.compute_at %s, %o, "piece"
}

// CHECK-LABEL: halide.pipeline @places
halide.pipeline @places {
  %a = halide.func "a" (%i = "i") : f32 {
    %c = arith.constant 0.0 : f32
    halide.yield %c : f32
  }
  %b = halide.func "b" (%i = "i") : f32 {
    %v = halide.read %a[%i] : f32
    halide.yield %v : f32
  }
  %c = halide.func "c" (%i = "i", %j = "j") : f32 {
    %v = halide.read %b[%i] : f32
    halide.yield %v : f32
  }
  halide.output %c
  // CHECK: halide.compute_inline %a
  halide.compute_inline %a
  // CHECK: halide.store_root %b
  halide.store_root %b
  // CHECK: halide.hoist_storage %b, %c, "j"
  halide.hoist_storage %b, %c, "j"
  // CHECK: halide.compute_at %b, %c, "i"
  halide.compute_at %b, %c, "i"
  // CHECK: halide.gpu_blocks %c, ("j")
  halide.gpu_blocks %c, ("j")
  // CHECK: halide.gpu_threads %c, ("i")
  halide.gpu_threads %c, ("i")
}

// CHECK-LABEL: halide.pipeline @one_thread
halide.pipeline @one_thread {
  %n = halide.param "n" : i32
  %zero = arith.constant 0 : i32
  %s = halide.func "s" () : i32 { halide.yield %zero : i32 }
  halide.update %s over ("r" from %zero extent %n) set (%r) {
    %old = halide.read %s[] : i32
    %new = arith.addi %old, %r : i32
    halide.yield %new : i32
  }
  halide.output %s
  // CHECK: halide.gpu_single_thread %s
  // CHECK-NEXT: halide.gpu_single_thread %s stage 1
  halide.gpu_single_thread %s
  halide.gpu_single_thread %s stage 1
}

halide.pipeline @kernel {
  %x = halide.buffer "x" ("j", "i") : f32
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%n, %i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}

// CHECK-LABEL: halide.pipeline @hasty
halide.pipeline @hasty {
  %x = halide.buffer "x" ("j", "i") : f32
  %n = halide.param "n" : i32
  %tables = halide.param "tables" : i32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%n, %i] : f32
    %isNaN = arith.cmpf uno, %v, %v : f32
    // CHECK: halide.give_up %{{.*}}
    %one = halide.give_up %isNaN
    %w = arith.mulf %v, %one : f32
    halide.yield %w : f32
  }
  halide.output %f
}

// CHECK-LABEL: func.func @host
func.func @host(%a: tensor<?x?xf32>, %n: index, %init: tensor<?xf32>, %b: memref<4x?xf32>, %c: memref<4xf32>) -> tensor<?xf32> {
  // CHECK: halide.call @kernel(%{{.*}}, %{{.*}} : tensor<?x?xf32>, index) outs(%{{.*}} : tensor<?xf32>) -> tensor<?xf32>
  %r = halide.call @kernel(%a, %n : tensor<?x?xf32>, index) outs(%init : tensor<?xf32>) -> tensor<?xf32>
  // CHECK: halide.call @kernel(%{{.*}}, %{{.*}} : memref<4x?xf32>, index) outs(%{{.*}} : memref<4xf32>)
  halide.call @kernel(%b, %n : memref<4x?xf32>, index) outs(%c : memref<4xf32>)
  // CHECK: halide.call @hasty(%{{.*}}) outs(%{{.*}} : memref<4xf32>) else @kernel{{$}}
  halide.call @hasty(%b, %n, %n : memref<4x?xf32>, index, index) outs(%c : memref<4xf32>) else @kernel
  // Named ones in any order; the pipeline behind `else` takes those that it has.
  // CHECK: halide.call @hasty(%arg1 : index) with("tables" = %arg1 : index, "x" = %arg3 : memref<4x?xf32>) outs(%{{.*}} : memref<4xf32>) else @kernel{{$}}
  halide.call @hasty(%n : index) with("tables" = %n : index, "x" = %b : memref<4x?xf32>) outs(%c : memref<4xf32>) else @kernel
  return %r : tensor<?xf32>
}
