// An update of a tuple stores all of its elements, after it has computed them: one that it leaves as it is is not stored, so that nothing else may be.
// RUN: heed-halide %s --emit=stmt --target=x86-64-v3 | FileCheck %s
// CHECK: for (s.s1.r
// CHECK-NEXT: let s.0.value = {{.*}}s.1[{{.*}}s.0[{{.*}}x[
// CHECK-NEXT: let s.1.value = s.1[
// CHECK-NEXT: s.0[{{.*}}] = s.0.value
// CHECK-NOT: s.1[{{[^]]*}}] =
// What is another element is.
// CHECK: for (t.s1.i
// CHECK: t.0[{{.*}}] = t.0.value
// CHECK-NEXT: t.1[{{.*}}] = t.1.value
halide.pipeline @pairs {
  %x = halide.buffer "x" ("i") : f32
  %zero = arith.constant 0 : i32
  %n = arith.constant 100 : i32
  halide.set_bounds %x, 0 from %zero extent %n
  %s = halide.func "s" (%i = "i") : f32, f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v, %v : f32, f32
  }
  halide.update %s over ("r" from %zero extent %n) set (%i, %r) {
    %old:2 = halide.read %s[%i] : f32, f32
    %v = halide.read %x[%r] : f32
    %term = arith.mulf %old#1, %v : f32
    %sum = arith.addf %old#0, %term : f32
    halide.yield %sum, %old#1 : f32, f32
  }
  %t = halide.func "t" (%i = "i") : f32, f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v, %v : f32, f32
  }
  halide.update %t over ("r" from %zero extent %n) set (%i, %r) {
    %old:2 = halide.read %t[%i] : f32, f32
    halide.yield %old#1, %old#0 : f32, f32
  }
  %y = halide.func "y" (%i = "i") : f32 {
    %a:2 = halide.read %s[%i] : f32, f32
    %b:2 = halide.read %t[%i] : f32, f32
    %c = arith.addf %a#0, %a#1 : f32
    %d = arith.subf %b#0, %b#1 : f32
    %e = arith.addf %c, %d : f32
    halide.yield %e : f32
  }
  halide.output %y
  halide.compute_root %s
  halide.compute_root %t
}
