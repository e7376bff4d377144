//===- StateOps.td - what lives from call to call ------------------------------------------===//
// Constraints are numbered `op.cN`; the verifier and the test that covers one carry its number.

#ifndef HEED_DIALECTS_ATTN_STATEOPS_TD
#define HEED_DIALECTS_ATTN_STATEOPS_TD

def Attn_UpdateStateOp : Attn_Op<"update_state", [Pure, AttrSizedOperandSegments, AggregatedOpInterface, AllTypesMatch<["state", "result"]>]> {
  let summary = "A tensor with other elements at some places";
  let description = [{
    ```text
    result = state, but result[p_0 x, p_1 x, ..] = values[x]          for all x of values
    p_k x = x[axes[k]]                                               if axes[k] >= 0
    p_k x = positions m at maps m of x                             if axes[k] = -1 - m; of an index: the index
    ```
    With `where` only of those x for which it is true. The places lie in the state, which the model proves or checks before,
    and are distinct: with `check_distinct` the call fails where two of them are one.
    Bufferised in place where nobody reads the old state afterwards.

    - update_state.c1  `axes` has an entry for each axis of the state, each an axis of the values or a position.
    - update_state.c2  The element types of values and state are the same.
    - update_state.c3  There is a map for each position and for `where`, from the axes of the values to its own: a
      projection of distinct axes, in their order.

    Positions are indices or tensors of i64.
    Decomposes to loops over the values (its definition).

    ```mlir
    // kc[l, b, len[b] + n, e] = k[b, n, e]
    %new = attn.update_state %k into %kc axes [-1, 0, -2, 2] at (%l, %p : index, tensor<?x?xi64>)
      maps [affine_map<(b, n, e) -> ()>, affine_map<(b, n, e) -> (b, n)>] : tensor<?x?x64xf32>, tensor<12x?x?x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$values, AnyRankedTensor:$state,
                       Variadic<AnyTypeOf<[Index, RankedTensorOf<[I64]>]>>:$positions,
                       Optional<RankedTensorOf<[I1]>>:$mask, DenseI64ArrayAttr:$axes, AffineMapArrayAttr:$maps,
                       UnitAttr:$check_distinct);
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    /// What a call says that fails because of `check_distinct`.
    std::string distinctMessage();
  }];
  let assemblyFormat = [{
    $values `into` $state `axes` $axes `at` `(` ($positions^ `:` type($positions))? `)` (`where` $mask^ `:` type($mask))?
    (`check_distinct` $check_distinct^)? `maps` $maps attr-dict `:` type($values) `,` type($state)
  }];
}

def Attn_WriteStateOp : Attn_Op<"write_state", [AttrSizedOperandSegments]> {
  let summary = "attn.update_state in memory";
  let description = [{
    ```text
    state[p_0 x, p_1 x, ..] = values[x]                             for all x of values, with p as in attn.update_state
    ```
    What `attn.update_state` is after bufferisation. If the call fails later, what stood there before stands there again.

    - write_state.c1  The axes are as in update_state.c1, types and maps as in update_state.c2 and update_state.c3.
    - write_state.c4  Positions are indices or memrefs of i64.

    ```mlir
    attn.write_state %k into %kc axes [-1, 0, -2, 2] at (%l, %p : index, memref<?x?xi64>)
      maps [affine_map<(b, n, e) -> ()>, affine_map<(b, n, e) -> (b, n)>] : memref<?x?x64xf32>, memref<12x?x?x64xf32>
    ```
  }];
  let arguments = (ins Arg<AnyStridedMemRef, "", [MemRead]>:$values, Arg<AnyStridedMemRef, "", [MemRead, MemWrite]>:$state,
                       Arg<Variadic<AnyTypeOf<[Index, AnyStridedMemRef]>>, "", [MemRead]>:$positions,
                       Arg<Optional<MemRefOf<[I1]>>, "", [MemRead]>:$mask, DenseI64ArrayAttr:$axes,
                       AffineMapArrayAttr:$maps, UnitAttr:$check_distinct);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $values `into` $state `axes` $axes `at` `(` ($positions^ `:` type($positions))? `)` (`where` $mask^ `:` type($mask))?
    (`check_distinct` $check_distinct^)? `maps` $maps attr-dict `:` type($values) `,` type($state)
  }];
}

#endif
