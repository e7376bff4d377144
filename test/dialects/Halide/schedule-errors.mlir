// What libHalide would reject in a schedule, or would accept and mean otherwise, is an error at the directive.
// RUN: heed-opt %s -split-input-file -verify-diagnostics

halide.pipeline @buffer {
  %x = halide.buffer "x" ("i") : f32
  // expected-error@+1 {{schedules 'x', expected a halide.func (schedule.c1)}}
  halide.vectorize %x, "i"
}

// -----
halide.pipeline @stage {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{names stage 1, but 'f' has 1 (schedule.c2)}}
  halide.vectorize %f stage 1, "i"
  halide.output %f
}

// -----
halide.pipeline @unknown_var {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{'k' is no loop of 'f' here (schedule.c3); its loops are 'i', 'j'}}
  halide.unroll %f, "k"
  halide.output %f
}

// -----
halide.pipeline @split_var_is_gone {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.split %f, "i" into ("io", "ii") by 8
  // expected-error@+1 {{'i' is no loop of 'f' here (schedule.c3); its loops are 'ii', 'io'}}
  halide.parallel %f, "i"
  halide.output %f
}

// -----
halide.pipeline @name_taken {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{'j' is already a loop of 'f' (schedule.c3)}}
  halide.split %f, "i" into ("io", "j") by 8
  halide.output %f
}

// -----
halide.pipeline @rename_taken {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{'j' is already a loop of 'f' (schedule.c3)}}
  halide.rename %f, "i" to "j"
  halide.output %f
}

// -----
halide.pipeline @bound_of_loop {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.split %f, "i" into ("io", "ii") by 8
  // expected-error@+1 {{'io' is no var of 'f' (schedule.c3)}}
  halide.bound_extent %f, "io" extent %n
  halide.output %f
}

// -----
halide.pipeline @inline_func {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  // expected-error@+1 {{'f' is computed inline, so it has no loops to schedule (schedule.c4)}}
  halide.vectorize %f, "i"
  halide.output %g
}

// -----
halide.pipeline @inline_storage {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  // expected-error@+1 {{'f' is computed inline, so it is stored nowhere (schedule.c4)}}
  halide.store_root %f
  halide.output %g
}

// -----
halide.pipeline @split_factor {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{expected either a number or a value as factor (split.c1)}}
  "halide.split"(%f) <{var = "i", outer = "io", inner = "ii"}> : (!halide.func) -> ()
  halide.output %f
}

// -----
halide.pipeline @split_names {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{calls both loops 'a' (split.c2)}}
  halide.split %f, "i" into ("a", "a") by 8
  halide.output %f
}

// -----
halide.pipeline @tails {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n) set (%i, %r) { halide.yield %r : i32 }
  // expected-error@+1 {{'r' is a reduction var, which takes tail GuardWithIf or Predicate, not RoundUp (split.c3)}}
  halide.split %f stage 1, "r" into ("ro", "ri") by 8 tail RoundUp
  halide.output %f
}

// -----
halide.pipeline @recompute {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f set (%i) { halide.yield %i : i32 }
  // expected-error@+1 {{an update must not compute an element twice, as tail ShiftInwards does (split.c3)}}
  halide.split %f stage 1, "i" into ("io", "ii") by 8 tail ShiftInwards
  halide.output %f
}

// -----
halide.pipeline @fuse_self {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{fuses 'i' with itself (fuse.c1)}}
  halide.fuse %f, ("i", "i") into "t"
  halide.output %f
}

// -----
halide.pipeline @fuse_kinds {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n) set (%i, %r) { halide.yield %r : i32 }
  // expected-error@+1 {{fuses a pure var with a reduction var (fuse.c2)}}
  halide.fuse %f stage 1, ("i", "r") into "t"
  halide.output %f
}

// -----
halide.pipeline @tile_counts {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{expected as many outer vars, inner vars and positive factors as vars (tile.c1)}}
  halide.tile %f, ("i", "j") into ("io", "jo"), ("ii", "ji") by [8]
  halide.output %f
}

// -----
halide.pipeline @reorder_twice {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{names a var twice (reorder.c1)}}
  halide.reorder %f, ("i", "i")
  halide.output %f
}

