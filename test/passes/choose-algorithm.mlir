// Softmax attention streams; attention whose weights are a result does not: row by row, and the remark says why. So do operations
// that no attention op can say: heads that mix. A choice that stands is left alone.
// RUN: heed-opt %s --attn-choose-algorithm | FileCheck %s
// RUN: heed-opt %s --attn-choose-algorithm --remarks-filter='attn-choose-algorithm' 2>&1 | FileCheck %s --check-prefix=REMARK

#q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
#k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
#v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>

// CHECK-LABEL: func.func @softmax
// CHECK: attn.plan = #attn.plan<streaming, 
// CHECK: attn.plan = #attn.plan<materialised>
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
    normalise(exp divide stabilise) {attn.plan = #attn.plan<materialised>} : tensor<?x?xf32>
  return %o, %p : tensor<?x?xf32>, tensor<?x?xf32>
}

// CHECK-LABEL: func.func @weights
// CHECK: attn.plan = #attn.plan<row_block>
// REMARK: [Passed] row-block {{.*}}all scores of a tile of queries at once: its weights are a result
func.func @weights(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>, %n: index, %m: index, %e: index, %f: index)
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %o, %w = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>, weights tensor<?x?xf32>
  return %o, %w : tensor<?x?xf32>, tensor<?x?xf32>
}

// With its log-sum-exp a second root would compute the scores again.
// CHECK-LABEL: func.func @both
// CHECK: attn.plan = #attn.plan<materialised>
// REMARK: [Missed] materialised {{.*}}the scores are stored: {{.*}}, and its log-sum-exp is a result, too
func.func @both(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>, %n: index, %m: index, %e: index, %f: index)
    -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>) {
  %o, %l, %w = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>, lse tensor<?xf32>, weights tensor<?x?xf32>
  return %o, %l, %w : tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>
}

