// Each rule of docs/ir.md, section 5. That hosts of both backends are accepted is what heedc runs in every other test.
// RUN: heed-opt %s -split-input-file -verify-diagnostics --attn-verify-host

func.func @accepted(%x: memref<?xf32>, %y: memref<?xf32> {attn.result}) attributes {attn.model} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %ok = arith.cmpi ne, %n, %c0 : index
  attn.require %ok, "empty"
  memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----
func.func @tensor(%x: memref<?xf32>) {
  // expected-error @+1 {{works on tensors after bufferisation (host.c1)}}
  %t = bufferization.to_tensor %x : memref<?xf32> to tensor<?xf32>
  return
}

// -----
func.func @foreign(%v: vector<4xf32>) {
  // expected-error @+1 {{has no lowering to LLVM in host code (host.c2)}}
  %s = vector.extract %v[0] : f32 from vector<4xf32>
  return
}

// -----
// expected-error @+1 {{is a model that returns 'memref<?xf32>', expected results in attn.result arguments (host.c3)}}
func.func @returns(%x: memref<?xf32>) -> memref<?xf32> attributes {attn.model} {
  return %x : memref<?xf32>
}
