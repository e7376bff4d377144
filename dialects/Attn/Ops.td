//===- Ops.td - the ops of the attn dialect -----------------------------------------------===//
// Constraints are numbered `op.cN`; the verifier and the test that covers one carry its number.

#ifndef HEED_DIALECTS_ATTN_OPS_TD
#define HEED_DIALECTS_ATTN_OPS_TD

include "dialects/Attn/Dialect.td"
include "dialects/Attn/Interfaces.td"
include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Attn_Op<string mnemonic, list<Trait> traits = []> : Op<Attn_Dialect, mnemonic, traits>;

// A failed check ends the call: a write that no other op reads, so that it stays and stays in order.
def Attn_Failure : Resource<"::heed::attn::FailureResource">;

// What `init` computed from the weights: written there alone, read in every call.
def Attn_Kept : Resource<"::heed::attn::KeptResource">;

def Attn_Shaped : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef], "ranked tensor or memref">;

def Attn_ParamOp : Attn_Op<"param", [Pure]> {
  let summary = "A tensor of the model's weights file";
  let description = [{
    ```text
    result = file[name], where `{k}` in name is the k-th index operand in decimal
    ```
    Several names are alternatives: the first that the file holds. The file may store f16, bf16 or f32 for any
    of these; values are converted when the file is opened. After bufferisation the result is a memref that
    nobody writes.

    - param.c1  There is at least one name, and no name is empty.
    - param.c2  Every `{k}` in a name has k in [0, number of operands); a brace stands for nothing else.
    - param.c3  The element type is f32, f16, bf16, i32, i64, i8 or i1.

    Canonical: numbers that are known stand in the names, no name twice.

    ```mlir
    %w = attn.param "encoder.layer.{0}.weight" | "bert.encoder.layer.{0}.weight" [%l] : tensor<384x384xf32>
    ```
  }];
  let arguments = (ins StrArrayAttr:$names, Variadic<Index>:$indices);
  let results = (outs Attn_Shaped:$result);
  let assemblyFormat = "custom<Names>($names) (`[` $indices^ `]`)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_KeepOp : Attn_Op<"keep", [MemoryEffects<[MemWrite<Attn_Kept>]>]> {
  let summary = "Keeps a tensor for as long as the weights are open";
  let description = [{
    ```text
    kept[slot] = value
    ```
    Stands in the function with `attn.init`, which runs once when a model is opened. Each slot is written once.

    - keep.c1  The shape is static.

    ```mlir
    attn.keep %panels in %slot : tensor<8x384x48xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, Index:$slot);
  let assemblyFormat = "$value `in` $slot attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Attn_KeptOp : Attn_Op<"kept", [MemoryEffects<[MemRead<Attn_Kept>]>]> {
  let summary = "A tensor that `attn.keep` kept";
  let description = [{
    ```text
    result = kept[slot]
    ```
    After bufferisation the result is a memref that nobody writes.

    - kept.c1  The shape is static.

    ```mlir
    %panels = attn.kept %slot : tensor<8x384x48xf32>
    ```
  }];
  let arguments = (ins Index:$slot);
  let results = (outs Attn_Shaped:$result);
  let assemblyFormat = "$slot attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Attn_SlotOp : Attn_Op<"slot", [MemoryEffects<[MemWrite<Attn_Kept>]>]> {
  let summary = "The memory of a slot, to be filled";
  let description = [{
    What `attn.keep` becomes before bufferisation: memory that lives as long as the weights. In `attn.init` alone,
    once a slot.

    - slot.c1  The memory is dense and its shape static.

    ```mlir
    %memory = attn.slot %slot : memref<8x384x48xf32>
    ```
  }];
  let arguments = (ins Index:$slot);
  let results = (outs AnyMemRef:$memory);
  let assemblyFormat = "$slot attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def Attn_RequireOp : Attn_Op<"require", [MemoryEffects<[MemWrite<Attn_Failure>]>]> {
  let summary = "Fails the call with a message unless a condition holds";
  let description = [{
    ```text
    if not cond: the call returns HEED_ERROR_SHAPE with the message, `{k}` replaced by the k-th value
    ```
    - require.c1  Every `{k}` in the message has k in [0, number of values).

    ```mlir
    attn.require %ok, "extent of 'k' (axis 3) is {0}, expected E = {1}" (%a, %b) : index, index
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message, Variadic<AnyTypeOf<[Index, AnySignlessInteger, AnyFloat]>>:$values);
  let assemblyFormat = "$condition `,` $message (`(` $values^ `)` `:` type($values))? attr-dict";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_RequireInRangeOp : Attn_Op<"require_in_range", [MemoryEffects<[MemWrite<Attn_Failure>]>]> {
  let summary = "Fails the call unless every element of an integer tensor lies in a half-open range";
  let description = [{
    ```text
    for all x: lo <= tensor[x] < hi, else the call fails and names the tensor, the first position and the value
    ```
    - require_in_range.c1  The element type is i32, i64 or i8.

    ```mlir
    attn.require_in_range %ids, %lo, %hi, "word (axis 0)" : tensor<?x?xi32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$tensor, Index:$lo, Index:$hi, StrAttr:$what);
  let assemblyFormat = "$tensor `,` $lo `,` $hi `,` $what attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator, ParentOneOf<["SoftmaxOp", "LogSoftmaxOp", "AttentionOp", "OnlineAttentionOp"]>]> {
  let summary = "The value of a region";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Attn_KeysOp : Attn_Op<"keys", [Pure, Terminator, AttrSizedOperandSegments, ParentOneOf<["AttentionOp", "OnlineAttentionOp"]>]> {
  let summary = "The keys that a tile of queries sees";
  let description = [{
    Ends the region `mask` of `attn.attention`. `reach` and `full` are unions of pieces: of each its first key, its
    end, and a condition on the block of keys. No query of the tile sees a key outside of `reach`; every query sees
    each key of `full`. With `exact` nothing was left to the evaluation of each element: else `reach` may hold keys
    that nobody sees, and `full` lack keys that all see. `tables` are the expressions of i (or, `ofKeys`, of j) whose
    least and greatest values over a tile (a block of keys) are arguments of the region.

    - keys.c1  `reach` and `full` hold two numbers for each of their tests.
    - keys.c2  `ofKeys` has one element per table.

    ```mlir
    attn.keys exact reach(%zero, %end) if(%true) full(%zero, %first) if(%true) tables [] ()
    ```
  }];
  let arguments = (ins UnitAttr:$exact, Variadic<I64>:$reach, Variadic<I1>:$reachTests, Variadic<I64>:$full,
                       Variadic<I1>:$fullTests, DenseBoolArrayAttr:$ofKeys, Variadic<AnyType>:$tables);
  let assemblyFormat = [{
    (`exact` $exact^)? `reach` `(` $reach `)` `if` `(` $reachTests `)` `full` `(` $full `)` `if` `(` $fullTests `)`
    `tables` $ofKeys `(` ($tables^ `:` type($tables))? `)` attr-dict
  }];
  let hasVerifier = 1;
}

class Attn_SoftmaxBase<string mnemonic> : Attn_Op<mnemonic, [Pure, AllTypesMatch<["input", "result"]>, AggregatedOpInterface]> {
  let results = (outs RankedTensorOf<[F32, F64]>:$result, RankedTensorOf<[I1]>:$live);
  let regions = (region AnyRegion:$where);
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
  }];
}

def Attn_SoftmaxOp : Attn_SoftmaxBase<"softmax"> {
  let summary = "Masked softmax along axes, or a normaliser with a threshold";
  let arguments = (ins RankedTensorOf<[F32, F64]>:$input, Optional<AnyRankedTensor>:$sink, DenseI64ArrayAttr:$axes,
                       DefaultValuedAttr<Attn_Map, "Map::Exp">:$map);
  let assemblyFormat = [{
    $input `axes` `(` $axes `)` (`normalise` `(` $map^ `)`)? (`sink` `(` $sink^ `:` type($sink) `)`)? custom<Where>($where)
    attr-dict `:` type($result) `,` type($live)
  }];
  let description = [{
    ```text
    m      = max { S[x, j] : L[x, j] } and sink[x]                j over `axes`, x over the other axes
    P[x,j] = L[x,j] ? exp(S[x,j] - m[x]) / (sum_j L[x,j] ? exp(S[x,j] - m[x]) : 0 + exp(sink[x] - m[x])) : -0
    L[x,j] = where(x,j) and S[x,j] is not -inf
    ```
    `live` says where an element is present; a sum that multiplies an element of P selects by it, so an absent
    element contributes nothing whatever it would be multiplied with. An absent element of P is -0, no other is. A
    row without a live score yields zeros. A NaN in a live score makes its row NaN.

    With a map that has a threshold, `normalise(sparsemax)`, it is that of its row:

    ```text
    P[x,j] = L[x,j] ? map(S[x,j] - m[x] - t[x]) : -0          t[x]: sum_j P[x,j] = 1 (`attn.threshold`)
    ```

    - softmax.c1  `axes` is not empty, strictly increasing and in [0, rank).
    - softmax.c2  `where`, if present, takes one index per axis of the input and yields i1, and reads memory at most.
    - softmax.c3  `sink` has the shape of the input without `axes` and its element type; the map is exp then.
    - softmax.c4  Both results have the input's shape; `result` has its type.
    - softmax.c5  The map is exp or has a threshold.

    Canonical: no `where` that always holds, no sink of -inf; extents that are known are in the type. A `where` that never
    holds is filled tensors.

    ```mlir
    %p, %live = attn.softmax %s axes([3]) where (%b, %h, %i, %j) {
      %c = arith.cmpi sle, %j, %i : index
      attn.yield %c : i1
    } : tensor<?x?x?x?xf32>, tensor<?x?x?x?xi1>
    ```
  }];
}

def Attn_LogSoftmaxOp : Attn_SoftmaxBase<"log_softmax"> {
  let summary = "Logarithm of the masked softmax along axes";
  let arguments = (ins RankedTensorOf<[F32, F64]>:$input, Optional<AnyRankedTensor>:$sink, DenseI64ArrayAttr:$axes);
  let assemblyFormat = [{
    $input `axes` `(` $axes `)` (`sink` `(` $sink^ `:` type($sink) `)`)? custom<Where>($where) attr-dict `:` type($result) `,` type($live)
  }];
  let description = [{
    ```text
    P[x,j] = L[x,j] ? S[x,j] - m[x] - log(sum_j L[x,j] ? exp(S[x,j] - m[x]) : 0 + exp(sink[x] - m[x])) : -inf
    ```
    with m, L and sink as in `attn.softmax`. A row without a live score yields -inf.
    Constraints as in `attn.softmax`: log_softmax.c1 to log_softmax.c4.
  }];
}

def Attn_ThresholdOp : Attn_Op<"threshold", [Pure, AggregatedOpInterface]> {
  let summary = "What the scores of a row are taken less, so that its weights sum to 1";
  let description = [{
    ```text
    t[x]: sum_j map(Z[x,j] - t[x]) = 1                        j over `axes`, x over the other axes
    ```
    The largest of a row is 0, as scores are taken less their maximum, and an absent element is -inf; of a row of
    nothing else t is finite, of one with a NaN it is NaN. Newton's steps find it, from the left: none passes it.

    - threshold.c1  `axes` is not empty, strictly increasing and in [0, rank).
    - threshold.c2  The map has a threshold: sparsemax, entmax15.
    - threshold.c3  The result has the input's other axes and its element type.

    ```mlir
    %t = attn.threshold sparsemax %z axes([1]) : tensor<?x?xf32> -> tensor<?xf32>
    ```
  }];
  let arguments = (ins Attn_Map:$map, RankedTensorOf<[F32, F64]>:$input, DenseI64ArrayAttr:$axes);
  let results = (outs RankedTensorOf<[F32, F64]>:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
  }];
  let assemblyFormat = "$map $input `axes` `(` $axes `)` attr-dict `:` type($input) `->` type($result)";
}

def Attn_AttentionOp : Attn_Op<"attention", [Pure, AttrSizedOperandSegments, AttrSizedResultSegments, AggregatedOpInterface, Attn_AttentionLike]> {
  let summary = "Attention: score terms, mask, normaliser and value terms over named kinds of dims";
  let description = [{
    The loop dims are, in this order, `batch`, `query`, `key`, `contract` and `value` dims, each a list; a region
    or map sees them as d0, d1, ... With x = batch and query dims, j = key dims, e = contract dims, f = value dims:

    ```text
    T_t[x,j]  = sum_e pair_t(A_t1[map(x,j,e)], A_t2[map(x,j,e)], ...)       e: the contract dims in the term's maps
    S[x,j]    = score(x, j, T_0[x,j], T_1[x,j], ...)                        only where where(x,j)
    L[x,j]    = where(x,j) and, unless map is sigmoid, relu or identity, S[x,j] is not -inf
    m[x]      = stabilise ? max { S[x,j] : L[x,j] } and sink[x] : 0
    W[x,j]    = L[x,j] ? map(S[x,j] - m[x]) : 0
    l[x]      = sum_j W[x,j] + map(sink[x] - m[x])
    P[x,j]    = weight(x, j, divide ? W[x,j] / l[x] : W[x,j])
    O[x,f]    = sum_j L[x,j] ? P[x,j] * (V_0[map(x,j,f)] + V_1[map(x,j,f)] + ...) : nothing
    lse[x]    = m[x] + log l[x]
    ```
    A position of a term's or value's operand that is an offset, `j - i + c` or `i - j + c` of one query and one key dim,
    may lie beyond the operand: it reads the end that is nearest. So a table of clipped offsets holds each row once.
    A key outside `where` is absent: nothing of it is read or evaluated, and it contributes nothing whatever K and
    V hold there. With map = exp a key whose score is -inf is absent, too. The maps sparsemax, max(x, 0), and
    entmax15, (max(x, 0) / 2)^2, exclude it in the same way and have a threshold (`attn.threshold`), less which the
    scores are taken so that the weights of a row sum to 1: m is their maximum plus the threshold, and nothing is divided. A row without a live key is empty: its
    outputs are 0 and its lse is -inf (sink if there is one).
    `empty(%e)` gives such rows another output: a quotient of sums that is written out is NaN there.
    A NaN in a live score, or a maximum of +inf, makes its row NaN. `weight` sees live keys of rows that are not empty.

    Arithmetic is f32: elements of f16 and bf16 operands are extended when read, sums are f32, and an f16 or bf16
    output is rounded once at its end. Regions may capture tensors (`tensor.extract`) and scalars.

    - attention.c1  `dims` counts the loop dims; `sizes` holds one index per loop dim; there is at least one key dim.
    - attention.c2  Each term has at least one operand; there is at least one term and one value.
    - attention.c3  A map takes the loop dims and the symbols and has one result per axis of its operand.
    - attention.c4  A term's maps use no value dim; a value's map uses no contract dim; the sink's map uses batch and query dims only.
    - attention.c5  `score` takes the batch, query and key indices and one f32 per term and yields f32.
    - attention.c6  `where`, if present, takes the batch, query and key indices and yields i1.
    - attention.c7  `weight`, if present, takes the batch, query and key indices and an f32 and yields f32.
    - attention.c8  A `pair`, if present, takes one f32 per operand of its term and yields f32; without it the operands are multiplied.
    - attention.c9  `result_map`, if present, maps the loop dims to a permutation of batch, query and value dims; without it they stand in loop order.
    - attention.c10 The output has one axis per result of that map, `lse` one per batch and query dim, `weights` one per batch, query and key dim; `lse` and `weights` are f32.
    - attention.c11 `lse` and `sink` need map = exp; `stabilise` needs map = exp.
    - attention.c12 Operands of terms, values and the sink are f32, f16 or bf16.
    - attention.c13 `empty` needs `divide` and excludes a sink; its value is 0 or NaN.
    - attention.c14 A map that has a threshold excludes `divide`.
    - attention.c15 `mask`, if present, takes the batch indices, i, j, the first and last query of a tile, the first and last key
      of a block, N, M, and of each table of its `attn.keys` the least value, the greatest and, of reals, whether any
      is NaN; there are `where`, one query and one key dim.

    `mask` is `where`, solved (`attn-solve-masks`): which keys a tile of queries reaches, and which all of it see.

    Canonical: no part that says no more than its absence (`where` true, `pair` that multiplies, `weight` that yields its
    argument, `result_map` in loop order, a sink of -inf, `empty` 0), no term, symbol or result that nobody uses, none
    twice; extents that are known are in the types. A `where` that never holds is filled tensors.

    ```mlir
    %o, %lse = attn.attention
        dims(batch = 2, query = 1, key = 1, contract = 1, value = 1)
        sizes(%B, %H, %N, %M, %E, %F) symbols(%G, %H)
        term(%q, %k : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>)
          maps [#q, #k]
        value(%v : tensor<?x?x?x?xf32>) maps [#v]
        score (%b, %h, %i, %j : index, %t0 : f32) {
          %s = arith.mulf %t0, %scale : f32
          attn.yield %s : f32
        }
        where (%b, %h, %i, %j) {
          %c = arith.cmpi sle, %j, %i : index
          attn.yield %c : i1
        }
        normalise(exp divide stabilise)
        : tensor<?x?x?x?xf32>, lse tensor<?x?x?xf32>
    ```
  }];
  let arguments = (ins
    Variadic<Index>:$sizes, Variadic<Index>:$symbols, Variadic<AnyRankedTensor>:$termOperands,
    Variadic<AnyRankedTensor>:$values, Optional<AnyRankedTensor>:$sink, Optional<F32>:$empty,
    DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$termArity, AffineMapArrayAttr:$termMaps,
    AffineMapArrayAttr:$valueMaps, OptionalAttr<AffineMapAttr>:$sinkMap, OptionalAttr<AffineMapAttr>:$resultMap,
    Attn_Map:$map, UnitAttr:$divide, UnitAttr:$stabilise);
  let results = (outs AnyRankedTensor:$output, Optional<AnyRankedTensor>:$lse, Optional<AnyRankedTensor>:$weights);
  let regions = (region AnyRegion:$score, AnyRegion:$where, AnyRegion:$weight, AnyRegion:$mask, VariadicRegion<AnyRegion>:$pairs);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    bool isDivided() { return getDivide(); }
    /// The explicit result map, or batch, query and value dims in loop order.
    ::mlir::AffineMap outputMap();
  }];
}

def Attn_OnlineAttentionOp : Attn_Op<"online_attention", [Pure, AttrSizedOperandSegments, AttrSizedResultSegments, AggregatedOpInterface, Attn_AttentionLike]> {
  let summary = "Attention in one pass over blocks of keys, up to its state";
  let description = [{
    What an `attn.attention` computes of its scores, weights and values, as the state of each row after all blocks of
    keys. `attn.finish` makes its results of the state. With T, S and L as there, and j over the keys so far:

    ```text
    max[x]   = max { S[x,j] : L[x,j] }, -inf of none            where it is a result, else 0 in its place
    W[x,j]   = L[x,j] ? map(S[x,j] - max[x]) : nothing
    sum[x]   = -0 + sum_j (W[x,j] + 0)                          where it is a result
    acc[x,f] = sum_j L[x,j] ? weight(x, j, W[x,j]) * (V_0[map(x,j,f)] + V_1[map(x,j,f)] + ...) : nothing
    ```
    A block changes the state as its normaliser merges: sums are added; where there is a maximum, after both are
    multiplied by map(old - new maximum). The sum of a row without a live key is -0, where it began, and of no other
    row. `weight` is linear in its argument: what is divided at the end is divided before it.

    Which state is carried is said by the results, and by the op's plan: a pipeline `bounded` computes the same with
    0 in place of the maximum, where the host finds all scores to be small.

    attention.c1 to attention.c8, attention.c12 and attention.c15 hold of it, too.

    - online_attention.c1  There is one key dim; the map has no threshold, of which no state of a part of the keys knows.
    - online_attention.c2  `acc` has one axis per batch, query and value dim, in loop order, `max` and `sum` have one per
      batch and query dim; all are f32.
    - online_attention.c3  `max` needs map = exp and `sum`.

    ```mlir
    %acc, %m, %l = attn.online_attention
        dims(batch = 2, query = 1, key = 1, contract = 1, value = 1)
        sizes(%B, %H, %N, %M, %E, %F)
        term(%q, %k : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) maps [#q, #k]
        value(%v : tensor<?x?x?x?xf32>) maps [#v]
        score (%b, %h, %i, %j : index, %t0 : f32) { attn.yield %t0 : f32 }
        normalise(exp)
        : tensor<?x?x?x?xf32>, max tensor<?x?x?xf32>, sum tensor<?x?x?xf32>
    ```
  }];
  let arguments = (ins
    Variadic<Index>:$sizes, Variadic<Index>:$symbols, Variadic<AnyRankedTensor>:$termOperands,
    Variadic<AnyRankedTensor>:$values, DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$termArity,
    AffineMapArrayAttr:$termMaps, AffineMapArrayAttr:$valueMaps, Attn_Map:$map);
  let results = (outs RankedTensorOf<[F32]>:$accumulator, Optional<RankedTensorOf<[F32]>>:$maximum,
                      Optional<RankedTensorOf<[F32]>>:$sum);
  let regions = (region AnyRegion:$score, AnyRegion:$where, AnyRegion:$weight, AnyRegion:$mask, VariadicRegion<AnyRegion>:$pairs);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    bool isDivided() { return bool(getSum()); }
  }];
}

def Attn_FinishOp : Attn_Op<"finish", [Pure, AttrSizedOperandSegments, AggregatedOpInterface]> {
  let summary = "The results of an attention, of the state that `attn.online_attention` leaves";
  let description = [{
    With x = batch and query dims, f = value dims, d0, d1, ... = the axes of the accumulator:

    ```text
    m[x]   = max and sink[x]                                    0 where there is no max
    c[x]   = exp(max[x] - m[x])
    l[x]   = sum[x] * c[x] + exp(sink[x] - m[x])
    O[x,f] = sum[x] is -0 ? empty or 0 : acc[x,f] * c[x] / l[x]   without `sum`: acc[x,f]
    lse[x] = m[x] + log l[x]
    ```
    A sink is one more key of each row, which has a score and no value; a row without another is empty nonetheless. The
    output may be f16 or bf16: rounded once.

    - finish.c1  `max` and `sum` have the first axes of `acc`: one per batch and query dim; `max` needs `sum`.
    - finish.c2  `sink`, `empty` and `lse` need `sum`; a sink excludes `empty`.
    - finish.c3  The map of the sink takes the axes of `acc` and the symbols, uses those of `sum` alone, and has one
      result per axis of the sink, which is f32, f16 or bf16.
    - finish.c4  `result_map`, if present, permutes the axes of `acc`.
    - finish.c5  The output has the rank of `acc` and is f32, f16 or bf16; `lse` has the rank of `sum` and is f32.

    ```mlir
    %o, %lse = attn.finish %acc max(%m : tensor<?x?xf32>) sum(%l : tensor<?x?xf32>)
        result_map affine_map<(h, i, f) -> (i, h, f)>
        : tensor<?x?x?xf32> -> tensor<?x?x?xf32>, lse tensor<?x?xf32>
    ```
  }];
  let arguments = (ins
    RankedTensorOf<[F32]>:$accumulator, Optional<RankedTensorOf<[F32]>>:$maximum, Optional<RankedTensorOf<[F32]>>:$sum,
    Optional<AnyRankedTensor>:$sink, Variadic<Index>:$symbols, Optional<F32>:$empty,
    OptionalAttr<AffineMapAttr>:$sinkMap, OptionalAttr<AffineMapAttr>:$resultMap);
  let results = (outs AnyRankedTensor:$output, Optional<RankedTensorOf<[F32]>>:$lse);
  let assemblyFormat = [{
    $accumulator (`max` `(` $maximum^ `:` type($maximum) `)`)? (`sum` `(` $sum^ `:` type($sum) `)`)?
    (`sink` `(` $sink^ `:` type($sink) `)` `map` $sinkMap)? (`symbols` `(` $symbols^ `)`)? (`empty` `(` $empty^ `)`)?
    (`result_map` $resultMap^)? attr-dict `:` type($accumulator) `->` type($output) (`,` `lse` type($lse)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    /// The explicit result map, or that of the same axes.
    ::mlir::AffineMap outputMap();
  }];
}

include "dialects/Attn/RecurrenceOps.td"
include "dialects/Attn/StateOps.td"

#endif
