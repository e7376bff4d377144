// What canonicalisation does to attn ops, and what it leaves alone.
// RUN: heed-opt %s --canonicalize | FileCheck %s

#q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
#k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
#v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0)>
#loops = affine_map<(d0, d1, d2, d3) -> (d0, d3)>
#swapped = affine_map<(d0, d1, d2, d3) -> (d3, d0)>

// CHECK-DAG: #[[SHIFT:.*]] = affine_map<(d0, d1, d2, d3)[s0, s1] -> (d1 - d0 + s0, d2 + s1)>

//===--- parameters ---===//

// CHECK-LABEL: func @known_layer
// CHECK-NEXT: %[[W:.*]] = attn.param "layer.3.w" : tensor<4xf32>
// CHECK-NEXT: return %[[W]]
func.func @known_layer() -> tensor<4xf32> {
  %l = arith.constant 3 : index
  %w = attn.param "layer.{0}.w" | "layer.3.w" [%l] : tensor<4xf32>
  return %w : tensor<4xf32>
}

// CHECK-LABEL: func @some_known(
// CHECK-SAME: %[[L:.*]]: index, %[[UNUSED:.*]]: index)
// CHECK: attn.param "{0}.7.{0}" | "b.{0}"[%[[L]]] : tensor<4xf32>
func.func @some_known(%l: index, %unused: index) -> tensor<4xf32> {
  %c = arith.constant 7 : index
  %w = attn.param "{1}.{2}.{3}" | "b.{3}" [%unused, %l, %c, %l] : tensor<4xf32>
  return %w : tensor<4xf32>
}

// Left alone: the layer is known when it runs.
// CHECK-LABEL: func @unknown_layer
// CHECK: attn.param "layer.{0}.w" | "{0}"[%{{.*}}] : tensor<4xf32>
func.func @unknown_layer(%l: index) -> tensor<4xf32> {
  %w = attn.param "layer.{0}.w" | "{0}" [%l] : tensor<4xf32>
  return %w : tensor<4xf32>
}

//===--- softmax ---===//

// CHECK-LABEL: func @always
// CHECK: attn.softmax %{{.*}} axes([1]) : tensor<?x?xf32>, tensor<?x?xi1>
// CHECK: attn.log_softmax %{{.*}} axes([1]) : tensor<?x?xf32>, tensor<?x?xi1>
func.func @always(%s: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %true = arith.constant true
  %p, %live = attn.softmax %s axes([1]) where (%i, %j) { attn.yield %true : i1 } : tensor<?x?xf32>, tensor<?x?xi1>
  %l, %live2 = attn.log_softmax %s axes([1]) where (%i, %j) {
    %c = arith.cmpi sge, %j, %j : index
    attn.yield %c : i1
  } : tensor<?x?xf32>, tensor<?x?xi1>
  return %p, %l : tensor<?x?xf32>, tensor<?x?xf32>
}

// A row whose every key is masked is 0, its logarithm -inf.
// CHECK-LABEL: func @never(
// CHECK-SAME: %[[S:.*]]: tensor<?x4xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[FALSE:.*]] = arith.constant false
// CHECK: %[[N:.*]] = tensor.dim %[[S]]
// CHECK-NOT: softmax
// CHECK: %[[P:.*]] = linalg.fill ins(%[[ZERO]] : f32)
// CHECK: %[[LIVE:.*]] = linalg.fill ins(%[[FALSE]] : i1)
// CHECK: %[[L:.*]] = linalg.fill ins(%[[LOW]] : f32)
// CHECK: return %[[P]], %[[LIVE]], %[[L]]
func.func @never(%s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xi1>, tensor<?x4xf32>) {
  %false = arith.constant false
  %p, %live = attn.softmax %s axes([1]) where (%i, %j) { attn.yield %false : i1 } : tensor<?x4xf32>, tensor<?x4xi1>
  %l, %live2 = attn.log_softmax %s axes([1]) where (%i, %j) { attn.yield %false : i1 } : tensor<?x4xf32>, tensor<?x4xi1>
  return %p, %live, %l : tensor<?x4xf32>, tensor<?x4xi1>, tensor<?x4xf32>
}

// CHECK-LABEL: func @known_extents(
// CHECK-SAME: %[[S:.*]]: tensor<6x4xf32>, %[[T:.*]]: tensor<?xf32>)
// CHECK: %[[SINK:.*]] = tensor.cast %[[T]] : tensor<?xf32> to tensor<6xf32>
// CHECK: %[[P:.*]], %{{.*}} = attn.softmax %[[S]] axes([1]) sink(%[[SINK]] : tensor<6xf32>) : tensor<6x4xf32>, tensor<6x4xi1>
// CHECK: tensor.cast %[[P]] : tensor<6x4xf32> to tensor<?x?xf32>
func.func @known_extents(%s: tensor<6x4xf32>, %t: tensor<?xf32>) -> tensor<?x?xf32> {
  %d = tensor.cast %s : tensor<6x4xf32> to tensor<?x?xf32>
  %p, %live = attn.softmax %d axes([1]) sink(%t : tensor<?xf32>) : tensor<?x?xf32>, tensor<?x?xi1>
  return %p : tensor<?x?xf32>
}

