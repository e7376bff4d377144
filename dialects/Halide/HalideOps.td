// The algorithm: pipelines, buffers, funcs, updates, and the call of a pipeline from host code.

#ifndef HEED_DIALECTS_HALIDE_HALIDEOPS_TD
#define HEED_DIALECTS_HALIDE_HALIDEOPS_TD

include "dialects/Halide/HalideDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Halide_Scalar : AnyTypeOf<[I1, I8, I16, I32, I64, F16, BF16, F32, F64], "scalar that Halide knows">;

defvar Halide_NamesResult = DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

//===--- structure -------------------------------------------------------------------------------------------===//

def Halide_PipelineOp : Halide_Op<"pipeline", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
                                               NoRegionArguments]> {
  let summary = "One kernel: an algorithm and its schedule";
  let description = [{
    ```text
    compiled to   int name(void *user_context, <inputs in order>, <outputs in order>)
    ```
    Holds inputs, scalar arithmetic (`arith` on them), constraints, funcs with their updates, schedule ops, and outputs.

    * pipeline.c1  there is a `halide.output`, and each is of a different func
    * pipeline.c2  names of buffers, params and funcs differ
    * pipeline.c3  other ops than this dialect's are `arith` and `math`
    * pipeline.c4  a func's updates stand before its schedule
    * pipeline.c5  an output is scheduled neither inline nor inside another func
    * pipeline.c6  a name of a buffer, func or loop is not empty and has no `.`

    `look_back` is how many instructions LLVM looks back for what a load reads, 100 if it is left away. What unrolled turns
    read again (a sum, a number of a step) is a register where it finds it.

    `registers` is how many of them a thread of a GPU may have, those of the target if it is left away.

    With `on_host` the processor runs it where the target is a device's: it has a processor's schedule.

    The schedule as a whole is checked too: see each schedule op's constraints.
    Example: `test/dialects/Halide/ops.mlir`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$look_back,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$registers, UnitAttr:$on_host);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name)>];
  let extraClassDeclaration = [{
    /// Buffers and params in the order in which callers pass them.
    ::llvm::SmallVector<::mlir::Operation *> getInputs();
    /// Their names, in that order.
    ::llvm::SmallVector<::llvm::StringRef> getInputNames();
    /// The funcs that the pipeline writes, in the order of their arguments.
    ::llvm::SmallVector<::heed::halide::FuncOp> getOutputFuncs();
    /// Whether it has a `halide.give_up`.
    bool givesUp();
    /// Whether it has a value or an element of f64.
    bool usesDoubles();
  }];
}

def Halide_BufferOp : Halide_Op<"buffer", [HasParent<"PipelineOp">, Halide_NamesResult]> {
  let summary = "An input array, borrowed from the caller";
  let description = [{
    ```text
    halide.buffer "x" ("e", "n") : f32       x[n][e] of the caller: innermost dim first
    ```
    The names of the dims only tell the reader what they are; their number is the rank.
  }];
  let arguments = (ins StrAttr:$name, StrArrayAttr:$dims, TypeAttrOf<Halide_Scalar>:$elementType);
  let results = (outs Halide_Func:$result);
  let assemblyFormat = "$name custom<Names>($dims) `:` $elementType attr-dict";
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::ArrayRef<::llvm::StringRef>":$dims,
                                 "::mlir::Type":$elementType)>,
                  OpBuilder<(ins "::llvm::StringRef":$name, "int64_t":$rank, "::mlir::Type":$elementType)>];
}

def Halide_ParamOp : Halide_Op<"param", [HasParent<"PipelineOp">, Halide_NamesResult]> {
  let summary = "A scalar argument";
  let arguments = (ins StrAttr:$name);
  let results = (outs Halide_Scalar:$result);
  let assemblyFormat = "$name `:` type($result) attr-dict";
}

