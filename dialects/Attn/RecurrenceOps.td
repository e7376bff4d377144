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

def Attn_LinearAttentionOp : Attn_Op<"linear_attention", [Pure, AttrSizedOperandSegments, AggregatedOpInterface]> {
  let summary = "Linear attention: a recurrence whose state is a sum of products of keys and values, read by queries";
  let description = [{
    The loop dims are, in this order, `batch` dims, the step, `contract` and `value` dims. With x = batch dims, t = the
    step, e = contract dims, f = value dims, and each operand read through its map:

    ```text
    S_0[x,e,f] = start[x,e,f]                                          0 without `start`
    u[x,t,f]   = value[x,t,f] - sum_e erase[x,t,e] * S_(t-1)[x,e,f]    value[x,t,f] without `erase`
    S_t[x,e,f] = decay[x,t,e,f] * S_(t-1)[x,e,f] + key[x,t,e] * u[x,t,f]         without `decay` the state stays
    O[x,t,f]   = sum_e query[x,t,e] * S_t[x,e,f]                       `before`: * S_(t-1)[x,e,f]
    ```
    Results: O and the last state. `fresh`: there is nothing before the first step, no zeros either: that step multiplies them
    neither by its decay nor, `before`, by its query, and reads 0. A NaN or an infinity of a step enters the outputs of that step and of later ones alone.
    `erase` is that of delta rules: what the state holds for a key is taken off what is written.

    - linear_attention.c1  `sizes` holds one index per loop dim.
    - linear_attention.c2  There is one map per operand but `start`; it takes the loop dims and has one result per axis of
      its operand, each a loop dim, none twice.
    - linear_attention.c3  The maps of query, key and erase use no value dim, that of value no contract dim.
    - linear_attention.c4  The output has batch dims, step and value dims as axes; the state has batch, contract and
      value dims, and `start` its type.
    - linear_attention.c5  What is `fresh` has no start and erases nothing.

    ```mlir
    %o, %S = attn.linear_attention dims(batch = 2, contract = 1, value = 1) sizes(%B, %H, %N, %E, %F)
        query(%q : tensor<?x?x?x?xf32>) key(%k : tensor<?x?x?x?xf32>) value(%v : tensor<?x?x?x?xf32>)
        decay(%gamma : tensor<?xf32>) start(%S0 : tensor<?x?x?x?xf32>) maps [#q, #q, #v, #h]
        : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>
    ```
  }];
  let arguments = (ins Variadic<Index>:$sizes, RankedTensorOf<[F32]>:$query, RankedTensorOf<[F32]>:$key,
                       RankedTensorOf<[F32]>:$value, Optional<RankedTensorOf<[F32]>>:$decay, Optional<RankedTensorOf<[F32]>>:$erase,
                       Optional<RankedTensorOf<[F32]>>:$start, ConfinedAttr<I64Attr, [IntNonNegative]>:$numBatch,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$numContract, ConfinedAttr<I64Attr, [IntNonNegative]>:$numValue,
                       AffineMapArrayAttr:$maps, UnitAttr:$before, UnitAttr:$fresh);
  let results = (outs RankedTensorOf<[F32]>:$output, RankedTensorOf<[F32]>:$state);
  let assemblyFormat = [{
    `dims` `(` `batch` `=` $numBatch `,` `contract` `=` $numContract `,` `value` `=` $numValue `)` `sizes` `(` $sizes `)` `query` `(` $query `:` type($query) `)`
    `key` `(` $key `:` type($key) `)` `value` `(` $value `:` type($value) `)` (`decay` `(` $decay^ `:` type($decay) `)`)?
    (`erase` `(` $erase^ `:` type($erase) `)`)? (`start` `(` $start^ `:` type($start) `)`)? (`before` $before^)? (`fresh` $fresh^)? `maps` $maps attr-dict `:` type($output) `,` type($state)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    /// Numbers of loop dims.
    unsigned stepDim() { return getNumBatch(); }
    unsigned firstContract() { return getNumBatch() + 1; }
    unsigned firstValue() { return firstContract() + getNumContract(); }
    unsigned numLoops() { return firstValue() + getNumValue(); }
    /// Operands that have maps, in their order; decay and erase may be absent.
    enum Part : unsigned { Query, Key, Values, Decay, Erase, NumParts };
    /// Null if it is absent.
    ::mlir::Value part(unsigned which);
    ::mlir::AffineMap map(unsigned which);
    /// The state before the first step.
    ::mlir::Value makeStart(::mlir::OpBuilder &b);
    /// What step \p position makes of \p state: the state after it and its row of the output.
    std::pair<::mlir::Value, ::mlir::Value> makeStep(::mlir::OpBuilder &b, ::mlir::Value position, ::mlir::Value state);
  }];
}

