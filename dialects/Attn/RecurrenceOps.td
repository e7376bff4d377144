//===- RecurrenceOps.td - recurrences --------------------------------------------------------===//
// Included by Ops.td, which says what the numbers of constraints are.

#ifndef HEED_DIALECTS_ATTN_RECURRENCEOPS_TD
#define HEED_DIALECTS_ATTN_RECURRENCEOPS_TD

def Attn_ScanOp : Attn_Op<"scan", [AttrSizedOperandSegments, AttrSizedResultSegments, AggregatedOpInterface, RecursiveMemoryEffects]> {
  let summary = "A recurrence: states that each step makes anew, and rows that the steps leave";
  let description = [{
    With the states s, which begin as `starts`, and one output per `outs`:

    ```text
    s     = starts
    for t = low .. high - 1:  s, r = body(t, s)
                              o[.., t - low, ..] = r          the position stands at `axis`; `reversed`: high - 1 - t
    results: s, o
    ```
    A scan of no step gives the states that it began with. `outs` say how large the outputs are; nothing is read of them.
    The body may read anything that is defined before the scan.

    - scan.c1  `axes` and `reversed` have an element per tensor of `outs`; an axis is in [0, rank).
    - scan.c2  The body takes an index and a tensor of the type of each of `starts`.
    - scan.c3  It ends with an `attn.step` whose states have the types of `starts`, and whose rows are the tensors of `outs` without the axis.
    - scan.c4  Results have the types of `starts` and of `outs`.

    ```mlir
    %S, %o = attn.scan %t = %zero to %N states(%s = %S0 : tensor<?x?xf32>) rows(%e axis 0 : tensor<?x?xf32>) {
      %k = tensor.extract_slice %keys[%t, 0] [1, %E] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
      ...
      attn.step states(%s1 : tensor<?x?xf32>) rows(%r : tensor<?xf32>)
    }
    ```
  }];
  let arguments = (ins Index:$low, Index:$high, Variadic<AnyRankedTensor>:$starts, Variadic<AnyRankedTensor>:$outs,
                       DenseI64ArrayAttr:$axes, DenseBoolArrayAttr:$reversed);
  let results = (outs Variadic<AnyRankedTensor>:$states, Variadic<AnyRankedTensor>:$stacked);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    ::mlir::BlockArgument step() { return getBody().getArgument(0); }
    ::mlir::ValueRange carried() { return getBody().getArguments().drop_front(); }
    StepOp terminator();
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$low, "::mlir::Value":$high, "::mlir::ValueRange":$starts,
                             "::mlir::ValueRange":$outs, "::llvm::ArrayRef<int64_t>":$axes, "::llvm::ArrayRef<bool>":$reversed)>];
  let skipDefaultBuilders = 1;
}

def Attn_StepOp : Attn_Op<"step", [Pure, Terminator, AttrSizedOperandSegments, HasParent<"ScanOp">]> {
  let summary = "The states after a step of `attn.scan`, and its rows";
  let arguments = (ins Variadic<AnyRankedTensor>:$states, Variadic<AnyRankedTensor>:$rows);
  let assemblyFormat = [{
    (`states` `(` $states^ `:` type($states) `)`)? (`rows` `(` $rows^ `:` type($rows) `)`)? attr-dict
  }];
}

#endif
