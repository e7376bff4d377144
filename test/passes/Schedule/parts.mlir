// A row whose value depends on `e < t` is computed in two parts without the condition: their reads are plain vectors, no
// limits stand around their coordinates along the row.
// RUN: heed-opt %s --attn-form-kernels --attn-to-halide --cse | FileCheck %s
// RUN: %python %S/Inputs/parts.py %s %t

// CHECK: %[[X:.*]] = halide.buffer {{.*}} ("d0", "d1", "d2") : f32
// CHECK: %[[PARTS:.*]] = halide.func "f0_parts"
// CHECK-NEXT: halide.undef
// CHECK: halide.update %[[PARTS]] over ("left" from %{{.*}} extent %[[END:.*]]) at ({{.*}}, %[[LEFT:.*]]) {
// CHECK-NEXT: halide.yield %[[LEFT]], %d1, %d0
// CHECK-NOT: select
// CHECK: %[[NEXT:.*]] = arith.addi %[[LEFT]], %{{c20_i32.*}}
// CHECK-NOT: select
// CHECK: halide.read %[[X]][%[[NEXT]],
// CHECK: halide.update %[[PARTS]] over ("right" from %[[END]] extent
// CHECK-NOT: select
// CHECK: %[[F:.*]] = halide.func "f0"
// CHECK-NEXT: %[[V:.*]] = halide.read %[[PARTS]]
// CHECK-NEXT: halide.yield %[[V]]
// CHECK: halide.parallel %[[F]], "task"
// CHECK: halide.compute_at %[[PARTS]], %[[F]], "row"
// CHECK: halide.vectorize %[[PARTS]] stage 1, "leftv"
// CHECK: halide.vectorize %[[PARTS]] stage 2, "rightv"
module attributes {halide.target = {name = "x86-64-v3", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-f16c-fma-sse41", vector_bits = 256 : i64, vector_registers = 16 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @m(%x: tensor<?x?x?xf32>, %c: tensor<?x20xf32>) -> tensor<?x?x?xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %B = tensor.dim %x, %c0 : tensor<?x?x?xf32>
  %N = tensor.dim %x, %c1 : tensor<?x?x?xf32>
  %E = tensor.dim %x, %c2 : tensor<?x?x?xf32>
  %e = tensor.empty(%B, %N, %E) : tensor<?x?x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, n, e) -> (b, n, e)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<?x?x?xf32>) {
  ^bb0(%o: f32):
    %t = arith.constant 20 : index
    %b = linalg.index 0 : index
    %n = linalg.index 1 : index
    %i = linalg.index 2 : index
    %own = tensor.extract %x[%b, %n, %i] : tensor<?x?x?xf32>
    %first = arith.cmpi slt, %i, %t : index
    %v = scf.if %first -> (f32) {
      %j = arith.addi %i, %t : index
      %other = tensor.extract %x[%b, %n, %j] : tensor<?x?x?xf32>
      %w = tensor.extract %c[%n, %i] : tensor<?x20xf32>
      %p = arith.mulf %other, %w : f32
      %d = arith.subf %own, %p : f32
      scf.yield %d : f32
    } else {
      %j = arith.subi %i, %t : index
      %other = tensor.extract %x[%b, %n, %j] : tensor<?x?x?xf32>
      %w = tensor.extract %c[%n, %j] : tensor<?x20xf32>
      %p = arith.mulf %other, %w : f32
      %d = arith.addf %own, %p : f32
      scf.yield %d : f32
    }
    linalg.yield %v : f32
  } -> tensor<?x?x?xf32>
  return %y : tensor<?x?x?xf32>
}
}
