// What a turn of a loop prefetches in order lies side by side: of seven lines a turn gets as many as leave none, the first one behind those of the turn before.
// RUN: heed-halide %s --emit=stmt --target=x86-64-v3 | FileCheck %s
// CHECK: for (s.s1.i.rebased, 0,
// CHECK: for (s.s1.r$x, 0, [[N:.*]]) {
// CHECK-NEXT: if (((([[N]] + 6)/[[N]])*s.s1.r$x) < select([[N]] < 1, 0, 7)) {
// CHECK-NEXT: llvm.prefetch.p0({{.*}}int64((([[N]] + 6)/[[N]])*s.s1.r$x)*(int64)16){{.*}}, 0, 2, 1)
// CHECK-NEXT: if ((1 < (([[N]] + 6)/[[N]])) && (((([[N]] + 6)/[[N]])*s.s1.r$x) < select([[N]] < 1, -1, 6))) {
// CHECK-NEXT: llvm.prefetch.p0({{.*}}int64(((([[N]] + 6)/[[N]])*s.s1.r$x) + 1)*(int64)16){{.*}}, 0, 2, 1)
halide.pipeline @m {
  %x = halide.buffer "x" ("j", "i") : f32
  %n = halide.extent %x, 0 : i32
  %zero = arith.constant 0 : i32
  %s = halide.func "s" (%i = "i") : f32 {
    %c = arith.constant 0.0 : f32
    halide.yield %c : f32
  }
  halide.update %s over ("r" from %zero extent %n) set (%i, %r) {
    %old = halide.read %s[%i] : f32
    %v = halide.read %x[%r, %i] : f32
    %new = arith.addf %old, %v fastmath<reassoc,contract> : f32
    halide.yield %new : f32
  }
  halide.output %s
  halide.prefetch_spread %s stage 1, %x at "r" ahead 256 over %s, "i" lines 7 turns 1 by 1 second_cache in_order
}
