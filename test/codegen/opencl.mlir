// What libHalide would write otherwise in OpenCL C.
// RUN: heed-halide %s --target=opencl --emit=asm -o %t && FileCheck %s < %t && FileCheck --check-prefix=FMA %s < %t && FileCheck --check-prefix=OWN %s < %t

// Numbers that C has no literal for: an f64 is no rounded f32, and the least i32 is no i64.
// CHECK: {{^}}__kernel void _kernel_literals
// CHECK-NOT: as_float(-
// CHECK-DAG: [[TENTH:_[0-9]+]] = (ulong)(4591870180066957722ul);
// CHECK-DAG: as_double([[TENTH]])
// CHECK-DAG: [[LEAST:_[0-9]+]] = (uint)(2147483648ul);
// CHECK-DAG: as_int([[LEAST]])
halide.pipeline @literals {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "literals" (%i = "i") : f32 {
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

// What may be contracted is one FMA; compilers contract nothing of two statements. What is strict stays two operations.
// FMA: {{^}}__kernel void _kernel_contracted
// FMA-COUNT-4: = fma(
// FMA-NOT: fma(
// FMA: {{^}}} // kernel _kernel_contracted
halide.pipeline @contracted {
  %xs = halide.buffer "xs" ("i") : f32
  %ys = halide.buffer "ys" ("i") : f32
  %zs = halide.buffer "zs" ("i") : f32
  %f = halide.func "contracted" (%i = "i") : f32 {
    %x = halide.read %xs[%i] : f32
    %y = halide.read %ys[%i] : f32
    %z = halide.read %zs[%i] : f32
    %p = arith.mulf %x, %y fastmath<contract> : f32
    %a = arith.addf %p, %z fastmath<contract> : f32
    %q = arith.mulf %a, %x fastmath<contract> : f32
    %b = arith.addf %y, %q fastmath<contract> : f32
    %r = arith.mulf %b, %z fastmath<contract> : f32
    %c = arith.subf %r, %x fastmath<contract> : f32
    %s = arith.mulf %c, %y fastmath<contract> : f32
    %d = arith.subf %z, %s fastmath<contract> : f32
    %t = arith.mulf %d, %d : f32
    %e = arith.addf %t, %c : f32
    halide.yield %e : f32
  }
  halide.output %f
  halide.gpu_single_thread %f
}

// Which threads do something is asked of numbers of their own: of a comparison that others are like PoCL 3.1 keeps a bit across a barrier in a vector, and
// reads another one's. Here 8 of 16 threads have elements of the second func.
// OWN: {{^}}__kernel void _kernel_some
// OWN: barrier(
// OWN: [[NONE:_[0-9]+]] = get_global_offset(2);
// OWN-NEXT: [[THREAD:_[0-9]+]] = _thread_id_x + [[NONE]];
// OWN-NEXT: bool [[FIRST:_[0-9]+]] = [[THREAD]] < 8;
// OWN-NEXT: if ([[FIRST]])
// OWN: {{^}}} // kernel _kernel_some
halide.pipeline @conditions {
  %c8 = arith.constant 8 : i32
  %x = halide.buffer "x" ("i") : f32
  %g = halide.func "few" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  %f = halide.func "some" (%i = "i") : f32 {
    %two = arith.constant 2 : i32
    %at = arith.floordivsi %i, %two : i32
    %v = halide.read %g[%at] : f32
    %w = arith.addf %v, %v : f32
    halide.yield %w : f32
  }
  halide.output %f
  halide.split %f, "i" into ("b", "t") by 16 tail RoundUp
  halide.gpu_threads %f, ("t")
  halide.gpu_blocks %f, ("b")
  halide.compute_at %g, %f, "b"
  halide.store_in %g, GPUShared
  halide.bound_extent %g, "i" extent %c8
  halide.gpu_threads %g, ("i")
}
