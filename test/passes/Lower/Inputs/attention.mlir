// Causal attention with grouped heads, as three tensors.
#q = affine_map<(b, h, i, j, e) -> (b, h, i, e)>
#s = affine_map<(b, h, i, j, e) -> (b, h, i, j)>
#c = affine_map<(b, h, i, j, e) -> (e)>
#o = affine_map<(b, h, i, f, j) -> (b, h, i, f)>
#p = affine_map<(b, h, i, f, j) -> (b, h, i, j)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
func.func @attention(%q: tensor<?x?x?x?xf32> {attn.name = "q"}, %k: tensor<?x?x?x?xf32> {attn.name = "k"}, %v: tensor<?x?x?x?xf32> {attn.name = "v"})
    -> (tensor<?x?x?x?xf32> {attn.name = "o"}) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %B = tensor.dim %q, %c0 : tensor<?x?x?x?xf32>
  %H = tensor.dim %q, %c1 : tensor<?x?x?x?xf32>
  %N = tensor.dim %q, %c2 : tensor<?x?x?x?xf32>
  %E = tensor.dim %q, %c3 : tensor<?x?x?x?xf32>
  %G = tensor.dim %k, %c1 : tensor<?x?x?x?xf32>
  %M = tensor.dim %k, %c2 : tensor<?x?x?x?xf32>
  %F = tensor.dim %v, %c3 : tensor<?x?x?x?xf32>
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty(%B, %H, %N, %M) : tensor<?x?x?x?xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %ee = tensor.empty(%E) : tensor<?xi1>
  %s = linalg.generic {indexing_maps = [#q, #c, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %ee : tensor<?x?x?x?xf32>, tensor<?xi1>) outs(%f0 : tensor<?x?x?x?xf32>) {
  ^bb0(%a: f32, %x: i1, %acc: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 3 : index
    %e = linalg.index 4 : index
    %hg = arith.muli %h, %G : index
    %g = arith.floordivsi %hg, %H : index
    %kk = tensor.extract %k[%b, %g, %j, %e] : tensor<?x?x?x?xf32>
    %m = arith.mulf %a, %kk : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?x?xf32>
  %s2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<?x?x?x?xf32>) outs(%e0 : tensor<?x?x?x?xf32>) {
  ^bb0(%a: f32, %x: f32):
    %i64 = arith.index_cast %E : index to i64
    %f = arith.sitofp %i64 : i64 to f32
    %sq = math.sqrt %f : f32
    %r = arith.divf %a, %sq : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?x?xf32>
  %p, %live = attn.softmax %s2 axes([3]) where (%b, %h, %i, %j) {
    %d = arith.subi %M, %N : index
    %t = arith.addi %i, %d : index
    %c = arith.cmpi sle, %j, %t : index
    attn.yield %c : i1
  } : tensor<?x?x?x?xf32>, tensor<?x?x?x?xi1>
  %e1 = tensor.empty(%B, %H, %N, %F) : tensor<?x?x?x?xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %o = linalg.generic {indexing_maps = [#p, #p, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %live : tensor<?x?x?x?xf32>, tensor<?x?x?x?xi1>) outs(%f1 : tensor<?x?x?x?xf32>) {
  ^bb0(%a: f32, %x: i1, %acc: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %ff = linalg.index 3 : index
    %j = linalg.index 4 : index
    %hg = arith.muli %h, %G : index
    %g = arith.floordivsi %hg, %H : index
    %vv = tensor.extract %v[%b, %g, %j, %ff] : tensor<?x?x?x?xf32>
    %m = arith.mulf %a, %vv : f32
    %y = arith.select %x, %m, %zero : f32
    %r = arith.addf %acc, %y : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?x?xf32>
  return %o : tensor<?x?x?x?xf32>
}
