// Every op that the translator covers, against NumPy: floats at NaN, infinities and signed zeros, integers at both signs.
// RUN: rm -rf %t && heed-halide %s -o %t --target=x86-64-v3 --runtime --no-user-context --time 2>&1 | FileCheck %s
// CHECK: floats {{[0-9]+[.][0-9][0-9]}} s
// RUN: env PYTHONPATH=%S/Inputs %python %S/Inputs/expressions.py %t %cc

halide.pipeline @floats {
  %a = halide.buffer "a" ("i") : f32
  %b = halide.buffer "b" ("i") : f32
  %f = halide.func "f" (%i = "i", %k = "k") : f32 {
    %x = halide.read %a[%i] : f32
    %y = halide.read %b[%i] : f32
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    %nan = arith.constant 0x7FC00000 : f32
    %inf = arith.constant 0x7F800000 : f32
    %0 = arith.addf %x, %y : f32
    %1 = arith.subf %x, %y : f32
    %2 = arith.mulf %x, %y : f32
    %3 = arith.divf %x, %y : f32
    %4 = arith.negf %x : f32
    %5 = arith.maximumf %x, %y : f32
    %6 = arith.minimumf %x, %y : f32
    %7 = arith.maxnumf %x, %y : f32
    %8 = arith.minnumf %x, %y : f32
    %9 = math.sqrt %x : f32
    %10 = math.floor %x : f32
    %11 = math.ceil %x : f32
    %12 = math.roundeven %x : f32
    %13 = math.trunc %x : f32
    %14 = math.absf %x : f32
    %15 = math.rsqrt %x : f32
    %h = arith.truncf %x : f32 to f16
    %16 = arith.extf %h : f16 to f32
    %bits = arith.bitcast %x : f32 to i32
    %17 = arith.bitcast %bits : i32 to f32
    %18 = arith.addf %x, %inf : f32
    %19 = arith.subf %x, %x : f32
    %20 = arith.mulf %x, %zero : f32
    // Magic-number rounding must survive: to the nearest integer, ties to even.
    %magic = arith.constant 12582912.0 : f32
    %up = arith.addf %x, %magic : f32
    %21 = arith.subf %up, %magic : f32
    // x * y + 1 - (x * y + 1) in another order must not become 0 where it is NaN.
    %s = arith.addf %2, %one : f32
    %22 = arith.subf %s, %s : f32
    %isnan = math.isnan %x : f32
    %23 = arith.uitofp %isnan : i1 to f32
    %24 = arith.select %isnan, %nan, %one : f32
    %r = halide.mux %k, [%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32] : f32
    halide.yield %r : f32
  }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 8 tail GuardWithIf
  halide.vectorize %f, "ii"
}

// What flagged sums yield is compared like anything else: libHalide tells LLVM that they are neither NaN nor infinite.
halide.pipeline @relaxed {
  %a = halide.buffer "a" ("i") : f32
  %b = halide.buffer "b" ("i") : f32
  %f = halide.func "f" (%i = "i", %k = "k") : f32 {
    %x = halide.read %a[%i] : f32
    %y = halide.read %b[%i] : f32
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %inf = arith.constant 0x7F800000 : f32
    %p = arith.mulf %x, %y fastmath<contract> : f32
    %s = arith.addf %p, %one fastmath<contract> : f32
    %isnan = math.isnan %s : f32
    %0 = arith.uitofp %isnan : i1 to f32
    %uno = arith.cmpf uno, %s, %s : f32
    %1 = arith.select %uno, %two, %one : f32
    %ord = arith.cmpf ord, %s, %x : f32
    %2 = arith.select %ord, %two, %one : f32
    %eq = arith.cmpf oeq, %s, %inf : f32
    %3 = arith.select %eq, %two, %one : f32
    %ne = arith.cmpf une, %s, %s : f32
    %4 = arith.select %ne, %two, %one : f32
    %5 = math.exp %s : f32
    %6 = math.log %s : f32
    %7 = arith.maximumf %s, %one : f32
    %8 = arith.minimumf %one, %s : f32
    %9 = arith.maxnumf %s, %one : f32
    %n = arith.negf %s : f32
    %e = math.exp %n : f32
    %d = arith.addf %one, %e : f32
    %10 = arith.divf %one, %d : f32
    %r = halide.mux %k, [%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32] : f32
    halide.yield %r : f32
  }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 8 tail GuardWithIf
  halide.vectorize %f, "ii"
}