// -----
halide.pipeline @vectorised_twice {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.vectorize %f, "i"
  // expected-error@+1 {{loop 'i' of 'f' has halide.vectorize already (loop.c1)}}
  halide.unroll %f, "i"
  halide.output %f
}

// -----
halide.pipeline @split_vectorised {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.vectorize %f, "i"
  // expected-error@+1 {{loop 'i' of 'f' has halide.vectorize already (loop.c1)}}
  halide.split %f, "i" into ("io", "ii") by 8
  halide.output %f
}

// -----
halide.pipeline @rfactor_pure {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{expected an update, found stage 0 (rfactor.c1)}}
  %g = halide.rfactor %f, ("i") to ("u")
  halide.output %f
}

// -----
halide.pipeline @rfactor_vars {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n) set (%i, %r) { halide.yield %r : i32 }
  // expected-error@+1 {{'i' is no reduction var (rfactor.c2)}}
  %g = halide.rfactor %f stage 1, ("i") to ("u")
  halide.output %f
}

// -----
halide.pipeline @specialize_other {
  %c = halide.param "c" : i1
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  halide.specialize %g if %c {
    // expected-error@+1 {{stands in halide.specialize, which holds directives of stage 0 of 'g' alone (specialize.c1)}}
    halide.unroll %f, "i"
  }
  halide.output %g
}

// -----
halide.pipeline @prefetch_over_no_loop {
  %x = halide.buffer "x" ("i") : i32
  %f = halide.func "f" (%i = "i") : i32 {
    %v = halide.read %x[%i] : i32
    halide.yield %v : i32
  }
  // expected-error@+1 {{'tile' is no loop of 'f' here (prefetch_lines.c1)}}
  halide.prefetch_lines %f, %x at "i" ahead 64 over %f, "tile" by 12
  halide.output %f
}

// -----
halide.pipeline @prefetch_spread_over_no_loop {
  %x = halide.buffer "x" ("i") : i32
  %f = halide.func "f" (%i = "i") : i32 {
    %v = halide.read %x[%i] : i32
    halide.yield %v : i32
  }
  // expected-error@+1 {{'tile' is no loop of 'f' here (prefetch_spread.c1)}}
  halide.prefetch_spread %f, %x at "i" ahead 64 over %f, "tile" lines 12 turns 1
  halide.output %f
}

// -----
halide.pipeline @prefetch_of_no_loop {
  %x = halide.buffer "x" ("i") : i32
  %f = halide.func "f" (%i = "i") : i32 {
    %v = halide.read %x[%i] : i32
    halide.yield %v : i32
  }
  // expected-error@+1 {{'row' is no loop of 'f' here (prefetch_next.c1)}}
  halide.prefetch_next %f, %x at "i" over %f, "row"
  halide.output %f
}

// -----
halide.pipeline @streamed_scratch {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  halide.output %g
  // expected-error@+1 {{names 'f', expected an output of one element type (stream_stores.c1)}}
  halide.stream_stores %f beyond 0
}

// -----
halide.pipeline @inside_itself {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{places 'f' inside itself (at.c1)}}
  halide.compute_at %f, %f, "i"
  halide.output %f
}

// -----
halide.pipeline @no_such_place {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  halide.split %g, "i" into ("io", "ii") by 8
  // expected-error@+1 {{'i' is no loop of 'g' when the schedule is complete (at.c1)}}
  halide.compute_at %f, %g, "i"
  halide.output %g
}

// -----
halide.pipeline @placed_twice {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  // expected-note@+1 {{here}}
  halide.compute_root %f
  // expected-error@+1 {{'f' has a place already (at.c2)}}
  halide.compute_at %f, %g, "i"
  halide.output %g
}

// -----
halide.pipeline @remainder {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  // expected-error@+1 {{remainder 8 is not below the modulus 8 (align_bounds.c1)}}
  halide.align_bounds %f, "i" modulus 8 remainder 8
  halide.output %g
}

// -----
halide.pipeline @storage_of_one {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{expected two vars or more (reorder_storage.c1)}}
  halide.reorder_storage %f, ("i")
  halide.output %f
}

// -----
halide.pipeline @storage_twice {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{names a var twice (reorder_storage.c1)}}
  halide.reorder_storage %f, ("i", "i")
  halide.output %f
}

