// RUN: heed-opt %s --attn-raise-attention --split-input-file | FileCheck %s
// RUN: heed-opt %s --attn-raise-attention --split-input-file --remarks-filter=attn-raise.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Vaswani et al., causal, grouped heads: the front end's own form. The `live` select is the softmax's mask.
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5)[s0, s1] -> (d0, (d1 * s0) floordiv s1, d3, d4)>
// CHECK-LABEL: func @attention
// REMARK: [Passed] {{.*}}Function=attention | Remark="raised to one attention: one score term, where; normaliser exp divided by its sum"
// CHECK: %[[ROOT:.*]] = linalg.generic {{.*}}iterator_types = []
// CHECK-NOT: linalg.generic
// CHECK: attn.attention dims(batch = 2, query = 1, key = 1, contract = 1, value = 1)
// CHECK-NEXT: term(%{{.*}}, %{{.*}} maps [#{{.*}}, #[[K]]]
// CHECK: score (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[J:.*]] : index, %[[T:.*]] : f32)
// CHECK: %[[R:.*]] = tensor.extract %[[ROOT]][]
// CHECK: divf %[[T]], %[[R]]
// CHECK: where
// CHECK: arith.cmpi sle
// CHECK: normalise(exp divide stabilise)
// CHECK-NOT: linalg.generic
#id4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#q = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#s = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
func.func @attention(%q: tensor<?x?x?x?xf32> {attn.name = "q", attn.dims = ["B", "H", "N", "E"]},
                     %k: tensor<?x?x?x?xf32> {attn.name = "k", attn.dims = ["B", "G", "M", "E"]},
                     %v: tensor<?x?x?x?xf32> {attn.name = "v", attn.dims = ["B", "G", "M", "F"]})
    -> tensor<?x?x?x?xf32> attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %B = tensor.dim %q, %c0 : tensor<?x?x?x?xf32>
  %H = tensor.dim %q, %c1 : tensor<?x?x?x?xf32>
  %N = tensor.dim %q, %c2 : tensor<?x?x?x?xf32>
  %E = tensor.dim %q, %c3 : tensor<?x?x?x?xf32>
  %G = tensor.dim %k, %c1 : tensor<?x?x?x?xf32>
  %M = tensor.dim %k, %c2 : tensor<?x?x?x?xf32>
  %F = tensor.dim %v, %c3 : tensor<?x?x?x?xf32>
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<f32>
  %root = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%e0 : tensor<f32>) {
  ^bb0(%out: f32):
    %0 = arith.index_cast %E : index to i64
    %1 = arith.sitofp %0 : i64 to f64
    %2 = math.sqrt %1 : f64
    %3 = arith.truncf %2 : f64 to f32
    linalg.yield %3 : f32
  } -> tensor<f32>
  %es = tensor.empty(%B, %H, %N, %M) : tensor<?x?x?x?xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %qk = linalg.generic {indexing_maps = [#q, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q : tensor<?x?x?x?xf32>) outs(%fs : tensor<?x?x?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 3 : index
    %e = linalg.index 4 : index
    %hg = arith.muli %h, %G : index
    %g = arith.floordivsi %hg, %H : index
    %kk = tensor.extract %k[%b, %g, %j, %e] : tensor<?x?x?x?xf32>
    %m = arith.mulf %a, %kk : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?x?xf32>
  %sc = linalg.generic {indexing_maps = [#id4, affine_map<(d0, d1, d2, d3) -> ()>, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%qk, %root : tensor<?x?x?x?xf32>, tensor<f32>) outs(%es : tensor<?x?x?x?xf32>) {
  ^bb0(%a: f32, %d: f32, %out: f32):
    %r = arith.divf %a, %d : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?x?xf32>
  %p, %live = attn.softmax %sc axes([3]) where (%b, %h, %i, %j) {
    %d = arith.subi %M, %N : index
    %x = arith.addi %i, %d : index
    %c = arith.cmpi sle, %j, %x : index
    attn.yield %c : i1
  } : tensor<?x?x?x?xf32>, tensor<?x?x?x?xi1>
  %eo = tensor.empty(%B, %H, %N, %F) : tensor<?x?x?x?xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, #s],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %live : tensor<?x?x?x?xf32>, tensor<?x?x?x?xi1>) outs(%fo : tensor<?x?x?x?xf32>) {
  ^bb0(%a: f32, %l: i1, %acc: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %f = linalg.index 3 : index
    %j = linalg.index 4 : index
    %hg = arith.muli %h, %G : index
    %g = arith.floordivsi %hg, %H : index
    %vv = tensor.extract %v[%b, %g, %j, %f] : tensor<?x?x?x?xf32>
    %m = arith.mulf %a, %vv : f32
    %t = arith.select %l, %m, %zero : f32
    %r = arith.addf %acc, %t : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?x?xf32>
  return %o : tensor<?x?x?x?xf32>
}

// -----

#q = affine_map<(i, j, e) -> (i, e)>
#k = affine_map<(i, j, e) -> (j, e)>
#s = affine_map<(i, j, e) -> (i, j)>
#p = affine_map<(i, f, j) -> (i, j)>
#v = affine_map<(i, f, j) -> (j, f)>
#o = affine_map<(i, f, j) -> (i, f)>

// Left alone: the weights are a result, too, so they are stored anyway.
// CHECK-LABEL: func @weights
// CHECK-NOT: attn.attention
// CHECK: attn.softmax
// CHECK-NOT: attn.attention
// REMARK: [Missed] {{.*}}Function=weights | Remark="not raised: the weights are read elsewhere too: they must be stored"
func.func @weights(%q: tensor<6x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x5xf32>, %zs: tensor<6x8xf32>,
                          %zo: tensor<6x5xf32>) -> (tensor<6x5xf32>, tensor<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %fs = linalg.fill ins(%zero : f32) outs(%zs : tensor<6x8xf32>) -> tensor<6x8xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<6x4xf32>, tensor<8x4xf32>) outs(%fs : tensor<6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %sum, %m : f32
    linalg.yield %r : f32
  } -> tensor<6x8xf32>
  %p, %live = attn.softmax %s axes([1]) where (%i, %j) {
    %c = arith.cmpi sle, %j, %i : index
    attn.yield %c : i1
  } : tensor<6x8xf32>, tensor<6x8xi1>
  %fo = linalg.fill ins(%zero : f32) outs(%zo : tensor<6x5xf32>) -> tensor<6x5xf32>
  %o = linalg.generic {indexing_maps = [#p, #p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %live, %v : tensor<6x8xf32>, tensor<6x8xi1>, tensor<8x5xf32>) outs(%fo : tensor<6x5xf32>) {
  ^bb0(%w: f32, %l: i1, %y: f32, %sum: f32):
    %m = arith.mulf %w, %y : f32
    %t = arith.select %l, %m, %zero : f32
    %r = arith.addf %sum, %t : f32
    linalg.yield %r : f32
  } -> tensor<6x5xf32>
  return %o, %p : tensor<6x5xf32>, tensor<6x8xf32>
}
