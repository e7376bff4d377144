// What has no translation is named, at its place.
// RUN: heed-opt %s --attn-stream-attention --attn-to-halide --split-input-file --verify-diagnostics

#id = affine_map<(i) -> (i)>
func.func private @table(%x: tensor<2xf32>) -> tensor<2xf32> attributes {attn.kernel} {
  // expected-error@below {{a table of constants inside a kernel}}
  %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %t : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// Callers could not allocate the result.
func.func @model(%n: index) -> tensor<?xf32> {
  %y = call @hidden(%n) : (index) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func private @hidden(%n: index) -> tensor<?xf32> attributes {attn.kernel} {
  %zero = arith.constant 0.0 : f32
  // expected-error@below {{a result's extent is computed inside its kernel}}
  %m = arith.addi %n, %n : index
  %e = tensor.empty(%m) : tensor<?xf32>
  %y = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----
// A plan that a person has edited.
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64}} {
  func.func private @kernel(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>, %n: index, %m: index, %e: index) -> tensor<?x8xf32> attributes {attn.kernel} {
    // expected-error @+1 {{has a pipeline 'tiles' with tiles of 32 queries, blocks of 64 keys and pieces of 32 in its plan, expected multiples of 16 queries and 8 keys, and blocks of one piece without a mask}}
    %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %e)
        term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%v : tensor<?x8xf32>) maps [#v]
        score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
        normalise(exp divide stabilise) {attn.plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = 32>]>} : tensor<?x8xf32>
    return %o : tensor<?x8xf32>
  }
}

// -----
// Parts of the keys are a form of GPUs.
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64}} {
  func.func private @kernel(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>, %n: index, %m: index, %e: index) -> tensor<?x8xf32> attributes {attn.kernel} {
    // expected-error @+1 {{has a pipeline 'split' in its plan, which processors do not have}}
    %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %e)
        term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%v : tensor<?x8xf32>) maps [#v]
        score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
        normalise(exp divide stabilise) {attn.plan = #attn.plan<streaming, [<split, queries = 4, block = 64, piece = 64>, <tiles, queries = 32, block = 64, piece = 64>]>} : tensor<?x8xf32>
    return %o : tensor<?x8xf32>
  }
}

// -----
// Rows are one of processors.
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
module attributes {halide.target = {name = "opencl", gpu = "opencl", vector_bits = 512 : i64, vector_registers = 32 : i64}} {
  func.func private @kernel(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>, %n: index, %m: index, %e: index) -> tensor<?x8xf32> attributes {attn.kernel} {
    // expected-error @+1 {{has a pipeline 'rows' in its plan, which GPUs do not have}}
    %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %e)
        term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%v : tensor<?x8xf32>) maps [#v]
        score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
        normalise(exp divide stabilise) {attn.plan = #attn.plan<streaming, [<rows, queries = 1, block = 64, piece = 64>, <tiles, queries = 32, block = 64, piece = 64>]>} : tensor<?x8xf32>
    return %o : tensor<?x8xf32>
  }
}

// -----
// A score that no bound of its terms bounds: what a bias holds is not looked at.
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64}} {
  func.func private @kernel(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>, %bias: tensor<?xf32>, %n: index, %m: index, %e: index) -> tensor<?x8xf32> attributes {attn.kernel} {
    // expected-error @+1 {{has a bounded pipeline in its plan, but its scores have no bound}}
    %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %e)
        term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%v : tensor<?x8xf32>) maps [#v]
        score (%i, %j : index, %t : f32) {
          %b = tensor.extract %bias[%i] : tensor<?xf32>
          %s = arith.addf %t, %b : f32
          attn.yield %s : f32
        }
        normalise(exp divide stabilise) {attn.plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = 64>, <bounded, queries = 32, block = 64, piece = 64>]>} : tensor<?x8xf32>
    return %o : tensor<?x8xf32>
  }
}
