// RUN: heed-opt %s --halide-expand-math | FileCheck %s

// exp of f32 by its exponent's bits and a polynomial; its end and NaN are x times infinity.
// CHECK-LABEL: halide.pipeline @exp
// CHECK: %[[X:.*]] = halide.read
// CHECK-NOT: math.exp
// CHECK: %[[SHIFTED:.*]] = arith.addf
// CHECK: arith.mulf {{.*}} fastmath<contract>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[SHIFTED]] : f32 to i32
// CHECK: %[[EXPONENT:.*]] = arith.shli %[[BITS]]
// CHECK: arith.constant 0x7F800000
// CHECK: %[[END:.*]] = arith.mulf %[[X]], {{.*}} : f32
// CHECK: arith.select {{.*}}, %[[END]] : f32
// CHECK-NOT: math.exp
halide.pipeline @exp {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %x = halide.read %a[%i] : f32
    %y = math.exp %x : f32
    halide.yield %y : f32
  }
  halide.output %f
}

// What is known to stay below 88 needs no end.
// CHECK-LABEL: halide.pipeline @bounded
// CHECK: arith.minimumf
// CHECK: arith.bitcast
// CHECK-NOT: 0x7F800000
// CHECK: halide.output
halide.pipeline @bounded {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %x = halide.read %a[%i] : f32
    %zero = arith.constant 0.0 : f32
    %z = arith.minimumf %x, %zero : f32
    %y = math.exp %z : f32
    halide.yield %y : f32
  }
  halide.output %f
}

// log is libHalide's inside of its range, which its flags say; a second run leaves it alone.
// CHECK-LABEL: halide.pipeline @log
// CHECK: math.log {{.*}} fastmath<nnan,ninf> : f32
// CHECK-COUNT-3: arith.select
// CHECK: halide.yield
halide.pipeline @log {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %x = halide.read %a[%i] : f32
    %y = math.log %x : f32
    halide.yield %y : f32
  }
  halide.output %f
}

// libHalide knows no bounds of erf's variable, nor is there a division in it.
// CHECK-LABEL: halide.pipeline @erf
// CHECK: halide.unbounded
// CHECK-NOT: divf
// CHECK-NOT: math.erf
// CHECK: halide.output
halide.pipeline @erf {
  %a = halide.buffer "a" ("i") : i8
  %f = halide.func "f" (%i = "i") : f32 {
    %x = halide.read %a[%i] : i8
    %y = arith.sitofp %x : i8 to f32
    %z = math.erf %y : f32
    halide.yield %z : f32
  }
  halide.output %f
}

// tanh is one quotient, and what is not of f32 is left to libHalide.
// CHECK-LABEL: halide.pipeline @tanh
// CHECK-COUNT-1: arith.divf
// CHECK-NOT: arith.divf
// CHECK: math.tanh {{.*}} : f64
// CHECK-NEXT: math.exp {{.*}} : f64
halide.pipeline @tanh {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i") : f64 {
    %x = halide.read %a[%i] : f32
    %y = math.tanh %x : f32
    %wide = arith.extf %y : f32 to f64
    %z = math.tanh %wide : f64
    %w = math.exp %z : f64
    halide.yield %w : f64
  }
  halide.output %f
}
