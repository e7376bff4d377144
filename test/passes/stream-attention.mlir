// A planned attention of a kernel becomes its state and what finishes it; what does not stream, or stands in no kernel, stays.
// RUN: heed-opt %s --attn-stream-attention | FileCheck %s
// RUN: heed-opt %s --attn-stream-attention --remarks-filter=attn-stream-attention -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: Function=merged | Remark="a row carries its accumulator, maximum and sum from one block of keys to the next"
// REMARK: Function=states | Remark="a row carries its accumulator from one block of keys to the next"
// REMARK: Function=states | Remark="a row carries its accumulator and sum from one block of keys to the next"
#plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = 32>]>
#s = affine_map<(b, h, i, j, f) -> (b, h, i, j)>
#v = affine_map<(b, h, i, j, f) -> (b, h, j, f)>
#t = affine_map<(b, h, i, j, f)[g] -> (h floordiv g)>
#merged = affine_map<(b, h, i, j, f) -> (b, i, h, f)>
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>

// Axes of the state are loop dims but keys; the sink's map and the result's count them. The plan and the regions go along.
// CHECK-DAG: #[[SINK:.*]] = affine_map<(d0, d1, d2, d3)[s0] -> (d1 floordiv s0)>
// CHECK-DAG: #[[MERGED:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
// CHECK-LABEL: func.func private @merged
// CHECK-SAME: %[[T:[a-z0-9]*]]: tensor<?xf32>
// CHECK: %[[ACC:.*]], %[[MAX:.*]], %[[SUM:.*]] = attn.online_attention dims(batch = 2, query = 1, key = 1, contract = 0, value = 1)
// CHECK-NEXT: term
// CHECK-NEXT: value
// CHECK-NEXT: score
// CHECK: where
// CHECK: weight
// CHECK: normalise(exp) {attn.plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = 32>]>} : tensor<?x2x?x8xf32>, max tensor<?x2x?xf32>, sum tensor<?x2x?xf32>
// CHECK: %[[O:.*]], %[[LSE:.*]] = attn.finish %[[ACC]] max(%[[MAX]] : tensor<?x2x?xf32>) sum(%[[SUM]] : tensor<?x2x?xf32>) sink(%[[T]] : tensor<?xf32>) map #[[SINK]] symbols(%{{.*}}) result_map #[[MERGED]] : tensor<?x2x?x8xf32> -> tensor<?x?x2x8xf16>, lse tensor<?x2x?xf32>
// CHECK: return %[[O]], %[[LSE]]
func.func private @merged(%s: tensor<?x2x?x?xf32>, %v: tensor<?x2x?x8xf32>, %t: tensor<?xf32>, %B: index, %N: index, %M: index, %g: index) -> (tensor<?x?x2x8xf16>, tensor<?x2x?xf32>) attributes {attn.kernel} {
  %H = arith.constant 2 : index
  %F = arith.constant 8 : index
  %o, %lse = attn.attention dims(batch = 2, query = 1, key = 1, value = 1) sizes(%B, %H, %N, %M, %F) symbols(%g)
      term(%s : tensor<?x2x?x?xf32>) maps [affine_map<(b, h, i, j, f)[g] -> (b, h, i, j)>] value(%v : tensor<?x2x?x8xf32>) maps [affine_map<(b, h, i, j, f)[g] -> (b, h, j, f)>]
      sink(%t : tensor<?xf32>) map #t result_map #merged
      score (%b, %h, %i, %j : index, %x : f32) { attn.yield %x : f32 }
      where (%b, %h, %i, %j) {
        %c = arith.cmpi sle, %j, %i : index
        attn.yield %c : i1
      }
      weight (%b, %h, %i, %j : index, %w : f32) {
        %y = arith.addf %w, %w : f32
        attn.yield %y : f32
      }
      normalise(exp divide) {attn.plan = #plan} : tensor<?x?x2x8xf16>, lse tensor<?x2x?xf32>
  return %o, %lse : tensor<?x?x2x8xf16>, tensor<?x2x?xf32>
}

// What is not divided has no sum; what is no exponential no maximum.
// CHECK-LABEL: func.func private @states
// CHECK: normalise(exp) {{.*}} : tensor<?xf32>{{$}}
// CHECK: attn.finish %{{[^ ]*}} : tensor<?xf32> -> tensor<?xf32>
// CHECK: normalise(sigmoid) {{.*}} : tensor<?xf32>, sum tensor<?xf32>
// CHECK: attn.finish %{{[^ ]*}} sum(%{{[^ ]*}} : tensor<?xf32>) empty(%{{[^ ]*}}) : tensor<?xf32> -> tensor<?xf32>
func.func private @states(%s: tensor<?x?xf32>, %v: tensor<?xf32>, %n: index, %x: f32) -> (tensor<?xf32>, tensor<?xf32>) attributes {attn.kernel} {
  %o0 = attn.attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<?x?xf32>) maps [#pair] value(%v : tensor<?xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp) {attn.plan = #plan} : tensor<?xf32>
  %o1 = attn.attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<?x?xf32>) maps [#pair] value(%v : tensor<?xf32>) maps [#key] empty(%x)
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(sigmoid divide) {attn.plan = #plan} : tensor<?xf32>
  return %o0, %o1 : tensor<?xf32>, tensor<?xf32>
}

// CHECK-LABEL: func.func private @stored
// CHECK: attn.attention
// CHECK-NOT: attn.finish
func.func private @stored(%s: tensor<?x?xf32>, %v: tensor<?xf32>, %n: index) -> tensor<?xf32> attributes {attn.kernel} {
  %o = attn.attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<?x?xf32>) maps [#pair] value(%v : tensor<?xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide) {attn.plan = #attn.plan<row_block>} : tensor<?xf32>
  return %o : tensor<?xf32>
}

// CHECK-LABEL: func.func @model
// CHECK: attn.attention
func.func @model(%s: tensor<?x?xf32>, %v: tensor<?xf32>, %n: index) -> tensor<?xf32> attributes {attn.model} {
  %o = attn.attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<?x?xf32>) maps [#pair] value(%v : tensor<?xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide) {attn.plan = #plan} : tensor<?xf32>
  return %o : tensor<?xf32>
}
