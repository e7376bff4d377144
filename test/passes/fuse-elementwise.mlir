// RUN: heed-opt %s --attn-fuse-elementwise | FileCheck %s
// RUN: heed-opt %s --attn-fuse-elementwise --remarks-filter=attn-fuse.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A chain is one body.
// CHECK-LABEL: func @chain
// CHECK: linalg.generic
// CHECK: mulf
// CHECK-NEXT: math.tanh
// CHECK-NOT: linalg.generic
func.func @chain(%x: tensor<4x8xf32>, %c: f32) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.mulf %v, %c : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.tanh %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// A guarded shift of a scaled tensor: the producer's body moves into the branch that reads it.
// CHECK-LABEL: func @shift
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK: tensor.extract %[[X]]
// CHECK: math.exp
// CHECK: } else {
// CHECK-NOT: linalg.generic
func.func @shift(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %p = arith.subi %i, %c1 : index
    %c = arith.cmpi sge, %p, %c0 : index
    %r = scf.if %c -> f32 {
      %v = tensor.extract %a[%p] : tensor<8xf32>
      scf.yield %v : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// A contraction reads each exp many times: it stays stored. A split of heads is free and goes.
// CHECK-LABEL: func @contraction
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK: tensor.extract
// CHECK-NOT: linalg.generic
// REMARK: remark: [Missed] elementwise | Category:attn-fuse-elementwise | Function=contraction {{.*}}stored, not fused into its reader: each of its elements is read many times
func.func @contraction(%x: tensor<4x8xf32>, %w: tensor<16xf32>) -> tensor<4x2xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %ew = tensor.empty() : tensor<2x8xf32>
  %eo = tensor.empty() : tensor<4x2xf32>
  %zero = arith.constant 0.0 : f32
  %c8 = arith.constant 8 : index
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %split = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%ew : tensor<2x8xf32>) {
  ^bb0(%o: f32):
    %h = linalg.index 0 : index
    %d = linalg.index 1 : index
    %m = arith.muli %h, %c8 : index
    %p = arith.addi %m, %d : index
    %r = tensor.extract %w[%p] : tensor<16xf32>
    linalg.yield %r : f32
  } -> tensor<2x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x2xf32>) -> tensor<4x2xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %split : tensor<4x8xf32>, tensor<2x8xf32>) outs(%f : tensor<4x2xf32>) {
  ^bb0(%v: f32, %u: f32, %acc: f32):
    %m = arith.mulf %v, %u : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x2xf32>
  return %b : tensor<4x2xf32>
}

// ALiBi's bias is a table in f64 over (h, i, j): it becomes one over (h, j - i), and its reader reads it there.
// CHECK-LABEL: func @table
// CHECK-SAME: %[[N:[^:]*]]: index, %[[S:[^:]*]]: tensor<2x?x?xf32>
// CHECK: %[[TABLE:.*]] = linalg.generic
// CHECK: arith.truncf
// CHECK: -> tensor<2x?xf32>
// CHECK: linalg.generic
// CHECK: tensor.extract %[[TABLE]]
// CHECK: arith.addf
// CHECK: -> tensor<2x?x?xf32>
func.func @table(%n: index, %s: tensor<2x?x?xf32>) -> tensor<2x?x?xf32> {
  %e = tensor.empty(%n, %n) : tensor<2x?x?xf32>
  %bias = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<2x?x?xf32>) {
  ^bb0(%o: f32):
    %h = linalg.index 0 : index
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = arith.subi %i, %j : index
    %d1 = arith.index_cast %d : index to i64
    %d2 = math.absi %d1 : i64
    %d3 = arith.sitofp %d2 : i64 to f64
    %h1 = arith.index_cast %h : index to i64
    %h2 = arith.sitofp %h1 : i64 to f64
    %h3 = math.exp2 %h2 : f64
    %m = arith.mulf %h3, %d3 : f64
    %r = arith.truncf %m : f64 to f32
    linalg.yield %r : f32
  } -> tensor<2x?x?xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %bias : tensor<2x?x?xf32>, tensor<2x?x?xf32>) outs(%e : tensor<2x?x?xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %r = arith.addf %u, %v : f32
    linalg.yield %r : f32
  } -> tensor<2x?x?xf32>
  return %b : tensor<2x?x?xf32>
}

// One more than expm1 is exp, also where expm1 is one side of a choice; less is not.
// CHECK-LABEL: func @one_more
// CHECK: ^bb0(%[[V:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[EXP:.*]] = math.exp %[[V]] : f32
// CHECK: %[[C:.*]] = arith.cmpf ogt
// CHECK: %[[YES:.*]] = arith.addf %[[V]], %{{.*}} : f32
// CHECK: %[[NO:.*]] = math.exp %[[V]] : f32
// CHECK: %[[ELU:.*]] = arith.select %[[C]], %[[YES]], %[[NO]] : f32
// CHECK-NEXT: arith.mulf %[[EXP]], %[[ELU]]
// CHECK-NEXT: linalg.yield
// CHECK-LABEL: func @one_less
// CHECK: %[[L:.*]] = math.expm1
// CHECK: arith.subf %[[L]]
func.func @one_more(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %a = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %c = arith.cmpf ogt, %v, %zero : f32
    %l = math.expm1 %v : f32
    %elu = arith.select %c, %v, %l : f32
    linalg.yield %elu : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%elu: f32, %v: f32, %o: f32):
    %p = arith.addf %one, %elu : f32
    %l = math.expm1 %v : f32
    %q = arith.addf %l, %one : f32
    %r = arith.mulf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %b : tensor<8xf32>
}
func.func @one_less(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %one = arith.constant 1.0 : f32
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %l = math.expm1 %v : f32
    %q = arith.subf %l, %one : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %b : tensor<8xf32>
}
