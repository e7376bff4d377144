// Directives change how a pipeline computes and not what: the same sums by different schedules, at sizes that no factor divides.
// RUN: rm -rf %t && heed-halide %s -o %t --target=x86-64-v3 --runtime --no-user-context
// RUN: env PYTHONPATH=%S/Inputs %python %S/Inputs/schedule.py %t %cc
// What is asked for is what is compiled.
// RUN: heed-halide %s --emit=stmt --target=x86-64-v3 | FileCheck %s

// CHECK: internal func sums_par_for_o
// CHECK: allocate f[float32 * 8{{.*}}] in Stack
// CHECK: x[ramp({{.*}}, 8)]
// CHECK: external_plus_argv func sums (__user_context, x, o)
// Forty lines of five places that a turn of the outer loop fetches into the second cache, eight at a time: each turn of the inner
// loop takes its share, if there are two. After its last turn the places are those behind the last.
// CHECK: for (pair.s1.i.rebased, 0,
// CHECK: for (pair.s1.r$x, 0, [[N:.*]]) {
// CHECK-NEXT: if (pair.s1.r$x < select([[N]] < 2, 0, 5)) {
// CHECK-COUNT-8: llvm.prefetch.p0({{.*}}(int64(pair.s1.r$x/5)*(int64)512) + (int64(pair.s1.r$x % 5)*(int64)400){{.*}}, 0, 2, 1)
// CHECK-NEXT: if ((pair.s1.r$x + [[N]]) < select([[N]] < 2, 0, 5)) {
// CHECK-COUNT-8: llvm.prefetch.p0({{.*}}(int64)656, (int64)256){{.*}}((pair.s1.r$x + [[N]]) % 5)*(int64)400{{.*}}, 0, 2, 1)
// CHECK-NEXT: if ((([[N]]*2) + pair.s1.r$x) < select([[N]] < 2, 0, 5)) {
// One line of 16 elements in each turn of a loop, 256 elements ahead; the turns of the outer loop share the lines.
// CHECK: llvm.prefetch.p0({{.*}}(((pair.s1.i.rebased % 3)*[[N]]) + pair.s1.r$x)*(int64)16){{.*}} + (int64)1024)), 0, 3, 1)
halide.pipeline @sums {
  %x = halide.buffer "x" ("j", "i") : f32
  %n = halide.extent %x, 0 : i32
  %zero = arith.constant 0 : i32
  %eight = arith.constant 8 : i32
  halide.set_bounds %x, 0 from %zero
  halide.set_bounds %x, 1 from %zero
  %f = halide.func "f" (%j = "j", %i = "i") : f32 {
    %one = arith.constant 1 : i32
    %last = arith.subi %n, %one : i32
    %inside = arith.minsi %j, %last : i32 // eight are read at a time, whatever n is
    %v = halide.read %x[%inside, %i] : f32
    %w = arith.mulf %v, %v : f32
    halide.yield %w : f32
  }
  %s = halide.func "s" (%i = "i") : f32 {
    %c = arith.constant 0.0 : f32
    halide.yield %c : f32
  }
  halide.update %s over ("r" from %zero extent %n) where (%i, %r) {
    %p = arith.cmpi sle, %r, %i : i32
    halide.yield %p : i1
  } set (%i, %r) {
    %old = halide.read %s[%i] : f32
    %v = halide.read %f[%r, %i] : f32
    %new = arith.addf %old, %v fastmath<reassoc,contract> : f32
    halide.yield %new : f32
  }
  %o = halide.func "o" (%i = "i") : f32 {
    %v = halide.read %s[%i] : f32
    halide.yield %v : f32
  }
  halide.output %o
  halide.parallel %o, "i"
  halide.compute_at %s, %o, "i"
  halide.split %s stage 1, "r" into ("ro", "ri") by 8 tail GuardWithIf
  halide.compute_at %f, %s, "ro"
  halide.store_in %f, Stack
  halide.vectorize %f, "j"
  halide.bound_extent %f, "j" extent %eight
}

