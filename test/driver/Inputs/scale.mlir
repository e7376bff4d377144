module {
  func.func @scale(%x: tensor<?x?xf32> {attn.name = "x", attn.dims = ["N", "E"]}, %f: f32 {attn.name = "f", attn.default = 2.0 : f32}) -> (tensor<?x?xf32> {attn.name = "y", attn.dims = ["N", "E"]}) attributes {attn.model} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %N = tensor.dim %x, %c0 : tensor<?x?xf32>
    %E = tensor.dim %x, %c1 : tensor<?x?xf32>
    // Adds a square matrix to its transpose.
    %ok = arith.cmpi eq, %N, %E : index
    attn.require %ok, "extent of 'x' (axis 1) is {0}, expected N = {1}" (%E, %N) : index, index
    %e = tensor.empty(%N, %E) : tensor<?x?xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(j,i)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel","parallel"]} ins(%x, %x : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%a: f32, %t: f32, %o: f32):
      %s = arith.addf %a, %t : f32
      %m = arith.mulf %s, %f : f32
      linalg.yield %m : f32
    } -> tensor<?x?xf32>
    return %y : tensor<?x?xf32>
  }
}
