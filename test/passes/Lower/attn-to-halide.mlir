// Bodies become funcs: axes in Halide's order, index arithmetic in i32, reads under a condition clamped.
// RUN: heed-opt %s --attn-to-halide | FileCheck %s
// RUN: heed-opt %s --attn-to-halide --remarks-filter=attn-to-halide -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: Function=shift | Remark="shift has the elementwise schedule"
// REMARK: Function=gather | Remark="gather has the elementwise schedule"
// REMARK: Function=argmax | Remark="argmax has the generic schedule"
// RUN: heed-opt %s --attn-to-halide | FileCheck %s --check-prefix=COST

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The caller computes the destination's extents from the arguments.
// CHECK-LABEL: func.func @model
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>, %[[N:.*]]: index, %[[M:.*]]: index
// CHECK: %[[E:.*]] = tensor.empty(%[[N]], %[[M]]) : tensor<?x?xf32>
// CHECK: %[[Y:.*]] = halide.call @shift(%[[X]], %[[N]], %[[M]] : tensor<?x?xf32>, index, index) outs(%[[E]] : tensor<?x?xf32>) -> tensor<?x?xf32>
// CHECK: return %[[Y]]
func.func @model(%x: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> attributes {attn.model} {
  %y = call @shift(%x, %n, %m) : (tensor<?x?xf32>, index, index) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// CHECK-LABEL: halide.pipeline @shift
// CHECK: %[[A:.*]] = halide.buffer "a0" ("d0", "d1") : f32
// CHECK: %[[W:.*]] = halide.extent %[[A]], 0 : i32
// CHECK: halide.func "f0" (%[[J:.*]] = "d1", %[[I:.*]] = "d0") : f32 {
// CHECK: %[[K:.*]] = arith.subi %[[J]], %{{.*}} : i32
// CHECK: %[[C:.*]] = arith.cmpi sge, %[[K]], %{{.*}} : i32
// CHECK: arith.minsi %[[K]], %{{.*}} : i32
// CHECK: %[[L:.*]] = arith.maxsi %{{.*}}, %{{.*}} : i32
// CHECK: %[[V:.*]] = halide.read %[[A]][%[[L]], %{{.*}}] : f32
// CHECK: arith.select %[[C]], %[[V]], %{{.*}} : f32
func.func private @shift(%x: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> attributes {attn.kernel} {
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x?xf32>) {
  ^bb0(%acc: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %k = arith.subi %j, %c1 : index
    %c = arith.cmpi sge, %k, %c0 : index
    %v = scf.if %c -> f32 {
      %r = tensor.extract %x[%i, %k] : tensor<?x?xf32>
      scf.yield %r : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// A read that is not guarded is in range: only coordinates that come out of data are clamped.
// CHECK-LABEL: halide.pipeline @gather
// CHECK: halide.func "f0" (%[[J:.*]] = "d1", %[[I:.*]] = "d0") : f32 {
// CHECK: %[[ID:.*]] = halide.read %{{.*}}[%[[I]]] : i32
// CHECK: arith.minsi %[[ID]]
// CHECK: %[[R:.*]] = arith.maxsi
// CHECK: halide.read %{{.*}}[%[[J]], %[[R]]] : f32
func.func private @gather(%ids: tensor<?xi32>, %t: tensor<?x4xf32>, %n: index) -> tensor<?x4xf32> attributes {attn.kernel} {
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<?xi32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%id: i32, %acc: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %id : i32 to index
    %r = tensor.extract %t[%k, %j] : tensor<?x4xf32>
    linalg.yield %r : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// Two results that run together are one tuple; the one that is returned is copied out of it.
// CHECK-LABEL: halide.pipeline @argmax
// CHECK: %[[F:.*]] = halide.func "sum0" (%{{.*}} = "d0") : f32, i32
// CHECK: halide.update %[[F]] over ("r0" from %{{.*}} extent %{{.*}}) set
// CHECK: halide.read %[[F]][%{{.*}}] : f32, i32
// CHECK: halide.func "copy1" (%{{.*}} = "d0") : i32
func.func private @argmax(%x: tensor<?x?xf32>, %n: index) -> tensor<?xi32> attributes {attn.kernel} {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant -1 : i32
  %e0 = tensor.empty(%n) : tensor<?xf32>
  %e1 = tensor.empty(%n) : tensor<?xi32>
  %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
  %f1 = linalg.fill ins(%none : i32) outs(%e1 : tensor<?xi32>) -> tensor<?xi32>
  %m, %k = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%f0, %f1 : tensor<?xf32>, tensor<?xi32>) {
  ^bb0(%v: f32, %best: f32, %at: i32):
    %j = linalg.index 1 : index
    %j32 = arith.index_cast %j : index to i32
    %c = arith.cmpf ogt, %v, %best : f32
    %b2 = arith.select %c, %v, %best : f32
    %a2 = arith.select %c, %j32, %at : i32
    linalg.yield %b2, %a2 : f32, i32
  } -> (tensor<?xf32>, tensor<?xi32>)
  return %k : tensor<?xi32>
}

// What a call costs, from the sizes that the caller knows: operations of every element, arguments read once; of a table
// that is read where data say, the elements that are read, but not more than it has.

// COST-DAG: #[[FLOPS:.*]] = affine_map<()[s0] -> (s0 * 16)>
// COST-DAG: #[[BYTES:.*]] = affine_map<()[s0] -> (s0 * 36)>
// COST-DAG: #[[READ:.*]] = affine_map<()[s0] -> (s0 * 32, 32000)>
// COST: halide.pipeline @lookup attributes {attn.cost = {axes = array<i64: 0>, bytes = #[[BYTES]], flops = #[[FLOPS]], gathered = [#[[READ]]], names = ["a0"]}}
func.func @looks(%ids: tensor<?xi32>, %table: tensor<1000x8xf32>) -> tensor<?x8xf32> attributes {attn.model} {
  %y = call @lookup(%ids, %table) : (tensor<?xi32>, tensor<1000x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
func.func private @lookup(%ids: tensor<?xi32>, %table: tensor<1000x8xf32>) -> tensor<?x8xf32> attributes {attn.kernel} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<?xi32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%in: i32, %acc: f32):
    %j = linalg.index 1 : index
    %i = arith.index_cast %in : i32 to index
    %v = tensor.extract %table[%i, %j] : tensor<1000x8xf32>
    %s = arith.mulf %v, %v : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// Terms that change nothing are no update: libHalide would have no loop for them.
// CHECK-LABEL: halide.pipeline @nothing
// CHECK: halide.func "sum0"
// CHECK-NOT: halide.update
// CHECK: halide.output
func.func private @nothing(%x: tensor<?x?xf32>, %n: index) -> tensor<?xi1> attributes {attn.kernel} {
  %none = arith.constant false
  %e = tensor.empty(%n) : tensor<?xi1>
  %z = linalg.fill ins(%none : i1) outs(%e : tensor<?xi1>) -> tensor<?xi1>
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xi1>) {
  ^bb0(%v: f32, %acc: i1):
    linalg.yield %acc : i1
  } -> tensor<?xi1>
  return %y : tensor<?xi1>
}
