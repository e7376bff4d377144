// Dims that stand side by side are one, of another view; indices of conditions are quotients and remainders of it. Then the mask has
// an interval: that of the outer dim.
// RUN: heed-opt %s --split-input-file --attn-join-dims --canonicalize --cse --attn-solve-masks | FileCheck %s
// RUN: heed-opt %s --split-input-file --attn-join-dims --remarks-filter='attn-join-dims' 2>&1 | FileCheck %s --check-prefix=REMARK

#q = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4)>
#k = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3, d4)>
#v = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3, d5)>

// CHECK-LABEL: func.func @box
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x8x4xf32>{{.*}}, %[[K:[a-z0-9]+]]: tensor<?x?x4xf32>{{.*}}, %[[V:[a-z0-9]+]]: tensor<?x?x?xf32>
// CHECK-DAG: %[[QI:.*]] = tensor.collapse_shape %[[Q]] {{\[\[}}0, 1], [2]] : tensor<?x8x4xf32> into tensor<?x4xf32>
// CHECK-DAG: %[[KJ:.*]] = tensor.collapse_shape %[[K]] {{\[\[}}0, 1], [2]]
// CHECK-DAG: %[[VJ:.*]] = tensor.collapse_shape %[[V]] {{\[\[}}0, 1], [2]]
// CHECK: attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1)
// CHECK: term(%[[QI]], %[[KJ]]
// CHECK: value(%[[VJ]]
// CHECK: where (%[[I:.*]], %[[J:.*]]) {
// CHECK-DAG: arith.floordivsi %[[I]], %c8
// CHECK-DAG: arith.floordivsi %[[J]], %{{.*}}
// Rows of the tile, less and more one: an interval of keys.
// CHECK: exact = true{{.*}} reach = {{\[\[}}"max(0, (((i0 // 8) - 1) * W))", "min(M, (W + {{.*}}(W * (1 + (i1 // 8))){{.*}})", "{{.*}} <= 2)"]]
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] output_shape
// REMARK: [Passed] dims {{.*}}one dim instead of 2 query dims, 2 key dims
func.func @box(%q: tensor<?x8x4xf32> {attn.dims = ["Y", "8", "4"], attn.name = "q"}, %k: tensor<?x?x4xf32> {attn.dims = ["U", "W", "4"], attn.name = "k"},
               %v: tensor<?x?x?xf32> {attn.dims = ["U", "W", "F"], attn.name = "v"}) -> tensor<?x8x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %y = tensor.dim %q, %c0 : tensor<?x8x4xf32>
  %u = tensor.dim %k, %c0 : tensor<?x?x4xf32>
  %w = tensor.dim %k, %c1 : tensor<?x?x4xf32>
  %f = tensor.dim %v, %c2 : tensor<?x?x?xf32>
  %u2 = tensor.dim %v, %c0 : tensor<?x?x?xf32>
  %w2 = tensor.dim %v, %c1 : tensor<?x?x?xf32>
  %same = arith.cmpi eq, %w2, %w : index
  attn.require %same, "other columns"
  %o = attn.attention dims(batch = 0, query = 2, key = 2, contract = 1, value = 1) sizes(%y, %c8, %u, %w, %c4, %f)
    term(%q, %k : tensor<?x8x4xf32>, tensor<?x?x4xf32>) maps [#q, #k]
    value(%v : tensor<?x?x?xf32>) maps [#v]
    score (%i, %j, %m, %n : index, %t : f32) { attn.yield %t : f32 }
    where (%i, %j, %m, %n) {
      %a = arith.subi %i, %m : index
      %b = math.absi %a : index
      %c = arith.cmpi sle, %b, %c1 : index
      %d = arith.subi %j, %n : index
      %e = math.absi %d : index
      %g = arith.cmpi sle, %e, %c2 : index
      %h = arith.andi %c, %g : i1
      attn.yield %h : i1
    }
    normalise(exp divide stabilise) : tensor<?x8x?xf32>
  return %o : tensor<?x8x?xf32>
}

// -----

// Columns of the keys are longer than the key dim, or may be: they are read by quotient and remainder. Values hold the dims apart: a copy. So is
// the result.
#q = affine_map<(b, y, x, u, w, e, f) -> (y, b, x, e)>
#k = affine_map<(b, y, x, u, w, e, f) -> (b, u, w, e)>
#v = affine_map<(b, y, x, u, w, e, f) -> (u, b, w, f)>
#o = affine_map<(b, y, x, u, w, e, f) -> (y, b, x, f)>

// CHECK-DAG: #[[KEY:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2 floordiv 6, d2 mod 6, d3)>
// CHECK-DAG: #[[QUERY:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1 floordiv 5, d0, d1 mod 5, d3)>
// CHECK-LABEL: func.func @apart
// CHECK-SAME: %[[Q:.*]]: tensor<?x2x5x4xf32>, %[[K:.*]]: tensor<2x?x7x4xf32>, %[[V:.*]]: tensor<?x2x6x4xf32>
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<?x2x6x4xf32>) outs({{.*}} : tensor<2x?x6x4xf32>)
// CHECK: %[[VJ:.*]] = tensor.collapse_shape %[[COPY]] {{\[\[}}0], [1, 2], [3]]
// CHECK: term(%[[Q]], %[[K]] : {{.*}}) maps [#[[QUERY]], #[[KEY]]]
// CHECK: value(%[[VJ]]
// CHECK: %[[O:.*]] = tensor.expand_shape
// CHECK: linalg.generic {{.*}} ins(%[[O]] : tensor<2x?x5x4xf32>) outs({{.*}} : tensor<?x2x5x4xf32>)
func.func @apart(%q: tensor<?x2x5x4xf32>, %k: tensor<2x?x7x4xf32>, %v: tensor<?x2x6x4xf32>, %y: index, %u: index) -> tensor<?x2x5x4xf32> {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %o = attn.attention dims(batch = 1, query = 2, key = 2, contract = 1, value = 1) sizes(%c2, %y, %c5, %u, %c6, %c4, %c4)
    term(%q, %k : tensor<?x2x5x4xf32>, tensor<2x?x7x4xf32>) maps [#q, #k]
    value(%v : tensor<?x2x6x4xf32>) maps [#v]
    result_map #o
    score (%b, %i, %j, %m, %n : index, %t : f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x2x5x4xf32>
  return %o : tensor<?x2x5x4xf32>
}

// -----

// A product of queries and features by the offset of rows is computed before, for each query and row of keys; a number by the offset of columns is read in
// the score, and ends at the ends of its table.
#q = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4)>
#k = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3, d4)>
#v = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3, d5)>
#row = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2 - d0 + 7, d4)>
#column = affine_map<(d0, d1, d2, d3, d4, d5) -> (d3 - d1 + 3)>

// CHECK-LABEL: func.func @offsets
// CHECK-SAME: %[[Q:.*]]: tensor<8x8x4xf32>, %[[K:.*]]: tensor<8x8x4xf32>, %[[R:.*]]: tensor<15x4xf32>, %[[C:.*]]: tensor<7xf32>
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} ins(%[[Q]] : tensor<8x8x4xf32>) outs({{.*}} : tensor<8x8x8xf32>)
// CHECK: tensor.extract %[[R]]
// CHECK: attn.attention dims(batch = 0, query = 1, key = 1
// CHECK-COUNT-1: term(
// CHECK-NOT: term(
// CHECK: score (%[[I:.*]], %[[J:.*]] : index, %{{.*}} : f32) {
// CHECK: tensor.extract %[[ROWS]]
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: tensor.extract %[[C]]
// CHECK: attn.yield
func.func @offsets(%q: tensor<8x8x4xf32>, %k: tensor<8x8x4xf32>, %r: tensor<15x4xf32>, %c: tensor<7xf32>) -> tensor<8x8x4xf32> {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %o = attn.attention dims(batch = 0, query = 2, key = 2, contract = 1, value = 1) sizes(%c8, %c8, %c8, %c8, %c4, %c4)
    term(%q, %k : tensor<8x8x4xf32>, tensor<8x8x4xf32>) maps [#q, #k]
    term(%q, %r : tensor<8x8x4xf32>, tensor<15x4xf32>) maps [#q, #row]
    term(%c : tensor<7xf32>) maps [#column]
    value(%k : tensor<8x8x4xf32>) maps [#v]
    score (%i, %j, %m, %n : index, %t : f32, %a : f32, %b : f32) {
      %x = arith.addf %t, %a : f32
      %y = arith.addf %x, %b : f32
      attn.yield %y : f32
    }
    normalise(exp divide stabilise) : tensor<8x8x4xf32>
  return %o : tensor<8x8x4xf32>
}

// -----

// What could not stream stays as it is: its schedule takes any number of dims.
#q = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4)>
#k = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3, d4)>
#v = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3, d5)>

// CHECK-LABEL: func.func @threshold
// CHECK: attn.attention dims(batch = 0, query = 2, key = 2
// REMARK: [Missed] dims {{.*}}its dims stay apart: its normaliser finds a threshold in the whole row
func.func @threshold(%q: tensor<8x8x4xf32>) -> tensor<8x8x4xf32> {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %o = attn.attention dims(batch = 0, query = 2, key = 2, contract = 1, value = 1) sizes(%c8, %c8, %c8, %c8, %c4, %c4)
    term(%q, %q : tensor<8x8x4xf32>, tensor<8x8x4xf32>) maps [#q, #k]
    value(%q : tensor<8x8x4xf32>) maps [#v]
    score (%i, %j, %m, %n : index, %t : f32) { attn.yield %t : f32 }
    normalise(sparsemax) : tensor<8x8x4xf32>
  return %o : tensor<8x8x4xf32>
}

// CHECK-LABEL: func.func @one
// CHECK: attn.attention dims(batch = 1, query = 1, key = 1
#q1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
#k1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3)>
#v1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
func.func @one(%q: tensor<8x8x4xf32>) -> tensor<8x8x4xf32> {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%c8, %c8, %c8, %c4, %c4)
    term(%q, %q : tensor<8x8x4xf32>, tensor<8x8x4xf32>) maps [#q1, #k1]
    value(%q : tensor<8x8x4xf32>) maps [#v1]
    score (%b, %i, %j : index, %t : f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<8x8x4xf32>
  return %o : tensor<8x8x4xf32>
}
