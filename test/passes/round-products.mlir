// RUN: heed-opt %s --attn-round-products | FileCheck %s
// RUN: heed-opt %s --attn-round-products --remarks-filter=attn-round-products 2>&1 >/dev/null | FileCheck --check-prefix=SAYS %s
// RUN: heed-opt %s --attn-round-products --attn-round-products 2>&1 | FileCheck --check-prefix=TWICE %s

#x = affine_map<(m, n, r) -> (m, r)>
#w = affine_map<(m, n, r) -> (n, r)>
#y = affine_map<(m, n, r) -> (m, n)>
#taps = affine_map<(m, c, t) -> (c, t)>
#near = affine_map<(m, c, t) -> (m + t, c)>

// SAYS-DAG: Function=rounds | Remark="2 products with bf16 weights round their other operand to bf16
// SAYS-DAG: [Missed] {{.*}}stays f32: it is no product with a matrix
// SAYS-DAG: [Missed] {{.*}}no product has a bf16 weight as its operand

// The other factor is rounded, whichever comes first and whatever it is computed from; what is left out by a condition stays so.
// CHECK-LABEL: func.func @rounds(
// CHECK: %[[NARROW:.*]] = arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[WIDE:.*]] = arith.extf %[[NARROW]] : bf16 to f32
// CHECK: arith.mulf %[[WIDE]], %{{.*}} : f32
// CHECK: %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: %[[SECOND:.*]] = arith.truncf %[[SCALED]] : f32 to bf16
// CHECK: %[[WIDER:.*]] = arith.extf %[[SECOND]] : bf16 to f32
// CHECK: arith.mulf %{{.*}}, %[[WIDER]] : f32
// TWICE-LABEL: func.func @rounds(
// TWICE-COUNT-2: arith.truncf
// TWICE-NOT: arith.truncf
func.func @rounds(%x: tensor<?x4xf32>, %y: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %w = attn.param "w" : tensor<8x4xbf16>
  %a = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x4xf32>, tensor<8x4xbf16>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%u: f32, %v: bf16, %sum: f32):
    %c = arith.extf %v : bf16 to f32
    %p = arith.mulf %u, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  %b = linalg.generic {indexing_maps = [#w, #x, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %x : tensor<8x4xbf16>, tensor<?x4xf32>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%v: bf16, %u: f32, %sum: f32):
    %zero = arith.constant 0.0 : f32
    %r = linalg.index 2 : index
    %m = linalg.index 0 : index
    %live = arith.cmpi sle, %r, %m : index
    %scaled = arith.mulf %u, %u : f32
    %c = arith.extf %v : bf16 to f32
    %p = arith.mulf %c, %scaled : f32
    %t = arith.select %live, %p, %zero : f32
    %s = arith.addf %sum, %t : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x8xf32>
}

// Taps of each channel have no index of their own.
// CHECK-LABEL: func.func @taps(
// CHECK-NOT: truncf
func.func @taps(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %w = attn.param "w" : tensor<8x3xbf16>
  %a = linalg.generic {indexing_maps = [#near, #taps, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x8xf32>, tensor<8x3xbf16>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%u: f32, %v: bf16, %sum: f32):
    %c = arith.extf %v : bf16 to f32
    %p = arith.mulf %u, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}

// Neither of a bf16 that a call gives, nor of f16, nor of a largest product.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: truncf
func.func @others(%x: tensor<?x4xf32>, %z: tensor<8x4xbf16>, %y: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %h = attn.param "h" : tensor<8x4xf16>
  %w = attn.param "w" : tensor<8x4xbf16>
  %a = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %z : tensor<?x4xf32>, tensor<8x4xbf16>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%u: f32, %v: bf16, %sum: f32):
    %c = arith.extf %v : bf16 to f32
    %p = arith.mulf %u, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  %b = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %h : tensor<?x4xf32>, tensor<8x4xf16>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%u: f32, %v: f16, %sum: f32):
    %c = arith.extf %v : f16 to f32
    %p = arith.mulf %u, %c : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  %d = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x4xf32>, tensor<8x4xbf16>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%u: f32, %v: bf16, %most: f32):
    %c = arith.extf %v : bf16 to f32
    %p = arith.mulf %u, %c : f32
    %s = arith.maximumf %most, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %a, %b, %d : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