// -----
halide.pipeline @storage_in_part {
  %f = halide.func "f" (%i = "i", %j = "j", %k = "k") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{names 2 vars of 'f', which has 3 (reorder_storage.c2)}}
  halide.reorder_storage %f, ("j", "i")
  halide.output %f
}

// -----
halide.pipeline @storage_unknown {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{'k' is no var of 'f' (schedule.c3)}}
  halide.reorder_storage %f, ("k", "i")
  halide.output %f
}

// -----
halide.pipeline @aligned_output {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{aligns the output 'f', which would be written past its end (align_bounds.c2)}}
  halide.align_bounds %f, "i" modulus 8
  halide.output %f
}

// -----
halide.pipeline @no_factor {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.split %f, "i" into ("io", "ii") by 8
  // expected-error@+1 {{found no halide.split above that makes loop 'io' of 'f' (factor.c1)}}
  %n = halide.factor %f, "io" : i32
  halide.output %f
}

// -----
halide.pipeline @dynamic_factor {
  %c0 = arith.constant 0 : i32
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  // expected-error@+1 {{factor is 0, expected a positive one (split.c1)}}
  halide.split %f, "i" into ("io", "ii") by %c0
}

// -----
halide.pipeline @factor_beyond_32_bits {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  // expected-error@+1 {{whose maximum value is 2147483647}}
  halide.split %f, "i" into ("io", "ii") by 8589934592
}

// -----
halide.pipeline @zero_factor {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  // expected-error@+1 {{whose value is positive}}
  halide.split %f, "i" into ("io", "ii") by 0
}

// -----
halide.pipeline @loop_name {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  // expected-error@+1 {{'i.o' is no name for a loop, which is neither empty nor has a '.' (pipeline.c6)}}
  halide.split %f, "i" into ("i.o", "ii") by 8
}

// -----
halide.pipeline @tile_names {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  // expected-error@+1 {{'a' is already a loop of 'f' (schedule.c3)}}
  halide.tile %f, ("i", "j") into ("a", "a"), ("c", "d") by [4, 4]
}

// -----
halide.pipeline @tile_tail {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n, "s" from %n extent %n, "t" from %n extent %n) set (%i, %r, %s, %t) { halide.yield %r : i32 }
  halide.output %f
  // expected-error@+1 {{an update must not compute an element twice, as tail ShiftInwards does (split.c3)}}
  halide.tile %f stage 1, ("i", "r") into ("a", "b"), ("c", "d") by [4, 4] tail ShiftInwards
}

// -----
halide.pipeline @fuse_around {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n, "s" from %n extent %n, "t" from %n extent %n) set (%i, %r, %s, %t) { halide.yield %r : i32 }
  halide.output %f
  // expected-error@+1 {{reduction loop 't' is not the next one outside of 'r' (fuse.c3)}}
  halide.fuse %f stage 1, ("r", "t") into "u"
}

// -----
halide.pipeline @fuse_inverted {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n, "s" from %n extent %n, "t" from %n extent %n) set (%i, %r, %s, %t) { halide.yield %r : i32 }
  halide.output %f
  // expected-error@+1 {{reduction loop 'r' is not the next one outside of 's' (fuse.c3)}}
  halide.fuse %f stage 1, ("s", "r") into "u"
}

// -----
halide.pipeline @race {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n, "s" from %n extent %n, "t" from %n extent %n) set (%i, %r, %s, %t) { halide.yield %r : i32 }
  halide.output %f
  // expected-error@+1 {{loop 'r' of 'f' is a reduction, whose iterations update the same elements; expected halide.atomic before (loop.c2)}}
  halide.parallel %f stage 1, "r"
}

// -----
halide.pipeline @copies {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  halide.split %f, "i" into ("io", "ii") by 1000000
  // expected-error@+1 {{loop 'ii' of 'f' has 1000000 iterations, of which this dialect allows 4096 as lanes or copies (loop.c3)}}
  halide.unroll %f, "ii"
}

// -----
halide.pipeline @no_gpu_loop {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  // expected-error@+1 {{names 0 vars, expected one to three (gpu.c1)}}
  halide.gpu_blocks %f, ()
}

