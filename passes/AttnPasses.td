//===- AttnPasses.td - from equations to attention -------------------------------===//
#ifndef HEED_PASSES_ATTNPASSES_TD
#define HEED_PASSES_ATTNPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnRoundProducts : Pass<"attn-round-products", "::mlir::func::FuncOp"> {
  let summary = "Products with bf16 weights round their other operand to bf16";
  let description = [{
    Only with `--products=bf16`, before all other passes and whatever the backend. A sum of products with a bf16 parameter, in
    which the parameter has an index of its own (a matrix product), rounds its other factor to bf16, to nearest
    and ties to even. Both factors are then bf16, their product is exact in f32, and where the target has a dot product
    of bf16 the contraction's schedule takes it. Left alone are sums whose factors are bf16 anyway, and with
    a remark those that are no matrix product (the taps of a convolution by channels).

    ```mlir
    #x = affine_map<(m, n, r) -> (m, r)>
    #w = affine_map<(m, n, r) -> (n, r)>
    #y = affine_map<(m, n, r) -> (m, n)>
    func.func @f(%x: tensor<?x4xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %w = attn.param "w" : tensor<8x4xbf16>
      %z = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<?x4xf32>, tensor<8x4xbf16>) outs(%y : tensor<?x8xf32>) {
      ^bb0(%a: f32, %b: bf16, %sum: f32):
        %c = arith.extf %b : bf16 to f32
        %p = arith.mulf %a, %c : f32
        %s = arith.addf %sum, %p : f32
        linalg.yield %s : f32
      } -> tensor<?x8xf32>
      return %z : tensor<?x8xf32>
    }
    ```
    becomes
    ```mlir
    #x = affine_map<(m, n, r) -> (m, r)>
    #w = affine_map<(m, n, r) -> (n, r)>
    #y = affine_map<(m, n, r) -> (m, n)>
    func.func @f(%x: tensor<?x4xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %w = attn.param "w" : tensor<8x4xbf16>
      %z = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<?x4xf32>, tensor<8x4xbf16>) outs(%y : tensor<?x8xf32>) {
      ^bb0(%a: f32, %b: bf16, %sum: f32):
        %c = arith.extf %b : bf16 to f32
        %n = arith.truncf %a : f32 to bf16
        %r = arith.extf %n : bf16 to f32
        %p = arith.mulf %r, %c : f32
        %s = arith.addf %sum, %p : f32
        linalg.yield %s : f32
      } -> tensor<?x8xf32>
      return %z : tensor<?x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def AttnFuseElementwise : Pass<"attn-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Elementwise producers are computed where they are read";
  let description = [{
    An elementwise `linalg.generic` is inlined into the ops that read it, as an operand or through `tensor.extract` at
    any coordinates, so that between two contractions stands one elementwise body, and head splits, casts and
    conditions leave no tensor behind. Stored, with a remark: what is read many times or by several ops and costs more than a load,
    what stands outside of the reader's loop, and tables in f64. A table over i and j that depends on j - i alone
    becomes a table over the offset, and so do positions that are to be checked, whose check is then one of these, and
    arithmetic on nothing but the offset (its bucket). A reduction that reads i and j as i // c and j // c alone becomes a table over blocks. What is known to loop over nothing is not computed.
    `expm1(x) + 1` is `exp(x)`, also where `expm1` is one side of a choice (`elu(x) + 1`).

    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @f(%x: tensor<8xf32>, %c: f32) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%v: f32, %o: f32):
        %m = arith.mulf %v, %c : f32
        linalg.yield %m : f32
      } -> tensor<8xf32>
      %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%v: f32, %o: f32):
        %t = math.tanh %v : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      return %b : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    #id = affine_map<(d0) -> (d0)>
    func.func @f(%x: tensor<8xf32>, %c: f32) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%v: f32, %o: f32):
        %m = arith.mulf %v, %c : f32
        %t = math.tanh %m : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      return %b : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AttnContractTables : Pass<"attn-contract-tables", "::mlir::func::FuncOp"> {
  let summary = "Products with rows of a table that data chooses, once for each row";
  let description = [{
    `sum(e) q[i,e] * (k[j,e] + t[label[i,j], e])` has one product of a query with each row of t, however many pairs have its
    label: it is computed for all rows, and looked up for each pair, so that a score holds a read in place of a second
    sum. Only for labels that data chooses: clipped offsets are tables over offsets (attn-raise-attention). Where the sizes do not
    tell whether rows are fewer than keys, tables of parameters are taken, and those that are added to what each pair has of
    its own; not the keys that a query gathers. Proven equal before it is taken, modulo the axioms of `passes/Algebra/`.

    ```mlir
    #q = affine_map<(i, j, e) -> (i, e)>
    #l = affine_map<(i, j, e) -> (i, j)>
    func.func @f(%q: tensor<6x4xf32>, %t: tensor<3x4xf32>, %label: tensor<6x8xi32>) -> tensor<6x8xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<6x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
      %s = linalg.generic {indexing_maps = [#q, #l, #l], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %label : tensor<6x4xf32>, tensor<6x8xi32>) outs(%z : tensor<6x8xf32>) {
      ^bb0(%a: f32, %l: i32, %sum: f32):
        %row = arith.index_cast %l : i32 to index
        %d = linalg.index 2 : index
        %b = tensor.extract %t[%row, %d] : tensor<3x4xf32>
        %m = arith.mulf %a, %b : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<6x8xf32>
      return %s : tensor<6x8xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d0, d2)>
    #map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
    #map3 = affine_map<(d0, d1) -> (d0, d1)>
    func.func @f(%q: tensor<6x4xf32>, %t: tensor<3x4xf32>, %label: tensor<6x8xi32>) -> tensor<6x8xf32> {
      %e = tensor.empty() : tensor<6x3xf32>
      %zero = arith.constant 0.000000e+00 : f32
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x3xf32>) -> tensor<6x3xf32>
      %qt = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %t : tensor<6x4xf32>, tensor<3x4xf32>) outs(%z : tensor<6x3xf32>) {
      ^bb0(%a: f32, %b: f32, %sum: f32):
        %m = arith.mulf %a, %b : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<6x3xf32>
      %f = tensor.empty() : tensor<6x8xf32>
      %s = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]}
          ins(%label : tensor<6x8xi32>) outs(%f : tensor<6x8xf32>) {
      ^bb0(%l: i32, %o: f32):
        %i = linalg.index 0 : index
        %row = arith.index_cast %l : i32 to index
        %p = tensor.extract %qt[%i, %row] : tensor<6x3xf32>
        linalg.yield %p : f32
      } -> tensor<6x8xf32>
      return %s : tensor<6x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AttnRaiseAttention : Pass<"attn-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "Contraction, score, normaliser, contraction to attn.attention";
  let description = [{
    Finds, by meaning and not by spelling, a sum over keys of a weight times a value, where the weight is a softmax of
    scores, or any other function of a contraction of queries with keys. A score of -inf (a select, an added mask)
    becomes `where`; softmax may be written out with max, exp and sum, its division may stand after the second
    product; a term beside the sum is the sink; sigmoid, relu and other weights without a row sum are raised too. What multiplies an
    exponential inside the sum, too (a mask of numbers), is one function with it, whose map is the identity; what multiplies a
    weight after the normaliser is `weight`. What varies over pairs is taken apart, what varies over one side stays a
    tensor. A clipped offset becomes a table over offsets, and so does
    a bias that reads by the offset: a term of its own. What only transposes or narrows the whole output (merged heads)
    becomes `result_map`. A quotient that is written out keeps its NaN in rows without a key of weight (`empty`).
    The logarithm of a sum of exponentials, and of one less its row's maximum with that added, is `lse` of the attention
    that has these scores; where nobody else reads them, of one whose values are 1.
    A softmax over queries, whose weights are summed over keys (slot attention), is read as exp(s[i,j] - l[j]), where l
    is the log-sum-exp of an attention whose queries are the keys: two attentions, and nothing of pairs is stored.
    What was recognised is proven: the op's decomposition is compared with what stood there, modulo the axioms of `passes/Algebra/`;
    if they differ nothing is rewritten, and the remark says where. Left alone, with a remark: weights that are read elsewhere
    too, heads that mix, a weight that is 0 where a condition fails (0 * NaN is NaN), a chain of plain products (attn-reorder-products).

    ```mlir
    #q = affine_map<(i, j, e) -> (i, e)>
    #k = affine_map<(i, j, e) -> (j, e)>
    #s = affine_map<(i, j, e) -> (i, j)>
    #p = affine_map<(i, f, j) -> (i, j)>
    #v = affine_map<(i, f, j) -> (j, f)>
    #o = affine_map<(i, f, j) -> (i, f)>
    func.func @f(%q: tensor<6x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x5xf32>, %zs: tensor<6x8xf32>,
             %zo: tensor<6x5xf32>) -> tensor<6x5xf32> {
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
      return %o : tensor<6x5xf32>
    }
    ```
    becomes
    ```mlir
    #q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
    #k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
    #v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
    func.func @f(%q: tensor<6x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x5xf32>, %zs: tensor<6x8xf32>,
             %zo: tensor<6x5xf32>) -> tensor<6x5xf32> {
      %c6 = arith.constant 6 : index
      %c8 = arith.constant 8 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%c6, %c8, %c4, %c5)
        term(%q, %k : tensor<6x4xf32>, tensor<8x4xf32>) maps [#q, #k]
        value(%v : tensor<8x5xf32>) maps [#v]
        score (%i, %j : index, %t : f32) {
          attn.yield %t : f32
        }
        where (%i, %j) {
          %c = arith.cmpi sle, %j, %i : index
          attn.yield %c : i1
        }
        normalise(exp divide stabilise) : tensor<6x5xf32>
      return %o : tensor<6x5xf32>
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnReorderProducts : Pass<"attn-reorder-products", "::mlir::func::FuncOp"> {
  let summary = "Chains of contractions in their cheapest order";
  let description = [{
    A sum over products one of which is itself a contraction may be summed in another order: (Q K^T) V costs N M (E + F),
    Q (K^T V) costs (N + M) E F. Factors that do not depend on what is summed (a normaliser, scales of a
    query) move out of the sums. Known sizes decide here; symbolic ones by `scf.if` on the host, in each call: one for
    all sums that meet in an elementwise op (a sum and its normaliser), which moves into the branches with what they alone read. A sum
    beside a product of the same terms with a small result (K^T 1 beside K^T V) is one more row of it. A dear factor that is used many
    times is a tensor of its own; a divisor of all products divides a factor, a parameter if there is one. A reduction over dims
    that lie apart in memory is one over those that end an array, then one over the others. A chain of four of known
    sizes is reordered step by step. Each other order is proven equal before it is taken, modulo the axioms of
    `passes/Algebra/`. Left alone, with a remark: a sum with a condition over pairs (causal), a sum over more than three factors at
    once. Products with parameters alone keep their order.

    ```mlir
    #q = affine_map<(i, j, e) -> (i, e)>
    #k = affine_map<(i, j, e) -> (j, e)>
    #a = affine_map<(i, j, e) -> (i, j)>
    #p = affine_map<(i, f, j) -> (i, j)>
    #v = affine_map<(i, f, j) -> (j, f)>
    #o = affine_map<(i, f, j) -> (i, f)>
    func.func @f(%q: tensor<512x4xf32>, %k: tensor<512x4xf32>, %v: tensor<512x4xf32>) -> tensor<512x4xf32> {
      %zero = arith.constant 0.0 : f32
      %ea = tensor.empty() : tensor<512x512xf32>
      %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<512x512xf32>) -> tensor<512x512xf32>
      %a = linalg.generic {indexing_maps = [#q, #k, #a], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<512x4xf32>, tensor<512x4xf32>) outs(%fa : tensor<512x512xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %m = arith.mulf %x, %y : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<512x512xf32>
      %eo = tensor.empty() : tensor<512x4xf32>
      %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<512x4xf32>) -> tensor<512x4xf32>
      %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %v : tensor<512x512xf32>, tensor<512x4xf32>) outs(%fo : tensor<512x4xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %m = arith.mulf %x, %y : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<512x4xf32>
      return %o : tensor<512x4xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d2, d1)>
    #map1 = affine_map<(d0, d1, d2) -> (d2, d0)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
    #map3 = affine_map<(d0, d1, d2) -> (d0, d2)>
    func.func @f(%q: tensor<512x4xf32>, %k: tensor<512x4xf32>, %v: tensor<512x4xf32>) -> tensor<512x4xf32> {
      %zero = arith.constant 0.000000e+00 : f32
      %ekv = tensor.empty() : tensor<4x4xf32>
      %fkv = linalg.fill ins(%zero : f32) outs(%ekv : tensor<4x4xf32>) -> tensor<4x4xf32>
      %kv = linalg.generic {indexing_maps = [#map, #map1, #map2],
                            iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%v, %k : tensor<512x4xf32>, tensor<512x4xf32>) outs(%fkv : tensor<4x4xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %m = arith.mulf %x, %y : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<4x4xf32>
      %eo = tensor.empty() : tensor<512x4xf32>
      %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<512x4xf32>) -> tensor<512x4xf32>
      %o = linalg.generic {indexing_maps = [#map3, #map, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %kv : tensor<512x4xf32>, tensor<4x4xf32>) outs(%fo : tensor<512x4xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %m = arith.mulf %x, %y : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<512x4xf32>
      return %o : tensor<512x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif
