// Few queries have a pipeline of their own, which the host chooses when it runs: a task is one query and a part of its keys. So
// have those that fill a tile of one vector better than wide ones.
// RUN: heed-opt %s --attn-choose-algorithm --attn-stream-attention --attn-to-halide --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @model
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %{{.*}}, %c2{{.*}} : index
// CHECK-NEXT: scf.if %[[FEW]]
// CHECK-NEXT: halide.call @k0_few
// CHECK: } else {
// CHECK: %[[TILES:.*]] = arith.divui %{{.*}}, %c16
// CHECK: arith.muli %[[TILES]], %c6
// CHECK: %[[WIDE:.*]] = arith.divui %{{.*}}, %c32
// CHECK: arith.muli %[[WIDE]], %c10
// CHECK: %[[NARROW:.*]] = arith.cmpi ule
// CHECK: scf.if %[[NARROW]]
// CHECK-NEXT: halide.call @k0_narrow
// CHECK: } else {
// CHECK-NEXT: halide.call @k0(
// CHECK-LABEL: halide.pipeline @k0_few
// A score's partial sums, one a lane of the contracted dim, of sixteen keys; the lanes of a key are added up.
// CHECK: %[[LANES:.*]] = halide.func "t_full0_lanes" (%{{.*}} = "x", %{{.*}} = "jb"
// CHECK: halide.update %[[LANES]] over ("r4" from %{{.*}} extent %c4_i32) set
// CHECK: %[[T:.*]] = halide.func "t_full0" (%{{.*}} = "ii", %[[JJ:.*]] = "jj"
// CHECK: halide.update %[[T]] over ("rl" from %{{.*}} extent %c16_i32
// CHECK: %[[KEY:.*]] = halide.mod %[[JJ]], %c16_i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[KEY]], %c16_i32
// CHECK: %[[X:.*]] = arith.addi %[[FIRST]], %rl
// CHECK: halide.read %[[LANES]][%[[X]],
// Full blocks ask no key whether it is there.
// CHECK: %[[FULL:.*]] = halide.func "pv_full"
// CHECK-NOT: arith.andi {{.*}} : i32
// CHECK: halide.func "t_part0_lanes"
// Where the mask ends, pieces of one vector of keys: little is read beyond it.
// CHECK: halide.update %{{.*}} over ("rg" from %{{.*}} extent %c1_i32{{.*}})
// An absent key's row of V is cleared by a mask of bits.
// CHECK: %[[PV:.*]] = halide.func "pv_part"
// CHECK: arith.andi {{.*}} : i32
// The blocks of a part, of which the mask leaves out some: in pieces, eight a block.
// CHECK: halide.update %[[PART:.*]] over ("rk" {{.*}}) where
// CHECK: arith.muli %{{.*}}, %c8_i32
// CHECK: arith.minsi
// CHECK: %[[PARTS:.*]] = halide.func "parts" (%{{.*}} = "column", %{{.*}} = "task_1", %{{.*}} = "task_2") : f32, f32, f32
// CHECK: halide.parallel %[[PARTS]], "task_1"
// CHECK: halide.parallel %[[PARTS]], "task_2"
// CHECK: halide.compute_at %[[PART]], %[[PARTS]], "task_1"
// Rows of K and V are read from end to end, four and eight of them for each load of the query and of the sums.
// CHECK: halide.compute_at %[[LANES]], %{{.*}}, "jo"
// CHECK: halide.compute_at %[[T]], %{{.*}}, "jo"
// CHECK: halide.vectorize %[[LANES]] stage 1, "xi"
// CHECK: halide.atomic %[[T]] stage 1
// CHECK: halide.vectorize %[[T]] stage 1, "rl"
// CHECK: halide.split %[[LANES]] stage 1, "xo" into ("xo", "xk") by 4
// CHECK: halide.reorder %[[LANES]] stage 1, ("xi", "r4", "xk", "xo")
// CHECK: halide.unroll %[[LANES]] stage 1, "r4"
// CHECK: halide.compute_at %[[FULL]], %[[PART]], "rk"
// CHECK: halide.split %[[FULL]] stage 1, "do" into ("do", "dv") by 4
// CHECK: halide.reorder %[[FULL]] stage 1, ("iv", "dv", "rx", "do", "rj")
// One vector of queries, four squares of a row of 64.
// CHECK-LABEL: halide.pipeline @k0_narrow
// CHECK: halide.split %{{.*}}, "d2" into ("tile", "row") by 16
// CHECK-LABEL: halide.pipeline @k0 attributes
// CHECK: halide.split %{{.*}}, "d2" into ("tile", "row") by 32
#q = affine_map<(b,h,i,j,e,f) -> (b,h,i,e)>
#k = affine_map<(b,h,i,j,e,f) -> (b,h,j,e)>
#v = affine_map<(b,h,i,j,e,f) -> (b,h,j,f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
func.func @model(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> attributes {attn.model} {
  %o = func.call @k0(%q, %k, %v) : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
func.func private @k0(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %B = tensor.dim %q, %c0 : tensor<?x?x?x64xf32>
  %H = tensor.dim %q, %c1 : tensor<?x?x?x64xf32>
  %N = tensor.dim %q, %c2 : tensor<?x?x?x64xf32>
  %M = tensor.dim %k, %c2 : tensor<?x?x?x64xf32>
  %o = attn.attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1) sizes(%B, %H, %N, %M, %c64, %c64)
    term(%q, %k : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>) maps [#q, #k]
    value(%v : tensor<?x?x?x64xf32>) maps [#v]
    score (%b: index, %h: index, %i: index, %j: index, %t: f32) { attn.yield %t : f32 }
    where (%b, %h, %i, %j) { %d = arith.subi %M, %N : index %l = arith.addi %i, %d : index %c = arith.cmpi sle, %j, %l : index attn.yield %c : i1 }
    normalise(exp divide stabilise) : tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
}

// -----

// A known number of queries leaves no choice: here rows, and below tiles.
// CHECK-LABEL: func.func @one
// CHECK-NOT: scf.if
// CHECK: halide.call @k1
// CHECK: halide.call @k2
// CHECK-LABEL: halide.pipeline @k1
// CHECK: halide.func "parts"
// CHECK-LABEL: halide.pipeline @k2
// CHECK-NOT: halide.func "parts"
// CHECK: halide.func "pv_full"
#q = affine_map<(i,j,e,f) -> (i,e)>
#k = affine_map<(i,j,e,f) -> (j,e)>
#v = affine_map<(i,j,e,f) -> (j,f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
func.func @one(%q: tensor<1x64xf32>, %p: tensor<50x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> (tensor<1x64xf32>, tensor<50x64xf32>) attributes {attn.model} {
  %o = func.call @k1(%q, %k, %v) : (tensor<1x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<1x64xf32>
  %u = func.call @k2(%p, %k, %v) : (tensor<50x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<50x64xf32>
  return %o, %u : tensor<1x64xf32>, tensor<50x64xf32>
}
func.func private @k1(%q: tensor<1x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> tensor<1x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %M = tensor.dim %k, %c0 : tensor<?x64xf32>
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%c1, %M, %c64, %c64)
    term(%q, %k : tensor<1x64xf32>, tensor<?x64xf32>) maps [#q, #k] value(%v : tensor<?x64xf32>) maps [#v]
    score (%i: index, %j: index, %t: f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<1x64xf32>
  return %o : tensor<1x64xf32>
}
func.func private @k2(%q: tensor<50x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> tensor<50x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c50 = arith.constant 50 : index
  %c64 = arith.constant 64 : index
  %M = tensor.dim %k, %c0 : tensor<?x64xf32>
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%c50, %M, %c64, %c64)
    term(%q, %k : tensor<50x64xf32>, tensor<?x64xf32>) maps [#q, #k] value(%v : tensor<?x64xf32>) maps [#v]
    score (%i: index, %j: index, %t: f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<50x64xf32>
  return %o : tensor<50x64xf32>
}
}

// -----

// Query heads of a group are members of a task: of each few keys their scores, and of each few rows of V their products, are
// computed one after the other, so that K and V come from memory once. The host says how many members there are.
// CHECK-LABEL: func.func @grouped
// CHECK: %[[H:.*]] = tensor.dim %arg0, %c0
// CHECK: %[[MEMBERS:.*]] = arith.select %{{.*}}, %c8{{.*}}, %{{.*}} : index
// CHECK-NEXT: %[[NEIGHBOURS:.*]] = arith.divui %{{.*}}, %[[MEMBERS]]
// CHECK: halide.call @k3(%{{.*}} : {{.*}}) with("members" = %[[MEMBERS]] : index, "neighbours" = %[[NEIGHBOURS]] : index) outs(
// CHECK-LABEL: halide.pipeline @k3
// CHECK: %[[INPUT:.*]] = halide.param "members" : i32
// CHECK: %[[LEAST:.*]] = arith.maxsi %[[INPUT]]
// CHECK: %[[MEMBERS:.*]] = arith.minsi %[[LEAST]], %c8_i32
// CHECK: halide.param "neighbours" : i32
// The key head is that of the first member: all read one place.
// CHECK: %[[LANES:.*]] = halide.func "t_full0_lanes" ({{.*}} = "b1", %[[GROUP:.*]] = "b0")
// CHECK: halide.update
// CHECK-NOT: halide.mod %{{.*}}, %c4_i32
// CHECK: arith.muli %[[GROUP]], %[[MEMBERS]]
// CHECK: %[[SCORES:.*]] = halide.func "s_full"
// CHECK: %[[PV:.*]] = halide.func "pv_full"
// CHECK: %[[PARTS:.*]] = halide.func "parts" (%{{.*}} = "column", %{{.*}} = "member", %{{.*}} = "task_1"
// Groups of one task read a part of the keys that lies in half of L2.
// CHECK: halide.split %[[PARTS]], "task_1" into ("task_1", "neighbour") by
// CHECK: halide.parallel %[[PARTS]], "task_1"
// CHECK: halide.compute_at %[[PART:.*]], %[[PARTS]], "neighbour"
// CHECK: halide.reorder %[[PART]] stage 1, ("iv", "do", "b1", "rk", "ii", "kp", "ib")
// CHECK: halide.reorder %[[SCORES]], ("ji", "b1", "jo")
// The sums of sixteen keys have their lanes added up in registers.
// CHECK: halide.reorder %[[T:.*]] stage 1, ("rl", "ji", "jo")
// CHECK-NEXT: halide.atomic %[[T]] stage 1
// CHECK-NEXT: halide.vectorize %[[T]] stage 1, "rl"
// Each member takes four rows of K, and then eight of V, one after the other.
// CHECK: halide.reorder %[[LANES]] stage 1, ("xi", "r3", "xk", "b1", "xo")
// CHECK: halide.reorder %[[PV]] stage 1, ("iv", "dv", "rx", "do", "b1", "rj")
// What a task holds is no block of the heap's.
// CHECK: halide.store_in %[[SCORES]], Stack
#q = affine_map<(h,i,j,e,f)[s0,s1] -> (h,i,e)>
#k = affine_map<(h,i,j,e,f)[s0,s1] -> ((h * s0) floordiv s1,j,e)>
#v = affine_map<(h,i,j,e,f)[s0,s1] -> ((h * s0) floordiv s1,j,f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
func.func @grouped(%q: tensor<?x1x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>) -> tensor<?x1x64xf32> attributes {attn.model} {
  %o = func.call @k3(%q, %k, %v) : (tensor<?x1x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x1x64xf32>
  return %o : tensor<?x1x64xf32>
}
func.func private @k3(%q: tensor<?x1x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>) -> tensor<?x1x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %H = tensor.dim %q, %c0 : tensor<?x1x64xf32>
  %G = tensor.dim %k, %c0 : tensor<?x?x64xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x64xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%H, %c1, %M, %c64, %c64) symbols(%G, %H)
    term(%q, %k : tensor<?x1x64xf32>, tensor<?x?x64xf32>) maps [#q, #k] value(%v : tensor<?x?x64xf32>) maps [#v]
    score (%h: index, %i: index, %j: index, %t: f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x1x64xf32>
  return %o : tensor<?x1x64xf32>
}
}

// -----

// How many members there are is known: all take a row from registers, and their sums fill a register tile.
// CHECK-LABEL: halide.pipeline @k4
// CHECK: %[[LANES:.*]] = halide.func "t_full0_lanes"
// CHECK: %[[PV:.*]] = halide.func "pv_full"
// CHECK: halide.reorder %[[LANES]] stage 1, ("xi", "r3", "b1", "xo")
// CHECK: halide.unroll %[[LANES]] stage 1, "r3"
// CHECK: halide.unroll %[[LANES]] stage 1, "b1"
// CHECK: halide.split %[[PV]] stage 1, "do" into ("do", "dv") by 4
// CHECK: halide.reorder %[[PV]] stage 1, ("iv", "dv", "b1", "rx", "do", "rj")
// CHECK: halide.unroll %[[PV]] stage 1, "b1"
#q = affine_map<(h,i,j,e,f) -> (h,i,e)>
#k = affine_map<(h,i,j,e,f) -> ((h * 2) floordiv 4,j,e)>
#v = affine_map<(h,i,j,e,f) -> ((h * 2) floordiv 4,j,f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
func.func @known(%q: tensor<4x1x64xf32>, %k: tensor<2x?x64xf32>, %v: tensor<2x?x64xf32>) -> tensor<4x1x64xf32> attributes {attn.model} {
  %o = func.call @k4(%q, %k, %v) : (tensor<4x1x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>) -> tensor<4x1x64xf32>
  return %o : tensor<4x1x64xf32>
}
func.func private @k4(%q: tensor<4x1x64xf32>, %k: tensor<2x?x64xf32>, %v: tensor<2x?x64xf32>) -> tensor<4x1x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c4 = arith.constant 4 : index
  %M = tensor.dim %k, %c1 : tensor<2x?x64xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%c4, %c1, %M, %c64, %c64)
    term(%q, %k : tensor<4x1x64xf32>, tensor<2x?x64xf32>) maps [#q, #k] value(%v : tensor<2x?x64xf32>) maps [#v]
    score (%h: index, %i: index, %j: index, %t: f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<4x1x64xf32>
  return %o : tensor<4x1x64xf32>
}
}

// -----

// Rows of unknown length: sixteen keys at a time, which come from four places of a block at once.
// CHECK-LABEL: halide.pipeline @k5
// CHECK: %[[LANES:.*]] = halide.func "t_full0_lanes"
// CHECK: halide.update
// CHECK: %[[PLACE:.*]] = halide.mod %{{.*}}, %c4_i32
// CHECK: arith.muli %[[PLACE]], %c32_i32
// CHECK: halide.reorder %[[LANES]] stage 1, ("xi", "xo", "r3")
#q = affine_map<(h,i,j,e,f)[s0,s1] -> (h,i,e)>
#k = affine_map<(h,i,j,e,f)[s0,s1] -> ((h * s0) floordiv s1,j,e)>
#v = affine_map<(h,i,j,e,f)[s0,s1] -> ((h * s0) floordiv s1,j,f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
func.func @symbolic(%q: tensor<?x1x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>) -> tensor<?x1x?xf32> attributes {attn.model} {
  %o = func.call @k5(%q, %k, %v) : (tensor<?x1x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x1x?xf32>
  return %o : tensor<?x1x?xf32>
}
func.func private @k5(%q: tensor<?x1x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>) -> tensor<?x1x?xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %E = tensor.dim %q, %c2 : tensor<?x1x?xf32>
  %H = tensor.dim %q, %c0 : tensor<?x1x?xf32>
  %G = tensor.dim %k, %c0 : tensor<?x?x?xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x?xf32>
  %o = attn.attention dims(batch = 1, query = 1, key = 1, contract = 1, value = 1) sizes(%H, %c1, %M, %E, %E) symbols(%G, %H)
    term(%q, %k : tensor<?x1x?xf32>, tensor<?x?x?xf32>) maps [#q, #k] value(%v : tensor<?x?x?xf32>) maps [#v]
    score (%h: index, %i: index, %j: index, %t: f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x1x?xf32>
  return %o : tensor<?x1x?xf32>
}
}
