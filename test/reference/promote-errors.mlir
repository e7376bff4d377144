// RUN: heed-opt %s -reference-promote -split-input-file -verify-diagnostics

func.func @f(%x: memref<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{expected numbers and ranked tensors, found 'memref<4xf32>'}}
  %y = memref.load %x[%c0] : memref<4xf32>
  return %y : f32
}

// -----

func.func @g(%x: tensor<*xf32>) -> tensor<*xf32> {
  // expected-error@+1 {{expected numbers and ranked tensors, found 'tensor<*xf32>'}}
  return %x : tensor<*xf32>
}

// -----

func.func @h(%n: index) -> f32 {
  // expected-error@+1 {{expected numbers and ranked tensors, found 'memref<?xf32>'}}
  %x = memref.alloc(%n) : memref<?xf32>
  %y = memref.load %x[%n] : memref<?xf32>
  return %y : f32
}