class Halide_BoundOp<string mnemonic, string what> : Halide_Op<mnemonic, [Pure, HasParent<"PipelineOp">]> {
  let summary = what # " of a dim of a buffer or an output, as the caller passes it";
  let description = [{
    * bound.c1  `dim` is below the rank
    * bound.c2  `func` is a `halide.buffer`, or a func with a `halide.output`
  }];
  let arguments = (ins Halide_Func:$func, I64Attr:$dim);
  let results = (outs I32:$result);
  let assemblyFormat = "$func `,` $dim `:` type($result) attr-dict";
  let hasVerifier = 1;
}
def Halide_ExtentOp : Halide_BoundOp<"extent", "extent">;
def Halide_MinOp : Halide_BoundOp<"min", "first coordinate">;

def Halide_SetBoundsOp : Halide_Op<"set_bounds", [AttrSizedOperandSegments, HasParent<"PipelineOp">]> {
  let summary = "States first coordinate and extent of a dim of a buffer or an output";
  let description = [{
    The caller must pass such a buffer; a kernel compiled without checks trusts it. bound.c1 and bound.c2 hold.
  }];
  let arguments = (ins Halide_Func:$func, I64Attr:$dim, Optional<I32>:$min, Optional<I32>:$extent);
  let assemblyFormat = "$func `,` $dim (`from` $min^)? (`extent` $extent^)? attr-dict";
  let hasVerifier = 1;
}

def Halide_SetStrideOp : Halide_Op<"set_stride", [HasParent<"PipelineOp">]> {
  let summary = "States the stride, in elements, of a dim of a buffer or an output";
  let description = "bound.c1 and bound.c2 hold.";
  let arguments = (ins Halide_Func:$func, I64Attr:$dim, I32:$stride);
  let assemblyFormat = "$func `,` $dim `to` $stride attr-dict";
  let hasVerifier = 1;
}

def Halide_SetHostAlignmentOp : Halide_Op<"set_host_alignment", [HasParent<"PipelineOp">]> {
  let summary = "States the alignment, in bytes, of the first element of a buffer or an output";
  let description = [{
    * set_host_alignment.c1  `bytes` is a power of two

    bound.c2 holds.
  }];
  let arguments = (ins Halide_Func:$func, I64Attr:$bytes);
  let assemblyFormat = "$func `to` $bytes attr-dict";
  let hasVerifier = 1;
}

def Halide_OutputOp : Halide_Op<"output", [HasParent<"PipelineOp">]> {
  let summary = "The pipeline writes this func to a buffer of the caller (one per element of its tuple)";
  let description = [{
    * output.c1  the func is a `halide.func`
  }];
  let arguments = (ins Halide_Func:$func);
  let assemblyFormat = "$func attr-dict";
  let hasVerifier = 1;
}

//===--- definitions -----------------------------------------------------------------------------------------===//

def Halide_FuncOp : Halide_Op<"func", [HasParent<"PipelineOp">, SingleBlock, Halide_NamesResult,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A pure definition";
  let description = [{
    ```text
    %f = halide.func "f" (%x = "x", %y = "y") : f32 { ... halide.yield %v : f32 }
    f(x, y) = v                          x is the innermost dim; several element types make a tuple
    ```
    * func.c1  one `i32` block argument per var, and vars have different names
    * func.c2  the body yields one value of each element type
  }];
  let arguments = (ins StrAttr:$name, StrArrayAttr:$vars, TypeArrayAttr:$elementTypes);
  let results = (outs Halide_Func:$result);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::ArrayRef<::llvm::StringRef>":$vars,
                   "::mlir::TypeRange":$elementTypes,
                   CArg<"::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>", "nullptr">:$body)>];
}

