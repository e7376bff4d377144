// What a block of threads computes once and keeps in registers: each thread has the elements that it writes, by constant numbers.
// RUN: not heed-halide %s --target=cuda --emit=asm -o %t 2>&1 | FileCheck %s
// RUN: sed '/^\/\/ BEGIN/,$d' %s > %t.right.mlir && heed-halide %t.right.mlir --target=cuda --emit=asm -o - | FileCheck --check-prefix=RIGHT %s

// RIGHT: .visible .entry _kernel_twice
// RIGHT-NOT: .local
halide.pipeline @own {
  %c64 = arith.constant 64 : i32
  %x = halide.buffer "x" ("i") : f32
  %g = halide.func "kept" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  %f = halide.func "twice" (%i = "i") : f32 {
    %v = halide.read %g[%i] : f32
    %w = arith.addf %v, %v : f32
    halide.yield %w : f32
  }
  halide.output %f
  halide.split %f, "i" into ("b", "i") by 64 tail RoundUp
  halide.split %f, "i" into ("t", "v") by 2 tail RoundUp
  halide.unroll %f, "v"
  halide.gpu_threads %f, ("t")
  halide.gpu_blocks %f, ("b")
  halide.compute_at %g, %f, "b"
  halide.store_in %g, Register
  halide.bound_extent %g, "i" extent %c64
  halide.split %g, "i" into ("t", "v") by 2 tail RoundUp
  halide.unroll %g, "v"
  halide.gpu_threads %g, ("t")
}

// BEGIN: threads that would find nothing where another one has written.
halide.pipeline @others {
  %c64 = arith.constant 64 : i32
  %x = halide.buffer "x" ("i") : f32
  %g = halide.func "kept" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  %f = halide.func "twice" (%i = "i") : f32 {
    %v = halide.read %g[%i] : f32
    %w = arith.addf %v, %v : f32
    halide.yield %w : f32
  }
  halide.output %f
  halide.split %f, "i" into ("b", "i") by 64 tail RoundUp
  halide.split %f, "i" into ("v", "t") by 32 tail RoundUp
  halide.reorder %f, ("v", "t", "b")
  halide.unroll %f, "v"
  halide.gpu_threads %f, ("t")
  halide.gpu_blocks %f, ("b")
  halide.compute_at %g, %f, "b"
  // CHECK: gpu-registers.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'kept' is in registers, but its elements are not each one thread's
  halide.store_in %g, Register
  halide.bound_extent %g, "i" extent %c64
  halide.split %g, "i" into ("t", "v") by 2 tail RoundUp
  halide.unroll %g, "v"
  halide.gpu_threads %g, ("t")
}
