// What has no counterpart, and what only libHalide finds, is a diagnostic at its op; the exit code is 1, and nothing crashes.
// RUN: not heed-halide %s --emit=stmt 2>&1 | FileCheck %s

// An op outside of the translator's list.
halide.pipeline @unknown_function {
  %f = halide.func "f" (%i = "i") : f32 {
    %x = arith.sitofp %i : i32 to f32
    // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'math.atan' has no counterpart in Halide
    %y = math.atan %x : f32
    halide.yield %y : f32
  }
  halide.output %f
}

// Only libHalide knows how much of g is computed, which registers must hold.
halide.pipeline @no_bound {
  // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: Allocation inner has a dynamic size
  %g = halide.func "inner" (%i = "i") : i32 { halide.yield %i : i32 }
  %f = halide.func "outer" (%i = "i") : i32 {
    %v = halide.read %g[%i] : i32
    halide.yield %v : i32
  }
  halide.compute_root %g
  halide.store_in %g, Register
  halide.output %f
}

// A promise that is known to be wrong: kernels check no more than they must, so it would change results.
halide.pipeline @broken_promise {
  %g = halide.func "inner" (%i = "i") : i32 { halide.yield %i : i32 }
  %f = halide.func "outer" (%i = "i") : i32 {
    %v = halide.read %g[%i] : i32
    halide.yield %v : i32
  }
  halide.split %f, "i" into ("io", "ii") by 8
  halide.compute_at %g, %f, "io"
  %c4 = arith.constant 4 : i32
  // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'halide.bound_extent' promises {{.*}} for 'i' of 'inner', but {{.*}} is computed (promise.c1)
  halide.bound_extent %g, "i" extent %c4
  halide.output %f
}
