//===- HalideLowering.cpp - last changes of a kernel's loop nest ----------===//
#include "compiler/Codegen/HalideLowering.h"
#include <cstring>
#include <limits>
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

/// A product and a sum that may be contracted are one FMA. OpenCL's code
/// generator makes a statement of each, and compilers contract none of two.
struct Contract : IRMutator {
  using IRMutator::visit;

  static Expr fma(const Mul *product, const Expr &a, const Expr &sum) {
    return Call::make(sum.type(), "fma", {a, product->b, sum},
                      Call::PureExtern);
  }
  static Expr negative(const Expr &e) {
    return Mul::make(e, make_const(e.type(), -1));
  }
  Expr visit(const Add *op) override {
    Expr a = mutate(op->a), b = mutate(op->b);
    const Mul *first = a.as<Mul>(), *second = b.as<Mul>();
    if (op->type.is_float() && second)
      return fma(second, second->a, a);
    if (op->type.is_float() && first)
      return fma(first, first->a, b);
    return Add::make(a, b);
  }
  Expr visit(const Sub *op) override {
    Expr a = mutate(op->a), b = mutate(op->b);
    const Mul *first = a.as<Mul>(), *second = b.as<Mul>();
    if (op->type.is_float() && second)
      return fma(second, negative(second->a), a);
    if (op->type.is_float() && first)
      return fma(first, first->a, negative(b));
    return Sub::make(a, b);
  }
};

/// Comparisons of vectors, of which OpenCL's code generator makes masks where
/// they are no calls of an intrinsic. As text they are IEEE 754's as they are.
struct VectorMasks : IRMutator {
  using IRMutator::visit;
  Expr visit(const Call *call) override {
    Expr same = IRMutator::visit(call);
    call = same.as<Call>();
    if (!call || !call->type.is_vector())
      return same;
    if (call->is_intrinsic(Call::strict_lt))
      return LT::make(call->args[0], call->args[1]);
    if (call->is_intrinsic(Call::strict_eq))
      return EQ::make(call->args[0], call->args[1]);
    return same;
  }
};

/// Numbers that OpenCL's code generator writes as others: an f64 as an f32, and
/// the least i32 as an i64, the negative one of a number that is no i32. They
/// are their bits here.
struct Literals : IRMutator {
  using IRMutator::visit;
  Expr visit(const FloatImm *number) override {
    if (number->type.bits() != 64)
      return number;
    uint64_t bits;
    std::memcpy(&bits, &number->value, sizeof bits);
    return Reinterpret::make(number->type, UIntImm::make(UInt(64), bits));
  }
  Expr visit(const IntImm *number) override {
    if (number->type.bits() != 32 ||
        number->value != std::numeric_limits<int32_t>::min())
      return number;
    return Reinterpret::make(number->type,
                             UIntImm::make(UInt(32), UINT32_C(1) << 31));
  }
};

/// Which threads do something is asked of numbers that a compiler takes for
/// others than the threads' own: 0 is added, the offset of a launch in a
/// dimension that has none. Of comparisons such as `i == j` PoCL 3.1 (LLVM 15)
/// makes a vector of bits, and where one of them is a condition behind a
/// barrier, too, reads it from there in a place of another thread's.
struct OwnConditions : IRMutator {
  using IRMutator::visit;
  std::set<std::string> threads;

  Stmt visit(const For *loop) override {
    if (loop->for_type == ForType::GPUThread)
      threads.insert(loop->name);
    return IRMutator::visit(loop);
  }
  Stmt visit(const IfThenElse *choice) override {
    Stmt same = IRMutator::visit(choice);
    choice = same.as<IfThenElse>();
    std::map<std::string, Expr> others;
    for (const std::string &thread : threads)
      others[thread] =
          Variable::make(Int(32), thread) +
          Call::make(Int(32), "get_global_offset", {2}, Call::PureExtern);
    return IfThenElse::make(substitute(others, choice->condition),
                            choice->then_case, choice->else_case);
  }
};

/// libHalide has LLVM make FMAs of all products and sums for CUDA, also of
/// strict ones: a product less the largest of such products, each rounded, is
/// then no longer 0 or below. A product that is to be rounded is the
/// instruction that says so.
struct RoundedProducts : IRMutator {
  using IRMutator::visit;
  bool onDevice = false;

  Stmt visit(const For *loop) override {
    bool before = std::exchange(onDevice, onDevice || loop->for_type ==
                                                          ForType::GPUBlock);
    Stmt same = IRMutator::visit(loop);
    onDevice = before;
    return same;
  }
  Expr visit(const Call *call) override {
    Expr same = IRMutator::visit(call);
    call = same.as<Call>();
    if (!onDevice || !call || !call->is_intrinsic(Call::strict_mul) ||
        !call->type.is_scalar() || call->type.bits() < 32)
      return same;
    return Call::make(call->type,
                      call->type.bits() == 32 ? "llvm.nvvm.mul.rn.f"
                                              : "llvm.nvvm.mul.rn.d",
                      call->args, Call::PureExtern);
  }
};