// Partial sums over lanes, merged by rfactor; a scatter with a general left side; a specialisation; tuples.
halide.pipeline @more {
  %x = halide.buffer "x" ("j", "i") : f32
  %n = halide.extent %x, 0 : i32
  %m = halide.extent %x, 1 : i32
  %zero = arith.constant 0 : i32
  %wide = arith.cmpi sgt, %n, %m : i32
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
  %pair = halide.func "pair" (%i = "i") : f32, i32 {
    %c = arith.constant 0xFF800000 : f32
    halide.yield %c, %i : f32, i32
  }
  halide.update %pair over ("r" from %zero extent %n) set (%i, %r) {
    %old:2 = halide.read %pair[%i] : f32, i32
    %v = halide.read %x[%r, %i] : f32
    %more = arith.cmpf ogt, %v, %old#0 : f32
    %best = arith.select %more, %v, %old#0 : f32
    %at = arith.select %more, %r, %old#1 : i32
    halide.yield %best, %at : f32, i32
  }
  %mirror = halide.func "mirror" (%i = "i") : f32 {
    %c = arith.constant -1.0 : f32
    halide.yield %c : f32
  }
  halide.update %mirror over ("r" from %zero extent %m) at (%i, %r) {
    %one = arith.constant 1 : i32
    %last = arith.subi %m, %one : i32
    %p = arith.subi %last, %r : i32
    halide.yield %p : i32
  } set (%i, %r) {
    %v = halide.read %s[%r] : f32
    halide.yield %v : f32
  }
  halide.output %mirror
  halide.output %pair
  halide.split %s stage 1, "r" into ("ro", "ri") by 8
  %part = halide.rfactor %s stage 1, ("ri") to ("u")
  halide.compute_root %s
  halide.compute_at %part, %s, "i"
  halide.vectorize %part, "u"
  halide.vectorize %part stage 1, "u"
  halide.prefetch_lines %pair stage 1, %x at "r" ahead 256 over %pair, "i" by 3
  halide.prefetch_spread %pair stage 1, %x at "r" ahead 256 over %pair, "i" lines 40 turns 2 second_cache places 5 apart 100
  halide.specialize %pair stage 1 if %wide {
    halide.split %pair stage 1, "i" into ("io", "ii") by 4 tail GuardWithIf
    halide.reorder %pair stage 1, ("ii", "r", "io")
    halide.unroll %pair stage 1, "ii"
  }
}