// -----
halide.pipeline @gpu_twice {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  halide.output %f
  halide.gpu_threads %f, ("i")
  // expected-error@+1 {{loop 'i' of 'f' has halide.gpu_threads, where one thread runs all loops (gpu.c2)}}
  halide.gpu_single_thread %f
}

// -----
// What is shared before a loop and read inside alone loses its memory in the first turn: wrong numbers, without a message.
halide.pipeline @lost_in_loop {
  %zero = arith.constant 0 : i32
  %n = halide.param "n" : i32
  %q = halide.func "q" (%i = "i") : i32 { halide.yield %i : i32 }
  %s = halide.func "s" (%i = "i") : i32 { halide.yield %zero : i32 }
  halide.update %s over ("r" from %zero extent %n) set (%i, %r) {
    %0 = halide.read %q[%i] : i32
    %1 = halide.read %s[%i] : i32
    %2 = arith.addi %0, %1 : i32
    halide.yield %2 : i32
  }
  %f = halide.func "f" (%i = "i") : i32 {
    %0 = halide.read %s[%i] : i32
    halide.yield %0 : i32
  }
  halide.output %f
  halide.split %f, "i" into ("b", "t") by 32
  halide.gpu_threads %f, ("t")
  halide.gpu_blocks %f, ("b")
  halide.compute_at %s, %f, "b"
  halide.compute_at %q, %f, "b"
  // expected-error@+1 {{'q' is shared by a block of 'f', which does not read it itself: its memory would be another func's before the last read (gpu.c3)}}
  halide.store_in %q, GPUShared
}

// -----
// A thread that reads it has a loop of the block around it.
halide.pipeline @shared_reader_in_loop {
  %c1 = arith.constant 1 : i32
  %q = halide.func "q" (%i = "i") : i32 { halide.yield %i : i32 }
  %s = halide.func "s" (%i = "i", %j = "j") : i32 {
    %0 = halide.read %q[%i] : i32
    halide.yield %0 : i32
  }
  %f = halide.func "f" (%i = "i") : i32 {
    %0 = halide.read %s[%i, %i] : i32
    halide.yield %0 : i32
  }
  halide.output %f
  halide.split %f, "i" into ("b", "t") by 32
  halide.gpu_threads %f, ("t")
  halide.gpu_blocks %f, ("b")
  halide.compute_at %s, %f, "b"
  halide.gpu_threads %s, ("i")
  halide.compute_at %q, %f, "b"
  // expected-error@+1 {{'q' is shared by a block of 'f', which does not read it itself: its memory would be another func's before the last read (gpu.c3)}}
  halide.store_in %q, GPUShared
  halide.gpu_threads %q, ("i")
}

// -----
// What reads it is computed for a turn of such a loop.
halide.pipeline @shared_reader_for_a_turn {
  %q = halide.func "q" (%i = "i") : i32 { halide.yield %i : i32 }
  %r = halide.func "r" (%i = "i") : i32 {
    %0 = halide.read %q[%i] : i32
    halide.yield %0 : i32
  }
  %s = halide.func "s" (%i = "i", %j = "j") : i32 {
    %0 = halide.read %r[%i] : i32
    halide.yield %0 : i32
  }
  %f = halide.func "f" (%i = "i") : i32 {
    %0 = halide.read %s[%i, %i] : i32
    halide.yield %0 : i32
  }
  halide.output %f
  halide.split %f, "i" into ("b", "t") by 32
  halide.gpu_threads %f, ("t")
  halide.gpu_blocks %f, ("b")
  halide.compute_at %s, %f, "b"
  halide.gpu_threads %s, ("i")
  halide.compute_at %r, %s, "j"
  halide.gpu_threads %r, ("i")
  halide.compute_at %q, %f, "b"
  // expected-error@+1 {{'q' is shared by a block of 'f', which does not read it itself: its memory would be another func's before the last read (gpu.c3)}}
  halide.store_in %q, GPUShared
  halide.gpu_threads %q, ("i")
}

// -----
halide.pipeline @rfactor_name {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n, "s" from %n extent %n, "t" from %n extent %n) set (%i, %r, %s, %t) { halide.yield %r : i32 }
  halide.output %f
  // expected-error@+1 {{'i' is already a var of 'f' (schedule.c3)}}
  %p = halide.rfactor %f stage 1, ("t") to ("i")
}

