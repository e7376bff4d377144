// Softmax attention streams; a map that is not the exponential does not, and the remark says why. A choice that stands is left alone.
// RUN: heed-opt %s --attn-choose-algorithm | FileCheck %s
// RUN: heed-opt %s --attn-choose-algorithm --remarks-filter='attn-choose-algorithm' 2>&1 | FileCheck %s --check-prefix=REMARK

#q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
#k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
#v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>

// CHECK-LABEL: func.func @softmax
// CHECK: attn.algorithm = "streaming"
// CHECK: attn.algorithm = "materialised"
// REMARK: [Passed] streaming {{.*}}one pass over the keys, no scores are stored
func.func @softmax(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>, %n: index, %m: index, %e: index, %f: index)
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>
  %p = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) {attn.algorithm = "materialised"} : tensor<?x?xf32>
  return %o, %p : tensor<?x?xf32>, tensor<?x?xf32>
}

// CHECK-LABEL: func.func @additive
// CHECK: attn.algorithm = "materialised"
// REMARK: [Missed] materialised {{.*}}the scores are stored: 
func.func @additive(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>, %n: index, %m: index, %e: index, %f: index)
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %o, %w = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>, weights tensor<?x?xf32>
  return %o, %w : tensor<?x?xf32>, tensor<?x?xf32>
}
