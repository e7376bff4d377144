// RUN: heed-opt %s --attn-form-kernels --attn-to-halide --split-input-file | FileCheck %s

// One row and weights that no cache holds. Where the target says that a core reads one stream of addresses fastest, the panels of a weight come in order, and
// nothing is asked for ahead; where it does not, as four.
// CHECK-LABEL: halide.pipeline @one_wide_contraction attributes
// CHECK-NOT: "stream"
// CHECK-NOT: prefetch
// CHECK: "r0" into ("r0", "ru") by 4
// CHECK-LABEL: halide.pipeline @one_half_contraction attributes
// CHECK-NOT: "stream"
// CHECK-NOT: prefetch
// CHECK: "r0" into ("r0", "ru") by 4
// CHECK-LABEL: halide.pipeline @four_wide_contraction attributes
// CHECK: "r0" into ("stream", "r0") by 256
// CHECK: halide.prefetch_lines
// CHECK-LABEL: halide.pipeline @four_half_contraction attributes
// CHECK: "r0_b" into ("r0_b", "stream") by 4
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 1048576 : i64, l3 = 33554432 : i64, cores = 2 : i64, features = ["avx2", "f16c", "fma"], one_stream}} {
func.func @one_wide(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> attributes {attn.model} {
  %w = attn.param "w" : tensor<4096x4096xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<1x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x4096xf32>
  return %p : tensor<1x4096xf32>
}

func.func @one_half(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> attributes {attn.model} {
  %w = attn.param "w" : tensor<4096x4096xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x4096xf32>, tensor<4096x4096xf16>) outs(%f : tensor<1x4096xf32>) {
  ^bb0(%a: f32, %b: f16, %acc: f32):
    %v = arith.extf %b : f16 to f32
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x4096xf32>
  return %p : tensor<1x4096xf32>
}
}

// -----

#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 1048576 : i64, l3 = 33554432 : i64, cores = 2 : i64, features = ["avx2", "f16c", "fma"]}} {
func.func @four_wide(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> attributes {attn.model} {
  %w = attn.param "w" : tensor<4096x4096xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<1x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x4096xf32>
  return %p : tensor<1x4096xf32>
}

func.func @four_half(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> attributes {attn.model} {
  %w = attn.param "w" : tensor<4096x4096xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x4096xf32>, tensor<4096x4096xf16>) outs(%f : tensor<1x4096xf32>) {
  ^bb0(%a: f32, %b: f16, %acc: f32):
    %v = arith.extf %b : f16 to f32
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x4096xf32>
  return %p : tensor<1x4096xf32>
}
}
