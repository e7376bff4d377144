// Each rule of docs/ir.md, section 1: what a front end makes is accepted, what breaks the rule is refused at its op.
// RUN: heedc %heed_src/models/core/encoder-layer.heed --emit=attn -o - | heed-opt --attn-verify-front-end -o /dev/null
// RUN: heed-opt %s -split-input-file -verify-diagnostics --attn-verify-front-end

// Nothing to complain about: sizes, a check, an equation with a reduction, a softmax.
func.func @accepted(%x: tensor<?x?xf16> {attn.name = "x", attn.dims = ["N", "M"]}, %c: f32 {attn.name = "c"})
    -> (tensor<?xf32> {attn.name = "y", attn.dims = ["N"]}) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf16>
  %m = tensor.dim %x, %c1 : tensor<?x?xf16>
  %ok = arith.cmpi sle, %n, %m : index
  attn.require %ok, "{0} rows" (%n) : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf16>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f16, %s: f32):
    %w = arith.extf %a : f16 to f32
    %t = arith.addf %s, %w : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %p, %live = attn.softmax %y axes([0]) : tensor<?xf32>, tensor<?xi1>
  return %p : tensor<?xf32>
}

// -----
// expected-error @+1 {{holds no model (front.c1)}}
module {
}

// -----
// expected-error @+1 {{expected a public func.func with a body and attn.model (front.c1)}}
func.func @no_model() {
  return
}

// -----
// expected-error @+1 {{argument 0 is of 'f16', expected a ranked tensor, f32, i32, i64 or i1 (front.c2)}}
func.func @scalar(%x: f16 {attn.name = "x"}) attributes {attn.model} {
  return
}

// -----
// expected-error @+1 {{argument 0 is of 'tensor<4xf64>'}}
func.func @element(%x: tensor<4xf64> {attn.name = "x", attn.dims = ["N"]}) attributes {attn.model} {
  return
}

// -----
// expected-error @+1 {{result 0 is of 'f32', expected a ranked tensor (front.c2)}}
func.func @result(%x: f32 {attn.name = "x"}) -> (f32 {attn.name = "y"}) attributes {attn.model} {
  return %x : f32
}

// -----
// expected-error @+1 {{argument 1 has no attn.name that no other one has (front.c3)}}
func.func @names(%x: f32 {attn.name = "x"}, %y: f32 {attn.name = "x"}) attributes {attn.model} {
  return
}

// -----
// expected-error @+1 {{argument 0 has rank 2, expected as many attn.dims (front.c3)}}
func.func @dims(%x: tensor<?x?xf32> {attn.name = "x", attn.dims = ["N"]}) attributes {attn.model} {
  return
}

// -----
func.func @foreign(%x: tensor<4xf32> {attn.name = "x", attn.dims = ["4"]}) attributes {attn.model} {
  // expected-error @+1 {{is no op that a front end makes (front.c4)}}
  %b = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>
  return
}

// -----
func.func @measured_twice(%x: tensor<?xf32> {attn.name = "x", attn.dims = ["N"]}) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  // expected-error @+1 {{measures axis 0 a second time (front.c5)}}
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  return
}

// -----
func.func @measures_result(%x: tensor<?xf32> {attn.name = "x", attn.dims = ["N"]}) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %p, %live = attn.softmax %x axes([0]) : tensor<?xf32>, tensor<?xi1>
  // expected-error @+1 {{measures what is no argument or parameter, or at an axis that is no constant (front.c5)}}
  %n = tensor.dim %p, %c0 : tensor<?xf32>
  return
}

// -----
func.func @late_check(%x: tensor<4xf32> {attn.name = "x", attn.dims = ["4"]}, %c: i1 {attn.name = "c"}) attributes {attn.model} {
  // expected-note @+1 {{here}}
  %p, %live = attn.softmax %x axes([0]) : tensor<4xf32>, tensor<4xi1>
  // expected-error @+1 {{stands after mathematics (front.c6)}}
  attn.require %c, "late"
  return
}

// -----
func.func @map(%x: tensor<4xf32> {attn.name = "x", attn.dims = ["4"]}) attributes {attn.model} {
  %e = tensor.empty() : tensor<2x3xf32>
  // expected-error @+1 {{expected a projected permutation (front.c7)}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<2x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x3xf32>
  return
}

// -----
func.func @overwrites(%x: tensor<4xf32> {attn.name = "x", attn.dims = ["4"]}) attributes {attn.model} {
  // expected-error @+1 {{writes to a tensor that is neither new nor filled (front.c7)}}
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x : tensor<4xf32>) {
  ^bb0(%o: f32):
    linalg.yield %o : f32
  } -> tensor<4xf32>
  return
}

// -----
func.func @wide(%x: tensor<4xf32> {attn.name = "x", attn.dims = ["4"]}) attributes {attn.model} {
  // expected-error @+1 {{makes 'tensor<4xf64>', expected elements of f32, f16, bf16, i32, i64, i8 or i1 (front.c8)}}
  %e = tensor.empty() : tensor<4xf64>
  return
}
