// Weights of a row block that are mixed of several numbers, and which a condition leaves out. The target is named.
// RUN: heed-opt %s --attn-form-kernels --attn-to-halide | FileCheck %s

// 256 queries of known sizes are tasks enough for tiles of two vectors, with 8 places of a product each. The mixed weight is computed once for a
// tile of queries, all 64 places of the values read it; absent it is a NaN that no live one is. The terms are multiply-adds under a mask.
// CHECK-LABEL: halide.pipeline @mixed_row_block
// CHECK: %[[S:.*]] = halide.func "sum0_tile"
// CHECK: %[[W:.*]] = halide.func "staged{{.*}}"
// CHECK: %[[X:.*]] = halide.read %[[S]]
// CHECK: %[[LIVE:.*]] = arith.cmpf ogt, %[[X]]
// CHECK: arith.addf
// CHECK: %[[NAN:.*]] = arith.cmpf uno
// CHECK: %[[BITS:.*]] = arith.select %[[NAN]], %c2143289344_i32
// CHECK: arith.select %[[LIVE]], %[[BITS]], %c2147483647_i32
// CHECK: halide.update %[[O:.*]] over ("r0"
// CHECK-NOT: halide.read %[[S]]
// CHECK: %[[OLD:.*]] = halide.read %[[O]]
// CHECK: %[[WEIGHT:.*]] = halide.read %[[W]]
// CHECK: %[[TERM:.*]] = arith.mulf %[[WEIGHT]], %{{.*}} fastmath<reassoc,contract>
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]], %[[TERM]] fastmath<reassoc,contract>
// CHECK: %[[THERE:.*]] = arith.cmpi slt
// CHECK: %[[NEXT:.*]] = arith.select %[[THERE]], %[[SUM]], %[[OLD]]
// CHECK: halide.yield %[[NEXT]]
// CHECK: halide.split %{{.*}}, "d1" into ("tile", "row") by 32
// CHECK: halide.compute_at %[[W]], %{{.*}}, "tile_d0"
// CHECK: "d2" into ("d2", "place") by 8

// Of 24 queries of four heads two vectors would leave too few tasks. A weight that is a number as it is read stays where it is.
// CHECK-LABEL: halide.pipeline @plain_row_block
// CHECK: %[[S:.*]] = halide.func "sum0_tile"
// CHECK-NOT: cmpf uno
// CHECK: halide.update %[[O:.*]] over ("r0"
// CHECK: %[[OLD:.*]] = halide.read %[[O]]
// CHECK: halide.read %[[S]]
// CHECK: %[[LIVE:.*]] = arith.cmpf ogt
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]], %{{.*}} fastmath<reassoc,contract>
// CHECK: arith.select %[[LIVE]], %[[SUM]], %[[OLD]]
// CHECK: halide.split %{{.*}}, "d1" into ("tile", "row") by 16
// CHECK: "d2" into ("d2", "place") by 16
#q = affine_map<(h, i, j, e) -> (h, i, e)>
#k = affine_map<(h, i, j, e) -> (h, j, e)>
#s = affine_map<(h, i, j, e) -> (h, i, j)>
#p = affine_map<(h, i, f, j) -> (h, i, j)>
#g = affine_map<(h, i, f, j) -> (i, j)>
#v = affine_map<(h, i, f, j) -> (h, j, f)>
#o = affine_map<(h, i, f, j) -> (h, i, f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
func.func @mixed(%q: tensor<4x256x8xf32>, %k: tensor<4x96x8xf32>, %g: tensor<256x96xf32>, %v: tensor<4x96x64xf32>, %a: f32) -> tensor<4x256x64xf32> attributes {attn.model} {
  %c0 = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<4x256x96xf32>
  %zs = linalg.fill ins(%c0 : f32) outs(%es : tensor<4x256x96xf32>) -> tensor<4x256x96xf32>
  %eo = tensor.empty() : tensor<4x256x64xf32>
  %zo = linalg.fill ins(%c0 : f32) outs(%eo : tensor<4x256x64xf32>) -> tensor<4x256x64xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x256x8xf32>, tensor<4x96x8xf32>) outs(%zs : tensor<4x256x96xf32>) attrs = {attn.row_block = 0 : i64} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.mulf %x, %y : f32
    %u = arith.addf %z, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x256x96xf32>
  %r = linalg.generic {indexing_maps = [#p, #g, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%s, %g, %v : tensor<4x256x96xf32>, tensor<256x96xf32>, tensor<4x96x64xf32>) outs(%zo : tensor<4x256x64xf32>) attrs = {attn.row_block = 0 : i64} {
  ^bb0(%x: f32, %y: f32, %w: f32, %z: f32):
    %live = arith.cmpf ogt, %x, %c0 : f32
    %b = arith.mulf %x, %a : f32
    %m = arith.addf %b, %y : f32
    %t = arith.mulf %m, %w : f32
    %n = arith.select %live, %t, %c0 : f32
    %u = arith.addf %z, %n : f32
    linalg.yield %u : f32
  } -> tensor<4x256x64xf32>
  return %r : tensor<4x256x64xf32>
}
func.func @plain(%q: tensor<4x24x8xf32>, %k: tensor<4x96x8xf32>, %v: tensor<4x96x64xf32>) -> tensor<4x24x64xf32> attributes {attn.model} {
  %c0 = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<4x24x96xf32>
  %zs = linalg.fill ins(%c0 : f32) outs(%es : tensor<4x24x96xf32>) -> tensor<4x24x96xf32>
  %eo = tensor.empty() : tensor<4x24x64xf32>
  %zo = linalg.fill ins(%c0 : f32) outs(%eo : tensor<4x24x64xf32>) -> tensor<4x24x64xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x24x8xf32>, tensor<4x96x8xf32>) outs(%zs : tensor<4x24x96xf32>) attrs = {attn.row_block = 0 : i64} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.mulf %x, %y : f32
    %u = arith.addf %z, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x24x96xf32>
  %r = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%s, %v : tensor<4x24x96xf32>, tensor<4x96x64xf32>) outs(%zo : tensor<4x24x64xf32>) attrs = {attn.row_block = 0 : i64} {
  ^bb0(%x: f32, %w: f32, %z: f32):
    %live = arith.cmpf ogt, %x, %c0 : f32
    %t = arith.mulf %x, %w : f32
    %n = arith.select %live, %t, %c0 : f32
    %u = arith.addf %z, %n : f32
    linalg.yield %u : f32
  } -> tensor<4x24x64xf32>
  return %r : tensor<4x24x64xf32>
}
}
