// RUN: heed-opt %s --attn-solve-masks | FileCheck %s
// RUN: heed-opt %s --attn-solve-masks --remarks-filter=attn-solve.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
#k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
#v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>

// A causal window: one range, whose ends move with the tile.
// CHECK-LABEL: func @window
// CHECK: attn.mask = {exact = true, full = {{\[\[}}"max(0, (i1 - 63))", "min(M, (i0 + 1))"{{\]\]}}, reach = {{\[\[}}"max(0, (i0 - 63))", "min(M, (i1 + 1))"{{\]\]}}}
// REMARK: Function=window | Remark="queries i0..i1 reach keys [max(0, (i0 - 63)), min(M, (i1 + 1))), all of them see [max(0, (i1 - 63)), min(M, (i0 + 1)))"
func.func @window(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %N: index, %M: index) -> tensor<?x8xf32> {
  %c8 = arith.constant 8 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %c8, %c8)
    term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%k : tensor<?x8xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    where (%i, %j) {
      %c64 = arith.constant 64 : index
      %d = arith.subi %i, %j : index
      %a = arith.cmpi sle, %j, %i : index
      %b = arith.cmpi slt, %d, %c64 : index
      %c = arith.andi %a, %b : i1
      attn.yield %c : i1
    }
    normalise(exp divide stabilise) : tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// Data that both sides read is compared by its least and greatest values. The causal half still is a range.
// CHECK-LABEL: func @documents
// CHECK: attn.mask = {exact = true, full = {{\[\[}}"0", "min(M, (i0 + 1))", "((max(doc[i] for i in tile) <= min(doc[j] for j in block)) and (max(doc[j] for j in block) <= min(doc[i] for i in tile)))"{{\]\]}}
// CHECK-SAME: reach = {{\[\[}}"0", "min(M, (i1 + 1))", "((min(doc[i] for i in tile) <= max(doc[j] for j in block)) and (min(doc[j] for j in block) <= max(doc[i] for i in tile)))"{{\]\]}}}
// REMARK: Function=documents | Remark="queries i0..i1 reach keys [0, min(M, (i1 + 1))) in blocks j0..j1 with
// REMARK-SAME: per call, least and greatest of doc[i] in each tile of queries, doc[j] in each block of keys"
func.func @documents(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %doc: tensor<?xi32> {attn.name = "doc"}, %N: index, %M: index) -> tensor<?x8xf32> {
  %c8 = arith.constant 8 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %c8, %c8)
    term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%k : tensor<?x8xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    where (%i, %j) {
      %x = tensor.extract %doc[%i] : tensor<?xi32>
      %y = tensor.extract %doc[%j] : tensor<?xi32>
      %a = arith.cmpi sle, %j, %i : index
      %b = arith.cmpi eq, %x, %y : i32
      %c = arith.andi %a, %b : i1
      attn.yield %c : i1
    }
    normalise(exp divide stabilise) : tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// A conversion that rounds hides what is compared: both sides vary in it. The window besides still bounds the loop.
// CHECK-LABEL: func @rounded
// CHECK: attn.mask = {exact = false, full = [], reach = {{\[\[}}"max(0, (i0 - 4))", "M"{{\]\]}}}
// REMARK: Function=rounded | {{.*}}; evaluated per element: ({{.*}} == 0)"
func.func @rounded(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %N: index, %M: index) -> tensor<?x8xf32> {
  %c8 = arith.constant 8 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %c8, %c8)
    term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%k : tensor<?x8xf32>) maps [#v]
    score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
    where (%i, %j) {
      %c4 = arith.constant 4 : index
      %c0 = arith.constant 0 : i8
      %d = arith.subi %i, %j : index
      %a = arith.cmpi sle, %d, %c4 : index
      %x = arith.index_cast %d : index to i8
      %b = arith.cmpi eq, %x, %c0 : i8
      %c = arith.andi %a, %b : i1
      attn.yield %c : i1
    }
    normalise(exp divide stabilise) : tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}

// Two key dims: no ranges.
// CHECK-LABEL: func @pictures
// CHECK-NOT: attn.mask
// REMARK: Function=pictures | Remark="the mask is evaluated per element: tiles need one query and one key dim"
func.func @pictures(%q: tensor<?x8xf32>, %k: tensor<?x?x8xf32>, %N: index, %M: index) -> tensor<?x8xf32> {
  %c8 = arith.constant 8 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 2, contract = 1, value = 1) sizes(%N, %M, %M, %c8, %c8)
    term(%q, %k : tensor<?x8xf32>, tensor<?x?x8xf32>) maps [affine_map<(d0, d1, d2, d3, d4) -> (d0, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3)>]
    value(%k : tensor<?x?x8xf32>) maps [affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d4)>]
    score (%i, %j, %l : index, %t : f32) { attn.yield %t : f32 }
    where (%i, %j, %l) {
      %a = arith.cmpi sle, %j, %i : index
      attn.yield %a : i1
    }
    normalise(exp divide stabilise) : tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}
