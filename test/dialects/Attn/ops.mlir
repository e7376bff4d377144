// What is written is read back the same: each op of the dialect, in its smallest and its fullest form.
// RUN: heed-opt %s | heed-opt | FileCheck %s

// CHECK: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5)[s0, s1] -> (d0, d1, d2, d4)>
// CHECK: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5)[s0, s1] -> (d0, (d1 * s0) floordiv s1, d3, d4)>
#q = affine_map<(d0, d1, d2, d3, d4, d5)[s0, s1] -> (d0, d1, d2, d4)>
#k = affine_map<(d0, d1, d2, d3, d4, d5)[s0, s1] -> (d0, (d1 * s0) floordiv s1, d3, d4)>
#v = affine_map<(d0, d1, d2, d3, d4, d5)[s0, s1] -> (d0, (d1 * s0) floordiv s1, d3, d5)>
#r = affine_map<(d0, d1, d2, d3, d4, d5)[s0, s1] -> (d3 - d2 + s0, d4)>
#t = affine_map<(d0, d1, d2, d3, d4, d5)[s0, s1] -> (d1)>
#o = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d5)>

// CHECK-LABEL: func @host
// CHECK: attn.param "a" : tensor<4xf32>
// CHECK: attn.param "layer.{0}.w" | "bert.layer.{0}.w"[%[[L:.*]]] : tensor<?x4xf32>
// CHECK: attn.require %{{.*}}, "plain"
// CHECK: attn.require %{{.*}}, "extent is {0}, expected N = {1}"(%[[L]], %[[L]]) : index, index
// CHECK: attn.require_in_range %{{.*}}, %[[L]], %[[L]], "word (axis 0)" : tensor<?xi32>
func.func @host(%l: index, %c: i1, %ids: tensor<?xi32>) {
  %a = attn.param "a" : tensor<4xf32>
  %w = attn.param "layer.{0}.w" | "bert.layer.{0}.w" [%l] : tensor<?x4xf32>
  attn.require %c, "plain"
  attn.require %c, "extent is {0}, expected N = {1}" (%l, %l) : index, index
  attn.require_in_range %ids, %l, %l, "word (axis 0)" : tensor<?xi32>
  return
}

// CHECK-LABEL: func @softmax
// CHECK: attn.softmax %{{.*}} axes([1]) : tensor<?x?xf32>, tensor<?x?xi1>
// CHECK: attn.softmax %{{.*}} axes([1]) sink(%{{.*}} : tensor<?xf32>) where (%[[I:.*]], %[[J:.*]]) {
// CHECK-NEXT: arith.cmpi sle, %[[J]], %[[I]] : index
// CHECK: attn.log_softmax %{{.*}} axes([0, 1]) : tensor<?x?xf32>, tensor<?x?xi1>
// CHECK: attn.softmax %{{.*}} axes([1]) normalise(sparsemax) : tensor<?x?xf32>, tensor<?x?xi1>
// CHECK: attn.threshold entmax15 %{{.*}} axes([1]) : tensor<?x?xf32> -> tensor<?xf32>
func.func @softmax(%s: tensor<?x?xf32>, %t: tensor<?xf32>) {
  %p0, %l0 = attn.softmax %s axes([1]) : tensor<?x?xf32>, tensor<?x?xi1>
  %p1, %l1 = attn.softmax %s axes([1]) sink(%t : tensor<?xf32>) where (%i, %j) {
    %c = arith.cmpi sle, %j, %i : index
    attn.yield %c : i1
  } : tensor<?x?xf32>, tensor<?x?xi1>
  %p2, %l2 = attn.log_softmax %s axes([0, 1]) : tensor<?x?xf32>, tensor<?x?xi1>
  %p3, %l3 = attn.softmax %s axes([1]) normalise(sparsemax) : tensor<?x?xf32>, tensor<?x?xi1>
  %t4 = attn.threshold entmax15 %s axes([1]) : tensor<?x?xf32> -> tensor<?xf32>
  return
}

