// The schedule: one op per directive, applied in the order in which they stand.

#ifndef HEED_DIALECTS_HALIDE_HALIDESCHEDULE_TD
#define HEED_DIALECTS_HALIDE_HALIDESCHEDULE_TD

include "dialects/Halide/HalideOps.td"

// Operand 0 is the func. Where the op works on one stage, the attribute `stage` says which: 0 is the pure definition, k is
// the k-th update. Constraints that all of them share:
//   schedule.c1  the func is a `halide.func` or a `halide.rfactor`
//   schedule.c2  it has the stage
//   schedule.c3  a var that is named is a loop of that stage at this point, and a new var is not
//   schedule.c4  a func whose loops or storage are scheduled is not computed inline
class Halide_FuncScheduleOp<string mnemonic, list<Trait> traits = []> : Halide_Op<mnemonic, traits> {
  let hasVerifier = 1;
}
class Halide_StageScheduleOp<string mnemonic, list<Trait> traits = []> : Halide_FuncScheduleOp<mnemonic, traits>;

defvar Halide_Stage = DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">;
// libHalide computes with 32 bits.
defvar Halide_Factor = ConfinedAttr<I64Attr, [IntPositive, IntMaxValue<2147483647>]>;

//===--- loops -----------------------------------------------------------------------------------------------===//

