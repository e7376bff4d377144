// The streaming schedule: lanes are queries, one tuple state, full and partial key blocks as two updates, no N x M buffer.
// The target is named, so that the numbers below do not depend on the machine.
// RUN: heed-opt %s --attn-choose-algorithm --attn-stream-attention --attn-to-halide | FileCheck %s

#q = affine_map<(b,h,i,j,e,f) -> (b,h,i,e)>
#k = affine_map<(b,h,i,j,e,f) -> (b,h,j,e)>
#v = affine_map<(b,h,i,j,e,f) -> (b,h,j,f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
// CHECK-LABEL: halide.pipeline @k0 attributes
// The queries, scaled and transposed once per tile of 2 vectors of 16 lanes: rows of a square of 16 x 16, shuffled four times.
// CHECK: %[[ROWS:.*]] = halide.func "q0_rows" (%{{.*}} = "x", %{{.*}} = "ta", %{{.*}} = "tb"
// CHECK: arith.constant 32 : i32
// CHECK: halide.func "q0_turn1"
// CHECK: %[[EVEN:.*]] = halide.read %[[ROWS]]
// CHECK: %[[ODD:.*]] = halide.read %[[ROWS]]
// CHECK: arith.select %{{.*}}, %[[EVEN]], %[[ODD]]
// CHECK: %[[TURNED:.*]] = halide.func "q0_turn4"
// CHECK: %[[Q:.*]] = halide.func "q0" (%{{.*}} = "ii", %{{.*}} = "e4"
// CHECK: halide.read %[[TURNED]]
// A full block: scores without a mask, in tuples of eight with their maximum.
// CHECK: %[[S:.*]] = halide.func "s_full" ({{.*}}) : f32, f32, f32, f32, f32, f32, f32, f32, f32 {
// CHECK-NOT: arith.select %{{.*}}-3.40282347E+38
// CHECK: %[[PV:.*]] = halide.func "pv_full"
// A partial block selects the product of an absent key away: -1.0 marks it, and every live weight has bits above.
// CHECK: halide.func "pv_part"
// CHECK: %[[LIVE:.*]] = arith.cmpi slt
// CHECK-NEXT: arith.select %[[LIVE]]
// Eight accumulators, the maximum and the sum are one state, of no key at first.
// CHECK: %[[ST:.*]] = halide.func "st" ({{.*}}) : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
// CHECK-NOT: halide.read
// The loop over key blocks is trimmed to what the causal mask fills.
// CHECK: halide.update %[[ST]] over ("rk" from %{{.*}} extent %{{.*}}) where
// CHECK: arith.minsi
// CHECK: arith.cmpi sle
// CHECK: halide.update %[[ST]] over ("rk"
// A NaN among the sums: the tile gives up.
// CHECK: %[[SUMS:.*]] = halide.func "sums" ({{.*}}) : f32
// CHECK: halide.update %[[SUMS]] over ("rd"
// CHECK: halide.give_up
// One task is a tile of queries of one head; where K and V are beyond L2 (524288 numbers), 16 of them, if enough tasks are left.
// CHECK: halide.split %[[O:.*]], "d2" into ("tile", "row") by 32
// CHECK: %[[HELD:.*]] = arith.floordivsi %c524288_i32
// CHECK: %[[BEYOND:.*]] = arith.cmpi slt, %[[HELD]]
// CHECK: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK: %[[MOST:.*]] = arith.constant 16 : i32
// CHECK: arith.floordivsi %{{.*}}, %[[MOST]]
// CHECK: %[[MANY:.*]] = arith.maxsi %[[TWO]]
// CHECK: %[[TI:.*]] = arith.select %[[BEYOND]], %[[MANY]]
// CHECK: halide.split %[[O]], "tile" into ("task", "ti") by %[[TI]]
// CHECK: halide.parallel %[[O]], "task_d1_d0"
// A square is computed in registers: its rows as vectors, its shuffles two vectors at a time.
// CHECK: halide.compute_at %[[ROWS]], %[[Q]], "e4"
// CHECK-NEXT: halide.split %[[ROWS]], "x" into ("xo", "xi") by 16
// CHECK: halide.bound_extent %[[ROWS]], "x" extent %c256_i32
// The register tile: eight keys by two vectors, unrolled; reduction innermost.
// CHECK: halide.compute_at %[[PV]], %[[ST]], "dt"
// CHECK: halide.reorder %[[PV]] stage 1, ("iv", "iu", "dd", "ri", "ro")
// CHECK: halide.compute_at %[[S]], %[[ST]], "ib"
// No loop has a copy of itself for its steady state.
// CHECK: halide.partition %[[S]], "jt" Never
// Which tile and which batch element a task computes libHalide sees; each bound would cost it time.
// CHECK-NOT: halide.bound{{.*}}"{{ib|kb|b0|b1}}"
// The strides of dense arrays are constants.
// CHECK: halide.set_stride %{{.*}}, 1 to %{{.*}}
func.func private @k0(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %scale = arith.constant 0.125 : f32
  %B = tensor.dim %q, %c0 : tensor<?x?x?x64xf32>
  %H = tensor.dim %q, %c1 : tensor<?x?x?x64xf32>
  %N = tensor.dim %q, %c2 : tensor<?x?x?x64xf32>
  %M = tensor.dim %k, %c2 : tensor<?x?x?x64xf32>
  %o = attn.attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1) sizes(%B, %H, %N, %M, %c64, %c64)
    term(%q, %k : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>) maps [#q, #k]
    value(%v : tensor<?x?x?x64xf32>) maps [#v]
    score (%b: index, %h: index, %i: index, %j: index, %t: f32) { %s = arith.mulf %t, %scale : f32  attn.yield %s : f32 }
    where (%b, %h, %i, %j) { %d = arith.subi %M, %N : index %l = arith.addi %i, %d : index %c = arith.cmpi sle, %j, %l : index attn.yield %c : i1 }
    normalise(exp divide stabilise) : tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}

// Without a mask the state begins with the keys after the last full block: they end the loop over V, and none is clamped or selected away.
// CHECK-LABEL: halide.pipeline @k1_narrow attributes
// CHECK: %[[LAST:.*]] = halide.func "pv_part"
// CHECK: halide.update %[[LAST]] over ("rj" from %{{.*}} extent %[[LEFT:.*]]) {
// CHECK-NOT: arith.select
// CHECK: halide.yield
// CHECK: halide.func "pv_full"
// CHECK: %[[STATE:.*]] = halide.func "st"
// CHECK: halide.read %[[LAST]]
// CHECK: halide.update %[[STATE]] over ("rk"
// CHECK-NOT: halide.update %[[STATE]]
// CHECK: halide.compute_at %[[LAST]], %[[STATE]], "dt"
func.func private @k1(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %H = tensor.dim %q, %c0 : tensor<?x?x64xf32>
  %N = tensor.dim %q, %c1 : tensor<?x?x64xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x64xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%H, %N, %M, %c64, %c64)
    term(%q, %k : tensor<?x?x64xf32>, tensor<?x?x64xf32>) maps [affine_map<(h,i,j,e,f) -> (h,i,e)>, affine_map<(h,i,j,e,f) -> (h,j,e)>]
    value(%v : tensor<?x?x64xf32>) maps [affine_map<(h,i,j,e,f) -> (h,j,f)>]
    score (%h: index, %i: index, %j: index, %t: f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
}
