// RUN: heed-opt %s --attn-reorder-products | FileCheck %s
// RUN: heed-opt %s --attn-reorder-products --remarks-filter=attn-reorder.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#ie = affine_map<(d0, d1, d2) -> (d0, d2)>
#je = affine_map<(d0, d1, d2) -> (d1, d2)>
#ij = affine_map<(d0, d1, d2) -> (d0, d1)>
#kf = affine_map<(d0, d1, d2) -> (d2, d1)>

// Long sequences, known sizes: K^T V first, no N x M tensor. The normaliser is the same chain with a value of 1, and
// its division stands after the sum.
// CHECK-LABEL: func @linear
// CHECK-NOT: tensor<1048576x1048576xf32>
// CHECK: return
// REMARK: Function=linear | Remark="reordered: {{[0-9]+}} products instead of
func.func @linear(%q: tensor<1048576x32xf32>, %k: tensor<1048576x32xf32>, %v: tensor<1048576x16xf32>) -> tensor<1048576x16xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<1048576x1048576xf32>
  %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<1048576x1048576xf32>) -> tensor<1048576x1048576xf32>
  %a = linalg.generic {indexing_maps = [#ie, #je, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<1048576x32xf32>, tensor<1048576x32xf32>) outs(%fa : tensor<1048576x1048576xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<1048576x1048576xf32>
  %en = tensor.empty() : tensor<1048576xf32>
  %fn = linalg.fill ins(%zero : f32) outs(%en : tensor<1048576xf32>) -> tensor<1048576xf32>
  %l = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<1048576x1048576xf32>) outs(%fn : tensor<1048576xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %r = arith.addf %acc, %x : f32
    linalg.yield %r : f32
  } -> tensor<1048576xf32>
  %eo = tensor.empty() : tensor<1048576x16xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<1048576x16xf32>) -> tensor<1048576x16xf32>
  %o = linalg.generic {indexing_maps = [#ie, affine_map<(d0, d1, d2) -> (d0)>, #kf, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %l, %v : tensor<1048576x1048576xf32>, tensor<1048576xf32>, tensor<1048576x16xf32>) outs(%fo : tensor<1048576x16xf32>) {
  ^bb0(%x: f32, %n: f32, %y: f32, %acc: f32):
    %p = arith.divf %x, %n : f32
    %m = arith.mulf %p, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<1048576x16xf32>
  return %o : tensor<1048576x16xf32>
}

// Short sequences: the written order is the cheaper one.
// CHECK-LABEL: func @short
// CHECK: linalg.generic
// CHECK: -> tensor<4x4xf32>
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// REMARK: Function=short | Remark="left in the written order: it costs 1024 products, not 8192"
func.func @short(%q: tensor<4x32xf32>, %k: tensor<4x32xf32>, %v: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<4x4xf32>
  %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = linalg.generic {indexing_maps = [#ie, #je, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x32xf32>, tensor<4x32xf32>) outs(%fa : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %eo = tensor.empty() : tensor<4x32xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x32xf32>) -> tensor<4x32xf32>
  %o = linalg.generic {indexing_maps = [#ie, #kf, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %v : tensor<4x4xf32>, tensor<4x32xf32>) outs(%fo : tensor<4x32xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x32xf32>
  return %o : tensor<4x32xf32>
}

// A symbolic size that does not matter: two keys are fewer than 64 features for any number of queries.
// CHECK-LABEL: func @two_keys
// CHECK-NOT: scf.if
// REMARK: Function=two_keys | Remark="left in the written order: it costs 256*N products, not 4096*N + 8192"
func.func @two_keys(%q: tensor<?x64xf32> {attn.dims = ["N", "64"]}, %k: tensor<2x64xf32>, %v: tensor<2x64xf32>) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : tensor<?x64xf32>
  %ea = tensor.empty(%n) : tensor<?x2xf32>
  %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<?x2xf32>) -> tensor<?x2xf32>
  %a = linalg.generic {indexing_maps = [#ie, #je, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<?x64xf32>, tensor<2x64xf32>) outs(%fa : tensor<?x2xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x2xf32>
  %eo = tensor.empty(%n) : tensor<?x64xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x64xf32>) -> tensor<?x64xf32>
  %o = linalg.generic {indexing_maps = [#ie, #kf, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %v : tensor<?x2xf32>, tensor<2x64xf32>) outs(%fo : tensor<?x64xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// Symbolic sizes: both orders, chosen on the host. In the first branch E x F, in the second N x M.
// CHECK-LABEL: func @symbolic
// CHECK-SAME: %[[N:[^:]*]]: index, %[[E:[^:]*]]: index)
// CHECK: %[[C:.*]] = arith.cmpi slt
// CHECK: scf.if %[[C]]
// CHECK: tensor.empty(%[[E]], %[[E]])
// CHECK: } else {
// CHECK: tensor.empty(%[[N]], %[[N]])
// REMARK: Function=symbolic | Remark="two orders, chosen by the sizes of each call"
func.func @symbolic(%q: tensor<?x?xf32>, %k: tensor<?x?xf32>, %v: tensor<?x?xf32>, %N: index, %E: index) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %eq = tensor.empty(%N, %E) : tensor<?x?xf32>
  %qs = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<?x?xf32>) outs(%eq : tensor<?x?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = math.exp %x : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %ks = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%k : tensor<?x?xf32>) outs(%eq : tensor<?x?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = math.exp %x : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %vs = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<?x?xf32>) outs(%eq : tensor<?x?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = math.exp %x : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %ea = tensor.empty(%N, %N) : tensor<?x?xf32>
  %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<?x?xf32>) -> tensor<?x?xf32>
  %a = linalg.generic {indexing_maps = [#ie, #je, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%qs, %ks : tensor<?x?xf32>, tensor<?x?xf32>) outs(%fa : tensor<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %eo = tensor.empty(%N, %E) : tensor<?x?xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x?xf32>) -> tensor<?x?xf32>
  %o = linalg.generic {indexing_maps = [#ie, #kf, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %vs : tensor<?x?xf32>, tensor<?x?xf32>) outs(%fo : tensor<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %o : tensor<?x?xf32>
}

// A causal sum keeps its order.
// CHECK-LABEL: func @causal
// CHECK: arith.select
// CHECK-NOT: linalg.generic
// REMARK: Function=causal | Remark="left in the written order: the sum has a condition that depends on the pair"
func.func @causal(%q: tensor<512x2xf32>, %k: tensor<512x2xf32>, %v: tensor<512x2xf32>) -> tensor<512x2xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<512x512xf32>
  %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<512x512xf32>) -> tensor<512x512xf32>
  %a = linalg.generic {indexing_maps = [#ie, #je, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<512x2xf32>, tensor<512x2xf32>) outs(%fa : tensor<512x512xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<512x512xf32>
  %eo = tensor.empty() : tensor<512x2xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<512x2xf32>) -> tensor<512x2xf32>
  %o = linalg.generic {indexing_maps = [#ie, #kf, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %v : tensor<512x512xf32>, tensor<512x2xf32>) outs(%fo : tensor<512x2xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi sle, %j, %i : index
    %m = arith.mulf %x, %y : f32
    %t = arith.select %c, %m, %zero : f32
    %r = arith.addf %acc, %t : f32
    linalg.yield %r : f32
  } -> tensor<512x2xf32>
  return %o : tensor<512x2xf32>
}

// A chain of four that ends in a narrow matrix is multiplied from there: no product of two square ones is made.
// CHECK-LABEL: func @four
// CHECK-NOT: -> tensor<512x512xf32>
// CHECK: return
func.func @four(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>, %c: tensor<512x512xf32>, %d: tensor<512x2xf32>) -> tensor<512x2xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<512x512xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<512x512xf32>) -> tensor<512x512xf32>
  %en = tensor.empty() : tensor<512x2xf32>
  %fn = linalg.fill ins(%zero : f32) outs(%en : tensor<512x2xf32>) -> tensor<512x2xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%fs : tensor<512x512xf32>) -> tensor<512x512xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<512x512xf32>, tensor<512x512xf32>) outs(%fs : tensor<512x512xf32>) -> tensor<512x512xf32>
  %o = linalg.matmul ins(%abc, %d : tensor<512x512xf32>, tensor<512x2xf32>) outs(%fn : tensor<512x2xf32>) -> tensor<512x2xf32>
  return %o : tensor<512x2xf32>
}

// A sum and its normaliser, divided: one choice, with the division and what the queries are computed from in its branches.
// CHECK-LABEL: func @normalised
// CHECK-NOT: math.exp
// CHECK: %[[TERMS:.*]] = arith.addi
// CHECK: %[[CHEAPER:.*]] = arith.cmpi slt
// CHECK: %[[O:.*]] = scf.if %[[CHEAPER]]
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: arith.divf
// CHECK: } else {
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: arith.divf
// CHECK-NOT: scf.if
// CHECK: return %[[O]]
// REMARK: Function=normalised | Remark="two orders, chosen by the sizes of each call"
func.func @normalised(%q: tensor<?x32xf32> {attn.dims = ["N", "32"]}, %k: tensor<?x32xf32> {attn.dims = ["N", "32"]}, %v: tensor<?x32xf32> {attn.dims = ["N", "32"]}, %N: index) -> tensor<?x32xf32> {
  %zero = arith.constant 0.0 : f32
  %eq = tensor.empty(%N) : tensor<?x32xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<?x32xf32>) outs(%eq : tensor<?x32xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = math.exp %x : f32
    linalg.yield %r : f32
  } -> tensor<?x32xf32>
  %ea = tensor.empty(%N, %N) : tensor<?x?xf32>
  %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<?x?xf32>) -> tensor<?x?xf32>
  %a = linalg.generic {indexing_maps = [#ie, #je, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %k : tensor<?x32xf32>, tensor<?x32xf32>) outs(%fa : tensor<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %en = tensor.empty(%N) : tensor<?xf32>
  %fn = linalg.fill ins(%zero : f32) outs(%en : tensor<?xf32>) -> tensor<?xf32>
  %l = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<?x?xf32>) outs(%fn : tensor<?xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %r = arith.addf %acc, %x : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eq : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.generic {indexing_maps = [#ie, #kf, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %v : tensor<?x?xf32>, tensor<?x32xf32>) outs(%fo : tensor<?x32xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x32xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%s, %l : tensor<?x32xf32>, tensor<?xf32>) outs(%eq : tensor<?x32xf32>) {
  ^bb0(%x: f32, %y: f32, %old: f32):
    %r = arith.divf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// A sum of what a product sums, too, is one more row of it: 7 rows of 4 columns.
// CHECK-LABEL: func @appended
// CHECK: tensor<7x4xf32>
// REMARK: Function=appended | Remark="a sum of the same terms is one more row of the product"
func.func @appended(%k: tensor<?x4xf32>, %v: tensor<?x6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(e, f, j) -> (j, e)>, affine_map<(e, f, j) -> (j, f)>, affine_map<(e, f, j) -> (e, f)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%k, %v : tensor<?x4xf32>, tensor<?x6xf32>) outs(%fs : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %ez = tensor.empty() : tensor<4xf32>
  %fz = linalg.fill ins(%start : f32) outs(%ez : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(e, j) -> (j, e)>, affine_map<(e, j) -> (e)>], iterator_types = ["parallel", "reduction"]}
      ins(%k : tensor<?x4xf32>) outs(%fz : tensor<4xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %r = arith.addf %acc, %x : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %s, %z : tensor<4x6xf32>, tensor<4xf32>
}

// One that starts from 1 is none.
// CHECK-LABEL: func @started
// CHECK-NOT: tensor<7x4xf32>
// CHECK: return
// REMARK-NOT: Function=started
func.func @started(%k: tensor<?x4xf32>, %v: tensor<?x6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %start = arith.constant 1.0 : f32
  %es = tensor.empty() : tensor<4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(e, f, j) -> (j, e)>, affine_map<(e, f, j) -> (j, f)>, affine_map<(e, f, j) -> (e, f)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%k, %v : tensor<?x4xf32>, tensor<?x6xf32>) outs(%fs : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  %ez = tensor.empty() : tensor<4xf32>
  %fz = linalg.fill ins(%start : f32) outs(%ez : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(e, j) -> (j, e)>, affine_map<(e, j) -> (e)>], iterator_types = ["parallel", "reduction"]}
      ins(%k : tensor<?x4xf32>) outs(%fz : tensor<4xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %r = arith.addf %acc, %x : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %s, %z : tensor<4x6xf32>, tensor<4xf32>
}

// Of two loops that the values alone have, no row is one more of the other.
// CHECK-LABEL: func @two_rows
// CHECK-NOT: tensor<?x{{[67]}}x
// CHECK: return
// REMARK-NOT: Function=two_rows
func.func @two_rows(%k: tensor<?x4xf32>, %v: tensor<?x5x6xf32>) -> (tensor<4x5x6xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<4x5x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(e, f, t, j) -> (j, e)>, affine_map<(e, f, t, j) -> (j, f, t)>, affine_map<(e, f, t, j) -> (e, f, t)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%k, %v : tensor<?x4xf32>, tensor<?x5x6xf32>) outs(%fs : tensor<4x5x6xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x5x6xf32>
  %ez = tensor.empty() : tensor<4xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%ez : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(e, j) -> (j, e)>, affine_map<(e, j) -> (e)>], iterator_types = ["parallel", "reduction"]}
      ins(%k : tensor<?x4xf32>) outs(%fz : tensor<4xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %r = arith.addf %acc, %x : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %s, %z : tensor<4x5x6xf32>, tensor<4xf32>
}
