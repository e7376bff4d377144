// A table over the offset between key and query: each of its rows that a tile and a block reach serves all queries at once.
// RUN: heed-opt %s --attn-choose-algorithm --attn-stream-attention --attn-to-halide | FileCheck %s
// RUN: sed 's/vector_bits = 512 : i64, vector_registers = 32/vector_bits = 256 : i64, vector_registers = 16/' %s | heed-opt - --attn-choose-algorithm --attn-stream-attention --attn-to-halide | FileCheck %s --check-prefix=AVX2

#q = affine_map<(b,h,i,j,e,f)[s] -> (b,h,i,e)>
#k = affine_map<(b,h,i,j,e,f)[s] -> (b,h,j,e)>
#v = affine_map<(b,h,i,j,e,f)[s] -> (b,h,j,f)>
#a = affine_map<(b,h,i,j,e,f)[s] -> (j - i + s, e)>
#c = affine_map<(b,h,i,j,e,f)[s] -> (j - i + s, f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
// One query at a time reads the rows one after the other.
// CHECK-LABEL: halide.pipeline @k0_few
// CHECK-NOT: "rows_{{full|part}}
// CHECK-LABEL: halide.pipeline @k0 attributes
// The query meets keys and rows of the table: it is transposed once.
// CHECK: halide.func "q0"
// CHECK-NOT: halide.func "q2
// Products of the queries with eight rows: a register tile, whose rows are read as scalars.
// CHECK: %[[TILE:.*]] = halide.func "rt_full1" (%{{.*}} = "ii", %{{.*}} = "y", %{{.*}} = "rg", %{{.*}} = "kb"
// CHECK: halide.update %[[TILE]] over ("r4"
// CHECK: %[[ROWS:.*]] = halide.func "rows_full1" (%{{.*}} = "ii", %{{.*}} = "x", %{{.*}} = "kb"
// CHECK-NEXT: halide.undef
// Only rows that the block reaches are computed.
// CHECK: halide.update %[[ROWS]] over ("y" from %{{.*}} extent %{{.*}}, "rg" from %{{.*}} extent %{{.*}}) where
// CHECK: arith.cmpi sle
// Lane l moves by l rows: by 1, 2, 4 and, in the term itself, 8.
// CHECK: %[[BY0:.*]] = halide.func "by_full1x0"
// CHECK: halide.read %[[ROWS]]
// CHECK: %[[BY1:.*]] = halide.func "by_full1x1"
// CHECK: %[[LANE:.*]] = halide.mod %{{.*}}, %c16_i32
// CHECK: %[[BIT:.*]] = arith.andi %[[LANE]], %c1_i32
// CHECK: halide.func "by_full1x2"
// CHECK: %[[BY4:.*]] = halide.func "by_full1x4"
// CHECK: halide.func "t_full1"
// CHECK: halide.read %[[BY4]]
// Where one row serves all queries and keys of a group, nothing is moved.
// CHECK: halide.func "x_full"
// CHECK: %[[ENDS:.*]] = arith.ori
// CHECK: arith.select %[[ENDS]]
// V's keys, the rows inside, the two ends: weights that moved the other way, and sums of those beyond the ends.
// CHECK: %[[PV:.*]] = halide.func "pv_full"
// CHECK: halide.func "wby_full1x4"
// CHECK: %[[W:.*]] = halide.func "w_full1"
// CHECK: halide.func "below_full1"
// CHECK: halide.func "above_full1"
// CHECK: halide.update %[[PV]] over ("rj"
// CHECK: halide.update %[[PV]] over ("rx" {{.*}}) where
// CHECK: halide.read %[[W]]
// CHECK: halide.update %[[PV]] over ("re" {{.*}}) where
// No row is computed for one query alone.
// CHECK: halide.compute_at %[[ROWS]], %{{.*}}, "ib"
// CHECK: halide.compute_at %[[TILE]], %[[ROWS]], "rg"
// Rows that lie one behind the other come by themselves.
// CHECK-NOT: halide.prefetch_spread
// CHECK-LABEL: halide.pipeline @k1_few
// A bias by the offset is read from numbers in reverse order, as many as a tile and a block reach.
// CHECK-LABEL: halide.pipeline @k1 attributes
// CHECK: %[[BIAS:.*]] = halide.func "bias_full1" (%{{.*}} = "x", %{{.*}} = "kb"
// CHECK: halide.func "t_full1" (%[[II:.*]] = "ii", %[[JJ:.*]] = "jj", %{{.*}} = "kb"
// CHECK: %[[X:.*]] = arith.subi %[[II]], %[[JJ]]
// CHECK: %[[AT:.*]] = arith.addi %[[X]], %c63_i32
// CHECK: halide.read %[[BIAS]][%[[AT]],
// CHECK: halide.bound %[[BIAS]], "x" from %{{.*}} extent %c96_i32
// CHECK: halide.vectorize %[[BIAS]], "xi"
// A table that meets keys: the rows that a block reaches are read one by one and transposed, in squares of a vector by a vector.
// CHECK-LABEL: halide.pipeline @k2 attributes
// CHECK: halide.func "bias_full1_rows"
// CHECK: halide.func "bias_full1_turn4"
// CHECK: %[[WINDOW:.*]] = halide.func "bias_full1" (%{{.*}} = "x", %{{.*}} = "e", %{{.*}} = "kb"
// Eight keys share what they read of a column: three vectors that begin where one of the window does (32 queries and 7 more keys).
// CHECK: %[[KEYS:.*]] = halide.func "kt_full1" (%{{.*}} = "ii", %{{.*}} = "y", %{{.*}} = "rg", %{{.*}} = "kb"
// CHECK: halide.update %[[KEYS]] over ("r3"
// CHECK: %[[VECTOR:.*]] = arith.floordivsi %{{.*}}, %c2_i32{{.*}}
// CHECK: %[[FIRST:.*]] = arith.muli %[[VECTOR]], %c16_i32{{.*}}
// CHECK: arith.addi %[[FIRST]], %{{.*}}
// CHECK: halide.read %[[WINDOW]]
// Key y of a group reads them 7 - y further on, and 8 where the group's begin in the middle of a vector.
// CHECK: %[[T:.*]] = halide.func "t_full1" (%[[LANE:.*]] = "ii", %{{.*}} = "jj"
// CHECK: halide.mod %{{.*}}, %c2_i32{{.*}}
// CHECK: %[[BEHIND:.*]] = arith.subi %c7_i32{{.*}}, %{{.*}}
// CHECK: arith.addi %[[LANE]], %[[BEHIND]]
// CHECK: halide.read %[[KEYS]]
// CHECK: halide.bound %[[WINDOW]], "x" from %{{.*}} extent %c96_i32{{.*}}
// CHECK: halide.bound %[[KEYS]], "ii" from %{{.*}} extent %c48_i32{{.*}}
// CHECK-NOT: halide.compute_at %[[T]],
// Rows of a table of 12 heads lie 768 numbers apart: those of the next register tile, eight, come while this one is computed.
// CHECK-LABEL: halide.pipeline @k3_few
// CHECK-LABEL: halide.pipeline @k3 attributes
// CHECK: halide.prefetch_spread %rt_full1 stage 1, %{{.*}} at "r3" ahead 6144 over %rows_full1, "rg" lines 32 turns 1 by 1 places 8 apart 768
// With 16 registers the tile has no place for them: each key reads the window for itself.
// AVX2-LABEL: halide.pipeline @k2 attributes
// AVX2-NOT: halide.func "kt_full1"
// AVX2: halide.func "bias_full1_turn3"
// AVX2: %[[T:.*]] = halide.func "t_full1"
// AVX2: halide.update %[[T]] over ("r3"
// AVX2: halide.compute_at %[[T]],
func.func private @k0(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %a: tensor<?x64xf32>, %c: tensor<?x64xf32>, %s: index) -> tensor<?x?x?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %B = tensor.dim %q, %c0 : tensor<?x?x?x64xf32>
  %H = tensor.dim %q, %c1 : tensor<?x?x?x64xf32>
  %N = tensor.dim %q, %c2 : tensor<?x?x?x64xf32>
  %M = tensor.dim %k, %c2 : tensor<?x?x?x64xf32>
  %o = attn.attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1) sizes(%B, %H, %N, %M, %c64, %c64) symbols(%s)
    term(%q, %k : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>) maps [#q, #k]
    term(%q, %a : tensor<?x?x?x64xf32>, tensor<?x64xf32>) maps [#q, #a]
    value(%v : tensor<?x?x?x64xf32>) maps [#v]
    value(%c : tensor<?x64xf32>) maps [#c]
    score (%b: index, %h: index, %i: index, %j: index, %t: f32, %u: f32) { %x = arith.addf %t, %u : f32  attn.yield %x : f32 }
    normalise(exp divide stabilise) : tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
func.func private @k1(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %a: tensor<?x?xf32>, %s: index) -> tensor<?x?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %H = tensor.dim %q, %c0 : tensor<?x?x64xf32>
  %N = tensor.dim %q, %c1 : tensor<?x?x64xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x64xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%H, %N, %M, %c64, %c64) symbols(%s)
    term(%q, %k : tensor<?x?x64xf32>, tensor<?x?x64xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (h,i,e)>, affine_map<(h,i,j,e,f)[s] -> (h,j,e)>]
    term(%a : tensor<?x?xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (j - i + s, h)>]
    value(%v : tensor<?x?x64xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (h,j,f)>]
    score (%h: index, %i: index, %j: index, %t: f32, %u: f32) { %x = arith.addf %t, %u : f32  attn.yield %x : f32 }
    normalise(exp divide stabilise) : tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
func.func private @k2(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %a: tensor<?x64xf32>, %s: index) -> tensor<?x?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %H = tensor.dim %q, %c0 : tensor<?x?x64xf32>
  %N = tensor.dim %q, %c1 : tensor<?x?x64xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x64xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%H, %N, %M, %c64, %c64) symbols(%s)
    term(%q, %k : tensor<?x?x64xf32>, tensor<?x?x64xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (h,i,e)>, affine_map<(h,i,j,e,f)[s] -> (h,j,e)>]
    term(%k, %a : tensor<?x?x64xf32>, tensor<?x64xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (h,j,e)>, affine_map<(h,i,j,e,f)[s] -> (j - i + s, e)>]
    value(%v : tensor<?x?x64xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (h,j,f)>]
    score (%h: index, %i: index, %j: index, %t: f32, %u: f32) { %x = arith.addf %t, %u : f32  attn.yield %x : f32 }
    normalise(exp divide stabilise) : tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
func.func private @k3(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %a: tensor<?x12x64xf32>, %s: index) -> tensor<?x?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %H = tensor.dim %q, %c0 : tensor<?x?x64xf32>
  %N = tensor.dim %q, %c1 : tensor<?x?x64xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x64xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%H, %N, %M, %c64, %c64) symbols(%s)
    term(%q, %k : tensor<?x?x64xf32>, tensor<?x?x64xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (h,i,e)>, affine_map<(h,i,j,e,f)[s] -> (h,j,e)>]
    term(%q, %a : tensor<?x?x64xf32>, tensor<?x12x64xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (h,i,e)>, affine_map<(h,i,j,e,f)[s] -> (j - i + s, h, e)>]
    value(%v : tensor<?x?x64xf32>) maps [affine_map<(h,i,j,e,f)[s] -> (h,j,f)>]
    score (%h: index, %i: index, %j: index, %t: f32, %u: f32) { %x = arith.addf %t, %u : f32  attn.yield %x : f32 }
    normalise(exp divide stabilise) : tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
func.func @model(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %a: tensor<?x64xf32>, %c: tensor<?x64xf32>, %s: index) -> tensor<?x?x?x64xf32> attributes {attn.model} {
  %o = func.call @k0(%q, %k, %v, %a, %c, %s) : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, index) -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
func.func @biased(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %a: tensor<?x?xf32>, %s: index) -> tensor<?x?x64xf32> attributes {attn.model} {
  %o = func.call @k1(%q, %k, %v, %a, %s) : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, index) -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
func.func @keyed(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %a: tensor<?x64xf32>, %s: index) -> tensor<?x?x64xf32> attributes {attn.model} {
  %o = func.call @k2(%q, %k, %v, %a, %s) : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x64xf32>, index) -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
func.func @headed(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %a: tensor<?x12x64xf32>, %s: index) -> tensor<?x?x64xf32> attributes {attn.model} {
  %o = func.call @k3(%q, %k, %v, %a, %s) : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x12x64xf32>, index) -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
}
