// RUN: heed-opt %s --attn-form-kernels --attn-to-halide --split-input-file | FileCheck %s

// linear: y[n,o] = relu(b[o] + sum_i x[n,i] w[o,i]) with 32 registers of 16 lanes. The weight is packed in panels of 48
// columns, the tile is 8 rows by 3 vectors, rows past the end read the last row, the epilogue is the output's body.
// CHECK-LABEL: halide.pipeline @linear
// CHECK: %[[X:.*]] = halide.buffer "a0"
// CHECK: %[[W:.*]] = halide.buffer "a1"
// CHECK: %[[PANEL:.*]] = halide.func "panel0" (%{{.*}} = "lane", %[[K:.*]] = "k0", %{{.*}} = "panel") : f32 {
// CHECK: %[[O:.*]] = arith.minsi
// CHECK-NEXT: halide.read %[[W]][%[[K]], %[[O]]]
// CHECK: %[[SUM:.*]] = halide.func "sum0"
// CHECK: halide.update %[[SUM]] over ("r0" {{.*}} set (%[[D1:.*]], %[[D0:.*]], %[[R:.*]]) {
// CHECK: %[[ROW:.*]] = arith.minsi %[[D0]]
// CHECK: halide.read %[[X]][%[[R]], %[[ROW]]]
// CHECK: %[[LANE:.*]] = halide.mod %[[D1]]
// CHECK: halide.read %[[PANEL]][%[[LANE]], %[[R]], %{{.*}}]
// CHECK-NOT: halide.read %[[W]]
// CHECK: %[[Y:.*]] = halide.func "f1"
// CHECK: halide.output %[[Y]]
// CHECK-DAG: halide.set_stride %[[X]], 1
// CHECK-DAG: halide.set_stride %[[W]], 1
// CHECK-DAG: halide.compute_root %[[PANEL]]
// CHECK-DAG: halide.split %[[Y]], {{.*}} into ("np", "ni") by 48 tail GuardWithIf
// CHECK-DAG: halide.split %[[Y]], {{.*}} into ("mb", "mi") by 8 tail GuardWithIf
// 32 panels are tasks enough for two cores: each has as many rows as fit in three quarters of L2, 1.5 MiB / (384 * 4 bytes).
// CHECK-DAG: halide.split %[[Y]], "mb" into ("mt", "mb") by 128 tail GuardWithIf
// CHECK-DAG: halide.fuse %[[Y]], ("np", "mt") into "np_mt"
// CHECK-DAG: halide.parallel %[[Y]], "np_mt"
// CHECK-DAG: halide.compute_at %[[SUM]], %[[Y]], "mb"
// The weight is beyond L2: 16 rows and fewer read it as four streams, one from each quarter of the sum.
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %{{.*}}, %c16_i32
// CHECK: halide.specialize %[[SUM]] stage 1 if %[[FEW]] {
// CHECK-NEXT: halide.split %[[SUM]] stage 1, "r0" into ("stream", "r0") by 96
// CHECK: halide.reorder %[[SUM]] stage 1, ("nv", "nj", "d0", "stream", "r0")
// CHECK: halide.unroll %[[SUM]] stage 1, "stream"
// CHECK-NEXT: }
// CHECK-DAG: halide.unroll %[[SUM]] stage 1, "nj"
// CHECK-DAG: halide.unroll %[[SUM]] stage 1, "d0"
// CHECK-DAG: halide.unroll %[[SUM]] stage 1, "ru"
// The next panel (384 * 48 elements) comes while this one is computed: a turn of four steps reads 12 lines and asks for one.
// CHECK-DAG: halide.prefetch_lines %[[SUM]] stage 1, %[[PANEL]] at "r0" ahead 18432 over %[[Y]], "mb" by 12
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#b = affine_map<(d0, d1) -> (d1)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @linear(%x: tensor<?x384xf32>, %w: tensor<1536x384xf32>, %bias: tensor<1536xf32>) -> tensor<?x1536xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %N = tensor.dim %x, %c0 : tensor<?x384xf32>
  %e = tensor.empty(%N) : tensor<?x1536xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x1536xf32>) -> tensor<?x1536xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x384xf32>, tensor<1536x384xf32>) outs(%f : tensor<?x1536xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x1536xf32>
  %q = linalg.generic {indexing_maps = [#id, #b, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %bias : tensor<?x1536xf32>, tensor<1536xf32>) outs(%e : tensor<?x1536xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.addf %a, %b : f32
    %r = arith.maximumf %m, %zero : f32
    linalg.yield %r : f32
  } -> tensor<?x1536xf32>
  return %q : tensor<?x1536xf32>
}
}

