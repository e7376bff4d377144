// Each numbered constraint of the dialect has an input that breaks it.
// RUN: heed-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{has no halide.output (pipeline.c1)}}
halide.pipeline @no_output {
}

// -----
halide.pipeline @output_twice {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.output %f
  // expected-error@+1 {{'f' is an output already (pipeline.c1)}}
  halide.output %f
}

// -----
halide.pipeline @same_names {
  // expected-note@+1 {{here}}
  %x = halide.buffer "x" ("i") : f32
  // expected-error@+1 {{there is another 'x' (pipeline.c2)}}
  %f = halide.func "x" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.output %f
}

// -----
halide.pipeline @foreign_op {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.output %f
  // expected-error@+1 {{stands in a halide.pipeline, which holds halide, arith and math ops (pipeline.c3)}}
  %t = tensor.empty() : tensor<4xf32>
}

// -----
halide.pipeline @update_after_schedule {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.vectorize %f, "i"
  // expected-error@+1 {{stands after a directive of 'f' (pipeline.c4)}}
  halide.update %f set (%i) { halide.yield %i : i32 }
  halide.output %f
}

// -----
halide.pipeline @output_inline {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{'f' is an output (pipeline.c5)}}
  halide.compute_inline %f
  halide.output %f
}

// -----
halide.pipeline @bound_rank {
  %x = halide.buffer "x" ("i") : f32
  // expected-error@+1 {{dim is 1, but 'x' has 1 dims (bound.c1)}}
  %n = halide.extent %x, 1 : i32
}

// -----
halide.pipeline @bound_of_intermediate {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{expected a halide.buffer or an output, found 'f' (bound.c2)}}
  %n = halide.min %f, 0 : i32
}

// -----
halide.pipeline @alignment {
  %x = halide.buffer "x" ("i") : f32
  // expected-error@+1 {{alignment is 48, expected a power of two (set_host_alignment.c1)}}
  halide.set_host_alignment %x to 48
}

// -----
halide.pipeline @buffer_as_output {
  %x = halide.buffer "x" ("i") : f32
  // expected-error@+1 {{expected a halide.func, found 'x' (output.c1)}}
  halide.output %x
}

// -----
halide.pipeline @two_vars {
  // expected-error@+1 {{has two vars 'i' (func.c1)}}
  %f = halide.func "f" (%i = "i", %j = "i") : i32 { halide.yield %i : i32 }
}

// -----
halide.pipeline @wrong_value {
  %f = halide.func "f" (%i = "i") : f32 {
    // expected-error@+1 {{expected ('f32') (func.c2)}}
    halide.yield %i : i32
  }
}

// -----
halide.pipeline @update_of_buffer {
  %x = halide.buffer "x" ("i") : i32
  // expected-error@+1 {{updates 'x', expected a halide.func (update.c1)}}
  halide.update %x set (%i) { halide.yield %i : i32 }
}

// -----
halide.pipeline @rvar_like_var {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{has two vars 'i' (update.c2)}}
  halide.update %f over ("i" from %n extent %n) set (%i, %r) { halide.yield %i : i32 }
}

// -----
halide.pipeline @update_arguments {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{expected 2 arguments of type i32 in each region (update.c3)}}
  halide.update %f over ("r" from %n extent %n) set (%i) { halide.yield %i : i32 }
}

// -----
halide.pipeline @where_yields {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f over ("r" from %n extent %n) where (%i, %r) {
    // expected-error@+1 {{expected ('i1') (update.c4)}}
    halide.yield %i : i32
  } set (%i, %r) { halide.yield %i : i32 }
}

// -----
halide.pipeline @free_var {
  %n = halide.param "n" : i32
  %f = halide.func "f" (%i = "i", %j = "j") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{uses pure var 'j', which is not on the left side (update.c5)}}
  halide.update %f over ("r" from %n extent %n) at (%i, %j, %r) {
    halide.yield %i, %r : i32, i32
  } set (%i, %j, %r) { halide.yield %j : i32 }
}

// -----
halide.pipeline @where_alone {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  // expected-error@+1 {{has a where without a reduction domain (update.c6)}}
  halide.update %f where (%i) {
    %p = arith.constant true
    halide.yield %p : i1
  } set (%i) { halide.yield %i : i32 }
}

// -----
halide.pipeline @read_rank {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    // expected-error@+1 {{reads 'x' with 2 coordinates, but it has 1 dims (read.c1)}}
    %v = halide.read %x[%i, %i] : f32
    halide.yield %v : f32
  }
}

