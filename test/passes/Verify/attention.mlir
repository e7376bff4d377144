// Each rule of docs/ir.md, section 2, beyond the op's own constraints.
// RUN: heedc %heed_src/models/core/causal-attention.heed --emit=attn -o - | heed-opt --attn-fuse-elementwise --attn-raise-attention --attn-choose-algorithm --attn-verify-attention -o /dev/null
// RUN: heed-opt %s -split-input-file -verify-diagnostics --attn-verify-attention

#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @undecided(%q: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  // expected-error @+1 {{has no attn.plan (attention-ir.c1)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) maps [#q, #k] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
  return %o : tensor<4x4xf32>
}

// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @size(%q: tensor<4x4xf32>, %k: tensor<3x4xf32>) -> tensor<4x4xf32> {
  %n = arith.constant 4 : index
  // expected-error @+1 {{operand 1 of term 0 has extent 3 at axis 0, but loop dim 1 has size 4 (attention-ir.c2)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q, %k : tensor<4x4xf32>, tensor<3x4xf32>) maps [#q, #k] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise)
      {attn.plan = #attn.plan<materialised>} : tensor<4x4xf32>
  return %o : tensor<4x4xf32>
}

// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
// A read may leave elements of an axis out.
func.func @partial(%q: tensor<4x4xf32>, %k: tensor<5x9xf32>) -> tensor<4x4xf32> {
  %n = arith.constant 4 : index
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q, %k : tensor<4x4xf32>, tensor<5x9xf32>) maps [#q, #k] value(%k : tensor<5x9xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise)
      {attn.plan = #attn.plan<materialised>} : tensor<4x4xf32>
  return %o : tensor<4x4xf32>
}

// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @result(%q: tensor<4x4xf32>) -> tensor<5x4xf32> {
  %n = arith.constant 4 : index
  // expected-error @+1 {{the output has extent 5 at axis 0, but loop dim 0 has size 4 (attention-ir.c2)}}
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) maps [#q, #k] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise)
      {attn.plan = #attn.plan<materialised>} : tensor<5x4xf32>
  return %o : tensor<5x4xf32>
}

// -----
#q = affine_map<(i, j, e, f) -> (i, e)>
#k = affine_map<(i, j, e, f) -> (j, e)>
#v = affine_map<(i, j, e, f) -> (j, f)>
func.func @region(%q: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
      term(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) maps [#q, #k] value(%q : tensor<4x4xf32>) maps [#v]
      score (%i, %j : index, %t : f32) {
        // expected-error @+1 {{stands in a region of attn.attention, which holds arith, math, scf.if and tensor.extract (attention-ir.c3)}}
        %s = attn.param "scale" : tensor<f32>
        %x = tensor.extract %s[] : tensor<f32>
        attn.yield %x : f32
      } normalise(exp divide stabilise) {attn.plan = #attn.plan<materialised>} : tensor<4x4xf32>
  return %o : tensor<4x4xf32>
}
