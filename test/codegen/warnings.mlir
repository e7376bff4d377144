// RUN: heed-halide %s --target=x86-64-v4 --emit=asm -o %t 2>&1 | FileCheck %s

// A directive that the lowered loops have nothing for is no silence: a warning at its op, and the kernel is compiled.
halide.pipeline @nothing_to_fetch {
  %x = halide.buffer "x" ("i") : f32
  %w = halide.buffer "w" ("i") : f32
  %f = halide.func "f" (%i = "i", %j = "j") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
  // CHECK: warnings.mlir:[[#@LINE+1]]:{{[0-9]+}}: warning: 'halide.prefetch_lines' has no effect: it finds no loop in which its source is read
  halide.prefetch_lines %f, %w at "i" ahead 64 over %f, "j" by 2
}

halide.pipeline @no_vectors {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
  // CHECK: warnings.mlir:[[#@LINE+1]]:{{[0-9]+}}: warning: 'halide.stream_stores' has no effect: it finds no store of whole vectors
  halide.stream_stores %f beyond 4096
}
