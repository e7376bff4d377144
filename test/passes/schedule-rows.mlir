// RUN: heed-opt %s --split-input-file --attn-form-kernels --attn-to-halide | FileCheck %s

// x / sqrt(sum x^2), 100 wide, with 16 lanes: a turn of four vectors, two more vectors, both added; the sums of the
// lanes, four elements one by one; all of it inside the loop over the rows of one task.
// CHECK-LABEL: halide.pipeline @rms
// CHECK: %[[LANES:.*]] = halide.func "sum0_lanes" (%{{.*}} = "lane", %{{.*}} = "d0") : f32
// CHECK: halide.update %[[LANES]] over ("rb"
// CHECK: %[[REST:.*]] = halide.func "sum0_rest" (%{{.*}} = "lane", %{{.*}} = "d0") : f32
// CHECK: halide.update %[[REST]] over ("rw"
// CHECK: %[[JOINED:.*]] = halide.func "sum0_joined"
// CHECK-COUNT-4: halide.read %[[LANES]]
// CHECK: halide.read %[[REST]]
// CHECK: halide.update %[[SUM:.*]] over ("rl"
// CHECK: halide.read %[[JOINED]]
// CHECK: halide.update %[[SUM]] over ("rt"
// CHECK: halide.output %[[OUT:.*]]{{$}}
// CHECK-DAG: halide.split %[[OUT]], "d1" into ("d1", "d1v") by 16 tail GuardWithIf
// CHECK-DAG: halide.vectorize %[[OUT]], "d1v"
// CHECK-DAG: halide.split %[[OUT]], "d0" into ("task", "row") by 64 tail GuardWithIf
// CHECK-DAG: halide.parallel %[[OUT]], "task"
// CHECK-DAG: halide.compute_at %[[LANES]], %[[OUT]], "row"
// CHECK-DAG: halide.bound_extent %[[LANES]], "lane" extent %c64
// CHECK-DAG: halide.vectorize %[[LANES]] stage 1, "lane"
// CHECK-DAG: halide.vectorize %[[REST]] stage 1, "lane"
// CHECK-DAG: halide.vectorize %[[JOINED]], "lane"
// CHECK-DAG: halide.compute_at %[[SUM]], %[[OUT]], "row"
// What a quarter of the last cache does not hold is stored past it.
// CHECK-DAG: halide.stream_stores %[[OUT]] beyond 16777216
#full = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @rms(%x: tensor<?x100xf32>) -> tensor<?x100xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %N = tensor.dim %x, %c0 : tensor<?x100xf32>
  %e = tensor.empty(%N) : tensor<?x100xf32>
  %r = tensor.empty(%N) : tensor<?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%r : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x100xf32>) outs(%i : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %a : f32
    %y = arith.addf %o, %m : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  %n = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<?x100xf32>, tensor<?xf32>) outs(%e : tensor<?x100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = math.sqrt %b : f32
    %y = arith.divf %a, %q : f32
    linalg.yield %y : f32
  } -> tensor<?x100xf32>
  return %n : tensor<?x100xf32>
}
}

// -----

// Rows that may be longer than a page: the next one comes from memory while this one is computed, also where what reads it
// is computed inside of the output. A row is one turn of the loop; what is the same for all rows is not asked for.
// CHECK-LABEL: halide.pipeline @long
// CHECK-DAG: %[[X:.*]] = halide.buffer "a0" ("d0", "d1") : f32
// CHECK-DAG: halide.output %[[OUT:.*]]{{$}}
// CHECK-NOT: halide.prefetch_next
// CHECK: halide.prefetch_next %[[OUT]], %[[X]] at "d1" over %[[OUT]], "row"
// CHECK-NOT: halide.prefetch_next
#full = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
module attributes {halide.target = {name = "x86-64-v4", triple = "x86_64-unknown-linux-gnu", halide = "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, l3 = 67108864 : i64, cores = 2 : i64, features = ["avx2", "fma"]}} {
func.func @long(%x: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %N = tensor.dim %x, %c0 : tensor<?x?xf32>
  %c1 = arith.constant 1 : index
  %D = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%N, %D) : tensor<?x?xf32>
  %r = tensor.empty(%N) : tensor<?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%r : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%i : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %a : f32
    %y = arith.addf %o, %m : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  %n = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = math.sqrt %b : f32
    %y = arith.divf %a, %q : f32
    linalg.yield %y : f32
  } -> tensor<?x?xf32>
  return %n : tensor<?x?xf32>
}
}