// CHECK-LABEL: func @no_sink
// CHECK: attn.softmax %{{.*}} axes([1]) : tensor<6x4xf32>, tensor<6x4xi1>
func.func @no_sink(%s: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %t = arith.constant dense<0xFF800000> : tensor<6xf32>
  %p, %live = attn.softmax %s axes([1]) sink(%t : tensor<6xf32>) : tensor<6x4xf32>, tensor<6x4xi1>
  return %p : tensor<6x4xf32>
}

// Left alone: one key alone has weight 0 if its score is -inf, and NaN stays; a sink of 0 has weight; a condition.
// CHECK-LABEL: func @softmax_left_alone
// CHECK: attn.softmax %{{.*}} axes([1]) sink(%{{.*}} : tensor<6xf32>) where (%[[I:.*]], %[[J:.*]]) {
// CHECK-NEXT: arith.cmpi sle, %[[J]], %[[I]]
func.func @softmax_left_alone(%s: tensor<6x1xf32>) -> tensor<6x1xf32> {
  %t = arith.constant dense<0.0> : tensor<6xf32>
  %p, %live = attn.softmax %s axes([1]) sink(%t : tensor<6xf32>) where (%i, %j) {
    %c = arith.cmpi sle, %j, %i : index
    attn.yield %c : i1
  } : tensor<6x1xf32>, tensor<6x1xi1>
  return %p : tensor<6x1xf32>
}

//===--- attention ---===//

// Parts that say no more than their absence, and results that nobody reads.
// CHECK-LABEL: func @defaults
// CHECK: attn.attention
// CHECK-NEXT: term(%{{.*}}) maps [#{{.*}}, #{{.*}}]{{$}}
// CHECK-NEXT: value(
// CHECK-NEXT: score
// CHECK-NEXT: attn.yield
// CHECK-NEXT: }
// CHECK-NEXT: normalise(exp divide stabilise) {tile = 8 : i64} : tensor<?x?xf32>{{$}}
func.func @defaults(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %N: index, %M: index, %E: index) -> tensor<?x?xf32> {
  %true = arith.constant true
  %zero = arith.constant 0.0 : f32
  %o, %lse, %w = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %E, %E)
      term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k] pair (%a, %b : f32) {
        %m = arith.mulf %a, %b : f32
        attn.yield %m : f32
      }
      value(%k : tensor<?x?xf32>) maps [#v] empty(%zero) result_map #loops
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      where (%i, %j) { attn.yield %true : i1 }
      weight (%i, %j : index, %p : f32) { attn.yield %p : f32 }
      normalise(exp divide stabilise) {tile = 8 : i64} : tensor<?x?xf32>, lse tensor<?xf32>, weights tensor<?x?xf32>
  return %o : tensor<?x?xf32>
}

