// Which family schedules which kernel, and the parts of the schedule that make it what it is.
// RUN: heed-opt %s --attn-to-halide | FileCheck %s
// RUN: heed-opt %s --attn-to-halide --remarks-filter='attn-to-halide' 2>&1 | FileCheck %s --check-prefix=REMARK

#x = affine_map<(n, o, i) -> (n, i)>
#w = affine_map<(n, o, i) -> (o, i)>
#y = affine_map<(n, o, i) -> (n, o)>
#id = affine_map<(n, o) -> (n, o)>
#row = affine_map<(n, o) -> (n)>
#col = affine_map<(n, o) -> (o)>

module attributes {halide.target = {vector_bits = 512 : i64, vector_registers = 32 : i64}} {

// A register tile of 8 rows by 3 vectors; the weights are packed in panels of 48 columns.
// REMARK-DAG: linear has the contraction schedule
// CHECK-LABEL: halide.pipeline @linear
// CHECK: %[[PANEL:.*]] = halide.func "panel0" (%{{.*}} = "lane", %{{.*}} = "k0", %{{.*}} = "panel") : f32
// CHECK: %[[ACC:.*]] = halide.func "sum0"
// CHECK: halide.update %[[ACC]]
// CHECK: halide.mod
// CHECK: %[[OUT:.*]] = halide.func "f1"
// CHECK: halide.compute_root %[[PANEL]]
// CHECK: halide.split %[[OUT]], "d1" into{{ ?}}("np", "ni") by 48
// CHECK: halide.split %[[OUT]], "d0" into{{ ?}}("mb", "mi") by 8
// CHECK: halide.compute_at %[[ACC]], %[[OUT]], "mb"
// CHECK: halide.vectorize %[[ACC]] stage 1, "nv"
// CHECK: halide.unroll %[[ACC]] stage 1, "nj"
// CHECK: halide.unroll %[[ACC]] stage 1, "d0"
func.func private @linear(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %n: index) -> tensor<?x96xf32> attributes {attn.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
  %s = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xf32>, tensor<96x64xf32>) outs(%f : tensor<?x96xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %m = arith.mulf %p, %q : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x96xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<?x96xf32>) outs(%e : tensor<?x96xf32>) {
  ^bb0(%p: f32, %q: f32):
    %r = math.tanh %p : f32
    linalg.yield %r : f32
  } -> tensor<?x96xf32>
  return %t : tensor<?x96xf32>
}

// A matrix that is an input of the call is packed by none where rows are few: lanes are terms, a tile of 4 rows by 4 columns has a
// vector of partial sums each.
// REMARK-DAG: unpacked has the dot products schedule
// CHECK-LABEL: halide.pipeline @unpacked
// CHECK-NOT: "panel0"
// CHECK: %[[SUM:.*]] = halide.func "sum0"
// CHECK: %[[PARTIAL:.*]] = halide.func "sum0_lanes" ({{.*}} = "lane", {{.*}} = "d1", {{.*}} = "d0")
// CHECK: halide.update %[[PARTIAL]]
// CHECK-DAG: arith.minsi %d1
// CHECK-DAG: arith.minsi %d0
// CHECK: %[[OUT:.*]] = halide.func "sum0_out"
// CHECK: halide.split %[[OUT]], "d1" into{{ ?}}("nt", "ni") by 32
// CHECK: halide.split %[[OUT]], "ni" into{{ ?}}("nb", "nj") by 4
// CHECK: halide.split %[[OUT]], "d0" into{{ ?}}("mb", "mi") by 4
// CHECK: halide.compute_at %[[PARTIAL]], %[[OUT]], "mb"
// CHECK: halide.vectorize %[[PARTIAL]] stage 1, "lane"
// CHECK: halide.unroll %[[PARTIAL]] stage 1, "d1"
// CHECK: halide.unroll %[[PARTIAL]] stage 1, "d0"
// CHECK: halide.atomic %[[SUM]] stage 1
func.func private @unpacked(%x: tensor<8x64xf32>, %w: tensor<?x64xf32>, %o: index) -> tensor<8x?xf32> attributes {attn.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%o) : tensor<8x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x?xf32>) -> tensor<8x?xf32>
  %s = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xf32>, tensor<?x64xf32>) outs(%f : tensor<8x?xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %m = arith.mulf %p, %q : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<8x?xf32>
  return %s : tensor<8x?xf32>
}

// 32 columns would waste a third of a panel of 48: two vectors and more rows instead.
// CHECK-LABEL: halide.pipeline @narrow
// CHECK: by 32
// CHECK: halide.split %[[OUT:.*]], "d0" into{{ ?}}("mb", "mi") by 12
// The epilogue takes the tile from its registers: no loop around it.
// CHECK: halide.unroll %[[OUT]], "nj"
// CHECK-NEXT: halide.unroll %[[OUT]], "mi"
func.func private @narrow(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>, %n: index) -> tensor<?x32xf32> attributes {attn.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xf32>, tensor<32x64xf32>) outs(%f : tensor<?x32xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %m = arith.mulf %p, %q : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// A softmax stays in its row: partial results per lane, and the exponentials stored because two stages read them.
// REMARK-DAG: soft has the rows schedule
// CHECK-LABEL: halide.pipeline @soft
// CHECK-DAG: %[[LANES:.*]] = halide.func "top0_lanes" (%{{.*}} = "lane", %{{.*}} = "d0") : f32
// CHECK-DAG: %[[WEIGHT:.*]] = halide.func "weight1"
// CHECK-DAG: %[[SOFT:.*]] = halide.func "softmax3"
// CHECK: halide.compute_at %[[WEIGHT]], %[[SOFT]], "row"
// CHECK: halide.compute_at %[[LANES]], %[[SOFT]], "row"
// CHECK: halide.vectorize %[[LANES]] stage 1, "lane"
func.func private @soft(%x: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {attn.kernel} {
  %p, %live = attn.softmax %x axes([1]) : tensor<?x?xf32>, tensor<?x?xi1>
  return %p : tensor<?x?xf32>
}

// Sums down the columns: lanes are columns.
// REMARK-DAG: down has the rows schedule
// CHECK-LABEL: halide.pipeline @down
// CHECK: halide.vectorize %{{.*}} stage 1, "d0v"
func.func private @down(%x: tensor<?x?xf32>, %m: index) -> tensor<?xf32> attributes {attn.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %r = arith.addf %acc, %p : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %s : tensor<?xf32>
}

// REMARK-DAG: plain has the elementwise schedule
// CHECK-LABEL: halide.pipeline @plain
// CHECK: halide.split %[[F:.*]], "d1" into{{ ?}}("d1", "d1v") by 16 tail GuardWithIf
// CHECK: halide.vectorize %[[F]], "d1v"
// CHECK: halide.parallel %[[F]], "d0"
func.func private @plain(%x: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> attributes {attn.kernel} {
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%p: f32, %acc: f32):
    %r = math.absf %p : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// A sum over everything has no rows: the schedule that is right for every kernel.
// REMARK-DAG: all has the generic schedule
// CHECK-LABEL: halide.pipeline @all
func.func private @all(%x: tensor<?x?xf32>) -> tensor<f32> attributes {attn.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#id, affine_map<(n, o) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%f : tensor<f32>) {
  ^bb0(%p: f32, %acc: f32):
    %r = arith.addf %acc, %p : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}
}
