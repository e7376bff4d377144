// What has no counterpart, and what only libHalide finds, is a diagnostic at its op; the exit code is 1, and nothing crashes.
// RUN: not heed-halide %s --target=x86-64-v4 --emit=asm -o %t 2>&1 | FileCheck %s

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

// An instruction of another device.
halide.pipeline @no_such_instruction {
  %f = halide.func "f" (%i = "i") : f32 {
    %x = arith.sitofp %i : i32 to f32
    // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'halide.device_exp2' stands in a pipeline for another target, expected CUDA's
    %y = halide.device_exp2 %x
    halide.yield %y : f32
  }
  halide.output %f
}

// Only libHalide knows how much of g is computed, which registers must hold.
halide.pipeline @no_bound {
  %g = halide.func "inner" (%i = "i") : i32 { halide.yield %i : i32 }
  %f = halide.func "outer" (%i = "i") : i32 {
    %v = halide.read %g[%i] : i32
    halide.yield %v : i32
  }
  halide.compute_root %g
  // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: Allocation inner has a dynamic size{{.*}} (kernel 'no_bound', target 'x86-64-v4')
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

// Loops of an extent that nobody knows: the error is at the directive of that stage.
halide.pipeline @lanes_unknown {
  %f = halide.func "outer" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  halide.unroll %f, "i"
  // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: Can only vectorize for loops over a constant extent. Loop over outer.s0.j{{.*}} (kernel 'lanes_unknown', target 'x86-64-v4')
  halide.vectorize %f, "j"
}

halide.pipeline @copies_unknown {
  %n = halide.param "n" : i32
  %f = halide.func "outer" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n) set (%i, %r) { halide.yield %r : i32 }
  halide.output %f
  halide.split %f, "i" into ("io", "r") by 4
  halide.unroll %f, "r"
  // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: Can only unroll for loops over a constant extent. Loop over outer.s1.r
  halide.unroll %f stage 1, "r"
}

// A race that only libHalide sees.
halide.pipeline @stored_outside {
  %g = halide.func "inner" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  %f = halide.func "outer" (%i = "i", %j = "j") : i32 {
    %v = halide.read %g[%i, %j] : i32
    halide.yield %v : i32
  }
  halide.compute_at %g, %f, "j"
  // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: Func "inner" is stored outside the parallel
  halide.store_root %g
  halide.parallel %f, "j"
  halide.output %f
}

halide.pipeline @no_gpu {
  %f = halide.func "outer" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: Schedule for Func outer requires <Default_GPU>
  halide.gpu_blocks %f, ("i")
  halide.output %f
}

// libHalide's own LLVM ends by an assertion, which depends on the target's vectors: 33 = 2 * 16 + 1.
halide.pipeline @lane_over {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 33 tail GuardWithIf
  // CHECK: errors.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: a masked vector of 33 lanes leaves one lane over when it is cut to the machine's
  halide.vectorize %f, "ii"
}

// The same number compiles where nothing is masked.
// CHECK-NOT: error
halide.pipeline @lanes_whole {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 33 tail RoundUp
  halide.vectorize %f, "ii"
}
