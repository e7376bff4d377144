//===- Dialect.td - the attn dialect ------------------------------------------------------===//
// What upstream lacks to say what an attention model means.

#ifndef HEED_DIALECTS_ATTN_DIALECT_TD
#define HEED_DIALECTS_ATTN_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::heed::attn";
  let summary = "The algebra of attention models";
  let description = [{
    Value semantics on ranked tensors. The dialect adds only what upstream lacks: plain index notation is
    `linalg.generic`, control flow is `scf`. An op carries its meaning; its decomposition to upstream ops
    (`attn-decompose`) is the definition of that meaning.

    Discardable attributes: `attn.source` on the module; `attn.model` on a function that is a model's entry;
    `attn.name`, `attn.dims`, `attn.default` on its arguments and results; `attn.kernel` on outlined kernels;
    `attn.plan` on an attention, how it is computed.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
}

// What the score of a live key becomes: before it is divided by the row's sum, or, of the maps that have a threshold,
// less what the row is taken less.
def Attn_Map : I32EnumAttr<"Map", "how a score becomes a weight", [
    I32EnumAttrCase<"Exp", 0, "exp">, I32EnumAttrCase<"Sigmoid", 1, "sigmoid">,
    I32EnumAttrCase<"Relu", 2, "relu">, I32EnumAttrCase<"Identity", 3, "identity">,
    I32EnumAttrCase<"Sparsemax", 4, "sparsemax">, I32EnumAttrCase<"Entmax15", 5, "entmax15">]> {
  let cppNamespace = "::heed::attn";
}

// How an attention is computed: in one pass over the keys; its definition, one tile of queries after the other; or its
// definition, with all scores stored.
def Attn_Algorithm : I32EnumAttr<"Algorithm", "an algorithm of attention", [
    I32EnumAttrCase<"Streaming", 0, "streaming">, I32EnumAttrCase<"RowBlock", 1, "row_block">,
    I32EnumAttrCase<"Materialised", 2, "materialised">]> {
  let cppNamespace = "::heed::attn";
  let genSpecializedAttr = 0;
}

// Which pipeline of an attention that streams: one query at a time, lanes being keys, contracted dims and value dims in
// turn (few queries, as when text is generated); a small tile of them for each part of the keys, whose states another
// kernel merges (few queries on a GPU, Dao et al. 2023, "Flash-Decoding"); a narrow tile of one vector of queries; a tile
// of some vectors; or such a tile whose scores have a bound, so that no maximum is taken.
def Attn_Form : I32EnumAttr<"Form", "a pipeline of an attention that streams", [
    I32EnumAttrCase<"Rows", 0, "rows">, I32EnumAttrCase<"Split", 1, "split">, I32EnumAttrCase<"Narrow", 2, "narrow">,
    I32EnumAttrCase<"Tiles", 3, "tiles">, I32EnumAttrCase<"Bounded", 4, "bounded">]> {
  let cppNamespace = "::heed::attn";
  let genSpecializedAttr = 0;
}

class Attn_Attr<string name, string attrMnemonic> : AttrDef<Attn_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Attn_PipelineAttr : Attn_Attr<"Pipeline", "pipeline"> {
  let summary = "One pipeline of an attention that streams, and its tiles";
  let description = [{
    A tile has `queries` queries. Its keys are taken in blocks of `block`, and where some of them may be absent in
    pieces of `piece`.

    - pipeline.c1  All three are positive, and `block` is a multiple of `piece`.

    ```mlir
    #attn.pipeline<tiles, queries = 32, block = 64, piece = 32>
    ```
  }];
  let parameters = (ins EnumParameter<Attn_Form>:$form, "int64_t":$queries, "int64_t":$block, "int64_t":$piece);
  let assemblyFormat = "`<` $form `,` struct($queries, $block, $piece) `>`";
  let genVerifyDecl = 1;
}

def Attn_PlanAttr : Attn_Attr<"Plan", "plan"> {
  let summary = "How an attention is computed";
  let description = [{
    `attn-choose-algorithm` decides it, once, and sets it as the op's `attn.plan`; all later passes read it. Of an
    attention that streams it holds the pipelines, of which the host chooses by the numbers of queries and keys: the one
    for many queries last. `excluding true` says that scores themselves may be expected to exclude keys, by -inf: then
    every block of keys is one that may have absent ones. `evaluating true` says that the condition of the mask is
    evaluated before, once for all heads that share it: a table of tiles and pieces of keys says where any query sees a
    key. It is read by the forms of many queries, and by rows that read tables anyway.

    - plan.c1  `streaming` has pipelines, of different forms, in the order of the forms; others have none.

    ```mlir
    #attn.plan<streaming, [<rows, queries = 1, block = 128, piece = 128>, <tiles, queries = 32, block = 64, piece = 32>]>
    #attn.plan<streaming evaluating true, [<tiles, queries = 16, block = 64, piece = 16>]>
    #attn.plan<materialised>
    ```
  }];
  let parameters = (ins EnumParameter<Attn_Algorithm>:$algorithm, DefaultValuedParameter<"bool", "false">:$excluding,
                        DefaultValuedParameter<"bool", "false">:$evaluating,
                        OptionalArrayRefParameter<"PipelineAttr">:$pipelines);
  let assemblyFormat = "`<` $algorithm (`excluding` $excluding^)? (`evaluating` $evaluating^)? (`,` `[` $pipelines^ `]`)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The pipeline of \p form, or null if there is none.
    PipelineAttr pipeline(Form form) const;
  }];
}

#endif
