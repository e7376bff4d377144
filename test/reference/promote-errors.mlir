// RUN: heed-opt %s -reference-promote -verify-diagnostics

func.func @f(%x: memref<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{expected values and tensors, found memory}}
  %y = memref.load %x[%c0] : memref<4xf32>
  return %y : f32
}