def Halide_SplitOp : Halide_StageScheduleOp<"split"> {
  let summary = "Splits a loop in an outer and an inner one of extent `factor`";
  let description = [{
    The factor is a number or, at run time, an `i32`.

    * split.c1  there is either a positive number or a value
    * split.c2  outer and inner var differ
    * split.c3  an update's loop has no `ShiftInwards` tail, a reduction var's only `GuardWithIf` or `Predicate`
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrAttr:$var, StrAttr:$outer, StrAttr:$inner,
                       OptionalAttr<Halide_Factor>:$factor, Optional<I32>:$dynamicFactor,
                       DefaultValuedAttr<Halide_TailStrategy, "TailStrategy::Auto">:$tail);
  let assemblyFormat = [{
    $func (`stage` $stage^)? `,` $var `into` ` ` `(` $outer `,` $inner `)` `by` custom<Factor>($factor, $dynamicFactor)
    (`tail` $tail^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$func, "int64_t":$stage, "::llvm::StringRef":$var,
                                 "::llvm::StringRef":$outer, "::llvm::StringRef":$inner, "int64_t":$factor,
                                 CArg<"TailStrategy", "TailStrategy::Auto">:$tail)>,
                  OpBuilder<(ins "::mlir::Value":$func, "int64_t":$stage, "::llvm::StringRef":$var,
                                 "::llvm::StringRef":$outer, "::llvm::StringRef":$inner, "::mlir::Value":$factor,
                                 CArg<"TailStrategy", "TailStrategy::Auto">:$tail)>];
}

def Halide_FactorOp : Halide_Op<"factor", [Pure, HasParent<"PipelineOp">]> {
  let summary = "The factor of the split that made a loop";
  let description = [{
    What follows from a number of the schedule is computed from it, so that the number stands once:

    ```mlir
    halide.split %o, "i" into ("tile", "row") by 48 tail GuardWithIf
    %rows = halide.factor %o, "row" : i32
    ```
    * factor.c1  a `halide.split` above it makes the loop as its inner one
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrAttr:$loop);
  let results = (outs I32:$result);
  let assemblyFormat = "$func (`stage` $stage^)? `,` $loop `:` type($result) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The split that makes the loop; null if none does.
    ::heed::halide::SplitOp getSplit();
  }];
}

def Halide_FuseOp : Halide_StageScheduleOp<"fuse"> {
  let summary = "Joins two loops into one";
  let description = [{
    * fuse.c1  inner and outer var differ
    * fuse.c2  both are pure or both are reduction vars
    * fuse.c3  a reduction loop is fused with the next one outside of it: the order of updates stays
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrAttr:$inner, StrAttr:$outer, StrAttr:$fused);
  let assemblyFormat = "$func (`stage` $stage^)? `,` `(` $inner `,` $outer `)` `into` $fused attr-dict";
}

def Halide_TileOp : Halide_StageScheduleOp<"tile"> {
  let summary = "Splits loops and orders them: all inner ones inside all outer ones";
  let description = [{
    * tile.c1  as many outer and inner vars and positive factors as vars
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrArrayAttr:$vars, StrArrayAttr:$outer,
                       StrArrayAttr:$inner, DenseI64ArrayAttr:$factors,
                       DefaultValuedAttr<Halide_TailStrategy, "TailStrategy::Auto">:$tail);
  let assemblyFormat = [{
    $func (`stage` $stage^)? `,` custom<Names>($vars) `into` custom<Names>($outer) `,` custom<Names>($inner)
    `by` $factors (`tail` $tail^)? attr-dict
  }];
}

def Halide_ReorderOp : Halide_StageScheduleOp<"reorder"> {
  let summary = "Orders the named loops, innermost first";
  let description = [{
    * reorder.c1  the vars differ
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrArrayAttr:$vars);
  let assemblyFormat = "$func (`stage` $stage^)? `,` custom<Names>($vars) attr-dict";
  let builders = [OpBuilder<(ins "::mlir::Value":$func, "int64_t":$stage, "::llvm::ArrayRef<::llvm::StringRef>":$vars)>];
}

def Halide_RenameOp : Halide_StageScheduleOp<"rename"> {
  let summary = "Gives a loop another name";
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrAttr:$var, StrAttr:$newName);
  let assemblyFormat = "$func (`stage` $stage^)? `,` $var `to` $newName attr-dict";
}

class Halide_LoopOp<string mnemonic, string what> : Halide_StageScheduleOp<mnemonic> {
  let summary = what;
  let description = [{
    * loop.c1  a loop is vectorised, unrolled, parallel or on the GPU once
    * loop.c2  a reduction loop whose iterations update the same elements is vectorised or parallel only if atomic
    * loop.c3  a loop of known extent becomes 4096 lanes or copies at most (this dialect's choice: libHalide's time and
               stack grow with them without a limit)
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrAttr:$var);
  let assemblyFormat = "$func (`stage` $stage^)? `,` $var attr-dict";
}
def Halide_VectorizeOp : Halide_LoopOp<"vectorize", "The loop's iterations are the lanes of a vector">;
def Halide_UnrollOp : Halide_LoopOp<"unroll", "The loop is unrolled whole">;
def Halide_ParallelOp : Halide_LoopOp<"parallel", "The loop's iterations are tasks of the thread pool">;
def Halide_SerialOp : Halide_LoopOp<"serial", "The loop runs in order">;

def Halide_PartitionOp : Halide_StageScheduleOp<"partition"> {
  let summary = "Whether a loop may be split into a prologue, a steady state and an epilogue";
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrAttr:$var, Halide_Partition:$policy);
  let assemblyFormat = "$func (`stage` $stage^)? `,` $var $policy attr-dict";
}

def Halide_AtomicOp : Halide_StageScheduleOp<"atomic"> {
  let summary = "Updates of one element may come from several lanes or threads";
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, UnitAttr:$overrideAssociativity);
  let assemblyFormat = "$func (`stage` $stage^)? (`unproved` $overrideAssociativity^)? attr-dict";
}

def Halide_RFactorOp : Halide_StageScheduleOp<"rfactor", [Halide_NamesResult]> {
  let summary = "Splits an associative update: partial results per value of the kept reduction vars, then their merge";
  let description = [{
    The result is the func of partial results, with the kept reduction vars as the new pure vars, innermost last.
    * rfactor.c1  the stage is an update
    * rfactor.c2  as many new vars as reduction vars, at least one
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrArrayAttr:$rvars, StrArrayAttr:$vars);
  let results = (outs Halide_Func:$result);
  let assemblyFormat = "$func (`stage` $stage^)? `,` custom<Names>($rvars) `to` custom<Names>($vars) attr-dict";
}

def Halide_PrefetchOp : Halide_StageScheduleOp<"prefetch"> {
  let summary = "At each iteration of one loop, prefetches what the func reads `offset` iterations of another loop ahead";
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, Halide_Func:$source, StrAttr:$at, StrAttr:$from,
                       ConfinedAttr<I64Attr, [IntMinValue<-2147483648>, IntMaxValue<2147483647>]>:$offset);
  let assemblyFormat = "$func (`stage` $stage^)? `,` $source `at` $at `from` $from `offset` $offset attr-dict";
}

def Halide_PrefetchLinesOp : Halide_StageScheduleOp<"prefetch_lines"> {
  let summary = "Each turn of a loop prefetches one line of the cache that is read much later";
  let description = [{
    The first turn of loop `at` prefetches the line that lies `ahead` elements behind the first element of `source` that the
    loop reads, each further turn the line behind it. The turns of loop `over` of `consumer`, counted modulo `parts`, go on
    where the one before has ended: what comes from memory comes spread over them, while they compute.

    ```mlir
    halide.prefetch_lines %sum stage 1, %panel at "r" ahead 18432 over %y, "mb" by 12
    ```
    * prefetch_lines.c1  a stage of `consumer` has the loop `over` at this point
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, Halide_Func:$source, StrAttr:$at, I64Attr:$ahead,
                       Halide_Func:$consumer, StrAttr:$over, Halide_Factor:$parts);
  let assemblyFormat = [{
    $func (`stage` $stage^)? `,` $source `at` $at `ahead` $ahead `over` $consumer `,` $over `by` $parts attr-dict
  }];
}

def Halide_PrefetchSpreadOp : Halide_StageScheduleOp<"prefetch_spread"> {
  let summary = "Each turn of a loop prefetches lines of the cache, spread over the turns of a loop inside";
  let description = [{
    A turn of loop `over` of `consumer` prefetches the `lines` lines that begin `ahead` elements behind the first element of
    `source` that it reads (of an output: that it writes, as a store into a line that is in no cache waits for it). They are dealt out, `by` so many at a time (eight), to the turns of loop `at` inside, however many these
    are: in one burst they would wait for each other, and what computes would wait for them. So nothing is prefetched where these are fewer
    than `turns`, and the processor's own prefetching does better. `second_cache`: no further than into the second cache.
    `in_order`: a turn's lines lie side by side, and the next turn's behind them; else those that one turn gets lie as far apart as
    all turns together reach.
    `places`: the lines lie in so many places, `apart` elements one behind the other, and the last turn of `over` is followed
    by as many places behind these.

    ```mlir
    halide.prefetch_spread %sum stage 1, %keys at "r" ahead 2048 over %scores, "jo" lines 128 turns 4
    ```
    * prefetch_spread.c1  a stage of `consumer` has the loop `over` at this point
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, Halide_Func:$source, StrAttr:$at, I64Attr:$ahead,
                       Halide_Func:$consumer, StrAttr:$over,
                       ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<1024>]>:$lines,
                       ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<1024>]>:$turns, UnitAttr:$secondCache,
                       UnitAttr:$inOrder, DefaultValuedAttr<ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<64>]>, "8">:$group,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<64>]>>:$places, OptionalAttr<I64Attr>:$apart);
  let assemblyFormat = [{
    $func (`stage` $stage^)? `,` $source `at` $at `ahead` $ahead `over` $consumer `,` $over `lines` $lines `turns` $turns
    (`by` $group^)? (`second_cache` $secondCache^)? (`in_order` $inOrder^)? (`places` $places^ `apart` $apart)? attr-dict
  }];
}