// A term twice, one that the score does not use, a sink without weight.
// CHECK-LABEL: func @terms(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<?x?xf32>, %[[K:[^:]*]]: tensor<?x?xf32>,
// CHECK: attn.attention
// CHECK-NEXT: term(%[[Q]], %[[K]] :
// CHECK-NEXT: value(%[[K]]
// CHECK-NEXT: score (%{{.*}}, %{{.*}} : index, %[[T:.*]] : f32) {
// CHECK-NEXT: arith.addf %[[T]], %[[T]]
func.func @terms(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %N: index, %M: index, %E: index) -> tensor<?x?xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty(%N) : tensor<?xf32>
  %sink = linalg.fill ins(%low : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %E, %E)
      term(%k, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#k, #k]
      term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
      term(%q, %k : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
      value(%k : tensor<?x?xf32>) maps [#v] sink(%sink : tensor<?xf32>) map #row
      score (%i, %j : index, %r, %s, %t : f32) {
        %a = arith.addf %s, %t : f32
        attn.yield %a : f32
      }
      normalise(exp divide stabilise) : tensor<?x?xf32>
  return %o : tensor<?x?xf32>
}

// CHECK-LABEL: func @symbols(
// CHECK-SAME: %[[A:[^:]*]]: index, %[[B:[^:]*]]: index, %{{[^:]*}}: index)
// CHECK: attn.attention {{.*}} symbols(%[[A]], %[[B]])
// CHECK-NEXT: term(%{{.*}} maps [#{{.*}}, #[[SHIFT]]]
func.func @symbols(%q: tensor<8x4xf32>, %r: tensor<?x?xf32>, %a: index, %b: index, %unused: index) -> tensor<8x4xf32> {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%c8, %c8, %c4, %c4) symbols(%unused, %a, %b, %a)
      term(%q, %r : tensor<8x4xf32>, tensor<?x?xf32>) maps [affine_map<(d0, d1, d2, d3)[s0, s1, s2, s3] -> (d0, d2)>, affine_map<(d0, d1, d2, d3)[s0, s1, s2, s3] -> (d1 - d0 + s3, d2 + s2)>]
      value(%q : tensor<8x4xf32>) maps [affine_map<(d0, d1, d2, d3)[s0, s1, s2, s3] -> (d1, d3 + s1)>]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      normalise(exp divide stabilise) : tensor<8x4xf32>
  return %o : tensor<8x4xf32>
}

// What is known of extents, of operands and by sizes.
// CHECK-LABEL: func @types(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<6x4xf32>, %[[N:[^:]*]]: index)
// CHECK: %[[O:.*]], %[[LSE:.*]] = attn.attention
// CHECK-NEXT: term(%[[Q]], %[[Q]] : tensor<6x4xf32>, tensor<6x4xf32>)
// CHECK-NEXT: value(%[[Q]] : tensor<6x4xf32>)
// CHECK-NEXT: result_map
// CHECK: normalise(exp divide stabilise) : tensor<4x?xf32>, lse tensor<?xf32>
// CHECK: tensor.cast %[[O]] : tensor<4x?xf32> to tensor<?x?xf32>
func.func @types(%q: tensor<6x4xf32>, %N: index) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %d = tensor.cast %q : tensor<6x4xf32> to tensor<?x?xf32>
  %o, %lse = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %c6, %c4, %c4)
      term(%d, %d : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
      value(%d : tensor<?x?xf32>) maps [#v] result_map #swapped
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      normalise(exp divide stabilise) : tensor<?x?xf32>, lse tensor<?xf32>
  return %o, %lse : tensor<?x?xf32>, tensor<?xf32>
}

// No key: what `empty` says, else 0; log-sum-exp -inf.
// CHECK-LABEL: func @no_key(
// CHECK-SAME: %{{[^:]*}}: tensor<6x4xf32>, %[[N:[^:]*]]: index)
// CHECK-DAG: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK-DAG: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NOT: attn.attention
// CHECK: %[[E:.*]] = tensor.empty(%[[N]]) : tensor<4x?xf32>
// CHECK: %[[O:.*]] = linalg.fill ins(%[[NAN]] : f32) outs(%[[E]]
// CHECK: %[[L:.*]] = linalg.fill ins(%[[LOW]] : f32)
// CHECK: return %[[O]], %[[L]]
func.func @no_key(%q: tensor<6x4xf32>, %N: index) -> (tensor<4x?xf32>, tensor<?xf32>) {
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %false = arith.constant false
  %nan = arith.constant 0x7FC00000 : f32
  %o, %lse = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %c6, %c4, %c4)
      term(%q, %q : tensor<6x4xf32>, tensor<6x4xf32>) maps [#q, #k]
      value(%q : tensor<6x4xf32>) maps [#v] empty(%nan) result_map #swapped
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      where (%i, %j) { attn.yield %false : i1 }
      normalise(exp divide stabilise) : tensor<4x?xf32>, lse tensor<?xf32>
  return %o, %lse : tensor<4x?xf32>, tensor<?xf32>
}

// Left alone: terms that differ in a map, a score that uses none of them (it keeps one), a fast product, rows whose log-sum-exp is
// the sink.
// CHECK-LABEL: func @attention_left_alone
// CHECK: term(%{{.*}} maps [#{{.*}}, #{{.*}}] pair (%[[A:.*]], %[[B:.*]] : f32) {
// CHECK-NEXT: arith.mulf %[[A]], %[[B]] fastmath<contract>
// CHECK: term(
// CHECK: term(
// CHECK: sink(
// CHECK: result_map
// CHECK: where
// CHECK: weight
// CHECK: lse tensor<?xf32>
// CHECK: term(
// CHECK-NOT: term(
// CHECK: score (%{{.*}}, %{{.*}} : index, %{{.*}} : f32) {
// CHECK-NEXT: attn.yield %[[ONE:.*]] : f32
func.func @attention_left_alone(%q: tensor<?x?xf32>, %sink: tensor<?xf32>, %N: index, %E: index) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>) {
  %false = arith.constant false
  %one = arith.constant 1.0 : f32
  %o, %lse = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %N, %E, %E)
      term(%q, %q : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k] pair (%a, %b : f32) {
        %m = arith.mulf %a, %b fastmath<contract> : f32
        attn.yield %m : f32
      }
      term(%q, %q : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
      term(%q, %q : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #q]
      value(%q : tensor<?x?xf32>) maps [#v] sink(%sink : tensor<?xf32>) map #row result_map #swapped
      score (%i, %j : index, %r, %s, %t : f32) {
        %x = arith.addf %r, %s : f32
        %y = arith.addf %x, %t : f32
        attn.yield %y : f32
      }
      where (%i, %j) { attn.yield %false : i1 }
      weight (%i, %j : index, %w : f32) {
        %x = arith.mulf %w, %w : f32
        attn.yield %x : f32
      }
      normalise(exp divide stabilise) : tensor<?x?xf32>, lse tensor<?xf32>
  %u = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %N, %E, %E)
      term(%q, %q : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k]
      value(%q : tensor<?x?xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %one : f32 }
      normalise(exp divide stabilise) : tensor<?x?xf32>
  return %o, %lse, %u : tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32>
}
