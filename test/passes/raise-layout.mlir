// RUN: heed-opt %s --attn-raise-attention --split-input-file | FileCheck %s

#qm = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
#km = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>
#vm = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#t = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>

// Merged heads: the transposition and the conversion are how the op writes its result; the collapse stays, it moves
// nothing.
// CHECK: #[[R:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d5)>
// CHECK-LABEL: func @merge
// CHECK: %[[O:.*]] = attn.attention
// CHECK: result_map #[[R]]
// CHECK-NEXT: score
// CHECK: tensor<2x7x4x8xf16>
// CHECK-NOT: linalg.generic
// CHECK: tensor.collapse_shape %[[O]]
func.func @merge(%q: tensor<2x4x7x8xf32>, %k: tensor<2x4x9x8xf32>, %v: tensor<2x4x9x8xf32>) -> tensor<2x7x32xf16> attributes {attn.model} {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c9 = arith.constant 9 : index
  %c8 = arith.constant 8 : index
  %o = attn.attention
      dims(batch = 2, query = 1, key = 1, contract = 1, value = 1) sizes(%c2, %c4, %c7, %c9, %c8, %c8)
      term(%q, %k : tensor<2x4x7x8xf32>, tensor<2x4x9x8xf32>) maps [#qm, #km]
      value(%v : tensor<2x4x9x8xf32>) maps [#vm]
      score (%b, %h, %i, %j : index, %t0 : f32) { attn.yield %t0 : f32 }
      normalise(exp divide stabilise) : tensor<2x4x7x8xf32>
  %e = tensor.empty() : tensor<2x7x4x8xf16>
  %m = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : tensor<2x4x7x8xf32>) outs(%e : tensor<2x7x4x8xf16>) {
  ^bb0(%a: f32, %out: f16):
    %n = arith.truncf %a : f32 to f16
    linalg.yield %n : f16
  } -> tensor<2x7x4x8xf16>
  %c = tensor.collapse_shape %m [[0], [1], [2, 3]] : tensor<2x7x4x8xf16> into tensor<2x7x32xf16>
  return %c : tensor<2x7x32xf16>
}

// -----

#qm = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
#km = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>
#vm = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#t = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>

// Read in both layouts, and as a part: left alone.
// CHECK-LABEL: func @both
// CHECK-NOT: result_map
// CHECK: linalg.generic
func.func @both(%q: tensor<2x4x7x8xf32>, %k: tensor<2x4x9x8xf32>, %v: tensor<2x4x9x8xf32>)
    -> (tensor<2x7x4x8xf32>, tensor<2x4x7x8xf32>) attributes {attn.model} {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c9 = arith.constant 9 : index
  %c8 = arith.constant 8 : index
  %o = attn.attention
      dims(batch = 2, query = 1, key = 1, contract = 1, value = 1) sizes(%c2, %c4, %c7, %c9, %c8, %c8)
      term(%q, %k : tensor<2x4x7x8xf32>, tensor<2x4x9x8xf32>) maps [#qm, #km]
      value(%v : tensor<2x4x9x8xf32>) maps [#vm]
      score (%b, %h, %i, %j : index, %t0 : f32) { attn.yield %t0 : f32 }
      normalise(exp divide stabilise) : tensor<2x4x7x8xf32>
  %e = tensor.empty() : tensor<2x7x4x8xf32>
  %m = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : tensor<2x4x7x8xf32>) outs(%e : tensor<2x7x4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<2x7x4x8xf32>
  return %m, %o : tensor<2x7x4x8xf32>, tensor<2x4x7x8xf32>
}

// -----

#qm = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
#km = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>
#vm = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// A part of the output is no other layout of it.
// CHECK-LABEL: func @part
// CHECK-NOT: result_map
// CHECK: linalg.generic
func.func @part(%q: tensor<2x4x7x8xf32>, %k: tensor<2x4x9x8xf32>, %v: tensor<2x4x9x8xf32>) -> tensor<2x4x3x8xf32> attributes {attn.model} {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c9 = arith.constant 9 : index
  %c8 = arith.constant 8 : index
  %o = attn.attention
      dims(batch = 2, query = 1, key = 1, contract = 1, value = 1) sizes(%c2, %c4, %c7, %c9, %c8, %c8)
      term(%q, %k : tensor<2x4x7x8xf32>, tensor<2x4x9x8xf32>) maps [#qm, #km]
      value(%v : tensor<2x4x9x8xf32>) maps [#vm]
      score (%b, %h, %i, %j : index, %t0 : f32) { attn.yield %t0 : f32 }
      normalise(exp divide stabilise) : tensor<2x4x7x8xf32>
  %e = tensor.empty() : tensor<2x4x3x8xf32>
  %m = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      outs(%e : tensor<2x4x3x8xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %i = linalg.index 2 : index
    %d = linalg.index 3 : index
    %a = tensor.extract %o[%b, %h, %i, %d] : tensor<2x4x7x8xf32>
    linalg.yield %a : f32
  } -> tensor<2x4x3x8xf32>
  return %m : tensor<2x4x3x8xf32>
}
