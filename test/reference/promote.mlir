// Sums are f64; what feeds a comparison is rounded to f32 first; the boundary keeps its types unless results may not.
// RUN: heed-opt %s -reference-promote | FileCheck %s
// RUN: heed-opt %s -reference-promote=f64-results=true | FileCheck %s --check-prefix=WIDE
// RUN: heed-opt %s -reference-promote=nudge=0.5 | FileCheck %s --check-prefix=NUDGE

// CHECK-LABEL: func @f(%{{.*}}: tensor<4xf32>, %{{.*}}: f32) -> (tensor<4xf32>, i1)
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : f64
// CHECK: %[[N:.*]] = arith.truncf %[[S]] : f64 to f32
// CHECK: %[[R:.*]] = arith.extf %[[N]] : f32 to f64
// CHECK: arith.cmpf olt, %[[R]], %{{.*}} : f64
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4xf64>) outs(%{{.*}} : tensor<4xf32>)
// WIDE: -> (tensor<4xf64>, i1)
func.func @f(%x: tensor<4xf32>, %y: f32) -> (tensor<4xf32>, i1) {
  %two = arith.constant 2.0 : f32
  %s = arith.addf %y, %two : f32
  %c = arith.cmpf olt, %s, %y : f32
  %e = tensor.empty() : tensor<4xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32):
      %m = arith.mulf %a, %s : f32
      linalg.yield %m : f32
  } -> tensor<4xf32>
  return %o, %c : tensor<4xf32>, i1
}

// A cast to f16 stays a rounding, one from a table in f64 to f32 too; f16 arithmetic is none.
// CHECK-LABEL: func @casts
// CHECK: arith.truncf %{{.*}} : f64 to f16
// CHECK: %[[T:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK-NEXT: arith.extf %[[T]] : f32 to f64
func.func @casts(%x: f32, %t: f64) -> (f16, f32) {
  %h = arith.truncf %x : f32 to f16
  %r = arith.truncf %t : f64 to f32
  %s = arith.addf %r, %x : f32
  return %h, %s : f16, f32
}

// What was computed is nudged before it is rounded to 16 bits; what was given and only changes its type is not.
// NUDGE-LABEL: func @computed
// NUDGE-DAG: %[[MORE:.*]] = arith.constant 1.500000e+00 : f64
// NUDGE-DAG: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f64
// NUDGE: %[[NEAR:.*]] = arith.mulf %[[SUM]], %[[MORE]] : f64
// NUDGE: %[[F32:.*]] = arith.truncf %[[NEAR]] : f64 to f32
// NUDGE: %[[F64:.*]] = arith.extf %[[F32]] : f32 to f64
// NUDGE: arith.truncf %[[F64]] : f64 to bf16
func.func @computed(%x: f32) -> (bf16, f32) {
  %s = arith.addf %x, %x : f32
  %h = arith.truncf %s : f32 to bf16
  return %h, %s : bf16, f32
}

// NUDGE-LABEL: func @given
// NUDGE-NOT: arith.mulf
// NUDGE: return
func.func @given(%x: tensor<4xf32>, %y: f16) -> (tensor<4xf16>, bf16) {
  %e = tensor.empty() : tensor<4xf16>
  %o = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf16>) {
    ^bb0(%a: f32, %b: f16):
      %h = arith.truncf %a : f32 to f16
      linalg.yield %h : f16
  } -> tensor<4xf16>
  %wide = arith.extf %y : f16 to f32
  %narrow = arith.truncf %wide : f32 to bf16
  return %o, %narrow : tensor<4xf16>, bf16
}
