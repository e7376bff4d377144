// Streaming causal attention with its schedule, 1 kernel for any number of heads, queries and keys, E = 64: the dialect says all of it.
// Lanes are 48 queries; st is the one state (8 accumulators, row maximum, row sum); full and boundary key blocks are its two
// updates. exp2 works for scores of any size and keeps NaN; only boundary blocks select by the mask, products too.
// RUN: rm -rf %t && heed-halide %s -o %t --target=x86-64-v4 --runtime --no-user-context
// RUN: env PYTHONPATH=%S/Inputs %python %S/Inputs/attention.py %t causal %cc
// It is run, and its vectors are those of AVX-512.
// REQUIRES: avx512
halide.pipeline @causal {
  %cst = arith.constant 1.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %c127_i32 = arith.constant 127 : i32
  %cst_1 = arith.constant -1.270000e+02 : f32
  %cst_2 = arith.constant -1.000000e+02 : f32
  %c23_i32 = arith.constant 23 : i32
  %cst_3 = arith.constant 1.00000012 : f32
  %cst_4 = arith.constant 0.693147182 : f32
  %cst_5 = arith.constant 0.240221068 : f32
  %cst_6 = arith.constant 0.0555035695 : f32
  %cst_7 = arith.constant 0.00967603176 : f32
  %cst_8 = arith.constant 0.00133908633 : f32
  %cst_9 = arith.constant 0x4B40007F : f32
  %c7_i32 = arith.constant 7 : i32
  %c5_i32 = arith.constant 5 : i32
  %cst_10 = arith.constant -3.40282347E+38 : f32
  %cst_11 = arith.constant 0.000000e+00 : f32
  %c128_i32 = arith.constant 128 : i32
  %cst_12 = arith.constant 0.180336878 : f32
  %c256_i32 = arith.constant 256 : i32
  %c144_i32 = arith.constant 144 : i32
  %c143_i32 = arith.constant 143 : i32
  %c64_i32 = arith.constant 64 : i32
  %c48_i32 = arith.constant 48 : i32
  %c47_i32 = arith.constant 47 : i32
  %c18_i32 = arith.constant 18 : i32
  %c16_i32 = arith.constant 16 : i32
  %c8_i32 = arith.constant 8 : i32
  %c6_i32 = arith.constant 6 : i32
  %c4_i32 = arith.constant 4 : i32
  %c3_i32 = arith.constant 3 : i32
  %c2_i32 = arith.constant 2 : i32
  %c1_i32 = arith.constant 1 : i32
  %c0_i32 = arith.constant 0 : i32
  %c-1_i32 = arith.constant -1 : i32
  %Q = halide.buffer "Q" ("e", "n", "h") : f32
  %K = halide.buffer "K" ("e", "m", "h") : f32
  %V = halide.buffer "V" ("d", "m", "h") : f32
  %0 = halide.extent %Q, 1 : i32
  %1 = halide.extent %K, 1 : i32
  %2 = halide.extent %Q, 2 : i32
  %3 = arith.addi %0, %c-1_i32 : i32
  %4 = arith.addi %1, %c-1_i32 : i32
  %5 = arith.floordivsi %1, %c144_i32 : i32
  %6 = arith.addi %1, %c47_i32 : i32
  %7 = arith.floordivsi %6, %c48_i32 : i32
  halide.set_bounds %Q, 0 from %c0_i32 extent %c64_i32
  halide.set_stride %Q, 0 to %c1_i32
  halide.set_bounds %Q, 1 from %c0_i32
  halide.set_stride %Q, 1 to %c64_i32
  halide.set_bounds %Q, 2 from %c0_i32
  halide.set_bounds %K, 0 from %c0_i32 extent %c64_i32
  halide.set_stride %K, 0 to %c1_i32
  halide.set_bounds %K, 1 from %c0_i32
  halide.set_stride %K, 1 to %c64_i32
  halide.set_bounds %K, 2 from %c0_i32
  halide.set_bounds %V, 0 from %c0_i32 extent %c64_i32
  halide.set_stride %V, 0 to %c1_i32
  halide.set_bounds %V, 1 from %c0_i32
  halide.set_stride %V, 1 to %c64_i32
  halide.set_bounds %V, 2 from %c0_i32
  %Q0 = halide.func "Q0" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = arith.muli %te, %c16_i32 : i32
    %9 = halide.mod %x, %c16_i32 : i32
    %10 = arith.addi %8, %9 : i32
    %11 = arith.muli %ib, %c48_i32 : i32
    %12 = arith.muli %ti, %c16_i32 : i32
    %13 = arith.addi %11, %12 : i32
    %14 = arith.floordivsi %x, %c16_i32 : i32
    %15 = arith.addi %13, %14 : i32
    %16 = arith.minsi %15, %3 : i32
    %17 = halide.read %Q[%10, %16, %h] : f32
    %18 = arith.mulf %17, %cst_12 : f32
    halide.yield %18 : f32
  }
  %Q1 = halide.func "Q1" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %x, %c2_i32 : i32
    %9 = arith.cmpi eq, %8, %c0_i32 : i32
    %10 = arith.floordivsi %x, %c2_i32 : i32
    %11 = halide.read %Q0[%10, %ti, %te, %ib, %h] : f32
    %12 = arith.addi %10, %c128_i32 : i32
    %13 = halide.read %Q0[%12, %ti, %te, %ib, %h] : f32
    %14 = arith.select %9, %11, %13 : f32
    halide.yield %14 : f32
  }
  %Q2 = halide.func "Q2" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %x, %c2_i32 : i32
    %9 = arith.cmpi eq, %8, %c0_i32 : i32
    %10 = arith.floordivsi %x, %c2_i32 : i32
    %11 = halide.read %Q1[%10, %ti, %te, %ib, %h] : f32
    %12 = arith.addi %10, %c128_i32 : i32
    %13 = halide.read %Q1[%12, %ti, %te, %ib, %h] : f32
    %14 = arith.select %9, %11, %13 : f32
    halide.yield %14 : f32
  }
  %Q3 = halide.func "Q3" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %x, %c2_i32 : i32
    %9 = arith.cmpi eq, %8, %c0_i32 : i32
    %10 = arith.floordivsi %x, %c2_i32 : i32
    %11 = halide.read %Q2[%10, %ti, %te, %ib, %h] : f32
    %12 = arith.addi %10, %c128_i32 : i32
    %13 = halide.read %Q2[%12, %ti, %te, %ib, %h] : f32
    %14 = arith.select %9, %11, %13 : f32
    halide.yield %14 : f32
  }
  %Q4 = halide.func "Q4" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %x, %c2_i32 : i32
    %9 = arith.cmpi eq, %8, %c0_i32 : i32
    %10 = arith.floordivsi %x, %c2_i32 : i32
    %11 = halide.read %Q3[%10, %ti, %te, %ib, %h] : f32
    %12 = arith.addi %10, %c128_i32 : i32
    %13 = halide.read %Q3[%12, %ti, %te, %ib, %h] : f32
    %14 = arith.select %9, %11, %13 : f32
    halide.yield %14 : f32
  }
  %Qt = halide.func "Qt" (%ii = "ii", %e = "e", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %e, %c16_i32 : i32
    %9 = arith.muli %8, %c16_i32 : i32
    %10 = halide.mod %ii, %c16_i32 : i32
    %11 = arith.addi %9, %10 : i32
    %12 = arith.floordivsi %ii, %c16_i32 : i32
    %13 = arith.floordivsi %e, %c16_i32 : i32
    %14 = halide.read %Q4[%11, %12, %13, %ib, %h] : f32
    halide.yield %14 : f32
  }
  %st = halide.func "st" (%ii = "ii", %dt = "dt", %ib = "ib", %h = "h") : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32 {
    halide.yield %cst_11, %cst_11, %cst_11, %cst_11, %cst_11, %cst_11, %cst_11, %cst_11, %cst_10, %cst_11 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
  }
  %Sa0 = halide.func "Sa0" (%ii = "ii", %jj = "jj", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    halide.yield %cst_11 : f32
  }
  halide.update %Sa0 over ("re" from %c0_i32 extent %c64_i32) set (%ii, %jj, %kb, %ib, %h, %re) {
    %8 = halide.read %Sa0[%ii, %jj, %kb, %ib, %h] : f32
    %9 = halide.read %Qt[%ii, %re, %ib, %h] : f32
    %10 = arith.muli %kb, %c144_i32 : i32
    %11 = arith.addi %10, %jj : i32
    %12 = halide.read %K[%re, %11, %h] : f32
    %13 = arith.mulf %9, %12 fastmath<reassoc,contract> : f32
    %14 = arith.addf %8, %13 fastmath<reassoc,contract> : f32
    halide.yield %14 : f32
  }
  %SS0 = halide.func "SS0" (%ii = "ii", %jt = "jt", %kb = "kb", %ib = "ib", %h = "h") : f32, f32, f32, f32, f32, f32, f32, f32, f32 {
    %8 = arith.muli %jt, %c8_i32 : i32
    %9 = halide.read %Sa0[%ii, %8, %kb, %ib, %h] : f32
    %10 = arith.addi %8, %c1_i32 : i32
    %11 = halide.read %Sa0[%ii, %10, %kb, %ib, %h] : f32
    %12 = arith.addi %8, %c2_i32 : i32
    %13 = halide.read %Sa0[%ii, %12, %kb, %ib, %h] : f32
    %14 = arith.addi %8, %c3_i32 : i32
    %15 = halide.read %Sa0[%ii, %14, %kb, %ib, %h] : f32
    %16 = arith.addi %8, %c4_i32 : i32
    %17 = halide.read %Sa0[%ii, %16, %kb, %ib, %h] : f32
    %18 = arith.addi %8, %c5_i32 : i32
    %19 = halide.read %Sa0[%ii, %18, %kb, %ib, %h] : f32
    %20 = arith.addi %8, %c6_i32 : i32
    %21 = halide.read %Sa0[%ii, %20, %kb, %ib, %h] : f32
    %22 = arith.addi %8, %c7_i32 : i32
    %23 = halide.read %Sa0[%ii, %22, %kb, %ib, %h] : f32
    %24 = arith.maxnumf %9, %11 fastmath<nnan> : f32
    %25 = arith.maxnumf %13, %15 fastmath<nnan> : f32
    %26 = arith.maxnumf %17, %19 fastmath<nnan> : f32
    %27 = arith.maxnumf %21, %23 fastmath<nnan> : f32
    %28 = arith.maxnumf %24, %25 fastmath<nnan> : f32
    %29 = arith.maxnumf %26, %27 fastmath<nnan> : f32
    %30 = arith.maxnumf %28, %29 fastmath<nnan> : f32
    halide.yield %9, %11, %13, %15, %17, %19, %21, %23, %30 : f32, f32, f32, f32, f32, f32, f32, f32, f32
  }
  %bm0 = halide.func "bm0" (%ii = "ii", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    halide.yield %cst_10 : f32
  }
  halide.update %bm0 over ("rj8" from %c0_i32 extent %c18_i32) set (%ii, %kb, %ib, %h, %rj8) {
    %8 = halide.read %bm0[%ii, %kb, %ib, %h] : f32
    %9:9 = halide.read %SS0[%ii, %rj8, %kb, %ib, %h] : f32, f32, f32, f32, f32, f32, f32, f32, f32
    %10 = arith.maxnumf %8, %9#8 fastmath<nnan> : f32
    halide.yield %10 : f32
  }
  %mf0 = halide.func "mf0" (%ii = "ii", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    %8 = halide.read %bm0[%ii, %kb, %ib, %h] : f32
    %9 = math.roundeven %8 : f32
    halide.yield %9 : f32
  }
  %PP0 = halide.func "PP0" (%ii = "ii", %jj = "jj", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    %8 = arith.floordivsi %jj, %c8_i32 : i32
    %9:9 = halide.read %SS0[%ii, %8, %kb, %ib, %h] : f32, f32, f32, f32, f32, f32, f32, f32, f32
    %10 = halide.mod %jj, %c8_i32 : i32
    %11 = halide.mux %10, [%9#0, %9#1, %9#2, %9#3, %9#4, %9#5, %9#6, %9#7 : f32, f32, f32, f32, f32, f32, f32, f32] : f32
    %12 = halide.read %mf0[%ii, %kb, %ib, %h] : f32
    %13 = arith.subf %11, %12 : f32
    %14 = arith.addf %13, %cst_9 : f32
    %15 = arith.subf %14, %cst_9 : f32
    %16 = arith.subf %13, %15 : f32
    %17 = arith.mulf %16, %cst_8 fastmath<reassoc,contract> : f32
    %18 = arith.addf %17, %cst_7 fastmath<reassoc,contract> : f32
    %19 = arith.mulf %18, %16 fastmath<reassoc,contract> : f32
    %20 = arith.addf %19, %cst_6 fastmath<reassoc,contract> : f32
    %21 = arith.mulf %20, %16 fastmath<reassoc,contract> : f32
    %22 = arith.addf %21, %cst_5 fastmath<reassoc,contract> : f32
    %23 = arith.mulf %22, %16 fastmath<reassoc,contract> : f32
    %24 = arith.addf %23, %cst_4 fastmath<reassoc,contract> : f32
    %25 = arith.mulf %24, %16 fastmath<reassoc,contract> : f32
    %26 = arith.addf %25, %cst_3 fastmath<reassoc,contract> : f32
    %27 = arith.bitcast %14 : f32 to i32
    %28 = arith.shli %27, %c23_i32 : i32
    %29 = arith.bitcast %28 : i32 to f32
    %30 = arith.mulf %26, %29 : f32
    %31 = arith.cmpf olt, %13, %cst_2 : f32
    %32 = arith.select %31, %cst_11, %30 : f32
    halide.yield %32 : f32
  }
  %bs0 = halide.func "bs0" (%ii = "ii", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    halide.yield %cst_11 : f32
  }
  halide.update %bs0 over ("rj8" from %c0_i32 extent %c18_i32) set (%ii, %kb, %ib, %h, %rj8) {
    %8 = halide.read %bs0[%ii, %kb, %ib, %h] : f32
    %9 = arith.muli %rj8, %c8_i32 : i32
    %10 = halide.read %PP0[%ii, %9, %kb, %ib, %h] : f32
    %11 = arith.addi %9, %c1_i32 : i32
    %12 = halide.read %PP0[%ii, %11, %kb, %ib, %h] : f32
    %13 = arith.addi %9, %c2_i32 : i32
    %14 = halide.read %PP0[%ii, %13, %kb, %ib, %h] : f32
    %15 = arith.addi %9, %c3_i32 : i32
    %16 = halide.read %PP0[%ii, %15, %kb, %ib, %h] : f32
    %17 = arith.addi %9, %c4_i32 : i32
    %18 = halide.read %PP0[%ii, %17, %kb, %ib, %h] : f32
    %19 = arith.addi %9, %c5_i32 : i32
    %20 = halide.read %PP0[%ii, %19, %kb, %ib, %h] : f32
    %21 = arith.addi %9, %c6_i32 : i32
    %22 = halide.read %PP0[%ii, %21, %kb, %ib, %h] : f32
    %23 = arith.addi %9, %c7_i32 : i32
    %24 = halide.read %PP0[%ii, %23, %kb, %ib, %h] : f32
    %25 = arith.addf %10, %12 fastmath<reassoc,contract> : f32
    %26 = arith.addf %14, %16 fastmath<reassoc,contract> : f32
    %27 = arith.addf %18, %20 fastmath<reassoc,contract> : f32
    %28 = arith.addf %22, %24 fastmath<reassoc,contract> : f32
    %29 = arith.addf %25, %26 fastmath<reassoc,contract> : f32
    %30 = arith.addf %27, %28 fastmath<reassoc,contract> : f32
    %31 = arith.addf %29, %30 fastmath<reassoc,contract> : f32
    %32 = arith.addf %8, %31 fastmath<reassoc,contract> : f32
    halide.yield %32 : f32
  }
  %PV0 = halide.func "PV0" (%ii = "ii", %dd = "dd", %dt = "dt", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    halide.yield %cst_11 : f32
  }
  halide.update %PV0 over ("rj" from %c0_i32 extent %c144_i32) set (%ii, %dd, %dt, %kb, %ib, %h, %rj) {
    %8 = halide.read %PV0[%ii, %dd, %dt, %kb, %ib, %h] : f32
    %9 = halide.read %PP0[%ii, %rj, %kb, %ib, %h] : f32
    %10 = arith.muli %dt, %c8_i32 : i32
    %11 = arith.addi %10, %dd : i32
    %12 = arith.muli %kb, %c144_i32 : i32
    %13 = arith.addi %12, %rj : i32
    %14 = halide.read %V[%11, %13, %h] : f32
    %15 = arith.mulf %9, %14 fastmath<reassoc,contract> : f32
    %16 = arith.addf %8, %15 fastmath<reassoc,contract> : f32
    halide.yield %16 : f32
  }
  halide.update %st over ("rf" from %c0_i32 extent %5) where (%ii, %dt, %ib, %h, %rf) {
    %8 = arith.muli %ib, %c48_i32 : i32
    %9 = arith.cmpi slt, %8, %0 : i32
    %10 = arith.muli %rf, %c144_i32 : i32
    %11 = arith.addi %10, %c143_i32 : i32
    %12 = arith.cmpi sle, %11, %8 : i32
    %13 = arith.andi %9, %12 : i1
    halide.yield %13 : i1
  } set (%ii, %dt, %ib, %h, %rf) {
    %8:10 = halide.read %st[%ii, %dt, %ib, %h] : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
    %9 = halide.read %mf0[%ii, %rf, %ib, %h] : f32
    %10 = arith.maxnumf %8#8, %9 fastmath<nnan> : f32
    %11 = arith.subf %8#8, %10 : f32
    %12 = arith.maxnumf %11, %cst_1 fastmath<nnan> : f32
    %13 = arith.fptosi %12 : f32 to i32
    %14 = arith.addi %13, %c127_i32 : i32
    %15 = arith.shli %14, %c23_i32 : i32
    %16 = arith.bitcast %15 : i32 to f32
    %17 = arith.subf %9, %10 : f32
    %18 = arith.maxnumf %17, %cst_1 fastmath<nnan> : f32
    %19 = arith.fptosi %18 : f32 to i32
    %20 = arith.addi %19, %c127_i32 : i32
    %21 = arith.shli %20, %c23_i32 : i32
    %22 = arith.bitcast %21 : i32 to f32
    %23 = arith.mulf %8#0, %16 fastmath<reassoc,contract> : f32
    %24 = halide.read %PV0[%ii, %c0_i32, %dt, %rf, %ib, %h] : f32
    %25 = arith.mulf %24, %22 fastmath<reassoc,contract> : f32
    %26 = arith.addf %23, %25 fastmath<reassoc,contract> : f32
    %27 = arith.mulf %8#1, %16 fastmath<reassoc,contract> : f32
    %28 = halide.read %PV0[%ii, %c1_i32, %dt, %rf, %ib, %h] : f32
    %29 = arith.mulf %28, %22 fastmath<reassoc,contract> : f32
    %30 = arith.addf %27, %29 fastmath<reassoc,contract> : f32
    %31 = arith.mulf %8#2, %16 fastmath<reassoc,contract> : f32
    %32 = halide.read %PV0[%ii, %c2_i32, %dt, %rf, %ib, %h] : f32
    %33 = arith.mulf %32, %22 fastmath<reassoc,contract> : f32
    %34 = arith.addf %31, %33 fastmath<reassoc,contract> : f32
    %35 = arith.mulf %8#3, %16 fastmath<reassoc,contract> : f32
    %36 = halide.read %PV0[%ii, %c3_i32, %dt, %rf, %ib, %h] : f32
    %37 = arith.mulf %36, %22 fastmath<reassoc,contract> : f32
    %38 = arith.addf %35, %37 fastmath<reassoc,contract> : f32
    %39 = arith.mulf %8#4, %16 fastmath<reassoc,contract> : f32
    %40 = halide.read %PV0[%ii, %c4_i32, %dt, %rf, %ib, %h] : f32
    %41 = arith.mulf %40, %22 fastmath<reassoc,contract> : f32
    %42 = arith.addf %39, %41 fastmath<reassoc,contract> : f32
    %43 = arith.mulf %8#5, %16 fastmath<reassoc,contract> : f32
    %44 = halide.read %PV0[%ii, %c5_i32, %dt, %rf, %ib, %h] : f32
    %45 = arith.mulf %44, %22 fastmath<reassoc,contract> : f32
    %46 = arith.addf %43, %45 fastmath<reassoc,contract> : f32
    %47 = arith.mulf %8#6, %16 fastmath<reassoc,contract> : f32
    %48 = halide.read %PV0[%ii, %c6_i32, %dt, %rf, %ib, %h] : f32
    %49 = arith.mulf %48, %22 fastmath<reassoc,contract> : f32
    %50 = arith.addf %47, %49 fastmath<reassoc,contract> : f32
    %51 = arith.mulf %8#7, %16 fastmath<reassoc,contract> : f32
    %52 = halide.read %PV0[%ii, %c7_i32, %dt, %rf, %ib, %h] : f32
    %53 = arith.mulf %52, %22 fastmath<reassoc,contract> : f32
    %54 = arith.addf %51, %53 fastmath<reassoc,contract> : f32
    %55 = arith.mulf %8#9, %16 fastmath<reassoc,contract> : f32
    %56 = halide.read %bs0[%ii, %rf, %ib, %h] : f32
    %57 = arith.mulf %56, %22 fastmath<reassoc,contract> : f32
    %58 = arith.addf %55, %57 fastmath<reassoc,contract> : f32
    halide.yield %26, %30, %34, %38, %42, %46, %50, %54, %10, %58 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
  }
  %Sa1 = halide.func "Sa1" (%ii = "ii", %jj = "jj", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    halide.yield %cst_11 : f32
  }
  halide.update %Sa1 over ("re" from %c0_i32 extent %c64_i32) set (%ii, %jj, %kb, %ib, %h, %re) {
    %8 = halide.read %Sa1[%ii, %jj, %kb, %ib, %h] : f32
    %9 = halide.read %Qt[%ii, %re, %ib, %h] : f32
    %10 = arith.muli %kb, %c48_i32 : i32
    %11 = arith.addi %10, %jj : i32
    %12 = arith.minsi %11, %4 : i32
    %13 = halide.read %K[%re, %12, %h] : f32
    %14 = arith.mulf %9, %13 fastmath<reassoc,contract> : f32
    %15 = arith.addf %8, %14 fastmath<reassoc,contract> : f32
    halide.yield %15 : f32
  }
  %SS1 = halide.func "SS1" (%ii = "ii", %jt = "jt", %kb = "kb", %ib = "ib", %h = "h") : f32, f32, f32, f32, f32, f32, f32, f32, f32 {
    %8 = arith.muli %jt, %c8_i32 : i32
    %9 = halide.read %Sa1[%ii, %8, %kb, %ib, %h] : f32
    %10 = arith.muli %kb, %c48_i32 : i32
    %11 = arith.addi %10, %8 : i32
    %12 = arith.cmpi slt, %11, %1 : i32
    %13 = arith.muli %ib, %c48_i32 : i32
    %14 = arith.addi %13, %ii : i32
    %15 = arith.cmpi sle, %11, %14 : i32
    %16 = arith.andi %12, %15 : i1
    %17 = arith.select %16, %9, %cst_0 : f32
    %18 = arith.addi %8, %c1_i32 : i32
    %19 = halide.read %Sa1[%ii, %18, %kb, %ib, %h] : f32
    %20 = arith.addi %10, %18 : i32
    %21 = arith.cmpi slt, %20, %1 : i32
    %22 = arith.cmpi sle, %20, %14 : i32
    %23 = arith.andi %21, %22 : i1
    %24 = arith.select %23, %19, %cst_0 : f32
    %25 = arith.addi %8, %c2_i32 : i32
    %26 = halide.read %Sa1[%ii, %25, %kb, %ib, %h] : f32
    %27 = arith.addi %10, %25 : i32
    %28 = arith.cmpi slt, %27, %1 : i32
    %29 = arith.cmpi sle, %27, %14 : i32
    %30 = arith.andi %28, %29 : i1
    %31 = arith.select %30, %26, %cst_0 : f32
    %32 = arith.addi %8, %c3_i32 : i32
    %33 = halide.read %Sa1[%ii, %32, %kb, %ib, %h] : f32
    %34 = arith.addi %10, %32 : i32
    %35 = arith.cmpi slt, %34, %1 : i32
    %36 = arith.cmpi sle, %34, %14 : i32
    %37 = arith.andi %35, %36 : i1
    %38 = arith.select %37, %33, %cst_0 : f32
    %39 = arith.addi %8, %c4_i32 : i32
    %40 = halide.read %Sa1[%ii, %39, %kb, %ib, %h] : f32
    %41 = arith.addi %10, %39 : i32
    %42 = arith.cmpi slt, %41, %1 : i32
    %43 = arith.cmpi sle, %41, %14 : i32
    %44 = arith.andi %42, %43 : i1
    %45 = arith.select %44, %40, %cst_0 : f32
    %46 = arith.addi %8, %c5_i32 : i32
    %47 = halide.read %Sa1[%ii, %46, %kb, %ib, %h] : f32
    %48 = arith.addi %10, %46 : i32
    %49 = arith.cmpi slt, %48, %1 : i32
    %50 = arith.cmpi sle, %48, %14 : i32
    %51 = arith.andi %49, %50 : i1
    %52 = arith.select %51, %47, %cst_0 : f32
    %53 = arith.addi %8, %c6_i32 : i32
    %54 = halide.read %Sa1[%ii, %53, %kb, %ib, %h] : f32
    %55 = arith.addi %10, %53 : i32
    %56 = arith.cmpi slt, %55, %1 : i32
    %57 = arith.cmpi sle, %55, %14 : i32
    %58 = arith.andi %56, %57 : i1
    %59 = arith.select %58, %54, %cst_0 : f32
    %60 = arith.addi %8, %c7_i32 : i32
    %61 = halide.read %Sa1[%ii, %60, %kb, %ib, %h] : f32
    %62 = arith.addi %10, %60 : i32
    %63 = arith.cmpi slt, %62, %1 : i32
    %64 = arith.cmpi sle, %62, %14 : i32
    %65 = arith.andi %63, %64 : i1
    %66 = arith.select %65, %61, %cst_0 : f32
    %67 = arith.maxnumf %17, %24 fastmath<nnan> : f32
    %68 = arith.maxnumf %31, %38 fastmath<nnan> : f32
    %69 = arith.maxnumf %45, %52 fastmath<nnan> : f32
    %70 = arith.maxnumf %59, %66 fastmath<nnan> : f32
    %71 = arith.maxnumf %67, %68 fastmath<nnan> : f32
    %72 = arith.maxnumf %69, %70 fastmath<nnan> : f32
    %73 = arith.maxnumf %71, %72 fastmath<nnan> : f32
    halide.yield %17, %24, %31, %38, %45, %52, %59, %66, %73 : f32, f32, f32, f32, f32, f32, f32, f32, f32
  }
  %bm1 = halide.func "bm1" (%ii = "ii", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    halide.yield %cst_10 : f32
  }
  halide.update %bm1 over ("rj8" from %c0_i32 extent %c6_i32) set (%ii, %kb, %ib, %h, %rj8) {
    %8 = halide.read %bm1[%ii, %kb, %ib, %h] : f32
    %9:9 = halide.read %SS1[%ii, %rj8, %kb, %ib, %h] : f32, f32, f32, f32, f32, f32, f32, f32, f32
    %10 = arith.maxnumf %8, %9#8 fastmath<nnan> : f32
    halide.yield %10 : f32
  }
  %mf1 = halide.func "mf1" (%ii = "ii", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    %8 = halide.read %bm1[%ii, %kb, %ib, %h] : f32
    %9 = math.roundeven %8 : f32
    halide.yield %9 : f32
  }
  %PP1 = halide.func "PP1" (%ii = "ii", %jj = "jj", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    %8 = arith.floordivsi %jj, %c8_i32 : i32
    %9:9 = halide.read %SS1[%ii, %8, %kb, %ib, %h] : f32, f32, f32, f32, f32, f32, f32, f32, f32
    %10 = halide.mod %jj, %c8_i32 : i32
    %11 = halide.mux %10, [%9#0, %9#1, %9#2, %9#3, %9#4, %9#5, %9#6, %9#7 : f32, f32, f32, f32, f32, f32, f32, f32] : f32
    %12 = halide.read %mf1[%ii, %kb, %ib, %h] : f32
    %13 = arith.subf %11, %12 : f32
    %14 = arith.addf %13, %cst_9 : f32
    %15 = arith.subf %14, %cst_9 : f32
    %16 = arith.subf %13, %15 : f32
    %17 = arith.mulf %16, %cst_8 fastmath<reassoc,contract> : f32
    %18 = arith.addf %17, %cst_7 fastmath<reassoc,contract> : f32
    %19 = arith.mulf %18, %16 fastmath<reassoc,contract> : f32
    %20 = arith.addf %19, %cst_6 fastmath<reassoc,contract> : f32
    %21 = arith.mulf %20, %16 fastmath<reassoc,contract> : f32
    %22 = arith.addf %21, %cst_5 fastmath<reassoc,contract> : f32
    %23 = arith.mulf %22, %16 fastmath<reassoc,contract> : f32
    %24 = arith.addf %23, %cst_4 fastmath<reassoc,contract> : f32
    %25 = arith.mulf %24, %16 fastmath<reassoc,contract> : f32
    %26 = arith.addf %25, %cst_3 fastmath<reassoc,contract> : f32
    %27 = arith.bitcast %14 : f32 to i32
    %28 = arith.shli %27, %c23_i32 : i32
    %29 = arith.bitcast %28 : i32 to f32
    %30 = arith.mulf %26, %29 : f32
    %31 = arith.cmpf olt, %13, %cst_2 : f32
    %32 = arith.select %31, %cst_11, %30 : f32
    halide.yield %32 : f32
  }
  %bs1 = halide.func "bs1" (%ii = "ii", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    halide.yield %cst_11 : f32
  }
  halide.update %bs1 over ("rj8" from %c0_i32 extent %c6_i32) set (%ii, %kb, %ib, %h, %rj8) {
    %8 = halide.read %bs1[%ii, %kb, %ib, %h] : f32
    %9 = arith.muli %rj8, %c8_i32 : i32
    %10 = halide.read %PP1[%ii, %9, %kb, %ib, %h] : f32
    %11 = arith.addi %9, %c1_i32 : i32
    %12 = halide.read %PP1[%ii, %11, %kb, %ib, %h] : f32
    %13 = arith.addi %9, %c2_i32 : i32
    %14 = halide.read %PP1[%ii, %13, %kb, %ib, %h] : f32
    %15 = arith.addi %9, %c3_i32 : i32
    %16 = halide.read %PP1[%ii, %15, %kb, %ib, %h] : f32
    %17 = arith.addi %9, %c4_i32 : i32
    %18 = halide.read %PP1[%ii, %17, %kb, %ib, %h] : f32
    %19 = arith.addi %9, %c5_i32 : i32
    %20 = halide.read %PP1[%ii, %19, %kb, %ib, %h] : f32
    %21 = arith.addi %9, %c6_i32 : i32
    %22 = halide.read %PP1[%ii, %21, %kb, %ib, %h] : f32
    %23 = arith.addi %9, %c7_i32 : i32
    %24 = halide.read %PP1[%ii, %23, %kb, %ib, %h] : f32
    %25 = arith.addf %10, %12 fastmath<reassoc,contract> : f32
    %26 = arith.addf %14, %16 fastmath<reassoc,contract> : f32
    %27 = arith.addf %18, %20 fastmath<reassoc,contract> : f32
    %28 = arith.addf %22, %24 fastmath<reassoc,contract> : f32
    %29 = arith.addf %25, %26 fastmath<reassoc,contract> : f32
    %30 = arith.addf %27, %28 fastmath<reassoc,contract> : f32
    %31 = arith.addf %29, %30 fastmath<reassoc,contract> : f32
    %32 = arith.addf %8, %31 fastmath<reassoc,contract> : f32
    halide.yield %32 : f32
  }
  %PV1 = halide.func "PV1" (%ii = "ii", %dd = "dd", %dt = "dt", %kb = "kb", %ib = "ib", %h = "h") : f32 {
    halide.yield %cst_11 : f32
  }
  halide.update %PV1 over ("rj" from %c0_i32 extent %c48_i32) set (%ii, %dd, %dt, %kb, %ib, %h, %rj) {
    %8 = halide.read %PV1[%ii, %dd, %dt, %kb, %ib, %h] : f32
    %9 = halide.read %PP1[%ii, %rj, %kb, %ib, %h] : f32
    %10 = arith.muli %dt, %c8_i32 : i32
    %11 = arith.addi %10, %dd : i32
    %12 = arith.muli %kb, %c48_i32 : i32
    %13 = arith.addi %12, %rj : i32
    %14 = arith.minsi %13, %4 : i32
    %15 = halide.read %V[%11, %14, %h] : f32
    %16 = arith.mulf %9, %15 fastmath<reassoc,contract> : f32
    %17 = arith.addf %8, %16 fastmath<reassoc,contract> : f32
    %18 = arith.cmpi slt, %13, %1 : i32
    %19 = arith.muli %ib, %c48_i32 : i32
    %20 = arith.addi %19, %ii : i32
    %21 = arith.cmpi sle, %13, %20 : i32
    %22 = arith.andi %18, %21 : i1
    %23 = arith.select %22, %17, %8 : f32
    halide.yield %23 : f32
  }
  halide.update %st over ("rp" from %c0_i32 extent %7) where (%ii, %dt, %ib, %h, %rp) {
    %8 = arith.muli %ib, %c48_i32 : i32
    %9 = arith.muli %rp, %c48_i32 : i32
    %10 = arith.addi %8, %c47_i32 : i32
    %11 = arith.cmpi sle, %9, %10 : i32
    %12 = arith.floordivsi %9, %c144_i32 : i32
    %13 = arith.muli %12, %c144_i32 : i32
    %14 = arith.addi %13, %c143_i32 : i32
    %15 = arith.cmpi sgt, %14, %8 : i32
    %16 = arith.cmpi sge, %14, %1 : i32
    %17 = arith.ori %15, %16 : i1
    %18 = arith.cmpi slt, %8, %0 : i32
    %19 = arith.andi %18, %11 : i1
    %20 = arith.andi %19, %17 : i1
    halide.yield %20 : i1
  } set (%ii, %dt, %ib, %h, %rp) {
    %8:10 = halide.read %st[%ii, %dt, %ib, %h] : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
    %9 = halide.read %mf1[%ii, %rp, %ib, %h] : f32
    %10 = arith.maxnumf %8#8, %9 fastmath<nnan> : f32
    %11 = arith.subf %8#8, %10 : f32
    %12 = arith.maxnumf %11, %cst_1 fastmath<nnan> : f32
    %13 = arith.fptosi %12 : f32 to i32
    %14 = arith.addi %13, %c127_i32 : i32
    %15 = arith.shli %14, %c23_i32 : i32
    %16 = arith.bitcast %15 : i32 to f32
    %17 = arith.subf %9, %10 : f32
    %18 = arith.maxnumf %17, %cst_1 fastmath<nnan> : f32
    %19 = arith.fptosi %18 : f32 to i32
    %20 = arith.addi %19, %c127_i32 : i32
    %21 = arith.shli %20, %c23_i32 : i32
    %22 = arith.bitcast %21 : i32 to f32
    %23 = arith.mulf %8#0, %16 fastmath<reassoc,contract> : f32
    %24 = halide.read %PV1[%ii, %c0_i32, %dt, %rp, %ib, %h] : f32
    %25 = arith.mulf %24, %22 fastmath<reassoc,contract> : f32
    %26 = arith.addf %23, %25 fastmath<reassoc,contract> : f32
    %27 = arith.mulf %8#1, %16 fastmath<reassoc,contract> : f32
    %28 = halide.read %PV1[%ii, %c1_i32, %dt, %rp, %ib, %h] : f32
    %29 = arith.mulf %28, %22 fastmath<reassoc,contract> : f32
    %30 = arith.addf %27, %29 fastmath<reassoc,contract> : f32
    %31 = arith.mulf %8#2, %16 fastmath<reassoc,contract> : f32
    %32 = halide.read %PV1[%ii, %c2_i32, %dt, %rp, %ib, %h] : f32
    %33 = arith.mulf %32, %22 fastmath<reassoc,contract> : f32
    %34 = arith.addf %31, %33 fastmath<reassoc,contract> : f32
    %35 = arith.mulf %8#3, %16 fastmath<reassoc,contract> : f32
    %36 = halide.read %PV1[%ii, %c3_i32, %dt, %rp, %ib, %h] : f32
    %37 = arith.mulf %36, %22 fastmath<reassoc,contract> : f32
    %38 = arith.addf %35, %37 fastmath<reassoc,contract> : f32
    %39 = arith.mulf %8#4, %16 fastmath<reassoc,contract> : f32
    %40 = halide.read %PV1[%ii, %c4_i32, %dt, %rp, %ib, %h] : f32
    %41 = arith.mulf %40, %22 fastmath<reassoc,contract> : f32
    %42 = arith.addf %39, %41 fastmath<reassoc,contract> : f32
    %43 = arith.mulf %8#5, %16 fastmath<reassoc,contract> : f32
    %44 = halide.read %PV1[%ii, %c5_i32, %dt, %rp, %ib, %h] : f32
    %45 = arith.mulf %44, %22 fastmath<reassoc,contract> : f32
    %46 = arith.addf %43, %45 fastmath<reassoc,contract> : f32
    %47 = arith.mulf %8#6, %16 fastmath<reassoc,contract> : f32
    %48 = halide.read %PV1[%ii, %c6_i32, %dt, %rp, %ib, %h] : f32
    %49 = arith.mulf %48, %22 fastmath<reassoc,contract> : f32
    %50 = arith.addf %47, %49 fastmath<reassoc,contract> : f32
    %51 = arith.mulf %8#7, %16 fastmath<reassoc,contract> : f32
    %52 = halide.read %PV1[%ii, %c7_i32, %dt, %rp, %ib, %h] : f32
    %53 = arith.mulf %52, %22 fastmath<reassoc,contract> : f32
    %54 = arith.addf %51, %53 fastmath<reassoc,contract> : f32
    %55 = arith.mulf %8#9, %16 fastmath<reassoc,contract> : f32
    %56 = halide.read %bs1[%ii, %rp, %ib, %h] : f32
    %57 = arith.mulf %56, %22 fastmath<reassoc,contract> : f32
    %58 = arith.addf %55, %57 fastmath<reassoc,contract> : f32
    halide.yield %26, %30, %34, %38, %42, %46, %50, %54, %10, %58 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
  }
  %rl = halide.func "rl" (%ii = "ii", %ib = "ib", %h = "h") : f32 {
    %8:10 = halide.read %st[%ii, %c0_i32, %ib, %h] : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
    %9 = arith.cmpf oeq, %8#9, %cst_11 : f32
    %10 = arith.divf %cst, %8#9 : f32
    %11 = arith.select %9, %cst_11, %10 : f32
    halide.yield %11 : f32
  }
  %OT = halide.func "OT" (%ii = "ii", %d = "d", %ib = "ib", %h = "h") : f32 {
    %8 = arith.floordivsi %d, %c8_i32 : i32
    %9:10 = halide.read %st[%ii, %8, %ib, %h] : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
    %10 = halide.mod %d, %c8_i32 : i32
    %11 = halide.mux %10, [%9#0, %9#1, %9#2, %9#3, %9#4, %9#5, %9#6, %9#7 : f32, f32, f32, f32, f32, f32, f32, f32] : f32
    %12 = halide.read %rl[%ii, %ib, %h] : f32
    %13 = arith.cmpf oeq, %12, %cst_11 : f32
    %14 = arith.mulf %11, %12 : f32
    %15 = arith.select %13, %cst_11, %14 : f32
    halide.yield %15 : f32
  }
  %G0 = halide.func "G0" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = arith.muli %ti, %c16_i32 : i32
    %9 = halide.mod %x, %c16_i32 : i32
    %10 = arith.addi %8, %9 : i32
    %11 = arith.muli %te, %c16_i32 : i32
    %12 = arith.floordivsi %x, %c16_i32 : i32
    %13 = arith.addi %11, %12 : i32
    %14 = halide.read %OT[%10, %13, %ib, %h] : f32
    halide.yield %14 : f32
  }
  %G1 = halide.func "G1" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %x, %c2_i32 : i32
    %9 = arith.cmpi eq, %8, %c0_i32 : i32
    %10 = arith.floordivsi %x, %c2_i32 : i32
    %11 = halide.read %G0[%10, %ti, %te, %ib, %h] : f32
    %12 = arith.addi %10, %c128_i32 : i32
    %13 = halide.read %G0[%12, %ti, %te, %ib, %h] : f32
    %14 = arith.select %9, %11, %13 : f32
    halide.yield %14 : f32
  }
  %G2 = halide.func "G2" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %x, %c2_i32 : i32
    %9 = arith.cmpi eq, %8, %c0_i32 : i32
    %10 = arith.floordivsi %x, %c2_i32 : i32
    %11 = halide.read %G1[%10, %ti, %te, %ib, %h] : f32
    %12 = arith.addi %10, %c128_i32 : i32
    %13 = halide.read %G1[%12, %ti, %te, %ib, %h] : f32
    %14 = arith.select %9, %11, %13 : f32
    halide.yield %14 : f32
  }
  %G3 = halide.func "G3" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %x, %c2_i32 : i32
    %9 = arith.cmpi eq, %8, %c0_i32 : i32
    %10 = arith.floordivsi %x, %c2_i32 : i32
    %11 = halide.read %G2[%10, %ti, %te, %ib, %h] : f32
    %12 = arith.addi %10, %c128_i32 : i32
    %13 = halide.read %G2[%12, %ti, %te, %ib, %h] : f32
    %14 = arith.select %9, %11, %13 : f32
    halide.yield %14 : f32
  }
  %G4 = halide.func "G4" (%x = "x", %ti = "ti", %te = "te", %ib = "ib", %h = "h") : f32 {
    %8 = halide.mod %x, %c2_i32 : i32
    %9 = arith.cmpi eq, %8, %c0_i32 : i32
    %10 = arith.floordivsi %x, %c2_i32 : i32
    %11 = halide.read %G3[%10, %ti, %te, %ib, %h] : f32
    %12 = arith.addi %10, %c128_i32 : i32
    %13 = halide.read %G3[%12, %ti, %te, %ib, %h] : f32
    %14 = arith.select %9, %11, %13 : f32
    halide.yield %14 : f32
  }
  %O = halide.func "O" (%d = "d", %i = "i", %h = "h") : f32 {
    %8 = halide.mod %i, %c16_i32 : i32
    %9 = arith.muli %8, %c16_i32 : i32
    %10 = halide.mod %d, %c16_i32 : i32
    %11 = arith.addi %9, %10 : i32
    %12 = halide.mod %i, %c48_i32 : i32
    %13 = arith.floordivsi %12, %c16_i32 : i32
    %14 = arith.floordivsi %d, %c16_i32 : i32
    %15 = arith.floordivsi %i, %c48_i32 : i32
    %16 = halide.read %G4[%11, %13, %14, %15, %h] : f32
    halide.yield %16 : f32
  }
  halide.output %O
  halide.set_bounds %O, 0 from %c0_i32 extent %c64_i32
  halide.set_stride %O, 0 to %c1_i32
  halide.set_bounds %O, 1 from %c0_i32
  halide.set_stride %O, 1 to %c64_i32
  halide.set_bounds %O, 2 from %c0_i32
  halide.bound %O, "d" from %c0_i32 extent %c64_i32
  halide.bound %O, "i" from %c0_i32 extent %0
  halide.bound %O, "h" from %c0_i32 extent %2
  halide.split %O, "i" into("iq", "il") by 48 tail  GuardWithIf
  halide.split %O, "iq" into("io", "iq") by 1 tail  GuardWithIf
  halide.split %O, "il" into("il", "i16") by 16
  halide.split %O, "d" into("d", "dv") by 16
  halide.reorder %O, ("dv", "i16", "d", "il", "iq", "io", "h")
  halide.vectorize %O, "dv"
  halide.fuse %O, ("io", "h") into "task"
  halide.parallel %O, "task"
  halide.compute_at %OT, %O, "task"
  halide.bound %OT, "d" from %c0_i32 extent %c64_i32
  halide.bound %OT, "ii" from %c0_i32 extent %c48_i32
  halide.reorder %OT, ("d", "ii")
  halide.split %OT, "ii" into("it", "iv") by 16
  halide.reorder %OT, ("iv", "d", "it")
  halide.vectorize %OT, "iv"
  halide.split %OT, "d" into("d", "du") by 8
  halide.unroll %OT, "du"
  halide.compute_at %rl, %O, "task"
  halide.split %rl, "ii" into("ii", "iv") by 16
  halide.vectorize %rl, "iv"
  halide.compute_at %G4, %O, "task"
  halide.reorder %G4, ("x", "ti", "te", "ib")
  halide.split %G4, "x" into("x", "xv") by 32
  halide.vectorize %G4, "xv"
  halide.unroll %G4, "x"
  halide.bound_extent %G4, "x" extent %c256_i32
  halide.bound %G4, "ti" from %c0_i32 extent %c3_i32
  halide.bound %G4, "te" from %c0_i32 extent %c4_i32
  halide.bound_extent %G4, "ib" extent %c1_i32
  halide.bound_extent %G4, "h" extent %c1_i32
  halide.compute_at %G0, %G4, "ti"
  halide.split %G0, "x" into("x", "xv") by 16
  halide.vectorize %G0, "xv"
  halide.unroll %G0, "x"
  halide.bound_extent %G0, "x" extent %c256_i32
  halide.bound_extent %G0, "ti" extent %c1_i32
  halide.bound_extent %G0, "te" extent %c1_i32
  halide.bound_extent %G0, "ib" extent %c1_i32
  halide.bound_extent %G0, "h" extent %c1_i32
  halide.compute_at %G1, %G4, "ti"
  halide.split %G1, "x" into("x", "xv") by 32
  halide.vectorize %G1, "xv"
  halide.unroll %G1, "x"
  halide.bound_extent %G1, "x" extent %c256_i32
  halide.bound_extent %G1, "ti" extent %c1_i32
  halide.bound_extent %G1, "te" extent %c1_i32
  halide.bound_extent %G1, "ib" extent %c1_i32
  halide.bound_extent %G1, "h" extent %c1_i32
  halide.compute_at %G2, %G4, "ti"
  halide.split %G2, "x" into("x", "xv") by 32
  halide.vectorize %G2, "xv"
  halide.unroll %G2, "x"
  halide.bound_extent %G2, "x" extent %c256_i32
  halide.bound_extent %G2, "ti" extent %c1_i32
  halide.bound_extent %G2, "te" extent %c1_i32
  halide.bound_extent %G2, "ib" extent %c1_i32
  halide.bound_extent %G2, "h" extent %c1_i32
  halide.compute_at %G3, %G4, "ti"
  halide.split %G3, "x" into("x", "xv") by 32
  halide.vectorize %G3, "xv"
  halide.unroll %G3, "x"
  halide.bound_extent %G3, "x" extent %c256_i32
  halide.bound_extent %G3, "ti" extent %c1_i32
  halide.bound_extent %G3, "te" extent %c1_i32
  halide.bound_extent %G3, "ib" extent %c1_i32
  halide.bound_extent %G3, "h" extent %c1_i32
  halide.compute_at %Qt, %O, "task"
  halide.bound %Qt, "e" from %c0_i32 extent %c64_i32
  halide.bound %Qt, "ii" from %c0_i32 extent %c48_i32
  halide.split %Qt, "ii" into("it", "iv") by 16
  halide.split %Qt, "e" into("eo", "ei") by 16
  halide.reorder %Qt, ("iv", "ei", "eo", "it")
  halide.vectorize %Qt, "iv"
  halide.compute_at %Q4, %O, "task"
  halide.reorder %Q4, ("x", "ti", "te", "ib")
  halide.split %Q4, "x" into("x", "xv") by 32
  halide.vectorize %Q4, "xv"
  halide.unroll %Q4, "x"
  halide.bound_extent %Q4, "x" extent %c256_i32
  halide.bound %Q4, "ti" from %c0_i32 extent %c3_i32
  halide.bound %Q4, "te" from %c0_i32 extent %c4_i32
  halide.bound_extent %Q4, "ib" extent %c1_i32
  halide.bound_extent %Q4, "h" extent %c1_i32
  halide.compute_at %Q0, %Q4, "ti"
  halide.split %Q0, "x" into("x", "xv") by 16
  halide.vectorize %Q0, "xv"
  halide.unroll %Q0, "x"
  halide.bound_extent %Q0, "x" extent %c256_i32
  halide.bound_extent %Q0, "ti" extent %c1_i32
  halide.bound_extent %Q0, "te" extent %c1_i32
  halide.bound_extent %Q0, "ib" extent %c1_i32
  halide.bound_extent %Q0, "h" extent %c1_i32
  halide.compute_at %Q1, %Q4, "ti"
  halide.split %Q1, "x" into("x", "xv") by 32
  halide.vectorize %Q1, "xv"
  halide.unroll %Q1, "x"
  halide.bound_extent %Q1, "x" extent %c256_i32
  halide.bound_extent %Q1, "ti" extent %c1_i32
  halide.bound_extent %Q1, "te" extent %c1_i32
  halide.bound_extent %Q1, "ib" extent %c1_i32
  halide.bound_extent %Q1, "h" extent %c1_i32
  halide.compute_at %Q2, %Q4, "ti"
  halide.split %Q2, "x" into("x", "xv") by 32
  halide.vectorize %Q2, "xv"
  halide.unroll %Q2, "x"
  halide.bound_extent %Q2, "x" extent %c256_i32
  halide.bound_extent %Q2, "ti" extent %c1_i32
  halide.bound_extent %Q2, "te" extent %c1_i32
  halide.bound_extent %Q2, "ib" extent %c1_i32
  halide.bound_extent %Q2, "h" extent %c1_i32
  halide.compute_at %Q3, %Q4, "ti"
  halide.split %Q3, "x" into("x", "xv") by 32
  halide.vectorize %Q3, "xv"
  halide.unroll %Q3, "x"
  halide.bound_extent %Q3, "x" extent %c256_i32
  halide.bound_extent %Q3, "ti" extent %c1_i32
  halide.bound_extent %Q3, "te" extent %c1_i32
  halide.bound_extent %Q3, "ib" extent %c1_i32
  halide.bound_extent %Q3, "h" extent %c1_i32
  halide.compute_at %st, %O, "task"
  halide.bound %st, "ii" from %c0_i32 extent %c48_i32
  halide.split %st, "ii" into("it", "iv") by 16
  halide.reorder %st, ("iv", "dt", "it")
  halide.vectorize %st, "iv"
  halide.split %st stage 1, "ii" into("it", "i3") by 48
  halide.split %st stage 1, "i3" into("i3", "iv") by 16
  halide.reorder %st stage 1, ("iv", "i3", "dt", "it", "ib", "h", "rf")
  halide.vectorize %st stage 1, "iv"
  halide.unroll %st stage 1, "i3"
  halide.compute_at %PV0, %st, "dt"
  halide.split %PV0, "ii" into("i3", "iv") by 16
  halide.reorder %PV0, ("iv", "i3", "dd")
  halide.vectorize %PV0, "iv"
  halide.unroll %PV0, "i3"
  halide.unroll %PV0, "dd"
  halide.split %PV0 stage 1, "ii" into("i3", "iv") by 16
  halide.split %PV0 stage 1, "rj" into("rj", "rju") by 4
  halide.reorder %PV0 stage 1, ("iv", "i3", "dd", "rju", "rj")
  halide.vectorize %PV0 stage 1, "iv"
  halide.unroll %PV0 stage 1, "i3"
  halide.unroll %PV0 stage 1, "dd"
  halide.unroll %PV0 stage 1, "rju"
  halide.compute_at %SS0, %st, "ib"
  halide.split %SS0, "ii" into("it", "i3") by 48
  halide.split %SS0, "i3" into("i3", "iv") by 16
  halide.reorder %SS0, ("iv", "i3", "it", "jt")
  halide.vectorize %SS0, "iv"
  halide.unroll %SS0, "i3"
  halide.compute_at %Sa0, %SS0, "it"
  halide.bound_extent %Sa0, "ii" extent %c48_i32
  halide.bound_extent %Sa0, "jj" extent %c8_i32
  halide.split %Sa0, "ii" into("i3", "iv") by 16
  halide.reorder %Sa0, ("iv", "i3", "jj")
  halide.vectorize %Sa0, "iv"
  halide.unroll %Sa0, "i3"
  halide.unroll %Sa0, "jj"
  halide.split %Sa0 stage 1, "ii" into("i3", "iv") by 16
  halide.split %Sa0 stage 1, "re" into("re", "reu") by 4
  halide.reorder %Sa0 stage 1, ("iv", "i3", "jj", "reu", "re")
  halide.vectorize %Sa0 stage 1, "iv"
  halide.unroll %Sa0 stage 1, "i3"
  halide.unroll %Sa0 stage 1, "jj"
  halide.unroll %Sa0 stage 1, "reu"
  halide.compute_at %bm0, %st, "ib"
  halide.split %bm0, "ii" into("ii", "iv") by 16
  halide.vectorize %bm0, "iv"
  halide.split %bm0 stage 1, "ii" into("it", "i3") by 48
  halide.split %bm0 stage 1, "i3" into("i3", "iv") by 16
  halide.reorder %bm0 stage 1, ("iv", "i3", "rj8", "it")
  halide.vectorize %bm0 stage 1, "iv"
  halide.unroll %bm0 stage 1, "i3"
  halide.compute_at %bs0, %st, "ib"
  halide.split %bs0, "ii" into("ii", "iv") by 16
  halide.vectorize %bs0, "iv"
  halide.split %bs0 stage 1, "ii" into("it", "i3") by 48
  halide.split %bs0 stage 1, "i3" into("i3", "iv") by 16
  halide.reorder %bs0 stage 1, ("iv", "i3", "rj8", "it")
  halide.vectorize %bs0 stage 1, "iv"
  halide.unroll %bs0 stage 1, "i3"
  halide.compute_at %mf0, %st, "ib"
  halide.split %mf0, "ii" into("ii", "iv") by 16
  halide.vectorize %mf0, "iv"
  halide.compute_at %PP0, %st, "ib"
  halide.split %PP0, "ii" into("it", "i3") by 48
  halide.split %PP0, "i3" into("i3", "iv") by 16
  halide.split %PP0, "jj" into("jt", "jj") by 8
  halide.reorder %PP0, ("iv", "i3", "jj", "jt", "it")
  halide.vectorize %PP0, "iv"
  halide.unroll %PP0, "i3"
  halide.unroll %PP0, "jj"
  halide.bound_extent %SS0, "ii" extent %c48_i32
  halide.bound_extent %bm0, "ii" extent %c48_i32
  halide.bound_extent %mf0, "ii" extent %c48_i32
  halide.bound_extent %PP0, "ii" extent %c48_i32
  halide.bound_extent %bs0, "ii" extent %c48_i32
  halide.bound_extent %PV0, "ii" extent %c48_i32
  halide.bound_extent %Sa0, "ib" extent %c1_i32
  halide.bound_extent %Sa0, "h" extent %c1_i32
  halide.bound_extent %SS0, "ib" extent %c1_i32
  halide.bound_extent %SS0, "h" extent %c1_i32
  halide.bound_extent %bm0, "ib" extent %c1_i32
  halide.bound_extent %bm0, "h" extent %c1_i32
  halide.bound_extent %mf0, "ib" extent %c1_i32
  halide.bound_extent %mf0, "h" extent %c1_i32
  halide.bound_extent %PP0, "ib" extent %c1_i32
  halide.bound_extent %PP0, "h" extent %c1_i32
  halide.bound_extent %bs0, "ib" extent %c1_i32
  halide.bound_extent %bs0, "h" extent %c1_i32
  halide.bound_extent %PV0, "ib" extent %c1_i32
  halide.bound_extent %PV0, "h" extent %c1_i32
  halide.split %st stage 2, "ii" into("it", "i3") by 48
  halide.split %st stage 2, "i3" into("i3", "iv") by 16
  halide.reorder %st stage 2, ("iv", "i3", "dt", "it", "ib", "h", "rp")
  halide.vectorize %st stage 2, "iv"
  halide.unroll %st stage 2, "i3"
  halide.compute_at %PV1, %st, "dt"
  halide.split %PV1, "ii" into("i3", "iv") by 16
  halide.reorder %PV1, ("iv", "i3", "dd")
  halide.vectorize %PV1, "iv"
  halide.unroll %PV1, "i3"
  halide.unroll %PV1, "dd"
  halide.split %PV1 stage 1, "ii" into("i3", "iv") by 16
  halide.split %PV1 stage 1, "rj" into("rj", "rju") by 4
  halide.reorder %PV1 stage 1, ("iv", "i3", "dd", "rju", "rj")
  halide.vectorize %PV1 stage 1, "iv"
  halide.unroll %PV1 stage 1, "i3"
  halide.unroll %PV1 stage 1, "dd"
  halide.unroll %PV1 stage 1, "rju"
  halide.compute_at %SS1, %st, "ib"
  halide.split %SS1, "ii" into("it", "i3") by 48
  halide.split %SS1, "i3" into("i3", "iv") by 16
  halide.reorder %SS1, ("iv", "i3", "it", "jt")
  halide.vectorize %SS1, "iv"
  halide.unroll %SS1, "i3"
  halide.compute_at %Sa1, %SS1, "it"
  halide.bound_extent %Sa1, "ii" extent %c48_i32
  halide.bound_extent %Sa1, "jj" extent %c8_i32
  halide.split %Sa1, "ii" into("i3", "iv") by 16
  halide.reorder %Sa1, ("iv", "i3", "jj")
  halide.vectorize %Sa1, "iv"
  halide.unroll %Sa1, "i3"
  halide.unroll %Sa1, "jj"
  halide.split %Sa1 stage 1, "ii" into("i3", "iv") by 16
  halide.split %Sa1 stage 1, "re" into("re", "reu") by 4
  halide.reorder %Sa1 stage 1, ("iv", "i3", "jj", "reu", "re")
  halide.vectorize %Sa1 stage 1, "iv"
  halide.unroll %Sa1 stage 1, "i3"
  halide.unroll %Sa1 stage 1, "jj"
  halide.unroll %Sa1 stage 1, "reu"
  halide.compute_at %bm1, %st, "ib"
  halide.split %bm1, "ii" into("ii", "iv") by 16
  halide.vectorize %bm1, "iv"
  halide.split %bm1 stage 1, "ii" into("it", "i3") by 48
  halide.split %bm1 stage 1, "i3" into("i3", "iv") by 16
  halide.reorder %bm1 stage 1, ("iv", "i3", "rj8", "it")
  halide.vectorize %bm1 stage 1, "iv"
  halide.unroll %bm1 stage 1, "i3"
  halide.compute_at %bs1, %st, "ib"
  halide.split %bs1, "ii" into("ii", "iv") by 16
  halide.vectorize %bs1, "iv"
  halide.split %bs1 stage 1, "ii" into("it", "i3") by 48
  halide.split %bs1 stage 1, "i3" into("i3", "iv") by 16
  halide.reorder %bs1 stage 1, ("iv", "i3", "rj8", "it")
  halide.vectorize %bs1 stage 1, "iv"
  halide.unroll %bs1 stage 1, "i3"
  halide.compute_at %mf1, %st, "ib"
  halide.split %mf1, "ii" into("ii", "iv") by 16
  halide.vectorize %mf1, "iv"
  halide.compute_at %PP1, %st, "ib"
  halide.split %PP1, "ii" into("it", "i3") by 48
  halide.split %PP1, "i3" into("i3", "iv") by 16
  halide.split %PP1, "jj" into("jt", "jj") by 8
  halide.reorder %PP1, ("iv", "i3", "jj", "jt", "it")
  halide.vectorize %PP1, "iv"
  halide.unroll %PP1, "i3"
  halide.unroll %PP1, "jj"
  halide.bound_extent %SS1, "ii" extent %c48_i32
  halide.bound_extent %bm1, "ii" extent %c48_i32
  halide.bound_extent %mf1, "ii" extent %c48_i32
  halide.bound_extent %PP1, "ii" extent %c48_i32
  halide.bound_extent %bs1, "ii" extent %c48_i32
  halide.bound_extent %PV1, "ii" extent %c48_i32
  halide.bound_extent %Sa1, "ib" extent %c1_i32
  halide.bound_extent %Sa1, "h" extent %c1_i32
  halide.bound_extent %SS1, "ib" extent %c1_i32
  halide.bound_extent %SS1, "h" extent %c1_i32
  halide.bound_extent %bm1, "ib" extent %c1_i32
  halide.bound_extent %bm1, "h" extent %c1_i32
  halide.bound_extent %mf1, "ib" extent %c1_i32
  halide.bound_extent %mf1, "h" extent %c1_i32
  halide.bound_extent %PP1, "ib" extent %c1_i32
  halide.bound_extent %PP1, "h" extent %c1_i32
  halide.bound_extent %bs1, "ib" extent %c1_i32
  halide.bound_extent %bs1, "h" extent %c1_i32
  halide.bound_extent %PV1, "ib" extent %c1_i32
  halide.bound_extent %PV1, "h" extent %c1_i32
  halide.bound_extent %Qt, "ib" extent %c1_i32
  halide.bound_extent %Qt, "h" extent %c1_i32
  halide.bound_extent %st, "ib" extent %c1_i32
  halide.bound_extent %st, "h" extent %c1_i32
  halide.bound_extent %OT, "ib" extent %c1_i32
  halide.bound_extent %OT, "h" extent %c1_i32
  halide.bound_extent %rl, "ib" extent %c1_i32
  halide.bound_extent %rl, "h" extent %c1_i32
}
