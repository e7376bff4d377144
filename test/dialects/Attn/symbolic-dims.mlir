// Extents as polynomials of the dims that a model names.
// RUN: heed-opt %s --print-symbolic-dims --verify-diagnostics

#q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
#k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
#v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
#swapped = affine_map<(d0, d1, d2, d3) -> (d3, d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// Dims of one name are equal; arithmetic is looked through, in one form.
func.func @names(%x: tensor<?x?xf32> {attn.dims = ["N", "E"]}, %y: tensor<?xf32> {attn.dims = ["N"]}, %z: tensor<?xf32>) {
  %c0 = arith.constant 0 : index // expected-remark {{'0'}}
  %c1 = arith.constant 1 : index // expected-remark {{'1'}}
  %c3 = arith.constant 3 : index // expected-remark {{'3'}}
  %n = tensor.dim %x, %c0 : tensor<?x?xf32> // expected-remark {{'N'}}
  %m = tensor.dim %y, %c0 : tensor<?xf32> // expected-remark {{'N'}}
  %e = tensor.dim %x, %c1 : tensor<?x?xf32> // expected-remark {{'E'}}
  %u = tensor.dim %z, %c0 : tensor<?xf32> // expected-remark {{'?2'}}
  %a = arith.addi %n, %e : index // expected-remark {{'N + E'}}
  %b = arith.muli %a, %c3 : index // expected-remark {{'3*N + 3*E'}}
  %c = arith.subi %b, %m : index // expected-remark {{'2*N + 3*E'}}
  %d = arith.subi %c, %b : index // expected-remark {{'-N'}}
  %p = arith.muli %a, %u : index // expected-remark {{'?2*N + ?2*E'}}
  return
}

// A division that leaves nothing over is a polynomial, another one a size of its own, equal where its operands are.
func.func @divisions(%x: tensor<?xf32> {attn.dims = ["N"]}) {
  %c0 = arith.constant 0 : index // expected-remark {{'0'}}
  %c2 = arith.constant 2 : index // expected-remark {{'2'}}
  %c6 = arith.constant 6 : index // expected-remark {{'6'}}
  %n = tensor.dim %x, %c0 : tensor<?xf32> // expected-remark {{'N'}}
  %a = arith.muli %n, %c6 : index // expected-remark {{'6*N'}}
  %b = arith.divsi %a, %c2 : index // expected-remark {{'3*N'}}
  %c = arith.divsi %n, %c2 : index // expected-remark {{'N//2'}}
  %d = arith.divsi %n, %c2 : index // expected-remark {{'N//2'}}
  %e = arith.subi %c, %d : index // expected-remark {{'0'}}
  %f = arith.minsi %n, %c6 : index // expected-remark {{'min(6, N)'}}
  %g = arith.divsi %a, %n : index // expected-remark {{'6'}}
  %h = arith.addi %n, %c2 : index // expected-remark {{'N + 2'}}
  %i = arith.muli %h, %n : index // expected-remark {{'2*N + N*N'}}
  %j = arith.divsi %i, %h : index // expected-remark {{'N'}}
  return
}

// A remainder is what a division leaves; minima and maxima are decided where the sizes tell.
func.func @bounds(%x: tensor<?xf32> {attn.dims = ["N"]}) {
  %c0 = arith.constant 0 : index // expected-remark {{'0'}}
  %c8 = arith.constant 8 : index // expected-remark {{'8'}}
  %n = tensor.dim %x, %c0 : tensor<?xf32> // expected-remark {{'N'}}
  %a = arith.remsi %n, %c8 : index // expected-remark {{'N - 8*(N//8)'}}
  %b = arith.ceildivsi %n, %c8 : index // expected-remark {{'(N + 7)//8'}}
  %c = arith.addi %n, %c8 : index // expected-remark {{'N + 8'}}
  %d = arith.maxsi %c, %n : index // expected-remark {{'N + 8'}}
  %e = arith.minui %n, %c : index // expected-remark {{'N'}}
  %f = arith.subi %c8, %n : index // expected-remark {{'-N + 8'}}
  %g = arith.divsi %f, %c8 : index // expected-remark {{'divsi(-N + 8, 8)'}}
  %h = arith.divsi %f, %c8 : index // expected-remark {{'divsi(-N + 8, 8)'}}
  %i = arith.subi %g, %h : index // expected-remark {{'0'}}
  return
}

