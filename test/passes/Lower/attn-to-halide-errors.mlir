// What has no translation is named, at its place.
// RUN: heed-opt %s --attn-to-halide --split-input-file --verify-diagnostics

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
