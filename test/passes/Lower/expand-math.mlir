// RUN: heed-opt %s --halide-expand-math | FileCheck %s

// exp of f32 by its exponent's bits and a polynomial; its end and NaN are x and infinity.
// CHECK-LABEL: halide.pipeline @exp
// CHECK: %[[X:.*]] = halide.read
// CHECK-NOT: math.exp
// CHECK: %[[SHIFTED:.*]] = arith.addf {{.*}} fastmath<contract>
// CHECK: arith.mulf {{.*}} fastmath<contract>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[SHIFTED]] : f32 to i32
// CHECK: %[[EXPONENT:.*]] = arith.shli %[[BITS]]
// CHECK: arith.constant 0x7F800000
// CHECK: %[[END:.*]] = arith.addf %[[X]], {{.*}} : f32
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

// What is known to stay below 88 needs no end: a minimum, the negative of a square, of a magnitude times an exponential, of a sum of these.
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
    %square = arith.mulf %x, %x : f32
    %size = math.absf %x : f32
    %product = arith.mulf %size, %y : f32
    %sum = arith.addf %square, %product : f32
    %less = arith.negf %sum : f32
    %w = math.exp %less : f32
    halide.yield %w : f32
  }
  halide.output %f
}

// The sum of a square and a number may be any: its negative has an end.
// CHECK-LABEL: halide.pipeline @unbounded
// CHECK: 0x7F800000
// CHECK: halide.output
halide.pipeline @unbounded {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %x = halide.read %a[%i] : f32
    %square = arith.mulf %x, %x : f32
    %sum = arith.addf %square, %x : f32
    %less = arith.negf %sum : f32
    %w = math.exp %less : f32
    halide.yield %w : f32
  }
  halide.output %f
}

// exp2 takes no logarithm: what is left behind a whole number is a difference.
// CHECK-LABEL: halide.pipeline @exp2
// CHECK: %[[X:.*]] = halide.read
// CHECK: %[[SHIFTED:.*]] = arith.addf %[[X]], %[[MAGIC:.*]] : f32
// CHECK: %[[WHOLE:.*]] = arith.subf %[[SHIFTED]], %[[MAGIC]] : f32
// CHECK: arith.subf %[[X]], %[[WHOLE]] : f32
// CHECK: halide.output
halide.pipeline @exp2 {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %x = halide.read %a[%i] : f32
    %y = math.exp2 %x : f32
    halide.yield %y : f32
  }
  halide.output %f
}

// log1p of a fraction, as softplus has it, is a polynomial: no division, no logarithm. Of any number it has both.
// CHECK-LABEL: halide.pipeline @softplus
// CHECK-NOT: arith.divf
// CHECK-NOT: arith.shrsi
// CHECK-LABEL: halide.pipeline @log1p
// CHECK: arith.divf
// CHECK: arith.shrsi
halide.pipeline @softplus {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %x = halide.read %a[%i] : f32
    %size = math.absf %x : f32
    %less = arith.negf %size : f32
    %e = math.exp %less : f32
    %y = math.log1p %e : f32
    halide.yield %y : f32
  }
  halide.output %f
}
halide.pipeline @log1p {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %x = halide.read %a[%i] : f32
    %e = math.exp %x : f32
    %y = math.log1p %e : f32
    halide.yield %y : f32
  }
  halide.output %f
}

// log of f32 by its exponent and a polynomial; subnormal numbers are scaled, what has no logarithm is chosen behind.
// CHECK-LABEL: halide.pipeline @log
// CHECK-NOT: math.log
// CHECK: arith.shrsi
// CHECK: arith.sitofp
// CHECK: 0x7F800000
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