// -----

// 16 registers of 8 lanes, 64 columns, and 3 rows only: 8 rows by one vector waste nothing, and there are no 8 rows.
// CHECK-LABEL: halide.pipeline @small
// CHECK-DAG: halide.split %[[Y:.*]], "d1" into ("np", "ni") by 8 tail GuardWithIf
// CHECK-DAG: halide.split %[[Y]], "d0" into ("mb", "mi") by 3 tail GuardWithIf
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {halide.target = {name = "x86-64-v3", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-f16c-fma-sse41", vector_bits = 256 : i64, vector_registers = 16 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @small(%x: tensor<3x5xf32>, %w: tensor<40x5xf32>) -> tensor<3x40xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x40xf32>) -> tensor<3x40xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x5xf32>, tensor<40x5xf32>) outs(%f : tensor<3x40xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<3x40xf32>
  return %p : tensor<3x40xf32>
}
}

// -----

// An operand that depends on rows and columns is read in full tiles by this schedule: past its end. So not this one.
// CHECK-LABEL: halide.pipeline @both
// CHECK-NOT: "panel0"
// CHECK: halide.output
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d1, d2)>
#m = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @both(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>, %m: tensor<?x40x64xf32>) -> tensor<?x40xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %N = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%N) : tensor<?x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #m, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w, %m : tensor<?x64xf32>, tensor<40x64xf32>, tensor<?x40x64xf32>) outs(%f : tensor<?x40xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %acc: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.mulf %1, %c : f32
    %r = arith.addf %acc, %2 : f32
    linalg.yield %r : f32
  } -> tensor<?x40xf32>
  return %p : tensor<?x40xf32>
}
}

// -----

// A parameter is packed by a pipeline of its own, which the host calls before; the kernel reads panels, and no weight.
// CHECK-LABEL: func.func @weights
// CHECK: %[[W:.*]] = attn.param "w" : tensor<50x24xf32>
// CHECK: %[[P:.*]] = halide.call @weights_contraction_pack(%[[W]] : tensor<50x24xf32>) outs(%{{.*}} : tensor<1x24x64xf32>) -> tensor<1x24x64xf32>
// CHECK: halide.call @weights_contraction(%{{.*}}, %{{.*}} : tensor<?x24xf32>, index) with("{{.*}}" = %[[P]] : tensor<1x24x64xf32>)
// CHECK-LABEL: halide.pipeline @weights_contraction_pack
// CHECK: %[[PANEL:.*]] = halide.func "panel0"
// CHECK: halide.output %[[PANEL]]
// CHECK: halide.vectorize %[[PANEL]], "lanev"
// CHECK-LABEL: halide.pipeline @weights_contraction
// CHECK-NOT: halide.buffer "a1"
// CHECK: halide.buffer "panel0" ("d0", "d1", "d2") : f32
// CHECK-NOT: halide.compute_root
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @weights(%x: tensor<?x24xf32>) -> tensor<?x50xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %N = tensor.dim %x, %c0 : tensor<?x24xf32>
  %w = attn.param "w" : tensor<50x24xf32>
  %e = tensor.empty(%N) : tensor<?x50xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x50xf32>) -> tensor<?x50xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x24xf32>, tensor<50x24xf32>) outs(%f : tensor<?x50xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x50xf32>
  return %p : tensor<?x50xf32>
}
}

// -----

