//===- VerifyPasses.td - what stands between two stations --------------------------===//
#ifndef HEED_PASSES_VERIFYPASSES_TD
#define HEED_PASSES_VERIFYPASSES_TD

include "mlir/Pass/PassBase.td"

class AttnVerify<string station, int section, string what, string refused>
    : Pass<"attn-verify-" # station, "::mlir::ModuleOp"> {
  let summary = "Checks " # what;
  let description = [{
    Fails at the first op that breaks a rule of section }] # section # [{ of docs/ir.md and names the rule.
    heedc runs it between its stations; it changes nothing. It refuses, say,
}] # refused;
}
def AttnVerifyFrontEnd : AttnVerify<"front-end", 1, "the IR that a front end makes", [{
    ```mlir
    func.func @no_model() {
      return
    }
    ```
    with
    ```text
    'func.func' op expected a public func.func with a body and attn.model (front.c1)
    ```
}]>;
def AttnVerifyAttention : AttnVerify<"attention", 2, "attentions before kernels are formed", [{
    ```mlir
    #q = affine_map<(i, j, e, f) -> (i, e)>
    #k = affine_map<(i, j, e, f) -> (j, e)>
    #v = affine_map<(i, j, e, f) -> (j, f)>
    func.func @undecided(%q: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
      %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
          term(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) maps [#q, #k] value(%q : tensor<4x4xf32>) maps [#v]
          score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
      return %o : tensor<4x4xf32>
    }
    ```
    with
    ```text
    'attn.attention' op has no attn.plan (attention-ir.c1)
    ```
}]>;
def AttnVerifyKernels : AttnVerify<"kernels", 3, "kernels and the host that calls them", [{
    ```mlir
    func.func private @kernel() -> tensor<4xf32> attributes {attn.kernel} {
      %w = attn.param "w" : tensor<4xf32>
      return %w : tensor<4xf32>
    }
    ```
    with
    ```text
    'attn.param' op stands in a kernel, where only host code may use it (kernels.c2)
    ```
}]>;
def AttnVerifyHalide : AttnVerify<"halide", 4, "pipelines and the host that calls them", [{
    ```mlir
    halide.pipeline @unused {
      %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
      halide.output %f
    }
    ```
    with
    ```text
    'halide.pipeline' op is called nowhere (halide-ir.c1)
    ```
}]>;
def AttnVerifyHost : AttnVerify<"host", 5, "host code before it becomes LLVM", [{
    ```mlir
    func.func @foreign(%v: vector<4xf32>) {
      %s = vector.extract %v[0] : f32 from vector<4xf32>
      return
    }
    ```
    with
    ```text
    'vector.extract' op has no lowering to LLVM in host code (host.c2)
    ```
}]>;

#endif
