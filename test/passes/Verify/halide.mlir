// Each rule of docs/ir.md, section 4, beyond the ops' own constraints.
// RUN: heedc %heed_src/models/core/encoder-layer.heed --emit=halide -o - | heed-opt --attn-verify-halide -o /dev/null
// RUN: heed-opt %s -split-input-file -verify-diagnostics --attn-verify-halide

// expected-error @+1 {{stands beside pipelines and host functions (halide-ir.c1)}}
func.func private @left(%x: tensor<4xf32>) -> tensor<4xf32> attributes {attn.kernel} {
  return %x : tensor<4xf32>
}

// -----
// expected-error @+1 {{is called nowhere (halide-ir.c1)}}
halide.pipeline @unused {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.output %f
}

// -----
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{stands in host code, which computes scalars and calls kernels (halide-ir.c2)}}
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----
halide.pipeline @fast {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    %w = arith.mulf %v, %v fastmath<contract> : f32
    // expected-error @+1 {{has fast-math flags, expected at most contract and reassoc on addf, mulf, subf and divf (halide-ir.c3)}}
    %d = math.exp %w fastmath<reassoc> : f32
    halide.yield %d : f32
  }
  halide.output %f
}

// -----
halide.pipeline @faster {
  %x = halide.buffer "x" ("i") : f32
  %f = halide.func "f" (%i = "i") : f32 {
    %v = halide.read %x[%i] : f32
    // expected-error @+1 {{expected at most contract and reassoc on addf}}
    %w = arith.mulf %v, %v fastmath<nnan> : f32
    halide.yield %w : f32
  }
  halide.output %f
}

// -----
halide.pipeline @tail {
  %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
  halide.update %f set (%i) { halide.yield %i : i32 }
  // expected-error @+1 {{splits an update of the output 'f', expected it to name its tail (halide-ir.c4)}}
  halide.split %f stage 1, "i" into ("io", "ii") by 8
  halide.output %f
}