// Where a func is computed and where its values stay, tiles, names of loops: y[i, j] = x[i, j - 1]^2 + x[i, j]^2 + x[i, j + 1]^2, as far as
// these are there; twice of it; and y from the first row to i.
// CHECK-LABEL: external_plus_argv func places
// Rows are padded to 16, the squares of one outer turn are kept for the next, and what is inlined is nowhere.
// CHECK: allocate square[float32 * {{.*}}/16)*16) + 16)
// CHECK: for (y.s0.i.it.piece, 0,
// CHECK: prefetch(x,
// CHECK-NOT: produce twice
// CHECK: produce sum
halide.pipeline @places {
  %x = halide.buffer "x" ("j", "i") : f32
  %n = halide.extent %x, 0 : i32
  %m = halide.extent %x, 1 : i32
  %first = halide.min %x, 0 : i32
  halide.set_host_alignment %x to 16
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %end = arith.addi %first, %n : i32
  %last = arith.subi %end, %one : i32
  %square = halide.func "square" (%j = "j", %i = "i") : f32 {
    %low = arith.maxsi %j, %first : i32
    %at = arith.minsi %low, %last : i32
    %v = halide.read %x[%at, %i] : f32
    %w = arith.mulf %v, %v : f32
    %c = arith.constant 0.0 : f32
    %p = arith.cmpi sle, %first, %j : i32
    %q = arith.cmpi sle, %j, %last : i32
    %both = arith.andi %p, %q : i1
    %r = arith.select %both, %w, %c : f32
    halide.yield %r : f32
  }
  %y = halide.func "y" (%j = "j", %i = "i") : f32 {
    %before = arith.subi %j, %one : i32
    %after = arith.addi %j, %one : i32
    %a = halide.read %square[%before, %i] : f32
    %b = halide.read %square[%j, %i] : f32
    %c = halide.read %square[%after, %i] : f32
    %s = arith.addf %a, %b : f32
    %t = arith.addf %s, %c : f32
    halide.yield %t : f32
  }
  %twice = halide.func "twice" (%j = "j", %i = "i") : f32 {
    %v = halide.read %y[%j, %i] : f32
    %w = arith.addf %v, %v : f32
    halide.yield %w : f32
  }
  %double = halide.func "double" (%j = "j", %i = "i") : f32 {
    %v = halide.read %twice[%j, %i] : f32
    halide.yield %v : f32
  }
  %row = halide.func "row" (%j = "j", %i = "i") : f32 {
    %v = halide.read %y[%j, %i] : f32
    halide.yield %v : f32
  }
  %sum = halide.func "sum" (%j = "j", %i = "i") : f32 {
    %c = arith.constant 0.0 : f32
    halide.yield %c : f32
  }
  halide.update %sum over ("r" from %zero extent %m) where (%j, %i, %r) {
    %p = arith.cmpi sle, %r, %i : i32
    halide.yield %p : i1
  } set (%j, %i, %r) {
    %old = halide.read %sum[%j, %i] : f32
    %v = halide.read %row[%j, %r] : f32
    %new = arith.addf %old, %v fastmath<reassoc,contract> : f32
    halide.yield %new : f32
  }
  halide.output %double
  halide.output %sum
  halide.compute_root %y
  halide.tile %y, ("j", "i") into ("jt", "it"), ("jv", "iv") by [8, 4] tail GuardWithIf
  halide.rename %y, "it" to "piece"
  halide.serial %y, "piece"
  halide.vectorize %y, "jv"
  halide.compute_at %square, %y, "iv"
  halide.store_at %square, %y, "piece"
  halide.hoist_storage_root %square
  halide.align_storage %square, "j" modulus 16
  halide.prefetch %y, %x at "piece" from "piece" offset 1
  halide.compute_inline %twice
  halide.compute_at %row, %sum, "i"
  halide.store_root %row
}

// i - 2*(i/2) == 0 in the lanes of a tile that starts at a multiple of 2: libHalide's simplifier took the tile's answer for all.
halide.pipeline @parity {
  %x = halide.buffer "x" ("j") : f32
  %zero = arith.constant 0 : i32
  %n = halide.extent %x, 0 : i32
  %s = halide.func "s" (%i = "i") : f32 {
    %c = arith.constant 0.0 : f32
    halide.yield %c : f32
  }
  halide.update %s over ("r" from %zero extent %n) set (%i, %r) {
    %c = arith.constant 0.0 : f32
    %two = arith.constant 2 : i32
    %h = arith.floordivsi %i, %two : i32
    %e = arith.muli %two, %h : i32
    %d = arith.subi %i, %e : i32
    %p = arith.cmpi eq, %d, %zero : i32
    %v = halide.read %x[%r] : f32
    %w = arith.select %p, %c, %v : f32
    %old = halide.read %s[%i] : f32
    %new = arith.addf %old, %w : f32
    halide.yield %new : f32
  }
  %o = halide.func "o" (%i = "i") : f32 {
    %v = halide.read %s[%i] : f32
    halide.yield %v : f32
  }
  halide.output %o
  halide.set_bounds %o, 0 from %zero
  halide.split %o, "i" into ("io", "ii") by 48 tail GuardWithIf
  halide.compute_at %s, %o, "io"
  %c48 = arith.constant 48 : i32
  halide.bound_extent %s, "i" extent %c48
  halide.split %s stage 1, "i" into ("nj", "nv") by 16 tail GuardWithIf
  halide.reorder %s stage 1, ("nv", "nj", "r")
  halide.vectorize %s stage 1, "nv"
}
