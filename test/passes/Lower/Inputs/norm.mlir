// A residual sum and its layer norm.
#x = affine_map<(b, n, o, i) -> (b, n, i)>
#w = affine_map<(b, n, o, i) -> (o, i)>
#y = affine_map<(b, n, o, i) -> (b, n, o)>
#id = affine_map<(b, n, o) -> (b, n, o)>
#o = affine_map<(b, n, o) -> (o)>
#row = affine_map<(b, n, o) -> (b, n)>
#r2 = affine_map<(b, n) -> (b, n)>
func.func @norm(%x: tensor<?x?x40xf32>, %y: tensor<?x?x40xf32>, %g: tensor<40xf32>, %c: tensor<40xf32>) -> tensor<?x?x40xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %B = tensor.dim %x, %c0 : tensor<?x?x40xf32>
  %N = tensor.dim %x, %c1 : tensor<?x?x40xf32>
  %zero = arith.constant 0.0 : f32
  %d = arith.constant 40.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e = tensor.empty(%B, %N) : tensor<?x?x40xf32>
  %er = tensor.empty(%B, %N) : tensor<?x?xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<?x?xf32>) -> tensor<?x?xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<?x?x40xf32>, tensor<?x?x40xf32>) outs(%e : tensor<?x?x40xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.addf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<?x?x40xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%z : tensor<?x?x40xf32>) outs(%fr : tensor<?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %m = arith.addf %acc, %a : f32
    linalg.yield %m : f32
  } -> tensor<?x?xf32>
  %mean = linalg.generic {indexing_maps = [#r2, #r2], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<?x?xf32>) outs(%er : tensor<?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %m = arith.divf %a, %d : f32
    linalg.yield %m : f32
  } -> tensor<?x?xf32>
  %cc = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %mean : tensor<?x?x40xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?x40xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.subf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<?x?x40xf32>
  %v = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%cc : tensor<?x?x40xf32>) outs(%fr : tensor<?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %p = arith.mulf %a, %a : f32
    %m = arith.addf %acc, %p : f32
    linalg.yield %m : f32
  } -> tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #o, #o, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%cc, %v, %g, %c : tensor<?x?x40xf32>, tensor<?x?xf32>, tensor<40xf32>, tensor<40xf32>) outs(%e : tensor<?x?x40xf32>) {
  ^bb0(%a: f32, %b: f32, %gg: f32, %bb: f32, %acc: f32):
    %m = arith.divf %b, %d : f32
    %m2 = arith.addf %m, %eps : f32
    %sd = math.sqrt %m2 : f32
    %q = arith.divf %a, %sd : f32
    %q2 = arith.mulf %q, %gg : f32
    %q3 = arith.addf %q2, %bb : f32
    linalg.yield %q3 : f32
  } -> tensor<?x?x40xf32>
  return %r : tensor<?x?x40xf32>
}
