// Causal attention that is to store its scores.
#q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
#k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
#v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
func.func @attention(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c0 : tensor<?x?xf32>
  %m = tensor.dim %k, %c0 : tensor<?x?xf32>
  %e = tensor.dim %q, %c1 : tensor<?x?xf32>
  %f = tensor.dim %v, %c1 : tensor<?x?xf32>
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    where (%i, %j) {
      %d = arith.subi %m, %n : index
      %x = arith.addi %i, %d : index
      %c = arith.cmpi sle, %j, %x : index
      attn.yield %c : i1
    }
    normalise(exp divide stabilise) {attn.plan = #attn.plan<materialised>} : tensor<?x?xf32>
  return %o : tensor<?x?xf32>
}
