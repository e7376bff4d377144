// Vectors of a large output go past the caches: marked in the lowered loops, one kind of store for each alignment in the code.
// RUN: rm -rf %t && heed-halide %s -o %t --target=x86-64-v3 --runtime --no-user-context
// RUN: env PYTHONPATH=%S/Inputs %python %S/Inputs/streams.py %t %cc
// RUN: heed-halide %s --emit=stmt --target=x86-64-v3 | FileCheck %s --check-prefix=STMT
// RUN: heed-halide %s --emit=asm --target=x86-64-v3 | FileCheck %s --check-prefix=ASM
// RUN: heed-halide %s --emit=asm --target=x86-64-v4 | FileCheck %s --check-prefix=WIDE

// How large the array is, is looked at once a call; the loop has a version for each answer.
// STMT: if (y.keep == (int64)0) {
// STMT-NEXT: for (y.s0.j.j,
// Each turn asks for what it will read in the next row.
// STMT-NEXT: llvm.prefetch.p0({{.*}}int64(({{.*}}y.s0.i.row) + 1)*int64(x.stride.1)) + int64(y.s0.j.j*8))*(int64)4)), 0, 3, 1)
// STMT: heed_stream_next_store((int64)0)
// STMT-NEXT: y[ramp(
// STMT: } else {
// STMT-NEXT: for (y.s0.j.j,
// STMT-NOT: heed_stream_next_store
// STMT: y[ramp(
// STMT: let y.keep = select({{.*}}(int64)4*{{.*}} > (int64)4000, (int64)0, (int64)1)

// Whole vectors, quarters of 16 bytes, others; then a fence.
// ASM-DAG: testb $31
// ASM-DAG: testb $15
// ASM-DAG: vmovntps %ymm
// ASM-DAG: vmovntps %xmm
// ASM-DAG: vmovups %ymm
// ASM-DAG: sfence
// ASM-DAG: prefetcht0
// ASM-NOT: heed_stream_next_store
// WIDE: vmovntps %ymm
halide.pipeline @twice {
  %x = halide.buffer "x" ("j", "i") : f32
  %zero = arith.constant 0 : i32
  halide.set_bounds %x, 0 from %zero
  halide.set_bounds %x, 1 from %zero
  %y = halide.func "y" (%j = "j", %i = "i") : f32 {
    %v = halide.read %x[%j, %i] : f32
    %w = arith.addf %v, %v : f32
    halide.yield %w : f32
  }
  halide.output %y
  halide.set_bounds %y, 0 from %zero
  halide.set_bounds %y, 1 from %zero
  halide.split %y, "j" into ("j", "jv") by 8 tail GuardWithIf
  halide.vectorize %y, "jv"
  halide.split %y, "i" into ("i", "row") by 4 tail GuardWithIf
  halide.parallel %y, "i"
  halide.prefetch_next %y, %x at "j" over %y, "row"
  halide.stream_stores %y beyond 4000
}
