// Numbers that C has no literal for, as libHalide writes them: an f64 is no rounded f32, and the least i32 is no i64.
// RUN: heed-halide %s --target=opencl --emit=asm -o - | FileCheck %s
// CHECK: __kernel void
// CHECK-NOT: as_float(-
// CHECK-DAG: [[TENTH:_[0-9]+]] = (ulong)(4591870180066957722ul);
// CHECK-DAG: as_double([[TENTH]])
// CHECK-DAG: [[LEAST:_[0-9]+]] = (uint)(2147483648ul);
// CHECK-DAG: as_int([[LEAST]])
halide.pipeline @literals {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    %tenth = arith.constant 0.1 : f64
    %wide = arith.extf %v : f32 to f64
    %product = arith.mulf %wide, %tenth : f64
    %y = arith.truncf %product : f64 to f32
    %least = arith.constant -2147483648 : i32
    %none = arith.bitcast %least : i32 to f32
    %one = arith.constant 1.0 : f32
    %small = arith.cmpf olt, %v, %one : f32
    %z = arith.select %small, %y, %none : f32
    halide.yield %z : f32
  }
  halide.output %f
  halide.gpu_single_thread %f
}