// A log-sum-exp streams with the output; a factor after the normaliser does if it is one.
// CHECK-LABEL: func.func @lse
// CHECK: attn.plan = #attn.plan<streaming, 
// CHECK: attn.plan = #attn.plan<streaming, 
// CHECK: attn.plan = #attn.plan<row_block>
// REMARK: all scores of a tile of queries at once: the factor after its normaliser is no product with the weight
func.func @lse(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>, %n: index, %m: index, %e: index, %f: index, %c: f32)
    -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %o, %l = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>, lse tensor<?xf32>
  %p = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    weight (%i, %j : index, %w : f32) { %x = arith.mulf %c, %w : f32 %y = arith.divf %x, %c : f32 attn.yield %y : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>
  %r = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    weight (%i, %j : index, %w : f32) { %x = arith.mulf %w, %w : f32 attn.yield %x : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>
  return %o, %l, %p, %r : tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

// Talking heads: scores of head a, mixed to heads h before the softmax; all five operations share the loop over queries i.
#q4 = affine_map<(h, i, j, e) -> (h, i, e)>
#k4 = affine_map<(h, i, j, e) -> (h, j, e)>
#s4 = affine_map<(h, i, j, e) -> (h, i, j)>
#mixed = affine_map<(h, i, j, a) -> (a, i, j)>
#mix = affine_map<(h, i, j, a) -> (a, h)>
#v4 = affine_map<(h, i, f, j) -> (h, j, f)>
#p4 = affine_map<(h, i, f, j) -> (h, i, j)>
#o4 = affine_map<(h, i, f, j) -> (h, i, f)>
// CHECK-LABEL: func.func @talking
// CHECK: linalg.generic {{.*}} attrs = {attn.row_block = 0 : i64}
// CHECK: linalg.generic {{.*}} attrs = {attn.row_block = 0 : i64}
// CHECK: attn.softmax {{.*}}attn.row_block = 0 : i64
// CHECK: linalg.generic {{.*}} attrs = {attn.row_block = 0 : i64}
// REMARK: [Passed] row-block {{.*}}all scores of a tile of queries at once, 4 operations in one kernel
func.func @talking(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %mix: tensor<4x4xf32>, %n: index, %m: index) -> tensor<4x?x8xf32> {
  %c0 = arith.constant 0.0 : f32
  %es = tensor.empty(%n, %m) : tensor<4x?x?xf32>
  %zs = linalg.fill ins(%c0 : f32) outs(%es : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %eo = tensor.empty(%n) : tensor<4x?x8xf32>
  %zo = linalg.fill ins(%c0 : f32) outs(%eo : tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  %s = linalg.generic {indexing_maps = [#q4, #k4, #s4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x?x8xf32>, tensor<4x?x8xf32>) outs(%zs : tensor<4x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.mulf %x, %y : f32
    %u = arith.addf %z, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x?x?xf32>
  %l = linalg.generic {indexing_maps = [#mixed, #mix, #s4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%s, %mix : tensor<4x?x?xf32>, tensor<4x4xf32>) outs(%zs : tensor<4x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.mulf %x, %y : f32
    %u = arith.addf %z, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x?x?xf32>
  %p, %live = attn.softmax %l axes([2]) : tensor<4x?x?xf32>, tensor<4x?x?xi1>
  %o = linalg.generic {indexing_maps = [#p4, #v4, #o4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32>) outs(%zo : tensor<4x?x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.mulf %x, %y : f32
    %u = arith.addf %z, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}

// A head of a network is no attention: what it is summed with are parameters.
// CHECK-LABEL: func.func @classifier
// CHECK-NOT: attn.row_block
// CHECK: return
#x2 = affine_map<(i, j, e) -> (i, e)>
#w2 = affine_map<(i, j, e) -> (j, e)>
#y2 = affine_map<(i, j, e) -> (i, j)>
func.func @classifier(%x: tensor<?x8xf32>, %n: index) -> tensor<?x16xf32> {
  %c0 = arith.constant 0.0 : f32
  %w = attn.param "w" : tensor<16x8xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = linalg.generic {indexing_maps = [#x2, #w2, #y2], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x8xf32>, tensor<16x8xf32>) outs(%z : tensor<?x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %c, %t : f32
    linalg.yield %u : f32
  } -> tensor<?x16xf32>
  %p, %live = attn.softmax %y axes([1]) : tensor<?x16xf32>, tensor<?x16xi1>
  return %p : tensor<?x16xf32>
}

// -----

// No query dim: one query. The result's axes are merged again.
// CHECK-LABEL: func.func @token
// CHECK-SAME: (%[[Q:.*]]: tensor<?x8xf32>, %[[K:.*]]: tensor<?x?x8xf32>
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: %[[O:.*]] = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1)
// CHECK-SAME: sizes(%{{.*}}, %[[ONE]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK: score (%{{.*}}, %{{.*}}, %{{.*}} : index, %[[T:.*]] : f32) {
// CHECK-NEXT: attn.yield %[[T]]
// CHECK: attn.plan = #attn.plan<streaming{{.*}}: tensor<?x1x8xf32>
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[O]] {{\[\[}}0], [1, 2]] : tensor<?x1x8xf32> into tensor<?x8xf32>
// CHECK: return %[[R]]
#token_q = affine_map<(h, j, e, f) -> (h, e)>
#token_k = affine_map<(h, j, e, f) -> (h, j, e)>
#token_v = affine_map<(h, j, e, f) -> (h, j, f)>
func.func @token(%q: tensor<?x8xf32>, %k: tensor<?x?x8xf32>, %H: index, %M: index, %E: index) -> tensor<?x8xf32> {
  %o = attn.attention dims(batch = 1, query = 0, key = 1, contract = 1, value = 1) sizes(%H, %M, %E, %E)
      term(%q, %k : tensor<?x8xf32>, tensor<?x?x8xf32>) maps [#token_q, #token_k]
      value(%k : tensor<?x?x8xf32>) maps [#token_v]
      score (%h, %j : index, %t : f32) { attn.yield %t : f32 }
      normalise(exp divide stabilise) : tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}