// -----
halide.pipeline @read_type {
  %x = halide.buffer "x" ("i") : f16
  %f = halide.func "f" (%i = "i") : f32 {
    // expected-error@+1 {{gives ('f32'), but elements of 'x' are ('f16') (read.c2)}}
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
}

// -----
halide.pipeline @mux_types {
  %f = halide.func "f" (%i = "i") : f32 {
    // expected-error@+1 {{expected at least one value, all of type 'f32' (mux.c1)}}
    %v = halide.mux %i, [%i : i32] : f32
    halide.yield %v : f32
  }
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @calls(%a: tensor<?xf32>, %b: tensor<?x?xf32>, %n: index) {
  // expected-error@+1 {{'@calls' is no halide.pipeline (call.c1)}}
  %0 = halide.call @calls(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %n = halide.param "n" : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @number(%a: tensor<?xf32>) {
  // expected-error@+1 {{passes 1 inputs, '@k' takes 2 (call.c2)}}
  %0 = halide.call @k(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %n = halide.param "n" : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @scalar(%a: tensor<?xf32>, %n: index) {
  // expected-error@+1 {{passes 'index' as 'n', expected 'f32' (call.c2)}}
  %0 = halide.call @k(%a, %n : tensor<?xf32>, index) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %n = halide.param "n" : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @rank(%a: tensor<?x?xf32>, %n: f32, %o: tensor<?xf32>) {
  // expected-error@+1 {{passes 'tensor<?x?xf32>' as 'x', expected rank 1 of 'f32' (call.c2, call.c3)}}
  %0 = halide.call @k(%a, %n : tensor<?x?xf32>, f32) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %n = halide.param "n" : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @outs(%a: tensor<?xf32>, %n: f32) {
  // expected-error@+1 {{has 2 outs, '@k' writes 1 (call.c3)}}
  %0:2 = halide.call @k(%a, %n : tensor<?xf32>, f32) outs(%a, %a : tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>, tensor<?xf32>
  return
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %n = halide.param "n" : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @results(%a: tensor<?xf32>, %n: f32) {
  // expected-error@+1 {{(call.c4)}}
  halide.call @k(%a, %n : tensor<?xf32>, f32) outs(%a : tensor<?xf32>)
  return
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    %isNaN = arith.cmpf uno, %v, %v : f32
    %one = halide.give_up %isNaN
    halide.yield %one : f32
  }
  halide.output %f
}
func.func @alone(%a: tensor<?xf32>) {
  // expected-error@+1 {{'@k' may give up, but no pipeline stands behind 'else' (call.c5)}}
  %0 = halide.call @k(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    %isNaN = arith.cmpf uno, %v, %v : f32
    %one = halide.give_up %isNaN
    halide.yield %one : f32
  }
  halide.output %f
}
func.func @itself(%a: tensor<?xf32>) {
  // expected-error@+1 {{'@k', behind 'else', gives up, too (call.c6)}}
  %1 = halide.call @k(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) else @k -> tensor<?xf32>
  return
}

// -----
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @never(%a: tensor<?xf32>) {
  // expected-error@+1 {{'@k' never gives up, but a pipeline stands behind 'else' (call.c5)}}
  %0 = halide.call @k(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) else @k -> tensor<?xf32>
  return
}

// -----
halide.pipeline @hasty {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    %isNaN = arith.cmpf uno, %v, %v : f32
    %one = halide.give_up %isNaN
    halide.yield %one : f32
  }
  halide.output %f
}
halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %n = halide.param "n" : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @fewer(%a: tensor<?xf32>) {
  // expected-error@+1 {{passes no 'n', which '@k', behind 'else', takes (call.c6)}}
  %0 = halide.call @hasty(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) else @k -> tensor<?xf32>
  return
}

// -----

halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %n = halide.param "n" : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @unknown(%a: tensor<?xf32>, %n: f32) {
  // expected-error@+1 {{passes 'm', but '@k' has no such input (call.c7)}}
  %0 = halide.call @k(%a : tensor<?xf32>) with("m" = %n : f32) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @twice(%a: tensor<?xf32>, %n: f32) {
  // expected-error@+1 {{passes 'n' twice (call.c7)}}
  %0 = halide.call @k(%a : tensor<?xf32>) with("n" = %n : f32, "n" = %n : f32) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

halide.pipeline @k {
  %x = halide.buffer "x" ("i") : f32
  %n = halide.param "n" : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    halide.yield %v : f32
  }
  halide.output %f
}
func.func @named_type(%a: tensor<?xf32>, %n: i32) {
  // expected-error@+1 {{passes 'i32' as 'n', expected 'f32' (call.c2)}}
  %0 = halide.call @k(%a : tensor<?xf32>) with("n" = %n : i32) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return
}
