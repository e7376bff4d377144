// RUN: heed-opt %s --attn-relax-math --remarks-filter=attn-relax-math 2>&1 | FileCheck %s

// CHECK: 3 operations of kernel 'work' may leave the error bounds
// CHECK: [Missed] {{.*}}kernel 'largest' has no sum, difference, product or quotient of its own in f32

// The host is left alone.
// CHECK-LABEL: func.func @model(
// CHECK: arith.mulf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f32
func.func @model(%x: tensor<4xf32>, %c: f32) -> tensor<4xf32> attributes {attn.model} {
  %d = arith.mulf %c, %c : f32
  %y = func.call @work(%x, %d) : (tensor<4xf32>, f32) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func private @work(
// CHECK: arith.subf %{{.*}} fastmath<reassoc,contract> : f32
// CHECK: arith.divf %{{.*}} fastmath<reassoc,contract> : f32
// CHECK: arith.addf %{{.*}} fastmath<reassoc,nnan,contract> : f32
// Neither comparisons nor tables in f64.
// CHECK: arith.cmpf ogt, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f32
// CHECK: arith.mulf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f64
func.func private @work(%x: tensor<4xf32>, %c: f32) -> tensor<4xf32> attributes {attn.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.subf %in, %c : f32
    %b = arith.divf %a, %c : f32
    %d = arith.addf %b, %c fastmath<nnan> : f32
    %p = arith.cmpf ogt, %d, %c : f32
    %w = arith.extf %d : f32 to f64
    %v = arith.mulf %w, %w : f64
    %n = arith.truncf %v : f64 to f32
    %s = arith.select %p, %n, %d : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func private @largest(
// CHECK: arith.maximumf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f32
func.func private @largest(%x: f32, %y: f32) -> f32 attributes {attn.kernel} {
  %z = arith.maximumf %x, %y : f32
  return %z : f32
}