/// Numbers that are added to an i32, which does not overflow, are added to the
/// i64 that is made of it. Places that differ by a number are then one register
/// and that number, in code for CUDA.
struct OffsetsOutside : IRMutator {
  using IRMutator::visit;
  Expr visit(const Cast *cast) override {
    Expr same = IRMutator::visit(cast);
    cast = same.as<Cast>();
    const Add *sum =
        cast && cast->type == Int(64) ? cast->value.as<Add>() : nullptr;
    auto number = sum ? as_const_int(sum->b) : std::nullopt;
    if (!number || sum->type != Int(32))
      return same;
    return Add::make(mutate(Cast::make(Int(64), sum->a)),
                     make_const(Int(64), *number));
  }
};

/// Says of vectors of four that they lie at a multiple of four numbers where
/// that is so, for CUDA's code generator, which else takes them one by one.
/// Places are i64, and libHalide does not see through what made them so.
struct GroupsOfFour : IRMutator {
  using IRMutator::visit;
  std::map<std::string, bool> whole; ///< of names: whether of multiples of four

  bool isMultiple(const Expr &e) const {
    if (auto number = as_const_int(e))
      return *number % 4 == 0;
    if (const auto *cast = e.as<Cast>())
      return cast->type.is_int() && cast->value.type().is_int() &&
             cast->type.bits() >= cast->value.type().bits() &&
             isMultiple(cast->value);
    if (const auto *sum = e.as<Add>())
      return isMultiple(sum->a) && isMultiple(sum->b);
    if (const auto *difference = e.as<Sub>())
      return isMultiple(difference->a) && isMultiple(difference->b);
    if (const auto *product = e.as<Mul>())
      return isMultiple(product->a) || isMultiple(product->b);
    if (const auto *least = e.as<Min>())
      return isMultiple(least->a) && isMultiple(least->b);
    if (const auto *most = e.as<Max>())
      return isMultiple(most->a) && isMultiple(most->b);
    if (const auto *name = e.as<Variable>()) {
      auto known = whole.find(name->name);
      return known != whole.end() && known->second;
    }
    return false;
  }

  /// What is asserted of an array's strides.
  Stmt visit(const AssertStmt *check) override {
    const auto *equal = check->condition.as<EQ>();
    const auto *rest = equal ? equal->a.as<Mod>() : nullptr;
    const auto *name = rest ? rest->a.as<Variable>() : nullptr;
    if (name && is_const_zero(equal->b) && isMultiple(rest->b))
      whole[name->name] = true;
    return IRMutator::visit(check);
  }
  Stmt visit(const LetStmt *let) override {
    whole[let->name] = isMultiple(let->value);
    return IRMutator::visit(let);
  }
  Expr visit(const Let *let) override {
    whole[let->name] = isMultiple(let->value);
    return IRMutator::visit(let);
  }
  Expr visit(const Load *load) override {
    const Ramp *ramp = load->index.as<Ramp>();
    if (load->type.lanes() != 4 || !ramp || !is_const_one(ramp->stride) ||
        !isMultiple(ramp->base))
      return IRMutator::visit(load);
    return Load::make(load->type, load->name, load->index, load->image,
                      load->param, load->predicate, ModulusRemainder(4, 0));
  }
};

/// Four numbers of 16 bits that lie at a multiple of 8 bytes come to a thread
/// of CUDA at once; libHalide does so with 32 bits alone.
struct FourHalves : IRMutator {
  using IRMutator::visit;
  Expr visit(const Load *load) override {
    const Ramp *ramp = load->index.as<Ramp>();
    if (load->type != UInt(16, 4) || !ramp || !is_const_one(ramp->stride) ||
        !is_const_one(load->predicate) || load->alignment.modulus % 4 != 0 ||
        load->alignment.remainder % 4 != 0)
      return IRMutator::visit(load);
    Expr group = simplify(ramp->base / make_const(ramp->base.type(), 4));
    return Reinterpret::make(
        load->type, Load::make(UInt(64), load->name, group, load->image,
                               load->param, const_true(), ModulusRemainder()));
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
  pipeline.add_custom_lowering_pass(makeOwnStorePass());
  pipeline.add_custom_lowering_pass(new ReadOwnOutput);
  pipeline.add_custom_lowering_pass(new MaskedLoads);
  if (!target.has_feature(Target::F16C))
    pipeline.add_custom_lowering_pass(new KeepNaNInHalf);
  if (target.has_feature(Target::OpenCL)) {
    pipeline.add_custom_lowering_pass(new WholeBits);
    pipeline.add_custom_lowering_pass(new Literals);
    pipeline.add_custom_lowering_pass(new VectorMasks);
    pipeline.add_custom_lowering_pass(new Contract);
  }
  if (target.has_feature(Target::CUDA))
    for (IRMutator *change : std::initializer_list<IRMutator *>{
             new RoundedProducts, new OffsetsOutside, new GroupsOfFour,
             new FourHalves})
      pipeline.add_custom_lowering_pass(change);
  if (target.has_gpu_feature()) {
    pipeline.add_custom_lowering_pass(makeRegisterPass());
    pipeline.add_custom_lowering_pass(makeTurnPass());
    // These two read threads' numbers in conditions.
    if (target.has_feature(Target::OpenCL))
      pipeline.add_custom_lowering_pass(new OwnConditions);
    pipeline.add_custom_lowering_pass(new KeepAnswers(promises));
  } else if (promises)
    pipeline.add_custom_lowering_pass(new KeepPromises);
}
