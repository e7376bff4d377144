// The row-block schedule: every func is stored for a tile of queries, lanes are queries, no buffer spans all queries.
// The target is named, so that the numbers below do not depend on the machine.
// RUN: heed-opt %s --attn-form-kernels --attn-to-halide | FileCheck %s

#q4 = affine_map<(h, i, j, e) -> (h, i, e)>
#k4 = affine_map<(h, i, j, e) -> (h, j, e)>
#s4 = affine_map<(h, i, j, e) -> (h, i, j)>
#mixed = affine_map<(h, i, j, a) -> (a, i, j)>
#mix = affine_map<(h, i, j, a) -> (a, h)>
#v4 = affine_map<(h, i, f, j) -> (h, j, f)>
#p4 = affine_map<(h, i, f, j) -> (h, i, j)>
#o4 = affine_map<(h, i, f, j) -> (h, i, f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
// One kernel, and host code without a tensor of scores.
// CHECK-LABEL: func.func @talking
// CHECK-NOT: tensor<4x?x?xf32>
// CHECK: halide.call @talking_row_block
// CHECK-LABEL: halide.pipeline @talking_row_block
// The queries are transposed once per tile.
// CHECK: %[[Q:.*]] = halide.func "staged{{.*}}" (%{{.*}} = "q"
// Scores: a register tile, and its copy, which holds the division that all terms share.
// CHECK: %[[SUM:.*]] = halide.func "sum0"
// CHECK: halide.update %[[SUM]]
// CHECK-NOT: arith.divf
// CHECK: arith.mulf {{.*}} fastmath<reassoc,contract>
// CHECK: %[[S:.*]] = halide.func "sum0_tile"
// CHECK: arith.divf
// CHECK: %[[O:.*]] = halide.func "sum{{.*}}_out"
// A task is sixteen queries, of all heads.
// CHECK: halide.split %[[O]], "d1" into ("tile", "row") by 16
// CHECK: halide.parallel %[[O]], "tile"
// CHECK: halide.compute_at %[[Q]], %[[O]], "tile"
// CHECK: halide.compute_at %[[SUM]], %[[S]], "d2"
// CHECK: halide.reorder_storage %[[SUM]], ("d1", "d2", "d0")
// CHECK: halide.vectorize %[[SUM]] stage 1, "d1"
// CHECK: halide.unroll %[[SUM]] stage 1, "d2"
// CHECK: halide.compute_at %[[S]], %[[O]], "tile"
// CHECK: halide.split %[[S]], "d2" into ("d2", "place") by 16
// CHECK-NOT: compute_root
func.func @talking(%q: tensor<4x?x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %mix: tensor<4x4xf32>, %n: index, %m: index, %scale: f32) -> tensor<4x?x8xf32> attributes {attn.model} {
  %c0 = arith.constant 0.0 : f32
  %es = tensor.empty(%n, %m) : tensor<4x?x?xf32>
  %zs = linalg.fill ins(%c0 : f32) outs(%es : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %eo = tensor.empty(%n) : tensor<4x?x8xf32>
  %zo = linalg.fill ins(%c0 : f32) outs(%eo : tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  %s = linalg.generic {indexing_maps = [#q4, #k4, #s4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x?x8xf32>, tensor<4x?x8xf32>) outs(%zs : tensor<4x?x?xf32>) attrs = {attn.row_block = 0 : i64} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.mulf %x, %y : f32
    %d = arith.divf %t, %scale : f32
    %u = arith.addf %z, %d : f32
    linalg.yield %u : f32
  } -> tensor<4x?x?xf32>
  %l = linalg.generic {indexing_maps = [#mixed, #mix, #s4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%s, %mix : tensor<4x?x?xf32>, tensor<4x4xf32>) outs(%zs : tensor<4x?x?xf32>) attrs = {attn.row_block = 0 : i64} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.mulf %x, %y : f32
    %u = arith.addf %z, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x?x?xf32>
  %p, %live = attn.softmax %l axes([2]) {attn.row_block = 0 : i64} : tensor<4x?x?xf32>, tensor<4x?x?xi1>
  %o = linalg.generic {indexing_maps = [#p4, #v4, #o4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<4x?x?xf32>, tensor<4x?x8xf32>) outs(%zo : tensor<4x?x8xf32>) attrs = {attn.row_block = 0 : i64} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %t = arith.mulf %x, %y : f32
    %u = arith.addf %z, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x?x8xf32>
  return %o : tensor<4x?x8xf32>
}
}