// -----
halide.pipeline @empty_bound {
  %c0 = arith.constant 0 : i32
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i", %j = "j") : i32 {
    %v = halide.read %f[%i, %j] : i32
    halide.yield %v : i32
  }
  halide.output %g
  halide.compute_root %f
  // expected-error@+1 {{extent of 'i' is 0, expected a positive one (promise.c2)}}
  halide.bound_extent %f, "i" extent %c0
}

// -----
halide.pipeline @inline_consumer {
  %u = halide.func "u" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { %v = halide.read %u[%i, %j] : i32
    halide.yield %v : i32 }
  %g = halide.func "g" (%i = "i", %j = "j") : i32 {
    %v = halide.read %f[%i, %j] : i32
    halide.yield %v : i32
  }
  halide.output %g
  // expected-error@+1 {{'f' is computed inline, so it has no loops (at.c3)}}
  halide.compute_at %u, %f, "i"
}

// -----
halide.pipeline @no_consumer {
  %u = halide.func "u" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.compute_root %u
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i", %j = "j") : i32 {
    %v = halide.read %f[%i, %j] : i32
    halide.yield %v : i32
  }
  halide.output %g
  // expected-error@+1 {{'u' does not read 'f' (at.c3)}}
  halide.compute_at %f, %u, "i"
}

// -----
halide.pipeline @stored_inside {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i", %j = "j") : i32 {
    %v = halide.read %f[%i, %j] : i32
    halide.yield %v : i32
  }
  halide.output %g
  halide.compute_at %f, %g, "j"
  // expected-error@+1 {{'f' is stored inside of where it is computed (at.c5)}}
  halide.store_at %f, %g, "i"
}

// -----
halide.pipeline @read_elsewhere {
  %g = halide.func "inner" (%i = "i") : i32 { halide.yield %i : i32 }
  %a = halide.func "first" (%i = "i") : i32 {
    %v = halide.read %g[%i] : i32
    halide.yield %v : i32
  }
  // expected-note@+1 {{here}}
  %b = halide.func "second" (%i = "i") : i32 {
    %v = halide.read %g[%i] : i32
    %w = halide.read %a[%i] : i32
    %s = arith.addi %v, %w : i32
    halide.yield %s : i32
  }
  halide.output %b
  halide.compute_root %a
  // expected-error@+1 {{'inner' is read by stage 0 of 'second', which is not inside loop 'i' of 'first' (at.c4)}}
  halide.compute_at %g, %a, "i"
}

// -----
halide.pipeline @update_after_read {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i", %j = "j") : i32 {
    %v = halide.read %f[%i, %j] : i32
    halide.yield %v : i32
  }
  halide.output %g
  // expected-error@+1 {{updates 'f' after 'g' has read it (update.c7)}}
  halide.update %f set (%i, %j) { halide.yield %i : i32 }
}

// -----
halide.pipeline @with_no_output {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  halide.output %g
  halide.compute_root %f
  // expected-error@+1 {{names 'f', expected an output without updates (compute_with.c1)}}
  halide.compute_with %f, %g, "i"
}

// -----
halide.pipeline @with_itself {
  %g = halide.func "g" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.output %g
  // expected-error@+1 {{computes 'g' with itself (compute_with.c1)}}
  halide.compute_with %g, %g, "i"
}

// -----
halide.pipeline @with_other_loops {
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  %g = halide.func "g" (%i = "i", %k = "k") : i32 { halide.yield %i : i32 }
  halide.output %f
  halide.output %g
  // expected-error@+1 {{'g' and 'f' have other loops up to 'i' (compute_with.c2)}}
  halide.compute_with %g, %f, "i"
}

// -----
// What is computed in a loop that outputs share may be read by each.
halide.pipeline @with_what_both_read {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  %a = halide.func "first" (%j = "j", %i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  %b = halide.func "second" (%i = "i") : i32 {
    %v = halide.read %f[%i] : i32
    halide.yield %v : i32
  }
  halide.output %a
  halide.output %b
  halide.compute_at %f, %a, "i"
  halide.compute_with %b, %a, "i"
}
