//===- HalideLowering.cpp - last changes of a kernel's loop nest ----------===//
#include "compiler/Codegen/HalideLowering.h"
#include <set>

using namespace Halide;
using namespace Halide::Internal;

namespace {

/// Leaves of a kernel's checks those of promises.
struct KeepPromises : IRMutator {
  using IRMutator::visit;
  Stmt visit(const AssertStmt *check) override {
    auto *call = check->message.as<Call>();
    if (call && call->name == "halide_error_explicit_bounds_too_small")
      return check;
    return Evaluate::make(0);
  }
};

/// Leaves of the checks of a device's kernel what the device answers, an error
/// of its runtime. Buffers are the host's business, as on the processor.
struct KeepAnswers : IRMutator {
  using IRMutator::visit;
  bool promises;
  explicit KeepAnswers(bool promises) : promises(promises) {}
  Stmt visit(const AssertStmt *check) override {
    if (check->message.as<Variable>())
      return check;
    return promises ? KeepPromises().mutate(Stmt(check)) : Evaluate::make(0);
  }
};

/// OpenCL's code generator does not know bits of a number that are the whole
/// number (heed::unbounded); its compiler concludes nothing from a plain sum.
struct WholeBits : IRMutator {
  using IRMutator::visit;
  Expr visit(const Call *call) override {
    return call->is_intrinsic(Call::extract_bits) &&
                   call->type == call->args[0].type()
               ? mutate(call->args[0])
               : IRMutator::visit(call);
  }
};

/// Masked loads of floats are loads of their bits. libHalide makes a call of an
/// intrinsic of them and says of its result, as of any operation on floats that
/// is not strict, that it is neither NaN nor infinite. Of a plain load nothing
/// can be said, and what LLVM concluded from it was wrong: that every element
/// at the end of a row with a NaN is -0, so that nothing of it was added.
struct MaskedLoads : IRMutator {
  using IRMutator::visit;

  /// The places of a masked load. Where they descend from a number, and lanes
  /// that the mask leaves out are below 0, libHalide's code generator ends by
  /// an assertion; places that are no ramp it reads one by one.
  static Expr placesOf(const Load *load) {
    const Ramp *ramp = load->index.as<Ramp>();
    auto base = ramp ? as_const_int(ramp->base) : std::nullopt;
    if (!base || !is_const(ramp->stride, -1) || *base >= ramp->lanes - 1)
      return load->index;
    return Add::make(load->index, make_zero(load->index.type()));
  }

  Expr visit(const Load *load) override {
    Expr same = IRMutator::visit(load);
    load = same.as<Load>();
    if (is_const_one(load->predicate))
      return same;
    bool isFloat = load->type.is_float();
    Type type = isFloat ? load->type.with_code(halide_type_uint) : load->type;
    Expr read = Load::make(type, load->name, placesOf(load), load->image,
                           load->param, load->predicate, load->alignment);
    return isFloat ? reinterpret(load->type, read) : read;
  }
};

/// What a kernel reads of its own output is aligned like an element. libHalide
/// takes every array that is no argument for one of its own, whose vectors are
/// aligned, but a caller's output may begin anywhere.
struct ReadOwnOutput : IRMutator {
  using IRMutator::visit;
  std::multiset<std::string> allocated;

  Stmt visit(const Allocate *allocation) override {
    auto own = allocated.insert(allocation->name);
    Stmt same = IRMutator::visit(allocation);
    allocated.erase(own);
    return same;
  }
  Expr visit(const Load *load) override {
    Expr same = IRMutator::visit(load);
    load = same.as<Load>();
    if (!load || load->param.defined() || load->image.defined() ||
        allocated.count(load->name))
      return same;
    return Load::make(load->type, load->name, load->index, load->image,
                      load->param, load->predicate, ModulusRemainder());
  }
};

/// Where the processor has no conversion to halves libHalide's own makes an
/// infinity of a NaN.
struct KeepNaNInHalf : IRMutator {
  using IRMutator::visit;
  Expr visit(const Cast *cast) override {
    Expr same = IRMutator::visit(cast);
    cast = same.as<Cast>();
    if (!cast || !cast->type.is_float() || cast->type.bits() != 16 ||
        cast->type.is_bfloat() || cast->value.type().bits() != 32 ||
        !cast->value.type().is_float())
      return same;
    Type raw = UInt(32).with_lanes(cast->type.lanes());
    Type half = UInt(16).with_lanes(cast->type.lanes());
    Expr bits = reinterpret(raw, cast->value);
    Expr isNaN = (bits << make_one(raw)) > make_const(raw, 0xff000000);
    return reinterpret(cast->type, select(isNaN, make_const(half, 0x7e00),
                                          reinterpret(half, same)));
  }
};

} // namespace

void heed::addLastChanges(Pipeline &pipeline, const Target &target,
                          bool promises) {
  pipeline.add_custom_lowering_pass(new ReadOwnOutput);
  pipeline.add_custom_lowering_pass(new MaskedLoads);
  if (!target.has_feature(Target::F16C))
    pipeline.add_custom_lowering_pass(new KeepNaNInHalf);
  if (target.has_feature(Target::OpenCL))
    pipeline.add_custom_lowering_pass(new WholeBits);
  if (target.has_gpu_feature())
    pipeline.add_custom_lowering_pass(makeRegisterPass());
  if (target.has_gpu_feature())
    pipeline.add_custom_lowering_pass(new KeepAnswers(promises));
  else if (promises)
    pipeline.add_custom_lowering_pass(new KeepPromises);
}
