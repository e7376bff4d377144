// Weights that are rounded are divided before: a pass over the keys gives the log-sum-exps, a second one what is rounded and meets the
// values. Where a log-sum-exp is too large for its digits, the op is computed as it stands.
// RUN: heed-opt %s --attn-choose-algorithm | FileCheck %s
// RUN: heed-opt %s --attn-choose-algorithm --remarks-filter='attn-choose-algorithm' 2>&1 | FileCheck %s --check-prefix=REMARK

#q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
#k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
#v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
#t = affine_map<(d0, d1, d2, d3) -> (d0)>

// CHECK-LABEL: func.func @rounded
// CHECK-SAME: (%[[Q:.*]]: tensor<?x?xf16>, %[[K:.*]]: tensor<?x?xf16>, %[[V:.*]]: tensor<?x?xf16>, %[[T:.*]]: tensor<?xf32>
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %{{.*}}, %[[LSE:.*]] = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 0)
// CHECK: term(%[[Q]], %[[K]]
// CHECK: value(%[[ONE]] : tensor<f32>)
// CHECK: sink(%[[T]]
// CHECK: where
// CHECK-NOT: weight
// CHECK: normalise(exp divide stabilise) {attn.plan = #attn.plan<streaming
// CHECK-SAME: lse tensor<?xf32>
// A row of scores of -inf takes off 0, and not -inf.
// CHECK: %[[SHIFT:.*]] = linalg.generic {{.*}} ins(%[[LSE]]
// CHECK: arith.cmpf oeq, %{{.*}}, %[[LOWEST:.*]] : f32
// CHECK: arith.select
// CHECK: %[[ANY:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[SHIFT]]
// CHECK: arith.cmpf uge, %{{.*}}, %[[MOST:.*]] : f32
// CHECK: %[[LARGE:.*]] = tensor.extract %[[ANY]][] : tensor<i1>
// CHECK: %[[R:.*]] = scf.if %[[LARGE]]
// CHECK: %[[WHOLE:.*]] = attn.attention
// CHECK: sink(%[[T]]
// CHECK: weight
// CHECK: normalise(exp divide stabilise) {attn.plan = #attn.plan<row_block>
// CHECK: scf.yield %[[WHOLE]]
// CHECK: else
// CHECK: %[[ROUNDED:.*]] = attn.attention
// CHECK-NOT: sink
// CHECK: score (%[[I:.*]], %{{.*}} : index, %[[S:.*]] : f32) {
// CHECK: %[[OFF:.*]] = tensor.extract %[[SHIFT]][%[[I]]]
// CHECK: %[[D:.*]] = arith.subf %[[S]], %[[OFF]]
// CHECK: attn.yield %[[D]]
// CHECK: where
// CHECK: weight
// CHECK: arith.truncf
// CHECK: normalise(exp) {attn.plan = #attn.plan<streaming
// CHECK: scf.yield %[[ROUNDED]]
// CHECK: return %[[R]]
// REMARK: [Passed] streaming {{.*}}two passes over the keys, no scores are stored: its weights are rounded, so the sums of rows come first
// REMARK: large-scores {{.*}}one pass and all scores of a tile of queries at once where some row's log-sum-exp is 512 or more
func.func @rounded(%q: tensor<?x?xf16>, %k: tensor<?x?xf16>, %v: tensor<?x?xf16>, %t: tensor<?xf32>, %n: index, %m: index, %e: index, %f: index)
    -> tensor<?x?xf16> {
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf16>, tensor<?x?xf16>) maps [#q, #k]
    value(%v : tensor<?x?xf16>) maps [#v] sink(%t : tensor<?xf32>) map #t
    score (%i, %j : index, %s : f32) { attn.yield %s : f32 }
    where (%i, %j) { %c = arith.cmpi sle, %j, %i : index attn.yield %c : i1 }
    weight (%i, %j : index, %w : f32) { %x = arith.truncf %w : f32 to f16 %y = arith.extf %x : f16 to f32 attn.yield %y : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf16>
  return %o : tensor<?x?xf16>
}

// A square takes the error of a log-sum-exp twice, and is not rounded after: one tile of queries at a time. So are rounded weights whose
// empty rows are NaN, and those whose weights are a result.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: attn.plan = #attn.plan<row_block>
// CHECK-NOT: attn.attention
// CHECK: return
// REMARK: all scores of a tile of queries at once: the factor after its normaliser is no product with the weight
// REMARK: all scores of a tile of queries at once: the factor after its normaliser is no product with the weight
// REMARK: all scores of a tile of queries at once: the factor after its normaliser is no product with the weight
func.func @others(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>, %n: index, %m: index, %e: index, %f: index)
    -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %nan = arith.constant 0x7FC00000 : f32
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %s : f32) { attn.yield %s : f32 }
    weight (%i, %j : index, %w : f32) { %x = arith.mulf %w, %w : f32 attn.yield %x : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>
  %p = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v] empty(%nan)
    score (%i, %j : index, %s : f32) { attn.yield %s : f32 }
    weight (%i, %j : index, %w : f32) { %x = arith.truncf %w : f32 to f16 %y = arith.extf %x : f16 to f32 attn.yield %y : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>
  %r, %w = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %f)
    term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
    value(%v : tensor<?x?xf32>) maps [#v]
    score (%i, %j : index, %s : f32) { attn.yield %s : f32 }
    weight (%i, %j : index, %x : f32) { %y = arith.truncf %x : f32 to f16 %z = arith.extf %y : f16 to f32 attn.yield %z : f32 }
    normalise(exp divide stabilise) : tensor<?x?xf32>, weights tensor<?x?xf32>
  return %o, %p, %r, %w : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}
