// The next row of a table that data look up is fetched ahead; the data themselves are read at rows that there are alone.
// RUN: heed-halide %s --emit=stmt --target=x86-64-v3 | FileCheck %s

// CHECK: for (y.s0.i.row, 0, 4)
// CHECK: llvm.prefetch.p0(reinterpret<(void *)>(reinterpret<int64>(table){{.*}}ids[{{.*}}min(y.s0.i.row, 2){{.*}}, 0, 3, 1)
// Where a condition stands between, a turn may have no row.
// CHECK: for (y.s0.i.row, 0, {{t.*}})
// CHECK-NOT: llvm.prefetch
halide.pipeline @look {
  %ids = halide.buffer "ids" ("i") : i32
  %table = halide.buffer "table" ("j", "i") : f32
  %zero = arith.constant 0 : i32
  %last = arith.constant 99 : i32
  %y = halide.func "y" (%j = "j", %i = "i") : f32 {
    %id = halide.read %ids[%i] : i32
    %low = arith.maxsi %id, %zero : i32
    %row = arith.minsi %low, %last : i32
    %v = halide.read %table[%j, %row] : f32
    halide.yield %v : f32
  }
  halide.output %y
  halide.set_bounds %y, 0 from %zero
  halide.set_bounds %y, 1 from %zero
  halide.split %y, "j" into ("j", "jv") by 8 tail GuardWithIf
  halide.vectorize %y, "jv"
  halide.split %y, "i" into ("i", "row") by 4 tail GuardWithIf
  halide.parallel %y, "i"
  halide.prefetch_next %y, %table at "j" over %y, "row"
}