// What the function requires before it computes holds for its sizes: a bound, a divisor, an order. What it requires in one
// branch only says nothing.
func.func @required(%x: tensor<?x?xf32> {attn.dims = ["N", "D"]}, %y: tensor<?x?xf32> {attn.dims = ["M", "H"]}, %c: i1) {
  %c0 = arith.constant 0 : index // expected-remark {{'0'}}
  %c1 = arith.constant 1 : index // expected-remark {{'1'}}
  %c8 = arith.constant 8 : index // expected-remark {{'8'}}
  %n = tensor.dim %x, %c0 : tensor<?x?xf32> // expected-remark {{'N'}}
  %d = tensor.dim %x, %c1 : tensor<?x?xf32> // expected-remark {{'D'}}
  %m = tensor.dim %y, %c0 : tensor<?x?xf32> // expected-remark {{'M'}}
  %h = tensor.dim %y, %c1 : tensor<?x?xf32> // expected-remark {{'H'}}
  %enough = arith.cmpi sge, %n, %c8 : index
  attn.require %enough, "N = {0}, expected 8 at least" (%n) : index
  %ordered = arith.cmpi slt, %n, %m : index
  %some = arith.cmpi ne, %h, %c0 : index
  %both = arith.andi %ordered, %some : i1
  attn.require %both, "N = {0}, H = {1}" (%n, %h) : index, index
  %a = arith.maxsi %n, %c8 : index // expected-remark {{'N'}}
  %b = arith.minsi %m, %n : index // expected-remark {{'N'}}
  %e = arith.maxsi %h, %c1 : index // expected-remark {{'H'}}
  %f = arith.maxsi %d, %c1 : index // expected-remark {{'max(1, D)'}}
  scf.if %c {
    %wide = arith.cmpi sge, %d, %c8 : index
    attn.require %wide, "D = {0}, expected 8 at least" (%d) : index
  }
  %g = arith.maxsi %d, %c8 : index // expected-remark {{'max(8, D)'}}
  return
}

// Coefficients are exact: 2^62 * 4 is not 0.
func.func @exact(%x: tensor<?xf32> {attn.dims = ["N"]}) {
  %c0 = arith.constant 0 : index // expected-remark {{'0'}}
  %c4 = arith.constant 4 : index // expected-remark {{'4'}}
  %large = arith.constant 4611686018427387904 : index // expected-remark {{'4611686018427387904'}}
  %n = tensor.dim %x, %c0 : tensor<?xf32> // expected-remark {{'N'}}
  %a = arith.muli %n, %large : index // expected-remark {{'4611686018427387904*N'}}
  %b = arith.muli %a, %c4 : index // expected-remark {{'18446744073709551616*N'}}
  return
}

