// The halide dialect, its one type and its enumerations.

#ifndef HEED_DIALECTS_HALIDE_HALIDEDIALECT_TD
#define HEED_DIALECTS_HALIDE_HALIDEDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Halide_Dialect : Dialect {
  let name = "halide";
  let cppNamespace = "::heed::halide";
  let summary = "Halide pipelines and their schedules";
  let description = [{
    One `halide.pipeline` is one kernel: the algorithm (`halide.func`, `halide.update`) and beside it the
    schedule, op by op, in the order in which it is applied. What stands in the IR is what is compiled:
    translation to libHalide decides nothing.

    Expressions inside funcs are `arith` and `math` ops. Floating-point ops mean what IEEE 754 says unless
    they carry fast-math flags: an `arith.mulf` and `arith.addf` with `fastmath<contract>` (or more) may be
    fused and reassociated, every other op keeps NaN, infinities and the order of evaluation.
    Coordinates, bounds and extents are `i32`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def Halide_Func : TypeDef<Halide_Dialect, "Func"> {
  let mnemonic = "func";
  let summary = "Something that can be read at integer coordinates: a func or a buffer of the caller";
  let description = [{
    Only `halide.func`, `halide.buffer` and `halide.rfactor` make values of this type. Rank and element types stand
    at that op, so that uses need not repeat them.
  }];
}

class Halide_Enum<string name, string summary, list<string> cases>
    : I32EnumAttr<name, summary,
                  !foreach(i, !range(!size(cases)), I32EnumAttrCase<cases[i], i>)> {
  let cppNamespace = "::heed::halide";
  let genSpecializedAttr = 0;
}

def Halide_TailStrategyEnum : Halide_Enum<"TailStrategy", "what happens where the factor does not divide",
    ["Auto", "RoundUp", "GuardWithIf", "Predicate", "PredicateLoads", "PredicateStores", "ShiftInwards",
     "ShiftInwardsAndBlend", "RoundUpAndBlend"]>;
def Halide_TailStrategy : EnumAttr<Halide_Dialect, Halide_TailStrategyEnum, "tail"> {
  let assemblyFormat = "`` $value";
}

def Halide_MemoryTypeEnum : Halide_Enum<"MemoryType", "where a func is stored",
    ["Auto", "Heap", "Stack", "Register", "GPUShared", "GPUTexture", "LockedCache", "VTCM", "AMXTile"]>;
def Halide_MemoryType : EnumAttr<Halide_Dialect, Halide_MemoryTypeEnum, "memory"> {
  let assemblyFormat = "`` $value";
}

def Halide_PartitionEnum : Halide_Enum<"Partition", "whether a loop may be split into prologue, body and epilogue",
    ["Auto", "Never", "Always"]>;
def Halide_Partition : EnumAttr<Halide_Dialect, Halide_PartitionEnum, "partition_policy"> {
  let assemblyFormat = "`` $value";
}

class Halide_Op<string mnemonic, list<Trait> traits = []> : Op<Halide_Dialect, mnemonic, traits>;

#endif // HEED_DIALECTS_HALIDE_HALIDEDIALECT_TD
