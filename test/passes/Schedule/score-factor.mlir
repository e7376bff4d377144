// A factor of the scores, a constant of the region as well, is multiplied into the queries, once per tile. Any other score is
// computed where it stands.
// RUN: heed-opt %s --attn-choose-algorithm --attn-stream-attention --attn-to-halide | FileCheck %s

#q = affine_map<(b,i,j,e,f) -> (b,i,e)>
#k = affine_map<(b,i,j,e,f) -> (b,j,e)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
// CHECK-LABEL: halide.pipeline @quotient attributes
// CHECK: %[[C:.*]] = arith.constant 0.088388
// CHECK: halide.func "q0_rows"
// CHECK: arith.mulf %[[C]], %
// CHECK: halide.func "s_full"
// CHECK-NOT: arith.divf
// CHECK: halide.func "pv_full"
func.func private @quotient(%q: tensor<?x64x128xf32>, %k: tensor<?x?x128xf32>, %v: tensor<?x?x128xf32>) -> tensor<?x64x128xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %B = tensor.dim %q, %c0 : tensor<?x64x128xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x128xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%B, %c64, %M, %c128, %c128)
    term(%q, %k : tensor<?x64x128xf32>, tensor<?x?x128xf32>) maps [#q, #k]
    value(%v : tensor<?x?x128xf32>) maps [affine_map<(b,i,j,e,f) -> (b,j,f)>]
    score (%b: index, %i: index, %j: index, %t: f32) { %c = arith.constant 11.3137083 : f32  %s = arith.divf %t, %c : f32  attn.yield %s : f32 }
    normalise(exp divide stabilise) : tensor<?x64x128xf32>
  return %o : tensor<?x64x128xf32>
}
// CHECK-LABEL: halide.pipeline @cap attributes
// CHECK: halide.func "s_full"
// CHECK: arith.divf
func.func private @cap(%q: tensor<?x64x128xf32>, %k: tensor<?x?x128xf32>, %v: tensor<?x?x128xf32>) -> tensor<?x64x128xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %B = tensor.dim %q, %c0 : tensor<?x64x128xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x128xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%B, %c64, %M, %c128, %c128)
    term(%q, %k : tensor<?x64x128xf32>, tensor<?x?x128xf32>) maps [#q, #k]
    value(%v : tensor<?x?x128xf32>) maps [affine_map<(b,i,j,e,f) -> (b,j,f)>]
    score (%b: index, %i: index, %j: index, %t: f32) { %c = arith.constant 20.0 : f32  %x = arith.divf %t, %c : f32  %y = math.tanh %x : f32  %s = arith.mulf %c, %y : f32  attn.yield %s : f32 }
    normalise(exp divide stabilise) : tensor<?x64x128xf32>
  return %o : tensor<?x64x128xf32>
}
}
