// Each rule of docs/ir.md, section 3.
// RUN: heedc %heed_src/models/core/encoder-layer.heed --emit=attn -o - | heed-opt --attn-fuse-elementwise --attn-raise-attention --attn-choose-algorithm --attn-form-kernels --cse --attn-stream-attention --attn-verify-kernels -o /dev/null
// RUN: heed-opt %s -split-input-file -verify-diagnostics --attn-verify-kernels

func.func @host(%x: tensor<4xf32>, %c: f32) -> tensor<4xf32> {
  %y = func.call @kernel(%x, %c) : (tensor<4xf32>, f32) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// expected-error @+1 {{is a kernel, expected it private and with a body (kernels.c1)}}
func.func @kernel(%x: tensor<4xf32>, %c: f32) -> tensor<4xf32> attributes {attn.kernel} {
  return %x : tensor<4xf32>
}

// -----
// expected-error @+1 {{takes 'f16', expected tensors, index, f32, f64, i32, i64 or i1 (kernels.c1)}}
func.func private @kernel(%x: tensor<4xf32>, %c: f16) -> tensor<4xf32> attributes {attn.kernel} {
  return %x : tensor<4xf32>
}

// -----
// expected-error @+1 {{returns 'f32', expected tensors (kernels.c1)}}
func.func private @kernel(%x: f32) -> f32 attributes {attn.kernel} {
  return %x : f32
}

// -----
func.func private @kernel() -> tensor<4xf32> attributes {attn.kernel} {
  // expected-error @+1 {{stands in a kernel, where only host code may use it (kernels.c2)}}
  %w = attn.param "w" : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{stands in host code, which computes scalars and calls kernels (kernels.c3)}}
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----
// expected-error @+1 {{is called nowhere (kernels.c4)}}
func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {attn.kernel} {
  return %x : tensor<4xf32>
}

// -----
func.func @host(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = func.call @one(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = func.call @two(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}
// expected-note @+1 {{here}}
func.func private @one(%x: tensor<4xf32>) -> tensor<4xf32> attributes {attn.kernel} {
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
// expected-error @+1 {{is the same kernel as 'one' (kernels.c5)}}
func.func private @two(%x: tensor<4xf32>) -> tensor<4xf32> attributes {attn.kernel} {
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>
func.func @host(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) -> tensor<4xf32> attributes {attn.model} {
  %o = func.call @one(%s, %v, %n) : (tensor<4x4xf32>, tensor<4xf32>, index) -> tensor<4xf32>
  return %o : tensor<4xf32>
}
func.func private @one(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) -> tensor<4xf32> attributes {attn.kernel} {
  // expected-error @+1 {{is planned to stream, expected it as attn.online_attention and attn.finish (kernels.c6)}}
  %o = attn.attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<4x4xf32>) maps [#pair] value(%v : tensor<4xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      normalise(exp) {attn.plan = #attn.plan<streaming, [<rows, queries = 1, block = 128, piece = 128>]>} : tensor<4xf32>
  return %o : tensor<4xf32>
}

// -----
#pair = affine_map<(i, j) -> (i, j)>
#key = affine_map<(i, j) -> (j)>
func.func @host(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) -> tensor<4xf32> attributes {attn.model} {
  %o = func.call @one(%s, %v, %n) : (tensor<4x4xf32>, tensor<4xf32>, index) -> tensor<4xf32>
  return %o : tensor<4xf32>
}
func.func private @one(%s: tensor<4x4xf32>, %v: tensor<4xf32>, %n: index) -> tensor<4xf32> attributes {attn.kernel} {
  // expected-error @+1 {{has a state that other ops than one attn.finish read (kernels.c6)}}
  %a = attn.online_attention dims(query = 1, key = 1) sizes(%n, %n) term(%s : tensor<4x4xf32>) maps [#pair] value(%v : tensor<4xf32>) maps [#key]
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      normalise(exp) {attn.plan = #attn.plan<streaming, [<rows, queries = 1, block = 128, piece = 128>]>} : tensor<4xf32>
  return %a : tensor<4xf32>
}