// CHECK-LABEL: func @attention
// CHECK: attn.attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1) sizes(%{{.*}}) symbols(%{{.*}}, %{{.*}})
// CHECK-NEXT: term(%{{.*}}, %{{.*}} : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) maps [#[[Q]], #[[K]]]
// CHECK-NEXT: value(%{{.*}} : tensor<?x?x?x?xf32>) maps [#{{.*}}]
// CHECK-NEXT: empty(%{{.*}})
// CHECK-NEXT: score (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : index, %[[T0:.*]] : f32) {
// CHECK-NEXT: attn.yield %[[T0]] : f32
// CHECK: normalise(exp divide stabilise) : tensor<?x?x?x?xf32>
// CHECK: term(%{{.*}} maps [#[[Q]], #{{.*}}] pair (%[[A:.*]], %[[B:.*]] : f32) {
// CHECK-NEXT: arith.addf %[[A]], %[[B]]
// CHECK: sink(%{{.*}} : tensor<?xf32>) map #{{.*}}
// CHECK-NEXT: result_map #{{.*}}
// CHECK-NEXT: score
// CHECK: where (%{{.*}}, %{{.*}}, %[[I:.*]], %[[J:.*]]) {
// CHECK-NEXT: arith.cmpi sle, %[[J]], %[[I]] : index
// CHECK: weight (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : index, %[[W:.*]] : f32) {
// CHECK: normalise(exp stabilise) {tile = 64 : i64} : tensor<?x?x?x?xf16>, lse tensor<?x?x?xf32>, weights tensor<?x?x?x?xf32>
func.func @attention(%q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?x?xf32>, %r: tensor<?x?xf32>, %t: tensor<?xf32>, %n: index, %x: f32) {
  %o0 = attn.attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1)
      sizes(%n, %n, %n, %n, %n, %n) symbols(%n, %n)
      term(%q, %k : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) maps [#q, #k]
      value(%k : tensor<?x?x?x?xf32>) maps [#v]
      empty(%x)
      score (%b, %h, %i, %j : index, %t0 : f32) { attn.yield %t0 : f32 }
      normalise(exp divide stabilise) : tensor<?x?x?x?xf32>
  %o1, %lse, %w = attn.attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1)
      sizes(%n, %n, %n, %n, %n, %n) symbols(%n, %n)
      term(%q, %r : tensor<?x?x?x?xf32>, tensor<?x?xf32>) maps [#q, #r] pair (%a, %b : f32) {
        %c = arith.addf %a, %b : f32
        attn.yield %c : f32
      }
      value(%k : tensor<?x?x?x?xf32>) maps [#v]
      sink(%t : tensor<?xf32>) map #t
      result_map #o
      score (%b, %h, %i, %j : index, %t0 : f32) { attn.yield %t0 : f32 }
      where (%b, %h, %i, %j) {
        %c = arith.cmpi sle, %j, %i : index
        attn.yield %c : i1
      }
      weight (%b, %h, %i, %j : index, %w0 : f32) {
        %d = arith.mulf %w0, %w0 : f32
        attn.yield %d : f32
      }
      normalise(exp stabilise) {tile = 64} : tensor<?x?x?x?xf16>, lse tensor<?x?x?xf32>, weights tensor<?x?x?x?xf32>
  return
}

// CHECK-LABEL: func.func @online
// CHECK: attn.online_attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1) sizes(
// CHECK: score
// CHECK: where
// CHECK: normalise(exp) {attn.plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = 32>]>} : tensor<?x?x?x?xf32>, max tensor<?x?x?xf32>, sum tensor<?x?x?xf32>
// CHECK: attn.finish %{{.*}} max(%{{.*}} : tensor<?x?x?xf32>) sum(%{{.*}} : tensor<?x?x?xf32>) sink(%{{.*}} : tensor<?xf32>) map #{{.*}} symbols(%{{.*}}) result_map #{{.*}} : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf16>, lse tensor<?x?x?xf32>
// CHECK: attn.online_attention
// CHECK: normalise(sigmoid) : tensor<?x?x?x?xf32>, sum tensor<?x?x?xf32>
// CHECK: attn.finish %{{.*}} sum(%{{.*}} : tensor<?x?x?xf32>) empty(%{{.*}}) : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
func.func @online(%q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?x?xf32>, %t: tensor<?xf32>, %n: index, %x: f32) {
  %a0, %m0, %l0 = attn.online_attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1)
      sizes(%n, %n, %n, %n, %n, %n) symbols(%n, %n)
      term(%q, %k : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) maps [#q, #k]
      value(%k : tensor<?x?x?x?xf32>) maps [#v]
      score (%b, %h, %i, %j : index, %t0 : f32) { attn.yield %t0 : f32 }
      where (%b, %h, %i, %j) {
        %c = arith.cmpi sle, %j, %i : index
        attn.yield %c : i1
      }
      normalise(exp) {attn.plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = 32>]>}
      : tensor<?x?x?x?xf32>, max tensor<?x?x?xf32>, sum tensor<?x?x?xf32>
  %o0, %lse0 = attn.finish %a0 max(%m0 : tensor<?x?x?xf32>) sum(%l0 : tensor<?x?x?xf32>)
      sink(%t : tensor<?xf32>) map affine_map<(b, h, i, f)[g] -> (h floordiv g)> symbols(%n)
      result_map affine_map<(b, h, i, f) -> (b, i, h, f)> : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf16>, lse tensor<?x?x?xf32>
  %a1, %l1 = attn.online_attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1)
      sizes(%n, %n, %n, %n, %n, %n) symbols(%n, %n)
      term(%q, %k : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) maps [#q, #k]
      value(%k : tensor<?x?x?x?xf32>) maps [#v]
      score (%b, %h, %i, %j : index, %t0 : f32) { attn.yield %t0 : f32 }
      normalise(sigmoid) : tensor<?x?x?x?xf32>, sum tensor<?x?x?xf32>
  %o1 = attn.finish %a1 sum(%l1 : tensor<?x?x?xf32>) empty(%x) : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
  return
}

// CHECK-LABEL: func @scan
// CHECK: %[[LAST:.*]]:2, %[[ROWS:.*]]:2 = attn.scan %[[T:.*]] = %{{.*}} to %{{.*}} states(%[[S:.*]] = %{{.*}} : tensor<?xf32>, %{{.*}} = %{{.*}} : tensor<i32>) rows(%{{.*}} axis 0 : tensor<?x?xf32>, %{{.*}} axis 1 reversed : tensor<?x?xf32>) {
// CHECK: attn.step states(%[[S]], %{{.*}} : tensor<?xf32>, tensor<i32>) rows(%{{.*}}, %[[S]] : tensor<?xf32>, tensor<?xf32>)
// CHECK: attn.scan %{{.*}} = %{{.*}} to %{{.*}} {
// CHECK-NEXT: attn.step
func.func @scan(%l: index, %N: index, %x: tensor<?xf32>, %c: tensor<i32>, %o: tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?x?xf32>) {
  %last:2, %rows:2 = attn.scan %t = %l to %N states(%s = %x : tensor<?xf32>, %count = %c : tensor<i32>) rows(%o axis 0 : tensor<?x?xf32>, %o axis 1 reversed : tensor<?x?xf32>) {
    attn.step states(%s, %count : tensor<?xf32>, tensor<i32>) rows(%x, %s : tensor<?xf32>, tensor<?xf32>)
  }
  attn.scan %t = %l to %N {
    attn.step
  }
  return %last#0, %rows#1 : tensor<?xf32>, tensor<?x?xf32>
}

#step_e = affine_map<(b, t, e, f) -> (b, t, e)>
#step_f = affine_map<(b, t, e, f) -> (t, b, f)>
#step = affine_map<(b, t, e, f) -> (t)>
// CHECK-LABEL: func @linear_attention
// CHECK: attn.linear_attention dims(batch = 1, contract = 1, value = 1) sizes(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) query(%{{.*}} : tensor<2x?x4xf32>) key(%{{.*}} : tensor<2x?x4xf32>) value(%{{.*}} : tensor<?x2x3xf32>) decay(%{{.*}} : tensor<?xf32>) start(%{{.*}} : tensor<2x4x3xf32>) before maps [{{.*}}] : tensor<2x?x3xf32>, tensor<2x4x3xf32>
// CHECK: attn.linear_attention dims(batch = 1, contract = 1, value = 1) {{.*}} value(%{{.*}} : tensor<?x2x3xf32>) maps [{{.*}}]
func.func @linear_attention(%q: tensor<2x?x4xf32>, %v: tensor<?x2x3xf32>, %a: tensor<?xf32>, %S: tensor<2x4x3xf32>, %n: index) {
  %o, %S1 = attn.linear_attention dims(batch = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      query(%q : tensor<2x?x4xf32>) key(%q : tensor<2x?x4xf32>) value(%v : tensor<?x2x3xf32>) decay(%a : tensor<?xf32>)
      start(%S : tensor<2x4x3xf32>) before maps [#step_e, #step_e, #step_f, #step] : tensor<2x?x3xf32>, tensor<2x4x3xf32>
  %p, %S2 = attn.linear_attention dims(batch = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      query(%q : tensor<2x?x4xf32>) key(%q : tensor<2x?x4xf32>) value(%v : tensor<?x2x3xf32>)
      maps [#step_e, #step_e, #step_f] : tensor<2x?x3xf32>, tensor<2x4x3xf32>
  return
}

// CHECK-LABEL: func @delta_rule
// CHECK: attn.linear_attention {{.*}} decay(%{{.*}} : tensor<?xf32>) erase(%{{.*}} : tensor<2x?x4xf32>) start(
// CHECK: attn.linear_attention {{.*}} value(%{{.*}} : tensor<?x2x3xf32>) erase(%{{.*}} : tensor<2x?x4xf32>) maps
// CHECK: %[[X:.*]] = attn.triangular_solve %{{.*}}, %{{.*}} : tensor<2x?x8xf32>, tensor<2x?x3xf32>
// CHECK: attn.triangular_solve %{{.*}}, %[[X]] : tensor<?x?xf32>, tensor<2x?x3xf32>
func.func @delta_rule(%q: tensor<2x?x4xf32>, %v: tensor<?x2x3xf32>, %a: tensor<?xf32>, %S: tensor<2x4x3xf32>, %n: index,
                      %L: tensor<2x?x8xf32>, %M: tensor<?x?xf32>) {
  %o, %S1 = attn.linear_attention dims(batch = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      query(%q : tensor<2x?x4xf32>) key(%q : tensor<2x?x4xf32>) value(%v : tensor<?x2x3xf32>) decay(%a : tensor<?xf32>) erase(%q : tensor<2x?x4xf32>)
      start(%S : tensor<2x4x3xf32>) maps [#step_e, #step_e, #step_f, #step, #step_e] : tensor<2x?x3xf32>, tensor<2x4x3xf32>
  %p, %S2 = attn.linear_attention dims(batch = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      query(%q : tensor<2x?x4xf32>) key(%q : tensor<2x?x4xf32>) value(%v : tensor<?x2x3xf32>) erase(%q : tensor<2x?x4xf32>)
      maps [#step_e, #step_e, #step_f, #step_e] : tensor<2x?x3xf32>, tensor<2x4x3xf32>
  %X = attn.triangular_solve %L, %o : tensor<2x?x8xf32>, tensor<2x?x3xf32>
  %Y = attn.triangular_solve %M, %X : tensor<?x?xf32>, tensor<2x?x3xf32>
  return
}

// CHECK-LABEL: func @fresh
// CHECK: attn.linear_attention {{.*}} decay(%{{.*}} : tensor<?xf32>) before fresh maps
func.func @fresh(%q: tensor<2x?x4xf32>, %v: tensor<?x2x3xf32>, %a: tensor<?xf32>, %n: index) {
  %o, %S = attn.linear_attention dims(batch = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      query(%q : tensor<2x?x4xf32>) key(%q : tensor<2x?x4xf32>) value(%v : tensor<?x2x3xf32>) decay(%a : tensor<?xf32>) before fresh
      maps [#step_e, #step_e, #step_f, #step] : tensor<2x?x3xf32>, tensor<2x4x3xf32>
  return
}

// CHECK-LABEL: func @recurrence
// CHECK: attn.recurrence from %{{.*}} rows(%{{.*}}) sizes(%{{.*}}) starts(%{{.*}}, %{{.*}} : tensor<?xf32>, tensor<?xi32>) next (%[[T:.*]], %{{.*}} : index, %[[A:.*]] : f32, %[[B:.*]] : i32) {
// CHECK:   attn.next %[[A]], %[[B]] : f32, i32
// CHECK: } : tensor<?x?xf32>, tensor<?x?xi32>
// CHECK: attn.recurrence from %{{.*}} rows(%{{.*}}) sizes() starts(%{{.*}} : tensor<f32>) next (%{{.*}} : index, %{{.*}} : f32) {
func.func @recurrence(%x: tensor<?xf32>, %c: tensor<?xi32>, %s: tensor<f32>, %n: index) {
  %H:2 = attn.recurrence from %n rows(%n) sizes(%n) starts(%x, %c : tensor<?xf32>, tensor<?xi32>) next (%t, %d : index, %a : f32, %b : i32) {
    attn.next %a, %b : f32, i32
  } : tensor<?x?xf32>, tensor<?x?xi32>
  %h = attn.recurrence from %n rows(%n) sizes() starts(%s : tensor<f32>) next (%t : index, %a : f32) {
    attn.next %a : f32
  } : tensor<?xf32>
  return
}

// CHECK-LABEL: func @element_scan
// CHECK: attn.element_scan from %{{.*}} steps(%{{.*}} of %{{.*}}) sizes(%{{.*}}) starts(%{{.*}} : tensor<?xf32>) next (%{{.*}}, %{{.*}} : index, %[[A:.*]] : f32) {
// CHECK:   attn.next %[[A]] : f32
// CHECK: } leave (%{{.*}}, %{{.*}} : index, %[[OLD:.*]], %[[NEW:.*]] : f32) {
// CHECK:   attn.next %[[NEW]], %[[OLD]] : f32, f32
// CHECK: } axis 1 reversed rows(tensor<?x8xf32>, tensor<?x8xf32>) states(tensor<?xf32>)
func.func @element_scan(%x: tensor<?xf32>, %n: index) {
  %a, %b, %s = attn.element_scan from %n steps(%n of %n) sizes(%n) starts(%x : tensor<?xf32>) next (%t, %d : index, %old : f32) {
    attn.next %old : f32
  } leave (%t, %d : index, %before, %after : f32) {
    attn.next %after, %before : f32, f32
  } axis 1 reversed rows(tensor<?x8xf32>, tensor<?x8xf32>) states(tensor<?xf32>)
  return
}

// CHECK-LABEL: func @sum_scan
// CHECK: attn.sum_scan from %{{.*}} steps(%{{.*}}) sizes(%{{.*}}, %{{.*}}) starts(%{{.*}} : tensor<4x?xf32>) next (%{{.*}}, %{{.*}}, %{{.*}} : index, %[[A:.*]] : f32) {
// CHECK:   attn.next %[[A]] : f32
// CHECK: } leave (%{{.*}}, %{{.*}}, %{{.*}} : index, %[[NEW:.*]] : f32) {
// CHECK:   attn.next %[[NEW]], %[[NEW]] : f32, f32
// CHECK: } rows(tensor<8x?xf32>, tensor<8x?xf32>) states(tensor<4x?xf32>)
func.func @sum_scan(%x: tensor<4x?xf32>, %n: index) {
  %a, %b, %s = attn.sum_scan from %n steps(%n) sizes(%n, %n) starts(%x : tensor<4x?xf32>) next (%t, %e, %d : index, %old : f32) {
    attn.next %old : f32
  } leave (%t, %e, %d : index, %after : f32) {
    attn.next %after, %after : f32, f32
  } rows(tensor<8x?xf32>, tensor<8x?xf32>) states(tensor<4x?xf32>)
  return
}

// CHECK-LABEL: func @states
// CHECK: attn.update_state %{{.*}} into %{{.*}} axes [0, 1] at() maps [] : tensor<?x4xf32>, tensor<?x4xf32>
// CHECK: attn.update_state %{{.*}} into %{{.*}} axes [-1, -2, 1] at(%{{.*}}, %{{.*}} : index, tensor<?xi64>) where %{{.*}} : tensor<?xi1> check_distinct maps [#{{.*}}, #{{.*}}, #{{.*}}] : tensor<?x4xf32>, tensor<3x?x4xf32>
// CHECK: attn.write_state %{{.*}} into %{{.*}} axes [-1, -2, 1] at(%{{.*}}, %{{.*}} : index, memref<?xi64>) where %{{.*}} : memref<?xi1> check_distinct maps [#{{.*}}, #{{.*}}, #{{.*}}] : memref<?x4xf32>, memref<3x?x4xf32>
func.func @states(%x: tensor<?x4xf32>, %s: tensor<?x4xf32>, %l: tensor<3x?x4xf32>, %t: index, %p: tensor<?xi64>, %c: tensor<?xi1>,
                  %mx: memref<?x4xf32>, %ml: memref<3x?x4xf32>, %mp: memref<?xi64>, %mc: memref<?xi1>) -> (tensor<?x4xf32>, tensor<3x?x4xf32>) {
  %a = attn.update_state %x into %s axes [0, 1] at() maps [] : tensor<?x4xf32>, tensor<?x4xf32>
  %b = attn.update_state %x into %l axes [-1, -2, 1] at(%t, %p : index, tensor<?xi64>) where %c : tensor<?xi1> check_distinct
    maps [affine_map<(n, e) -> ()>, affine_map<(n, e) -> (n)>, affine_map<(n, e) -> (n)>] : tensor<?x4xf32>, tensor<3x?x4xf32>
  attn.write_state %mx into %ml axes [-1, -2, 1] at(%t, %mp : index, memref<?xi64>) where %mc : memref<?xi1> check_distinct
    maps [affine_map<(n, e) -> ()>, affine_map<(n, e) -> (n)>, affine_map<(n, e) -> (n)>] : memref<?x4xf32>, memref<3x?x4xf32>
  return %a, %b : tensor<?x4xf32>, tensor<3x?x4xf32>
}