def Halide_UpdateOp : Halide_Op<"update", [HasParent<"PipelineOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "An update of a func, over a reduction domain or over its pure vars alone";
  let description = [{
    ```text
    halide.update %f over ("r" from %min extent %n) where (%x, %y, %r) {...} at (%x, %y, %r) {...} set (%x, %y, %r) {...}
    for r in [min, min + n) with where(x, y, r):   f(at(x, y, r)) = set(x, y, r)
    ```
    Each region's arguments are the func's vars, then the reduction vars, innermost first. Without `at` the left side is
    the vars themselves. The update is stage `k` of the func, counted from 1 in the order of the updates.

    * update.c1  the func is a `halide.func`
    * update.c2  reduction vars have different names, and none of them a pure var's
    * update.c3  each region's arguments are one `i32` per pure var and reduction var
    * update.c4  `where` yields one `i1`, `at` one `i32` per pure var, `set` one value of each element type
    * update.c5  a pure var that `at` does not yield at its own place is not used
    * update.c6  without a reduction domain there is no `where`
    * update.c7  no other func has read the func before
  }];
  let arguments = (ins Halide_Func:$func, Variadic<I32>:$bounds, StrArrayAttr:$rvars);
  let regions = (region AnyRegion:$where, AnyRegion:$at, SizedRegion<1>:$set);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$func, "::llvm::ArrayRef<::llvm::StringRef>":$rvars, "::mlir::ValueRange":$bounds)>];
  let extraClassDeclaration = [{
    using BodyFn = ::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>;
    /// An update over \p extents, each from 0 on.
    static UpdateOp over(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value func,
                         ::llvm::ArrayRef<::llvm::StringRef> rvars, ::mlir::ValueRange extents);
    /// Fills one of the regions: a block with the right arguments, what \p body builds, and the yield.
    void fill(::mlir::OpBuilder &builder, ::mlir::Region &region, BodyFn body);
    ::mlir::Value getRVarMin(unsigned k) { return getBounds()[2 * k]; }
    ::mlir::Value getRVarExtent(unsigned k) { return getBounds()[2 * k + 1]; }
  }];
}

