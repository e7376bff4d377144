// A linear layer with bias and GELU.
#x = affine_map<(b, n, o, i) -> (b, n, i)>
#w = affine_map<(b, n, o, i) -> (o, i)>
#y = affine_map<(b, n, o, i) -> (b, n, o)>
#id = affine_map<(b, n, o) -> (b, n, o)>
#o = affine_map<(b, n, o) -> (o)>
#row = affine_map<(b, n, o) -> (b, n)>
#r2 = affine_map<(b, n) -> (b, n)>
func.func @ffn(%x: tensor<?x?x40xf32>, %w: tensor<80x40xf32>, %c: tensor<80xf32>) -> tensor<?x?x80xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %B = tensor.dim %x, %c0 : tensor<?x?x40xf32>
  %N = tensor.dim %x, %c1 : tensor<?x?x40xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%B, %N) : tensor<?x?x80xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x80xf32>) -> tensor<?x?x80xf32>
  %s = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x40xf32>, tensor<80x40xf32>) outs(%f : tensor<?x?x80xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?x80xf32>
  %g = linalg.generic {indexing_maps = [#id, #o, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %c : tensor<?x?x80xf32>, tensor<80xf32>) outs(%e : tensor<?x?x80xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %k = arith.constant 0.70710678118 : f32
    %t = arith.addf %a, %b : f32
    %u = arith.mulf %t, %k : f32
    %v = math.erf %u : f32
    %q = arith.addf %v, %one : f32
    %h = arith.mulf %t, %half : f32
    %r = arith.mulf %h, %q : f32
    linalg.yield %r : f32
  } -> tensor<?x?x80xf32>
  return %g : tensor<?x?x80xf32>
}