halide.pipeline @comparisons {
  %a = halide.buffer "a" ("i") : f32
  %b = halide.buffer "b" ("i") : f32
  %f = halide.func "f" (%i = "i", %k = "k") : i1 {
    %x = halide.read %a[%i] : f32
    %y = halide.read %b[%i] : f32
    %0 = arith.cmpf oeq, %x, %y : f32
    %1 = arith.cmpf ogt, %x, %y : f32
    %2 = arith.cmpf oge, %x, %y : f32
    %3 = arith.cmpf olt, %x, %y : f32
    %4 = arith.cmpf ole, %x, %y : f32
    %5 = arith.cmpf one, %x, %y : f32
    %6 = arith.cmpf ord, %x, %y : f32
    %7 = arith.cmpf ueq, %x, %y : f32
    %8 = arith.cmpf ugt, %x, %y : f32
    %9 = arith.cmpf uge, %x, %y : f32
    %10 = arith.cmpf ult, %x, %y : f32
    %11 = arith.cmpf ule, %x, %y : f32
    %12 = arith.cmpf une, %x, %y : f32
    %13 = arith.cmpf uno, %x, %y : f32
    %r = halide.mux %k, [%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13 : i1, i1, i1, i1, i1, i1, i1, i1, i1, i1, i1, i1, i1, i1] : i1
    halide.yield %r : i1
  }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 8 tail GuardWithIf
  halide.vectorize %f, "ii"
}

halide.pipeline @functions {
  %a = halide.buffer "a" ("i") : f32
  %f = halide.func "f" (%i = "i", %k = "k") : f32 {
    %x = halide.read %a[%i] : f32
    %abs = math.absf %x : f32
    %p = arith.constant 1.5 : f32
    %0 = math.exp %x : f32
    %1 = math.log %abs : f32
    %2 = math.sin %x : f32
    %3 = math.cos %x : f32
    %4 = math.tan %x : f32
    %5 = math.tanh %x : f32
    %6 = math.powf %abs, %p : f32
    %7 = math.fma %x, %x, %p : f32
    %8 = math.erf %x : f32
    %9 = math.expm1 %x : f32
    %low = arith.minimumf %x, %p : f32
    %10 = math.expm1 %low : f32
    %11 = math.exp %low : f32
    %r = halide.mux %k, [%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32] : f32
    halide.yield %r : f32
  }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 8 tail GuardWithIf
  halide.vectorize %f, "ii"
}

halide.pipeline @integers {
  %a = halide.buffer "a" ("i") : i32
  %b = halide.buffer "b" ("i") : i32
  %f = halide.func "f" (%i = "i", %k = "k") : i32 {
    %x = halide.read %a[%i] : i32
    %y = halide.read %b[%i] : i32
    %three = arith.constant 3 : i32
    %0 = arith.addi %x, %y : i32
    %1 = arith.subi %x, %y : i32
    %2 = arith.muli %x, %y : i32
    %3 = arith.divsi %x, %y : i32
    %4 = arith.remsi %x, %y : i32
    %5 = arith.floordivsi %x, %y : i32
    %6 = arith.ceildivsi %x, %y : i32
    %7 = halide.mod %x, %three : i32
    %8 = arith.maxsi %x, %y : i32
    %9 = arith.minsi %x, %y : i32
    %10 = arith.andi %x, %y : i32
    %11 = arith.ori %x, %y : i32
    %12 = arith.xori %x, %y : i32
    %13 = arith.shli %x, %three : i32
    %14 = arith.shrsi %x, %three : i32
    %15 = arith.shrui %x, %three : i32
    %16 = arith.divui %x, %y : i32
    %17 = arith.remui %x, %y : i32
    %18 = arith.maxui %x, %y : i32
    %19 = arith.minui %x, %y : i32
    %20 = math.absi %x : i32
    %c = arith.cmpi ult, %x, %y : i32
    %21 = arith.extui %c : i1 to i32
    %22 = arith.extsi %c : i1 to i32
    %t = arith.trunci %x : i32 to i8
    %23 = arith.extsi %t : i8 to i32
    %24 = arith.extui %t : i8 to i32
    %fl = arith.sitofp %x : i32 to f32
    %25 = arith.fptosi %fl : f32 to i32
    %l = arith.trunci %x : i32 to i1
    %26 = arith.extui %l : i1 to i32
    %27 = arith.floordivsi %x, %three : i32
    %r = halide.mux %k, [%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27 : i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32] : i32
    halide.yield %r : i32
  }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 8 tail GuardWithIf
  halide.vectorize %f, "ii"
}

// Storage types and scalar arguments of every kind.
halide.pipeline @types {
  %a = halide.buffer "a" ("i") : f16
  %b = halide.buffer "b" ("i") : i8
  %c = halide.buffer "c" ("i") : i1
  %d = halide.buffer "d" ("i") : i64
  %n = halide.param "n" : i32
  %s = halide.param "s" : f32
  %p = halide.param "p" : i1
  %q = halide.param "q" : i64
  %f = halide.func "f" (%i = "i") : f32, i64 {
    %h = halide.read %a[%i] : f16
    %x = arith.extf %h : f16 to f32
    %j = halide.read %b[%i] : i8
    %y = arith.sitofp %j : i8 to f32
    %m = halide.read %c[%i] : i1
    %e = arith.xori %m, %p : i1
    %z = arith.select %e, %x, %y : f32
    %w = arith.mulf %z, %s : f32
    %v = halide.read %d[%i] : i64
    %u = arith.extsi %n : i32 to i64
    %t = arith.addi %v, %u : i64
    %r = arith.addi %t, %q : i64
    halide.yield %w, %r : f32, i64
  }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 8 tail GuardWithIf
  halide.vectorize %f, "ii"
}
