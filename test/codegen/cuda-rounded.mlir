// A product that may not be contracted is rounded on CUDA, too: neither LLVM nor ptxas makes an FMA of it and a sum. One that may is an FMA.
// RUN: heed-halide %s --target=cuda --emit=asm -o - | FileCheck %s

// CHECK: {{^}}.visible .entry _kernel_rounded
// CHECK-NOT: fma.rn.f32
// CHECK: mul.rn.f32
// CHECK-NOT: fma.rn.f32
// CHECK: sub.f32
// CHECK: {{^}}.visible .entry _kernel_contracted
// CHECK: fma.rn.f32
halide.pipeline @two {
  %x = halide.buffer "x" ("i") : f32
  %y = halide.buffer "y" ("i") : f32
  %f = halide.func "rounded" (%i = "i") : f32 {
    %a = halide.read %x[%i] : f32
    %b = halide.read %y[%i] : f32
    %p = arith.mulf %a, %b : f32
    %d = arith.subf %p, %a : f32
    halide.yield %d : f32
  }
  %g = halide.func "contracted" (%i = "i") : f32 {
    %a = halide.read %x[%i] : f32
    %b = halide.read %f[%i] : f32
    %p = arith.mulf %a, %b fastmath<contract> : f32
    %c = halide.read %y[%i] : f32
    %s = arith.addf %p, %c fastmath<contract> : f32
    halide.yield %s : f32
  }
  halide.output %g
  halide.compute_root %f
  halide.split %f, "i" into ("b", "t") by 64 tail GuardWithIf
  halide.gpu_threads %f, ("t")
  halide.gpu_blocks %f, ("b")
  halide.split %g, "i" into ("b", "t") by 64 tail GuardWithIf
  halide.gpu_threads %g, ("t")
  halide.gpu_blocks %g, ("b")
}
