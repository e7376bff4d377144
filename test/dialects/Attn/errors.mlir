// Each numbered constraint, broken once.
// RUN: heed-opt %s -split-input-file -verify-diagnostics

func.func @f() {
  // expected-error @+1 {{has an empty name (param.c1)}}
  %w = attn.param "" : tensor<4xf32>
  return
}
// -----
func.func @f(%l: index) {
  // expected-error @+1 {{name "a.{1}" names value 1 of 1 (param.c2)}}
  %w = attn.param "a.{1}" [%l] : tensor<4xf32>
  return
}
// -----
func.func @f() {
  // expected-error @+1 {{name "a.{b}" has a brace that encloses no number (param.c2)}}
  %w = attn.param "a.{b}" : tensor<4xf32>
  return
}
// -----
func.func @f() {
  // expected-error @+1 {{has elements of 'f64', expected f32, f16, bf16, i32, i64, i8 or i1 (param.c3)}}
  %w = attn.param "a" : tensor<4xf64>
  return
}
// -----
func.func @f(%c: i1) {
  // expected-error @+1 {{message names value 0 of 0 (require.c1)}}
  attn.require %c, "extent is {0}"
  return
}
// -----
func.func @f(%x: tensor<4xf32>, %n: index) {
  // expected-error @+1 {{checks elements of 'f32', expected i32, i64 or i8 (require_in_range.c1)}}
  attn.require_in_range %x, %n, %n, "word" : tensor<4xf32>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>) {
  // expected-error @+1 {{expected them strictly increasing in [0, 2) (softmax.c1)}}
  %p, %l = attn.softmax %s axes([2]) : tensor<4x4xf32>, tensor<4x4xi1>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>) {
  // expected-error @+1 {{region 'where' takes ('index'), expected ('index', 'index') (softmax.c2)}}
  %p, %l = attn.softmax %s axes([1]) where (%i) {
    %c = arith.constant true
    attn.yield %c : i1
  } : tensor<4x4xf32>, tensor<4x4xi1>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>, %t: tensor<3xf32>) {
  // expected-error @+1 {{has a sink of 'tensor<3xf32>', expected 'tensor<4xf32>' (softmax.c3)}}
  %p, %l = attn.softmax %s axes([1]) sink(%t : tensor<3xf32>) : tensor<4x4xf32>, tensor<4x4xi1>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>, %t: tensor<4xf32>) {
  // expected-error @+1 {{has a sink and map sparsemax, expected exp (softmax.c3)}}
  %p, %l = attn.softmax %s axes([1]) normalise(sparsemax) sink(%t : tensor<4xf32>) : tensor<4x4xf32>, tensor<4x4xi1>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>) {
  // expected-error @+1 {{has map relu, expected exp or one with a threshold (softmax.c5)}}
  %p, %l = attn.softmax %s axes([1]) normalise(relu) : tensor<4x4xf32>, tensor<4x4xi1>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>) {
  // expected-error @+1 {{has no axis, expected at least one (threshold.c1)}}
  %t = attn.threshold sparsemax %s axes([]) : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>) {
  // expected-error @+1 {{has map exp, expected one with a threshold (threshold.c2)}}
  %t = attn.threshold exp %s axes([1]) : tensor<4x4xf32> -> tensor<4xf32>
  return
}
// -----
func.func @f(%s: tensor<4x3xf32>) {
  // expected-error @+1 {{has a result of 'tensor<3xf32>', expected 'tensor<4xf32>' (threshold.c3)}}
  %t = attn.threshold entmax15 %s axes([1]) : tensor<4x3xf32> -> tensor<3xf32>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>) {
  // expected-error @+1 {{expected the input's shape (log_softmax.c4)}}
  %p, %l = attn.log_softmax %s axes([1]) : tensor<4x4xf32>, tensor<4x3xi1>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (e, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{map of value 0 uses d2, a contract dim (attention.c4)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{has 3 sizes for dims [0, 1, 1, 1, 1], expected one each and at least one key dim (attention.c1)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{expected map exp for them (attention.c11)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(sigmoid stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{region 'score' takes ('index', 'f32'), expected ('index', 'index', 'f32') (attention.c5)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{expected 4, 0 and 2 (attention.c3)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [affine_map<(i, j, e) -> (i, e)>]
      value(%q : tensor<4x4xf32>) maps [affine_map<(i, j, e, f) -> (j, f)>]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{has divide, expected a map without a threshold for it (attention.c14)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(sparsemax divide) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index, %x: f32) {
  // expected-error @+1 {{has a value for empty rows, expected divide and no sink with it (attention.c13)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v] empty(%x)
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp stabilise) : tensor<4x4xf32>
  return
}
// -----
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>
func.func @f(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) {
  // expected-error @+1 {{has 1 sizes for dims [0, 1, 1, 0, 0], expected one each and at least one key dim (attention.c1)}}
  %a = attn.online_attention dims(query = 1, key = 1) sizes(%n) term(%s : tensor<4x4xf32>) maps [#pair] value(%v : tensor<4xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp) : tensor<4xf32>
  return
}
// -----
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>
func.func @f(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) {
  // expected-error @+1 {{has 2 key dims and map exp, expected one and a map without a threshold (online_attention.c1)}}
  %a = attn.online_attention dims(key = 2) sizes(%n, %n) term(%s : tensor<4x4xf32>) maps [#pair] value(%v : tensor<4xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp) : tensor<f32>
  return
}
// -----
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>
func.func @f(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) {
  // expected-error @+1 {{has 1 key dim and map sparsemax, expected one and a map without a threshold (online_attention.c1)}}
  %a = attn.online_attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<4x4xf32>) maps [#pair] value(%v : tensor<4xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(sparsemax) : tensor<4xf32>
  return
}
// -----
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>
func.func @f(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) {
  // expected-error @+1 {{expected f32 of ranks 1 and 1 (online_attention.c2)}}
  %a, %m, %l = attn.online_attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<4x4xf32>) maps [#pair] value(%v : tensor<4xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp) : tensor<4xf32>, max tensor<4x4xf32>, sum tensor<4xf32>
  return
}
// -----
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>
func.func @f(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) {
  // expected-error @+1 {{has a maximum in its state, expected map exp and a sum with it (online_attention.c3)}}
  %a, %m = attn.online_attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<4x4xf32>) maps [#pair] value(%v : tensor<4xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp) : tensor<4xf32>, max tensor<4xf32>
  return
}
// -----
func.func @f(%a: tensor<4x8xf32>, %m: tensor<4xf32>) {
  // expected-error @+1 {{and max with sum alone (finish.c1)}}
  %o = attn.finish %a max(%m : tensor<4xf32>) : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @f(%a: tensor<4x8xf32>, %t: tensor<4xf32>) {
  // expected-error @+1 {{expected a sum for them, and no such value beside a sink (finish.c2)}}
  %o = attn.finish %a sink(%t : tensor<4xf32>) map affine_map<(i, f) -> (i)> : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @f(%a: tensor<4x8xf32>, %l: tensor<4xf32>, %t: tensor<8xf32>) {
  // expected-error @+1 {{expected a map of 2 dims, of which it uses the first 1, and 0 symbols to f32, f16 or bf16 (finish.c3)}}
  %o = attn.finish %a sum(%l : tensor<4xf32>) sink(%t : tensor<8xf32>) map affine_map<(i, f) -> (f)> : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @f(%a: tensor<4x8xf32>, %l: tensor<4xf32>) {
  // expected-error @+1 {{expected a permutation of 2 axes (finish.c4)}}
  %o = attn.finish %a sum(%l : tensor<4xf32>) result_map affine_map<(i, f) -> (i)> : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @f(%a: tensor<4x8xf32>, %l: tensor<4xf32>) {
  // expected-error @+1 {{expected f32, f16 or bf16 of rank 2 and f32 of rank 1 (finish.c5)}}
  %o, %e = attn.finish %a sum(%l : tensor<4xf32>) : tensor<4x8xf32> -> tensor<4x8xf32>, lse tensor<4x8xf32>
  return
}
// -----
func.func @f(%x: tensor<?xf32>, %k: index) {
  // expected-error @+1 {{expected a static shape, found 'tensor<?xf32>' (keep.c1)}}
  attn.keep %x in %k : tensor<?xf32>
  return
}
// -----
func.func @f(%k: index) {
  // expected-error @+1 {{expected a static shape, found 'tensor<?xf32>' (kept.c1)}}
  %x = attn.kept %k : tensor<?xf32>
  return
}
// -----
func.func @f(%k: index) {
  // expected-error @+1 {{expected dense memory of a static shape, found 'memref<4x4xf32, strided<[1, 4]>>' (slot.c1)}}
  %x = attn.slot %k : memref<4x4xf32, strided<[1, 4]>>
  return
}
// -----
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{has 0 terms over 0 operands and 1 values, expected at least one of each (attention.c2)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index) { %c = arith.constant 0.0 : f32 attn.yield %c : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{region 'where' takes ('index', 'index', 'index'), expected ('index', 'index') (attention.c6)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      where (%i, %j, %k) { %c = arith.constant true attn.yield %c : i1 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{region 'weight' takes ('index', 'index', 'f32', 'f32'), expected ('index', 'index', 'f32') (attention.c7)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      weight (%i, %j : index, %t : f32, %u : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{region 'pair' takes ('f32', 'f32'), expected ('f32') (attention.c8)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] pair (%a, %b : f32) { attn.yield %a : f32 } value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{expected a permutation of batch, query and value dims (attention.c9)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      result_map affine_map<(i, j, e, f) -> (j, f)>
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{expected f32 of ranks 2, 1 and 2 (attention.c10)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %z: tensor<4x4xi8>, %n: index) {
  // expected-error @+1 {{value 0 has elements of 'i8', expected f32, f16 or bf16 (attention.c12)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%z : tensor<4x4xi8>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>) {
  // expected-error @+1 {{has live of 'tensor<3x4xi1>', expected the input's shape (softmax.c4)}}
  %p, %l = attn.softmax %s axes([1]) : tensor<4x4xf32>, tensor<3x4xi1>
  return
}
// -----
func.func @f(%s: tensor<4x4xf32>) {
  // expected-error @+1 {{expected them strictly increasing in [0, 2) (log_softmax.c1)}}
  %p, %l = attn.log_softmax %s axes([1, 0]) : tensor<4x4xf32>, tensor<4x4xi1>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  // expected-error @+1 {{region 'mask' takes ('index', 'index'), expected ('index', 'index', 'index', 'index', 'index', 'index', 'index', 'index') beside a where of one query and one key dim (attention.c15)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      mask (%i, %j) { attn.keys reach () if () full () if () tables [] () } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      where (%i, %j) {
        %c = arith.cmpi sle, %j, %i : index
        attn.yield %c : i1
      }
      mask (%i, %j, %i0, %i1, %j0, %j1, %N, %M) {
        %x = arith.index_cast %i0 : index to i64
        // expected-error @+1 {{has 1 and 0 ends for 0 and 0 pieces, expected a first key and an end each (keys.c1)}}
        attn.keys reach (%x) if () full () if () tables [] ()
      } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @f(%q: tensor<4x4xf32>, %n: index) {
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q : tensor<4x4xf32>) maps [#q] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      where (%i, %j) {
        %c = arith.cmpi sle, %j, %i : index
        attn.yield %c : i1
      }
      mask (%i, %j, %i0, %i1, %j0, %j1, %N, %M) {
        // expected-error @+1 {{says of 1 tables whether they are of keys, expected it of 0 (keys.c2)}}
        attn.keys reach () if () full () if () tables [true] ()
      } normalise(exp divide stabilise) : tensor<4x4xf32>
  return
}
// -----
// expected-error @+1 {{pipeline 'tiles' has tiles of 32 queries, blocks of 64 keys and pieces of 48, expected positive numbers and whole pieces in a block (pipeline.c1)}}
func.func private @f() attributes {pipeline = #attn.pipeline<tiles, queries = 32, block = 64, piece = 48>}
// -----
// expected-error @+1 {{plan 'streaming' has 0 pipelines, expected one at least (plan.c1)}}
func.func private @f() attributes {plan = #attn.plan<streaming>}
// -----
// expected-error @+1 {{plan 'materialised' has 1 pipeline, expected none (plan.c1)}}
func.func private @f() attributes {plan = #attn.plan<materialised, [<tiles, queries = 32, block = 64, piece = 32>]>}
// -----
// expected-error @+1 {{plan has pipeline 'rows' behind 'tiles', expected each form once, in the order rows, split, narrow, tiles, bounded (plan.c1)}}
func.func private @f() attributes {plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = 32>, <rows, queries = 1, block = 64, piece = 32>]>}
// -----
func.func @f(%N: index, %o: tensor<?x?xf32>, %x: tensor<?xf32>) {
  // expected-error @+1 {{has axes [2] for outputs of 'tensor<?x?xf32>', expected one of each (scan.c1)}}
  %r = attn.scan %t = %N to %N rows(%o axis 2 : tensor<?x?xf32>) {
    attn.step rows(%x : tensor<?xf32>)
  }
  return
}
// -----
func.func @f(%N: index, %x: tensor<?xf32>) {
  // expected-error @+1 {{has a body that takes 'index', 'tensor<?xi32>', expected an index and 'tensor<?xf32>' (scan.c2)}}
  %r = "attn.scan"(%N, %N, %x) <{axes = array<i64>, reversed = array<i1>, operandSegmentSizes = array<i32: 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%t: index, %s: tensor<?xi32>):
    attn.step states(%x : tensor<?xf32>)
  }) : (index, index, tensor<?xf32>) -> tensor<?xf32>
  return
}
// -----
func.func @f(%N: index, %x: tensor<?xf32>, %o: tensor<?x4xf32>) {
  // expected-error @+1 {{expected its body to end with attn.step states('tensor<?xf32>') rows('tensor<4xf32>') (scan.c3)}}
  %r, %q = attn.scan %t = %N to %N states(%s = %x : tensor<?xf32>) rows(%o axis 0 : tensor<?x4xf32>) {
    attn.step states(%x : tensor<?xf32>) rows(%x : tensor<?xf32>)
  }
  return
}
// -----
func.func @f(%N: index, %x: tensor<?xf32>) {
  // expected-error @+1 {{has results 'tensor<4xf32>', expected the types of starts and outputs (scan.c4)}}
  %r = "attn.scan"(%N, %N, %x) <{axes = array<i64>, reversed = array<i1>, operandSegmentSizes = array<i32: 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%t: index, %s: tensor<?xf32>):
    attn.step states(%x : tensor<?xf32>)
  }) : (index, index, tensor<?xf32>) -> tensor<4xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>, %S: tensor<?x?xf32>) {
  // expected-error @+1 {{has 2 sizes for 3 loop dims (linear_attention.c1)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>)
      maps [affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, f)>] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>, %S: tensor<?x?xf32>) {
  // expected-error @+1 {{has 2 maps, expected 3 (linear_attention.c2)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>)
      maps [affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, f)>] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>, %S: tensor<?x?xf32>) {
  // expected-error @+1 {{map of key expected to take 3 dims and to give each axis of 'tensor<?x?xf32>' another of them (linear_attention.c2)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>)
      maps [affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, t + e)>, affine_map<(t, e, f) -> (t, f)>] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>, %S: tensor<?x?xf32>) {
  // expected-error @+1 {{map of query uses d2, a value dim (linear_attention.c3)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>)
      maps [affine_map<(t, e, f) -> (t, f)>, affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, f)>] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>, %S: tensor<?x?xf32>) {
  // expected-error @+1 {{map of value uses d1, a contract dim (linear_attention.c3)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>)
      maps [affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, e)>] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>, %S: tensor<?x?xf32>) {
  // expected-error @+1 {{has results 'tensor<?x?xf32>' and 'tensor<?x?x?xf32>', expected batch dims, step and value dims, and batch, contract and value dims as the start has them (linear_attention.c4)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>)
      maps [affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, f)>] : tensor<?x?xf32>, tensor<?x?x?xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>, %S: tensor<?x?xf32>) {
  // expected-error @+1 {{has results 'tensor<?x?xf32>' and 'tensor<4x?xf32>', expected batch dims, step and value dims, and batch, contract and value dims as the start has them (linear_attention.c4)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>) start(%S : tensor<?x?xf32>)
      maps [affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, f)>] : tensor<?x?xf32>, tensor<4x?xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>) {
  // expected-error @+1 {{map of erase uses d2, a value dim (linear_attention.c3)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>) erase(%q : tensor<?x?xf32>)
      maps [affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, f)>, affine_map<(t, e, f) -> (t, f)>]
      : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%n: index, %q: tensor<?x?xf32>, %S: tensor<?x?xf32>) {
  // expected-error @+1 {{is fresh, expected no start (linear_attention.c5)}}
  %o, %s = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%n, %n, %n)
      query(%q : tensor<?x?xf32>) key(%q : tensor<?x?xf32>) value(%q : tensor<?x?xf32>) start(%S : tensor<?x?xf32>) fresh
      maps [affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, e)>, affine_map<(t, e, f) -> (t, f)>] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%L: tensor<?x4x5xf32>, %x: tensor<2x4x3xf32>) {
  // expected-error @+1 {{has the matrix 'tensor<?x4x5xf32>' for 'tensor<2x4x3xf32>', expected its axes up to the steps, and the steps again (triangular_solve.c1)}}
  %X = attn.triangular_solve %L, %x : tensor<?x4x5xf32>, tensor<2x4x3xf32>
  return
}
// -----
func.func @f(%L: tensor<3x4x4xf32>, %x: tensor<2x4x3xf32>) {
  // expected-error @+1 {{has the matrix 'tensor<3x4x4xf32>' for 'tensor<2x4x3xf32>', expected its axes up to the steps, and the steps again (triangular_solve.c1)}}
  %X = attn.triangular_solve %L, %x : tensor<3x4x4xf32>, tensor<2x4x3xf32>
  return
}
// -----
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error @+1 {{has a body that takes ('index', 'f32'), expected ('index', 'index', 'f32') and attn.next of ('f32') (recurrence.c1)}}
  %H = attn.recurrence from %n rows(%n) sizes(%n) starts(%x : tensor<?xf32>) next (%t : index, %a : f32) {
    attn.next %a : f32
  } : tensor<?x?xf32>
  return
}
// -----
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error @+1 {{has the result 'tensor<?xf32>' for 'tensor<?xf32>', expected an axis more, the first, and 1 of the state (recurrence.c2)}}
  %H = attn.recurrence from %n rows(%n) sizes(%n) starts(%x : tensor<?xf32>) next (%t, %d : index, %a : f32) {
    attn.next %a : f32
  } : tensor<?xf32>
  return
}
// -----
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error @+1 {{has a region 'next' that takes ('index', 'f32'), expected ('index', 'index', 'f32') and attn.next of ('f32') (element_scan.c1)}}
  %y, %s = attn.element_scan from %n steps(%n) sizes(%n) starts(%x : tensor<?xf32>) next (%t : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %d : index, %a, %b : f32) {
    attn.next %b : f32
  } axis 0 rows(tensor<?x?xf32>) states(tensor<?xf32>)
  return
}
// -----
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error @+1 {{has a region 'leave' that takes ('index', 'index', 'f32'), expected ('index', 'index', 'f32', 'f32') and attn.next of ('f32') (element_scan.c2)}}
  %y, %s = attn.element_scan from %n steps(%n) sizes(%n) starts(%x : tensor<?xf32>) next (%t, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %d : index, %b : f32) {
    attn.next %b : f32
  } axis 0 rows(tensor<?x?xf32>) states(tensor<?xf32>)
  return
}
// -----
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error @+1 {{has the states ('tensor<8xf32>') for ('tensor<?xf32>'), expected the same, with 1 axes (element_scan.c3)}}
  %y, %s = attn.element_scan from %n steps(%n) sizes(%n) starts(%x : tensor<?xf32>) next (%t, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %d : index, %a, %b : f32) {
    attn.next %b : f32
  } axis 0 rows(tensor<?x?xf32>) states(tensor<8xf32>)
  return
}
// -----
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error @+1 {{has 1 rows of 1 states along axis 2, expected at least one of each, and an axis up to 1 (element_scan.c4)}}
  %y, %s = attn.element_scan from %n steps(%n) sizes(%n) starts(%x : tensor<?xf32>) next (%t, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %d : index, %a, %b : f32) {
    attn.next %b : f32
  } axis 2 rows(tensor<?x?xf32>) states(tensor<?xf32>)
  return
}
// -----
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error @+1 {{has the row 'tensor<?x8xf32>' for 'tensor<?xf32>', expected its axes and axis 0 (element_scan.c4)}}
  %y, %s = attn.element_scan from %n steps(%n) sizes(%n) starts(%x : tensor<?xf32>) next (%t, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %d : index, %a, %b : f32) {
    attn.next %b : f32
  } axis 0 rows(tensor<?x8xf32>) states(tensor<?xf32>)
  return
}
// -----
func.func @f(%x: tensor<4x?xf32>, %n: index) {
  // expected-error @+1 {{has a region 'next' that takes ('index', 'index', 'f32'), expected ('index', 'index', 'index', 'f32') and attn.next of ('f32') (sum_scan.c1)}}
  %y, %s = attn.sum_scan from %n steps(%n) most 8 sizes(%n, %n) starts(%x : tensor<4x?xf32>) next (%t, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %e, %d : index, %a : f32) {
    attn.next %a : f32
  } rows(tensor<?x?xf32>) states(tensor<4x?xf32>)
  return
}
// -----
func.func @f(%x: tensor<4x?xf32>, %n: index) {
  // expected-error @+1 {{has a region 'leave' that takes ('index', 'index', 'index', 'f32', 'f32'), expected ('index', 'index', 'index', 'f32') and attn.next of ('f32') (sum_scan.c2)}}
  %y, %s = attn.sum_scan from %n steps(%n) most 8 sizes(%n, %n) starts(%x : tensor<4x?xf32>) next (%t, %e, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %e, %d : index, %a, %b : f32) {
    attn.next %a : f32
  } rows(tensor<?x?xf32>) states(tensor<4x?xf32>)
  return
}
// -----
func.func @f(%x: tensor<4x?xf32>, %n: index) {
  // expected-error @+1 {{has the states ('tensor<4x8xf32>') for ('tensor<4x?xf32>'), expected the same, alike (sum_scan.c3)}}
  %y, %s = attn.sum_scan from %n steps(%n) most 8 sizes(%n, %n) starts(%x : tensor<4x?xf32>) next (%t, %e, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %e, %d : index, %a : f32) {
    attn.next %a : f32
  } rows(tensor<?x?xf32>) states(tensor<4x8xf32>)
  return
}
// -----
func.func @f(%x: tensor<?x?xf32>, %n: index) {
  // expected-error @+1 {{has the states ('tensor<?x?xf32>') with 2 sizes, expected at least a state of floats and two sizes, the last but one known (sum_scan.c4)}}
  %y, %s = attn.sum_scan from %n steps(%n) most 8 sizes(%n, %n) starts(%x : tensor<?x?xf32>) next (%t, %e, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %e, %d : index, %a : f32) {
    attn.next %a : f32
  } rows(tensor<?x?xf32>) states(tensor<?x?xf32>)
  return
}
// -----
func.func @f(%x: tensor<4x?xf32>, %n: index) {
  // expected-error @+1 {{has the row 'tensor<?x8xf32>' for 'tensor<4x?xf32>', expected its axes, but steps for axis 0 (sum_scan.c5)}}
  %y, %s = attn.sum_scan from %n steps(%n) most 8 sizes(%n, %n) starts(%x : tensor<4x?xf32>) next (%t, %e, %d : index, %a : f32) {
    attn.next %a : f32
  } leave (%t, %e, %d : index, %a : f32) {
    attn.next %a : f32
  } rows(tensor<?x8xf32>) states(tensor<4x?xf32>)
  return
}
// -----
func.func @f(%x: tensor<4x?xf32>, %n: index) {
  // expected-error @+1 {{holds 1 sums and has no region 'hold' (sum_scan.c6)}}
  %y, %h, %s = attn.sum_scan from %n steps(%n) most 8 sizes(%n, %n) starts(%x : tensor<4x?xf32>) next (%t, %e, %d : index, %a, %b : f32) {
    attn.next %a : f32
  } leave (%t, %e, %d : index, %a, %b : f32) {
    attn.next %a : f32
  } rows(tensor<?x?xf32>) held(tensor<?x?xf32>) states(tensor<4x?xf32>)
  return
}
// -----
func.func @f(%x: tensor<4x?xf32>, %n: index) {
  // expected-error @+1 {{makes held sum 0 of number 1, expected of earlier ones (sum_scan.c6)}}
  %y, %h, %g, %s = attn.sum_scan from %n steps(%n) most 8 sizes(%n, %n) starts(%x : tensor<4x?xf32>) next (%t, %e, %d : index, %a, %p, %q : f32) {
    attn.next %a : f32
  } leave (%t, %e, %d : index, %a, %p, %q : f32) {
    attn.next %a : f32
  } hold (%t, %e, %d : index, %a, %p, %q : f32) {
    attn.next %q, %a : f32, f32
  } rows(tensor<?x?xf32>) held(tensor<?x?xf32>, tensor<?x?xf32>) states(tensor<4x?xf32>)
  return
}
// -----
func.func @f(%x: tensor<?x?xf32>, %s: tensor<?x?x?xf32>) {
  // expected-error @+1 {{expected an axis for each of the state (update_state.c1)}}
  %y = attn.update_state %x into %s axes [0, 1] at() maps [] : tensor<?x?xf32>, tensor<?x?x?xf32>
  return
}
// -----
func.func @f(%x: tensor<?x?xf32>, %s: tensor<?x?xf32>) {
  // expected-error @+1 {{axis -1 is none of the values and of the positions (update_state.c1)}}
  %y = attn.update_state %x into %s axes [0, -1] at() maps [] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%x: tensor<?xf16>, %s: tensor<?xf32>) {
  // expected-error @+1 {{expected values of the state's element type (update_state.c2)}}
  %y = attn.update_state %x into %s axes [0] at() maps [] : tensor<?xf16>, tensor<?xf32>
  return
}
// -----
func.func @f(%x: tensor<?x?xf32>, %s: tensor<?x?xf32>, %p: tensor<?xi64>) {
  // expected-error @+1 {{expected a map for each position and for where (update_state.c3)}}
  %y = attn.update_state %x into %s axes [-1, 1] at(%p : tensor<?xi64>) maps [] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%x: tensor<?x?xf32>, %s: tensor<?x?xf32>, %p: tensor<?xi64>) {
  // expected-error @+1 {{expected a map from the axes of the values to those of the position (update_state.c3)}}
  %y = attn.update_state %x into %s axes [-1, 1] at(%p : tensor<?xi64>) maps [affine_map<(n, e) -> (n, e)>] : tensor<?x?xf32>, tensor<?x?xf32>
  return
}
// -----
func.func @f(%x: memref<?x?xf32>, %s: memref<?x?xf32>, %p: memref<?xi32>) {
  // expected-error @+1 {{expected positions of i64 (write_state.c4)}}
  attn.write_state %x into %s axes [-1, 1] at(%p : memref<?xi32>) maps [affine_map<(n, e) -> (n)>] : memref<?x?xf32>, memref<?x?xf32>
  return
}
// -----
func.func @f(%x: memref<?x?xf32>, %s: memref<?x?xf32>) {
  // expected-error @+1 {{expected an axis for each of the state (write_state.c1)}}
  attn.write_state %x into %s axes [0] at() maps [] : memref<?x?xf32>, memref<?x?xf32>
  return
}