def Halide_PrefetchNextOp : Halide_StageScheduleOp<"prefetch_next"> {
  let summary = "Each turn of a loop prefetches the line that it reads one turn of a loop around it later";
  let description = [{
    Each turn of loop `at` prefetches the first line that it will read of `source` when loop `over` of `consumer` is one turn
    further: a row comes from memory while the one before it is computed.

    ```mlir
    halide.prefetch_next %weights, %x at "j" over %y, "row"
    ```
    * prefetch_next.c1  a stage of `consumer` has the loop `over` at this point
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, Halide_Func:$source, StrAttr:$at, Halide_Func:$consumer,
                       StrAttr:$over);
  let assemblyFormat = "$func (`stage` $stage^)? `,` $source `at` $at `over` $consumer `,` $over attr-dict";
}

def Halide_SpecializeOp : Halide_StageScheduleOp<"specialize", [SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "A version of the stage for a condition, with a schedule of its own on top of that so far";
  let description = [{
    * specialize.c1  the region holds schedule ops of this stage of this func alone
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, I1:$condition);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$func (`stage` $stage^)? `if` $condition attr-dict-with-keyword $body";
}

//===--- where and how it is stored --------------------------------------------------------------------------===//

class Halide_AtOp<string mnemonic, string what> : Halide_FuncScheduleOp<mnemonic> {
  let summary = what;
  let description = [{
    * at.c1  `var` is a loop of some stage of `consumer` when all the schedule has been read, and `consumer` is not `func`
    * at.c2  each func is placed once by each kind of directive
    * at.c3  the consumer has loops, and it, or an output that shares them (`compute_with`), reads the func, itself or through others
    * at.c4  everything that reads the func is computed inside that loop
    * at.c5  the loop where it is stored is not inside of the one where it is computed
  }];
  let arguments = (ins Halide_Func:$func, Halide_Func:$consumer, StrAttr:$var);
  let assemblyFormat = "$func `,` $consumer `,` $var attr-dict";
}
def Halide_ComputeAtOp : Halide_AtOp<"compute_at", "Computed anew in each iteration of a loop of its consumer">;
def Halide_StoreAtOp : Halide_AtOp<"store_at", "Stored from iteration to iteration of inner loops">;
def Halide_HoistStorageOp : Halide_AtOp<"hoist_storage", "Allocated outside of that loop, computed as before">;

def Halide_ComputeWithOp : Halide_FuncScheduleOp<"compute_with"> {
  let summary = "Outputs that share a loop, and what is computed in it for both";
  let description = [{
    The loops of `func` from the outermost one to `var` are those of `other`: in each iteration of `var` the inner loops of
    `other` run, then those of `func`.

    ```mlir
    halide.compute_with %last, %y, "tile"
    ```
    * compute_with.c1  both are outputs without updates, and not the same
    * compute_with.c2  `var` and the loops around it have the same names in both when all the schedule has been read
  }];
  let arguments = (ins Halide_Func:$func, Halide_Func:$other, StrAttr:$var);
  let assemblyFormat = "$func `,` $other `,` $var attr-dict";
}

class Halide_RootOp<string mnemonic, string what> : Halide_FuncScheduleOp<mnemonic> {
  let summary = what;
  let arguments = (ins Halide_Func:$func);
  let assemblyFormat = "$func attr-dict";
}
def Halide_ComputeRootOp : Halide_RootOp<"compute_root", "Computed once, before its consumers">;
def Halide_ComputeInlineOp : Halide_RootOp<"compute_inline", "Substituted into its consumers (the default)">;
def Halide_StoreRootOp : Halide_RootOp<"store_root", "Stored outside of all loops">;
def Halide_HoistStorageRootOp : Halide_RootOp<"hoist_storage_root", "Allocated outside of all loops">;

def Halide_StoreInOp : Halide_FuncScheduleOp<"store_in"> {
  let summary = "The kind of memory that holds the func";
  let description = [{
    In registers of a GPU, computed at a block, each thread holds the elements that it writes, and reads no others.

    * gpu.c3  a func in `GPUShared` that is computed at a loop over blocks is read by the func of that loop, itself or
              through inline ones, behind all loops that read it, or else by threads of the block that no other loop is
              around: libHalide gives its memory away behind the last read
  }];
  let arguments = (ins Halide_Func:$func, Halide_MemoryType:$memory);
  let assemblyFormat = "$func `,` $memory attr-dict";
}

def Halide_BoundVarOp : Halide_FuncScheduleOp<"bound"> {
  let summary = "Promises the region that is computed in a dim";
  let description = [{
    * promise.c1  what is computed lies in the promised region, as far as it is known when compiling
    * promise.c2  an extent that is a constant is positive
  }];
  let arguments = (ins Halide_Func:$func, StrAttr:$var, I32:$min, I32:$extent);
  let assemblyFormat = "$func `,` $var `from` $min `extent` $extent attr-dict";
}

def Halide_BoundExtentOp : Halide_FuncScheduleOp<"bound_extent"> {
  let summary = "Promises the extent of the region that is computed in a dim";
  let description = "promise.c1 and promise.c2 of `halide.bound` hold.";
  let arguments = (ins Halide_Func:$func, StrAttr:$var, I32:$extent);
  let assemblyFormat = "$func `,` $var `extent` $extent attr-dict";
}

def Halide_AlignBoundsOp : Halide_FuncScheduleOp<"align_bounds"> {
  let summary = "Grows the computed region so that its ends are `remainder` modulo `modulus`";
  let description = [{
    * align_bounds.c1  remainder is below the modulus
    * align_bounds.c2  the func is no output (it would be written past its end)
  }];
  let arguments = (ins Halide_Func:$func, StrAttr:$var, Halide_Factor:$modulus,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$remainder);
  let assemblyFormat = "$func `,` $var `modulus` $modulus (`remainder` $remainder^)? attr-dict";
}

def Halide_AlignStorageOp : Halide_FuncScheduleOp<"align_storage"> {
  let summary = "Pads the stored extent of a dim to a multiple";
  let arguments = (ins Halide_Func:$func, StrAttr:$var, Halide_Factor:$modulus);
  let assemblyFormat = "$func `,` $var `modulus` $modulus attr-dict";
}

def Halide_ReorderStorageOp : Halide_FuncScheduleOp<"reorder_storage"> {
  let summary = "Orders the dims of the stored func, innermost first";
  let description = [{
    * reorder_storage.c1  the vars differ, and there are two or more
    * reorder_storage.c2  all vars of the func are named
  }];
  let arguments = (ins Halide_Func:$func, StrArrayAttr:$vars);
  let assemblyFormat = "$func `,` custom<Names>($vars) attr-dict";
  let builders = [OpBuilder<(ins "::mlir::Value":$func, "::llvm::ArrayRef<::llvm::StringRef>":$vars)>];
}

def Halide_StreamStoresOp : Halide_FuncScheduleOp<"stream_stores"> {
  let summary = "Vectors of a large output are stored past the caches";
  let description = [{
    A store into a line that no cache holds reads the line from memory first. If the whole output takes more than `beyond`
    bytes, whole vectors at aligned addresses are stored without that, and are in no cache afterwards. The whole is `times`
    the output of a call, an i32, where calls write parts of it.

    ```mlir
    halide.stream_stores %y beyond 68157440
    ```
    * stream_stores.c1  the func is an output and has one element type
  }];
  let arguments = (ins Halide_Func:$func, ConfinedAttr<I64Attr, [IntNonNegative]>:$beyond, Optional<I32>:$times);
  let assemblyFormat = "$func `beyond` $beyond (`times` $times^)? attr-dict";
}

def Halide_TraceStoresOp : Halide_FuncScheduleOp<"trace_stores"> {
  let summary = "Each store to the func is told to the runtime (halide_trace)";
  let description = [{
    The runtime adds up the lanes of all stores: `heedc --count-pairs`.

    ```mlir
    halide.trace_stores %p
    ```
  }];
  let arguments = (ins Halide_Func:$func);
  let assemblyFormat = "$func attr-dict";
}

//===--- GPU -------------------------------------------------------------------------------------------------===//

class Halide_GPUOp<string mnemonic, string what> : Halide_StageScheduleOp<mnemonic> {
  let summary = what;
  let description = [{
    * gpu.c1  one to three vars, innermost first; loop.c1 and loop.c2 hold
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage, StrArrayAttr:$vars);
  let assemblyFormat = "$func (`stage` $stage^)? `,` custom<Names>($vars) attr-dict";
}
def Halide_GPUBlocksOp : Halide_GPUOp<"gpu_blocks", "The loops are blocks of a GPU grid">;
def Halide_GPUThreadsOp : Halide_GPUOp<"gpu_threads", "The loops are threads of a GPU block">;

def Halide_GPUSingleThreadOp : Halide_StageScheduleOp<"gpu_single_thread"> {
  let summary = "One thread of one GPU block runs all loops of the stage";
  let description = [{
    * gpu.c2  none of the stage's loops is vectorised, parallel or on the GPU

    ```mlir
    halide.gpu_single_thread %f stage 1
    ```
  }];
  let arguments = (ins Halide_Func:$func, Halide_Stage:$stage);
  let assemblyFormat = "$func (`stage` $stage^)? attr-dict";
}

#endif // HEED_DIALECTS_HALIDE_HALIDESCHEDULE_TD