def Attn_TriangularSolveOp : Attn_Op<"triangular_solve", [Pure, AggregatedOpInterface, AllTypesMatch<["right", "result"]>]> {
  let summary = "The rows that make those of a right side, each with some of every row before it";
  let description = [{
    With x = batch axes, f = the other axes of the right side, and step t the first behind x:

    ```text
    X[x,t,f] = right[x,t,f] - sum_(j < t) matrix[x,t,j] * X[x,j,f]
    ```
    (1 + L) X = right, of the strictly lower triangle L of `matrix`; its other elements are not read.

    - triangular_solve.c1  `matrix` has two axes or more, the last two as long as each other, and all but the last are the first
      axes of `right`. An extent that one type does not know may be any.

    ```mlir
    %X = attn.triangular_solve %L, %b : tensor<?x64x64xf32>, tensor<?x64x?xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32]>:$matrix, RankedTensorOf<[F32]>:$right);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$matrix `,` $right attr-dict `:` type($matrix) `,` type($right)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    /// The axis of the steps.
    unsigned stepAxis() { return getMatrix().getType().getRank() - 2; }
  }];
}

def Attn_RecurrenceOp : Attn_Op<"recurrence", [Pure, AttrSizedOperandSegments, AggregatedOpInterface]> {
  let summary = "States whose elements have recurrences of their own, with all that they were";
  let description = [{
    With the states s_k, which begin as `starts`, and x over `sizes`, the extents of each state:

    ```text
    H_k[0, x]     = starts_k[x]
    H_k[i + 1, x] = next_k(from + i, x, H_0[i, x], H_1[i, x], ...)      0 <= i < rows - 1
    ```
    The results are the H_k. `next` may read any tensor (`tensor.extract`) and number that is defined before.

    - recurrence.c1  `next` takes the step, an index per size, and an element of each of `starts`; `attn.next` ends it with as many.
    - recurrence.c2  A start has an axis per size; its result has its element type, `rows` as first axis, then its axes.

    ```mlir
    %H = attn.recurrence from %first rows(%rows) sizes(%B, %D) starts(%h : tensor<?x?xf32>) next (%t, %b, %d : index, %old : f32) {
      %x = tensor.extract %inputs[%b, %t, %d] : tensor<?x?x?xf32>
      %new = arith.addf %old, %x : f32
      attn.next %new : f32
    } : tensor<?x?x?xf32>
    ```
  }];
  let arguments = (ins Index:$from, Index:$rows, Variadic<Index>:$sizes, Variadic<AnyRankedTensor>:$starts);
  let results = (outs Variadic<AnyRankedTensor>:$histories);
  let regions = (region SizedRegion<1>:$next);
  let assemblyFormat = [{
    `from` $from `rows` `(` $rows `)` `sizes` `(` $sizes `)` `starts` `(` $starts `:` type($starts) `)` `next` custom<Next>($next)
    attr-dict `:` type($histories)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
  }];
}

def Attn_ElementScanOp : Attn_Op<"element_scan", [Pure, AttrSizedOperandSegments, AttrSizedResultSegments, AggregatedOpInterface]> {
  let summary = "Rows of states whose elements have recurrences of their own, and what they are in the end";
  let description = [{
    With the states S_k, which begin as `starts`, and x over `sizes`, the extents of each state:

    ```text
    S_k[0, x]     = starts_k[x]
    S_k[i + 1, x] = next_k(from + i, x, S_0[i, x], S_1[i, x], ...)                        0 <= i < steps
    row_m[i, x]   = leave_m(from + i, x, S_0[i, x], .., S_0[i + 1, x], ..)
    ```
    The results are the rows, whose axis `axis` is i, or steps - 1 - i where they are `reversed`, and then the S_k[steps, x].
    In contrast to `attn.recurrence` nothing else of the states is stored. Both regions may read any tensor
    (`tensor.extract`) and number that is defined before. With `of` the rows are a part of larger ones, of so many steps:
    by their size a schedule knows what caches hold.

    - element_scan.c1  `next` takes the step, an index per size, and an element of each of `starts`; `attn.next` ends it with as many.
    - element_scan.c2  `leave` takes an element of each of `starts` more, after the step; `attn.next` ends it with an element of each row.
    - element_scan.c3  A start has an axis per size, and the last of that state is of the same type.
    - element_scan.c4  There is a row, each has the axes of a state and `axis`, and its extents are the states'.

    ```mlir
    %y, %last = attn.element_scan from %first steps(%n) sizes(%B) starts(%s : tensor<?xf32>) next (%t, %b : index, %old : f32) {
      %x = tensor.extract %inputs[%b, %t] : tensor<?x?xf32>
      %new = arith.addf %old, %x : f32
      attn.next %new : f32
    } leave (%t, %b : index, %before, %after : f32) {
      attn.next %after : f32
    } axis 1 rows(tensor<?x?xf32>) states(tensor<?xf32>)
    ```
  }];
  let arguments = (ins Index:$from, Index:$steps, Optional<Index>:$all, Variadic<Index>:$sizes,
                       Variadic<AnyRankedTensor>:$starts, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis, UnitAttr:$reversed);
  let results = (outs Variadic<AnyRankedTensor>:$rows, Variadic<AnyRankedTensor>:$states);
  let regions = (region SizedRegion<1>:$next, SizedRegion<1>:$leave);
  let assemblyFormat = [{
    `from` $from `steps` `(` $steps (`of` $all^)? `)` `sizes` `(` $sizes `)` `starts` `(` $starts `:` type($starts) `)` `next` custom<Next>($next)
    `leave` custom<Next>($leave) `axis` $axis (`reversed` $reversed^)? attr-dict `rows` `(` type($rows) `)` `states` `(` type($states) `)`
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    /// Whether the steps are the last axis of the rows, which are longer than one number.
    bool isAlongRows() { return getSizes().size() > 0 && getAxis() == getSizes().size(); }
  }];
}

def Attn_SumScanOp : Attn_Op<"sum_scan", [Pure, AttrSizedOperandSegments, AttrSizedResultSegments, AggregatedOpInterface]> {
  let summary = "A recurrence whose columns are each its own, and sums over a column before and after each step";
  let description = [{
    With the states S_k, which begin as `starts`, and x, e, c over `sizes`, the extents of each state, e and c of the last two:

    ```text
    S_k[0, x, e, c]     = starts_k[x, e, c]
    held_p[x, i, c]     = sum(e) hold_p(from + i, x, e, c, S_0[i, x, e, c], .., held_0[x, i, c], .., held_(p-1)[x, i, c])
    S_k[i + 1, x, e, c] = next_k(from + i, x, e, c, S_0[i, x, e, c], .., held_0[x, i, c], ..)             0 <= i < steps
    row_m[x, i, c]      = sum(e) leave_m(from + i, x, e, c, S_0[i + 1, x, e, c], .., held_0[x, i, c], ..)
    ```
    There are `most` steps at most. The results are the rows, the held sums and then the S_k of the last step, of which alone all elements are stored. All
    regions may read any tensor (`tensor.extract`) and number that is defined before. A state-space model reads its state so,
    and a delta rule what it holds.

    - sum_scan.c1  `next` takes the step, an index per size, an element of each of `starts` and each held sum; `attn.next` ends it
      with an element of each state.
    - sum_scan.c2  `leave` takes the same; `attn.next` ends it with an element of each row.
    - sum_scan.c3  A start has an axis per size, and the last of that state is of the same type.
    - sum_scan.c4  There are a state of floats and two sizes, and the last but one of these is known.
    - sum_scan.c5  A row, or held sum, is of floats and has the axes of a state, but the steps for the last but one.
    - sum_scan.c6  `hold`, there if something is held, takes the same; `attn.next` ends it with a term of each held sum, which is
      made of no later one.

    ```mlir
    %y, %last = attn.sum_scan from %first steps(%n) most 8 sizes(%four, %B) starts(%s : tensor<4x?xf32>) next (%t, %e, %b : index, %old : f32) {
      %x = tensor.extract %inputs[%t, %b] : tensor<?x?xf32>
      %new = arith.addf %old, %x : f32
      attn.next %new : f32
    } leave (%t, %e, %b : index, %after : f32) {
      %q = tensor.extract %reads[%t, %e] : tensor<?x4xf32>
      %z = arith.mulf %q, %after : f32
      attn.next %z : f32
    } rows(tensor<?x?xf32>) states(tensor<4x?xf32>)
    ```
  }];
  let arguments = (ins Index:$from, Index:$steps, ConfinedAttr<I64Attr, [IntPositive]>:$most, Variadic<Index>:$sizes, Variadic<AnyRankedTensor>:$starts);
  let results = (outs Variadic<AnyRankedTensor>:$rows, Variadic<AnyRankedTensor>:$held, Variadic<AnyRankedTensor>:$states);
  let regions = (region SizedRegion<1>:$next, SizedRegion<1>:$leave, AnyRegion:$hold);
  let assemblyFormat = [{
    `from` $from `steps` `(` $steps `)` `most` $most `sizes` `(` $sizes `)` `starts` `(` $starts `:` type($starts) `)` `next` custom<Next>($next)
    `leave` custom<Next>($leave) custom<Hold>($hold) attr-dict (`rows` `(` type($rows)^ `)`)? (`held` `(` type($held)^ `)`)? `states` `(` type($states) `)`
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>> decomposeOperation(::mlir::OpBuilder &b);
    /// The axis of the states that is summed over, and of the rows that has the steps.
    unsigned sumAxis() { return getSizes().size() - 2; }
    /// Whether \p value is a row or a held sum.
    bool isRow(::mlir::Value value) {
      return ::llvm::is_contained(getRows(), value) || ::llvm::is_contained(getHeld(), value);
    }
  }];
}

def Attn_NextOp : Attn_Op<"next", [Pure, Terminator, ParentOneOf<["RecurrenceOp", "ElementScanOp", "SumScanOp"]>]> {
  let summary = "The elements of the states after a step of `attn.recurrence`, `attn.element_scan` or `attn.sum_scan`, or of the rows that it leaves";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif
