// Where nothing depends on a query's number, each form computes the queries that it is the fastest for: wide tiles those that fill
// them, a narrow tile what is left of one vector, rows one or two beyond that.
// RUN: heed-opt %s --attn-choose-algorithm --attn-stream-attention --attn-to-halide --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @model
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[SHORT:.*]] = arith.cmpi ule, %[[N:.*]], %c512
// CHECK: %[[OVER:.*]] = arith.remui %[[N]], %c16
// CHECK: arith.cmpi ule, %[[OVER]], %c2
// CHECK: %[[ROWS:.*]] = arith.select %{{.*}}, %[[N]], %{{.*}}
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[ROWS]]
// CHECK: %[[LAST:.*]] = arith.remui %[[LEFT]], %c32
// CHECK: %[[NARROW:.*]] = arith.select %{{.*}}, %[[LAST]], %{{.*}}
// CHECK: %[[WIDE:.*]] = arith.subi %[[LEFT]], %[[NARROW]]
// CHECK: %[[OUT:.*]] = tensor.cast
// CHECK: %[[SOME:.*]] = arith.cmpi ne, %[[WIDE]]
// CHECK: %[[FIRST:.*]] = scf.if %[[SOME]]
// CHECK: %[[Q:.*]] = tensor.extract_slice %arg0[0, 0, %{{.*}}, 0] [%{{.*}}, %{{.*}}, %[[WIDE]], 64]
// CHECK: %[[O:.*]] = tensor.extract_slice %[[OUT]][0, 0, %{{.*}}, 0] [%{{.*}}, %{{.*}}, %[[WIDE]], 64]
// CHECK: %[[R:.*]] = halide.call @k0(%[[Q]], %arg1, %arg2, %[[WIDE]] : {{.*}}) outs(%[[O]] :
// CHECK: tensor.insert_slice %[[R]] into %[[OUT]]
// CHECK: scf.yield %[[OUT]]
// CHECK: scf.if
// CHECK: tensor.extract_slice %arg0[0, 0, %[[WIDE]], 0] [%{{.*}}, %{{.*}}, %[[NARROW]], 64]
// CHECK: tensor.extract_slice %[[FIRST]][0, 0, %[[WIDE]], 0]
// CHECK: halide.call @k0_narrow({{.*}}, %[[NARROW]] :
// CHECK: scf.if
// CHECK: tensor.extract_slice %arg0[0, 0, %[[LEFT]], 0] [%{{.*}}, %{{.*}}, %[[ROWS]], 64]
// CHECK: halide.call @k0_few({{.*}}, %[[ROWS]] :
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
    normalise(exp divide stabilise) : tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
}

// -----

// A score that knows its query's number, and queries that are the keys too, leave a call whole.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: slice
// CHECK: halide.call @k1_few
// CHECK-NOT: slice
// CHECK: halide.call @k2_few
// CHECK-LABEL: halide.pipeline
#q = affine_map<(i,j,e,f) -> (i,e)>
#k = affine_map<(i,j,e,f) -> (j,e)>
#v = affine_map<(i,j,e,f) -> (j,f)>
module attributes {halide.target = {name = "x86-64-v4", vector_bits = 512 : i64, vector_registers = 32 : i64, l1 = 49152 : i64, l2 = 2097152 : i64, cores = 2 : i64}} {
func.func @whole(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %n: index) -> (tensor<?x64xf32>, tensor<?x64xf32>) attributes {attn.model} {
  %o = func.call @k1(%q, %k, %k, %n) : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, index) -> tensor<?x64xf32>
  %p = func.call @k2(%q, %k, %n) : (tensor<?x64xf32>, tensor<?x64xf32>, index) -> tensor<?x64xf32>
  return %o, %p : tensor<?x64xf32>, tensor<?x64xf32>
}
func.func private @k1(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>, %n: index) -> tensor<?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c64 = arith.constant 64 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %c64, %c64)
    term(%q, %k : tensor<?x64xf32>, tensor<?x64xf32>) maps [#q, #k] value(%v : tensor<?x64xf32>) maps [#v]
    score (%i: index, %j: index, %t: f32) { %d = arith.subi %j, %i : index %x = arith.index_cast %d : index to i64 %y = arith.sitofp %x : i64 to f32 %z = arith.addf %t, %y : f32 attn.yield %z : f32 }
    normalise(exp divide stabilise) : tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
func.func private @k2(%q: tensor<?x64xf32>, %v: tensor<?x64xf32>, %n: index) -> tensor<?x64xf32> attributes {attn.kernel, attn.kind = "attention"} {
  %c64 = arith.constant 64 : index
  %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %c64, %c64)
    term(%q, %q : tensor<?x64xf32>, tensor<?x64xf32>) maps [#q, #k] value(%v : tensor<?x64xf32>) maps [#v]
    score (%i: index, %j: index, %t: f32) { attn.yield %t : f32 }
    normalise(exp divide stabilise) : tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
}