def Halide_YieldOp : Halide_Op<"yield", [Pure, Terminator, ParentOneOf<["FuncOp", "UpdateOp"]>]> {
  let summary = "Ends a region of a func or an update with its values";
  let arguments = (ins Variadic<Halide_Scalar>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Halide_ReadOp : Halide_Op<"read", [Pure]> {
  let summary = "The element of a func or a buffer at given coordinates";
  let description = [{
    * read.c1  as many coordinates as the func has dims
    * read.c2  one result of each of its element types
  }];
  let arguments = (ins Halide_Func:$func, Variadic<I32>:$coordinates);
  let results = (outs Variadic<Halide_Scalar>:$values);
  let assemblyFormat = "$func `[` $coordinates `]` `:` type($values) attr-dict";
  let hasVerifier = 1;
}

def Halide_MuxOp : Halide_Op<"mux", [Pure]> {
  let summary = "The value with number `index`; unrolled or vectorised loops resolve it when compiling";
  let description = [{
    * mux.c1  there is at least one value, and all have the result's type
  }];
  let arguments = (ins I32:$index, Variadic<Halide_Scalar>:$values);
  let results = (outs Halide_Scalar:$result);
  let assemblyFormat = "$index `,` `[` $values `:` type($values) `]` `:` type($result) attr-dict";
  let hasVerifier = 1;
}

def Halide_ModOp : Halide_Op<"mod", [Pure, SameOperandsAndResultType]> {
  let summary = "Remainder of a floor division: `lhs - floor(lhs / rhs) * rhs`, for positive `rhs`";
  let description = [{
    `arith` has only the remainder with the sign of the dividend, whose range Halide cannot bound.
  }];
  let arguments = (ins SignlessIntegerLike:$lhs, SignlessIntegerLike:$rhs);
  let results = (outs SignlessIntegerLike:$result);
  let assemblyFormat = "$lhs `,` $rhs `:` type($result) attr-dict";
}

def Halide_LikelyOp : Halide_Op<"likely", [Pure, SameOperandsAndResultType]> {
  let summary = "What an `arith.select` chooses in all iterations of a loop but a few at its ends";
  let description = [{
    The condition compares the loop's number. The loop is split where it changes, so that most iterations do not evaluate
    it, nor what it chooses elsewhere.
  }];
  let arguments = (ins Halide_Scalar:$value);
  let results = (outs Halide_Scalar:$result);
  let assemblyFormat = "$value `:` type($result) attr-dict";
}

def Halide_UnboundedOp : Halide_Op<"unbounded", [Pure, SameOperandsAndResultType]> {
  let summary = "The value, of which libHalide knows no bounds";
  let description = [{
    Where libHalide knows the bounds of a variable (it was an i8, a bool, a remainder), it writes each step of a polynomial in
    it as four products of the bounds of the step before, and does not end.
  }];
  let arguments = (ins AnyFloat:$value);
  let results = (outs AnyFloat:$result);
  let assemblyFormat = "$value `:` type($result) attr-dict";
}

def Halide_DeviceExp2Op : Halide_Op<"device_exp2", [Pure]> {
  let summary = "2^x by the one instruction that CUDA's devices have for it";
  let description = [{
    ```text
    %y = halide.device_exp2 %x     2^x to 2 units in the last place; 0 where that is no normal number
    ```
    NaN stays NaN. Only pipelines for CUDA have it; elsewhere it is an error.
  }];
  let arguments = (ins F32:$x);
  let results = (outs F32:$result);
  let assemblyFormat = "$x attr-dict";
}

def Halide_UndefOp : Halide_Op<"undef", [Pure]> {
  let summary = "No value: a pure definition that only updates fill";
  let results = (outs Halide_Scalar:$result);
  let assemblyFormat = "`:` type($result) attr-dict";
}

def Halide_GiveUpOp : Halide_Op<"give_up", []> {
  let summary = "Tells the caller, if the condition holds, that the results are not to be used";
  let description = [{
    ```text
    %one = halide.give_up %condition        1.0, in any case
    ```
    The pipeline goes on; its `halide.call` then calls the pipeline behind `else`. The result is a factor for something
    that is computed later: what nobody reads is not computed.
  }];
  let arguments = (ins I1:$condition);
  let results = (outs F32:$one);
  let assemblyFormat = "$condition attr-dict";
}

//===--- host ------------------------------------------------------------------------------------------------===//

def Halide_CallOp : Halide_Op<"call", [AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Host code calls a pipeline";
  let description = [{
    ```text
    halide.call @k (%a, %n : tensor<?x?xf32>, index) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
    halide.call @k (%a) with("range" = %r : tensor<?x2xi32>) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
    halide.call @k (...) outs(...) else @k2 -> tensor<?x?xf32>       @k2 writes the results if @k gives up
    ```
    What stands in `with` is passed to the pipeline's `halide.buffer` or `halide.param` of that name: what a schedule wants
    beside the arguments of the kernel (packed weights, tables of a mask). The others follow the pipeline's other inputs in
    their order. A tensor's last dim is the buffer's first. An `index` is passed to an `i32` or `i64` parameter. The outputs
    are overwritten, never read. The pipeline behind `else` gets what is passed to inputs of its inputs' names.

    * call.c1  the callee is a `halide.pipeline`
    * call.c2  inputs agree with it in number, rank and type
    * call.c3  outs agree with its outputs, one per tuple element
    * call.c4  tensors have results of the outs' types, memrefs have none
    * call.c5  there is an `else` if and only if the callee has a `halide.give_up`
    * call.c6  the pipeline behind `else` has no `halide.give_up`, its inputs are among the callee's, and it writes the same outs
    * call.c7  there is one name for each operand of `with`, each that of an input of the callee, and no two are the same
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$inputs, Variadic<AnyType>:$named,
                       Variadic<AnyShaped>:$outs, OptionalAttr<StrArrayAttr>:$names,
                       OptionalAttr<FlatSymbolRefAttr>:$otherwise);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `(` ($inputs^ `:` type($inputs))? `)` (`with` `(` custom<NamedOperands>($names, $named, type($named))^ `)`)?
    `outs` `(` $outs `:` type($outs) `)` (`else` $otherwise^)? attr-dict
    (`->` type($results)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::llvm::StringRef":$callee, "::mlir::ValueRange":$inputs,
                                 "::mlir::ValueRange":$outs), [{
    build($_builder, $_state, results, callee, inputs, ::mlir::ValueRange(), outs, ::mlir::ArrayAttr(),
          ::mlir::FlatSymbolRefAttr());
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    /// Passes \p value to the input called \p name, beside what is passed.
    void pass(::llvm::StringRef name, ::mlir::Value value);
    /// What is passed to each of \p inputs, the names of the callee's inputs in order. Empty where nothing is.
    ::llvm::StringMap<::mlir::Value> getArguments(::llvm::ArrayRef<::llvm::StringRef> inputs);
  }];
}

#endif // HEED_DIALECTS_HALIDE_HALIDEOPS_TD