// An array whose rows are as wide as a register tile is a panel as it is; a transposed one is not.
// CHECK-LABEL: halide.pipeline @rows_contraction
// CHECK-NOT: "panel0"
// CHECK: halide.bound_extent %{{.*}}, "d1" extent %c64
// CHECK-LABEL: halide.pipeline @columns_contraction
// CHECK: halide.func "panel0"
#a = affine_map<(d0, d1, d2) -> (d2, d0)>
#rows = affine_map<(d0, d1, d2) -> (d2, d1)>
#columns = affine_map<(d0, d1, d2) -> (d1, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @rows(%a: tensor<?x?xf32>, %b: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %M = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%M) : tensor<?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.generic {indexing_maps = [#a, #rows, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<?x?xf32>, tensor<?x64xf32>) outs(%f : tensor<?x64xf32>) {
  ^bb0(%x: f32, %w: f32, %acc: f32):
    %m = arith.mulf %x, %w : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  return %p : tensor<?x64xf32>
}
func.func @columns(%a: tensor<?x?xf32>, %b: tensor<64x?xf32>) -> tensor<?x64xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %M = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%M) : tensor<?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.generic {indexing_maps = [#a, #columns, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<?x?xf32>, tensor<64x?xf32>) outs(%f : tensor<?x64xf32>) {
  ^bb0(%x: f32, %w: f32, %acc: f32):
    %m = arith.mulf %x, %w : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  return %p : tensor<?x64xf32>
}
}

// -----

// Products of a batch side by side (experts, groups of a linear map): both operands have the dim before the columns, so that it is no row. Rows are the
// first dim, which a[n,m,i] alone has: it is dim 1 of the sum, and the output keeps its order.
// CHECK-LABEL: halide.pipeline @experts_contraction
// CHECK: %[[A:.*]] = halide.buffer "a0"
// CHECK: %[[PANEL:.*]] = halide.func "panel0" (%{{.*}} = "lane", %{{.*}} = "k0", %{{.*}} = "panel", %{{.*}} = "o2") : f32 {
// CHECK: %[[SUM:.*]] = halide.func "sum0" (%{{.*}} = "d2", %{{.*}} = "d0", %{{.*}} = "d1") : f32 {
// CHECK: halide.update %[[SUM]] over ("r0" {{.*}} set (%[[D2:.*]], %[[D0:.*]], %[[D1:.*]], %[[R:.*]]) {
// CHECK: %[[ROW:.*]] = arith.minsi %[[D0]]
// CHECK: halide.read %[[A]][%[[R]], %[[D1]], %[[ROW]]]
// CHECK: halide.read %[[PANEL]][%{{.*}}, %[[R]], %{{.*}}, %[[D1]]]
// CHECK: %[[Y:.*]] = halide.func "{{.*}}" (%[[Y2:.*]] = "d2", %[[Y1:.*]] = "d1", %[[Y0:.*]] = "d0") : f32 {
// CHECK: halide.read %[[SUM]][%[[Y2]], %[[Y0]], %[[Y1]]]
// CHECK: halide.output %[[Y]]
// CHECK-DAG: halide.split %[[Y]], "d0" into ("mb", "mi") by 6
// CHECK-DAG: halide.reorder %[[Y]], ("nv", "nj", "mi", "mb", "np", "mt", "d1")
// CHECK-DAG: halide.bound_extent %[[SUM]], "d0" extent %c6_i32
// CHECK-DAG: halide.bound_extent %[[SUM]], "d1" extent %c1_i32
#a = affine_map<(n, m, o, i) -> (n, m, i)>
#w = affine_map<(n, m, o, i) -> (m, o, i)>
#y = affine_map<(n, m, o, i) -> (n, m, o)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @experts(%a: tensor<?x4x96xf32>, %w: tensor<4x64x96xf32>) -> tensor<?x4x64xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %N = tensor.dim %a, %c0 : tensor<?x4x96xf32>
  %e = tensor.empty(%N) : tensor<?x4x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4x64xf32>) -> tensor<?x4x64xf32>
  %p = linalg.generic {indexing_maps = [#a, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %w : tensor<?x4x96xf32>, tensor<4x64x96xf32>) outs(%f : tensor<?x4x64xf32>) {
  ^bb0(%x: f32, %v: f32, %acc: f32):
    %m = arith.mulf %x, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x4x64xf32>
  return %p : tensor<?x4x64xf32>
}
}