// Through reshapes, inits, casts, slices and this dialect's ops.
func.func @ops(%x: tensor<?x?xf32> {attn.dims = ["N", "E"]}, %y: tensor<?x?xf32> {attn.dims = ["M", "E"]}) {
  %c0 = arith.constant 0 : index // expected-remark {{'0'}}
  %c1 = arith.constant 1 : index // expected-remark {{'1'}}
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32> // expected-remark {{'N'}}
  %e = tensor.dim %x, %c1 : tensor<?x?xf32> // expected-remark {{'E'}}
  %m = tensor.dim %y, %c0 : tensor<?x?xf32> // expected-remark {{'M'}}
  %em = tensor.empty(%n, %m) : tensor<?x?xf32> // expected-remark {{[N, M]}}
  %f = linalg.fill ins(%zero : f32) outs(%em : tensor<?x?xf32>) -> tensor<?x?xf32> // expected-remark {{[N, M]}}
  %all = tensor.collapse_shape %f [[0, 1]] : tensor<?x?xf32> into tensor<?xf32> // expected-remark {{[M*N]}}
  %wide = tensor.expand_shape %all [[0, 1]] output_shape [%m, %n] : tensor<?xf32> into tensor<?x?xf32> // expected-remark {{[M, N]}}
  %s = tensor.extract_slice %f[0, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32> // expected-remark {{[M]}}
  // expected-remark@+1 {{[N, M]}}
  %p, %live = attn.softmax %f axes([1]) : tensor<?x?xf32>, tensor<?x?xi1>
  %w = attn.param "w" : tensor<?x4xf32> // expected-remark {{, 4]}}
  // expected-remark@+2 {{[E, N]}}
  // expected-remark@+1 {{[N]}}
  %o, %lse = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %e)
      term(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) maps [#q, #k] value(%y : tensor<?x?xf32>) maps [#v] result_map #swapped
      score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
      normalise(exp divide stabilise) : tensor<?x?xf32>, lse tensor<?xf32>
  return
}

// What a loop carries keeps its extents if every turn yields the same, and so do two ways to compute a tensor.
func.func @regions(%x: tensor<?xf32> {attn.dims = ["N"]}, %c: i1) {
  %c0 = arith.constant 0 : index // expected-remark {{'0'}}
  %c1 = arith.constant 1 : index // expected-remark {{'1'}}
  %c9 = arith.constant 9 : index // expected-remark {{'9'}}
  %n = tensor.dim %x, %c0 : tensor<?xf32> // expected-remark {{'N'}}
  %kept = scf.for %k = %c0 to %c9 step %c1 iter_args(%t = %x) -> tensor<?xf32> { // expected-remark {{[N]}}
    %d = tensor.dim %t, %c0 : tensor<?xf32> // expected-remark {{'N'}}
    %e = tensor.empty(%d) : tensor<?xf32> // expected-remark {{[N]}}
    scf.yield %e : tensor<?xf32>
  }
  %grown = scf.for %k = %c0 to %c9 step %c1 iter_args(%t = %x) -> tensor<?xf32> { // expected-remark {{[?}}
    %d = tensor.dim %t, %c0 : tensor<?xf32> // expected-remark {{'?}}
    %l = arith.addi %d, %c1 : index // expected-remark {{'?}}
    %e = tensor.empty(%l) : tensor<?xf32> // expected-remark {{[?}}
    scf.yield %e : tensor<?xf32>
  }
  %same = scf.if %c -> tensor<?xf32> { // expected-remark {{[N + 1]}}
    %l = arith.addi %n, %c1 : index // expected-remark {{'N + 1'}}
    %e = tensor.empty(%l) : tensor<?xf32> // expected-remark {{[N + 1]}}
    scf.yield %e : tensor<?xf32>
  } else {
    %l = arith.addi %c1, %n : index // expected-remark {{'N + 1'}}
    %e = tensor.empty(%l) : tensor<?xf32> // expected-remark {{[N + 1]}}
    scf.yield %e : tensor<?xf32>
  }
  %other = scf.if %c -> tensor<?xf32> { // expected-remark {{[?}}
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %same : tensor<?xf32>
  }
  return
}

// After bufferisation.
func.func @buffers(%x: memref<?xf32> {attn.dims = ["N"]}) {
  %c0 = arith.constant 0 : index // expected-remark {{'0'}}
  %n = memref.dim %x, %c0 : memref<?xf32> // expected-remark {{'N'}}
  %b = memref.alloc(%n, %n) : memref<?x2x?xf32> // expected-remark {{[N, 2, N]}}
  return
}
