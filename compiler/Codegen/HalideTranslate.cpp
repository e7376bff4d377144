// Definitions: buffers, params, funcs and updates of one pipeline.

#include "compiler/Codegen/HalideTranslate.h"
#include "dialects/Halide/Target.h"
#include "mlir/IR/Matchers.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed;
using Halide::Expr;

void HalideTranslator::translate() {
  // An output's bounds may be read above its definition's end, so funcs exist
  // before any expression is translated.
  for (Operation &op : pipeline.getBody().front()) {
    current = &op;
    translateDefinition(&op);
  }
  for (Operation &op : pipeline.getBody().front()) {
    current = &op;
    constrain(&op);
  }
  // Places name loops as they are in the end, so they come after all that makes
  // loops.
  for (bool places : {false, true}) {
    for (Operation &op : pipeline.getBody().front()) {
      current = &op;
      bool isPlace =
          isa<halide::ComputeAtOp, halide::StoreAtOp, halide::HoistStorageOp>(
              op);
      if (!halide::isScheduleOp(&op) || isPlace != places)
        continue;
      if (auto part = dyn_cast<halide::RFactorOp>(op))
        factor(part);
      else
        schedule(&op);
    }
  }
  current = pipeline;
  std::vector<Halide::Func> outputs;
  for (halide::FuncOp func : pipeline.getOutputFuncs())
    outputs.push_back(funcs[func.getResult()]);
  result = Halide::Pipeline(outputs);
  if (!prefetches.empty())
    result.add_custom_lowering_pass(makePrefetchPass(std::move(prefetches)));
  hasStreams = !streams.empty();
  if (hasStreams)
    result.add_custom_lowering_pass(makeStreamPass(std::move(streams)));
}

/// \p name as libHalide may hear it. Its own names are a letter and a number
/// ("a3"), and it does not keep them apart from a parameter's: the closure of a
/// parallel loop then takes the wrong value, silently.
static std::string argumentName(StringRef name) {
  StringRef number = name.drop_front(std::min<size_t>(1, name.size()));
  bool like = !number.empty() &&
              llvm::all_of(number, [](char c) { return llvm::isDigit(c); });
  return format("{}{}", name, like ? "_" : "");
}

void HalideTranslator::translateDefinition(Operation *op) {
  if (halide::isScheduleOp(op) || translateExpression(op))
    return;
  TypeSwitch<Operation *>(op)
      .Case([&](halide::BufferOp buffer) {
        Halide::ImageParam image(typeOf(buffer.getElementType()),
                                 buffer.getDims().size(),
                                 argumentName(buffer.getName()));
        buffers.insert({buffer.getResult(), image});
        arguments.push_back(image);
      })
      .Case([&](halide::ParamOp param) {
        Halide::Param<void> scalar(typeOf(param.getResult().getType()),
                                   argumentName(param.getName()));
        set(param.getResult(), scalar);
        arguments.push_back(scalar);
      })
      .Case([&](halide::FuncOp func) { define(func); })
      .Case([&](halide::UpdateOp u) { update(u); });
}

std::vector<Expr>
HalideTranslator::translateRegion(Region &region,
                                  const std::vector<Expr> &args) {
  for (auto [arg, expr] : llvm::zip(region.getArguments(), args))
    set(arg, expr);
  for (Operation &op : region.front()) {
    current = &op;
    if (auto yield = dyn_cast<halide::YieldOp>(op)) {
      std::vector<Expr> values;
      for (Value v : yield.getValues())
        values.push_back(get(v));
      return values;
    }
    if (!translateExpression(&op))
      throw TranslationError{&op, "has no counterpart in Halide"};
  }
  return {};
}

void HalideTranslator::define(halide::FuncOp op) {
  Halide::Func func(op.getName().str());
  std::vector<Halide::Var> vars;
  std::vector<Expr> args;
  Loops stage;
  for (StringRef name : op.getVars().getAsValueRange<StringAttr>()) {
    vars.emplace_back(name.str());
    args.push_back(vars.back());
    stage.emplace(name.str(), vars.back());
  }
  std::vector<Expr> values = translateRegion(op.getBody(), args);
  current = op;
  if (values.size() == 1)
    func(vars) = values[0];
  else
    func(vars) = Halide::Tuple(values);
  funcs.insert({op.getResult(), func});
  loops[op.getResult()].push_back(stage);
}

namespace {

/// A tuple's update must compute all elements before it stores any. Halide 21
/// looks for elements that read each other, but not inside calls, and its
/// strict arithmetic is calls: an argmax over strict comparisons stores the
/// maximum first and then compares with that. So a read of another element that
/// stands inside a call is used twice there, in an operation that gives it back
/// and that only LLVM folds. Halide then binds it to a name outside of the
/// call, where it sees it.
class ShowTupleReads : public Halide::Internal::IRMutator {
public:
  ShowTupleReads(const std::string &func, int element)
      : func(func), element(element) {}

private:
  using IRMutator::visit;
  Expr visit(const Halide::Internal::Call *call) override {
    using Halide::Internal::Call;
    if (call->call_type == Call::Halide && call->name == func) {
      if (depth == 0 || call->value_index == element)
        return call;
      Expr read = call;
      return Call::make(call->type,
                        call->type.is_float() ? Call::strict_max
                                              : Call::bitwise_and,
                        {read, read}, Call::PureIntrinsic);
    }
    ++depth;
    Expr result = IRMutator::visit(call);
    --depth;
    return result;
  }

  std::string func;
  int element;
  int depth = 0;
};

} // namespace

void HalideTranslator::update(halide::UpdateOp op) {
  Halide::Func &func = funcs[op.getFunc()];
  std::vector<Expr> args;
  Loops stage;
  for (const Halide::Var &var : func.args())
    args.push_back(var);
  std::string name;
  Halide::Region bounds;
  for (auto [k, rvar] :
       llvm::enumerate(op.getRvars().getAsValueRange<StringAttr>())) {
    name += (k ? "_" : "") + rvar.str();
    bounds.emplace_back(get(op.getRVarMin(k)), get(op.getRVarExtent(k)));
  }
  Halide::RDom domain;
  if (!bounds.empty()) {
    domain = Halide::RDom(bounds, name);
    for (auto [k, rvar] :
         llvm::enumerate(op.getRvars().getAsValueRange<StringAttr>())) {
      args.push_back(domain[k]);
      stage.emplace(rvar.str(), domain[k]);
    }
  }
  std::vector<Expr> place(args.begin(), args.begin() + func.dimensions());
  if (!op.getAt().empty())
    place = translateRegion(op.getAt(), args);
  for (int k = 0; k < func.dimensions(); ++k)
    if (place[k].same_as(args[k]))
      stage.emplace(func.args()[k].name(), func.args()[k]);
  if (!op.getWhere().empty()) {
    inWhere = true;
    domain.where(translateRegion(op.getWhere(), args)[0]);
    inWhere = false;
  }
  std::vector<Expr> values = translateRegion(op.getSet(), args);
  current = op;
  if (values.size() > 1)
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = ShowTupleReads(func.name(), k).mutate(values[k]);
  if (values.size() == 1)
    func(place) = values[0];
  else
    func(place) = Halide::Tuple(values);
  // Without ops of its own it runs as it stands: nothing was forgotten.
  func.update(func.num_update_definitions() - 1).unscheduled();
  loops[op.getFunc()].push_back(stage);
}

std::vector<Expr> HalideTranslator::read(Value func,
                                         const std::vector<Expr> &coordinates) {
  if (auto it = buffers.find(func); it != buffers.end()) {
    // An ImageParam is read through a func, and Halide leaves a condition that
    // calls a func in the innermost loop.
    if (inWhere)
      return {
          Halide::Internal::Call::make(it->second.parameter(), coordinates)};
    return {it->second(coordinates)};
  }
  Halide::Func &f = funcs[func];
  Halide::FuncRef ref = f(coordinates);
  if (f.outputs() == 1)
    return {Expr(ref)};
  std::vector<Expr> values;
  for (int k = 0; k < f.outputs(); ++k)
    values.push_back(ref[k]);
  return values;
}

Expr HalideTranslator::bound(Value func, int64_t dim, bool extent) {
  auto it = buffers.find(func);
  if (it != buffers.end())
    return extent ? it->second.dim(dim).extent() : it->second.dim(dim).min();
  Halide::OutputImageParam output = funcs[func].output_buffers()[0];
  return extent ? output.dim(dim).extent() : output.dim(dim).min();
}

void HalideTranslator::constrain(Operation *op) {
  if (!isa<halide::SetBoundsOp, halide::SetStrideOp,
           halide::SetHostAlignmentOp>(op))
    return;
  Value func = op->getOperand(0);
  std::vector<Halide::OutputImageParam> arrays;
  if (auto it = buffers.find(func); it != buffers.end())
    arrays.push_back(it->second);
  else
    arrays = funcs[func].output_buffers();
  for (Halide::OutputImageParam &array : arrays) {
    if (auto align = dyn_cast<halide::SetHostAlignmentOp>(op)) {
      array.set_host_alignment(align.getBytes());
    } else if (auto stride = dyn_cast<halide::SetStrideOp>(op)) {
      array.dim(stride.getDim()).set_stride(get(stride.getStride()));
      // Arrays are dense: strides of the dims outside are multiples of this
      // one, and a device reads vectors where it is known to.
      if (APInt known;
          halide::isForGPU(pipeline) &&
          matchPattern(stride.getStride(), m_ConstantInt(&known)) &&
          known.getSExtValue() % 4 == 0)
        for (int dim = int(stride.getDim()) + 1; dim < array.dimensions();
             ++dim)
          array.dim(dim).set_stride(array.dim(dim).stride() / 4 * 4);
    } else {
      auto bounds = cast<halide::SetBoundsOp>(op);
      if (bounds.getMin())
        array.dim(bounds.getDim()).set_min(get(bounds.getMin()));
      if (bounds.getExtent())
        array.dim(bounds.getDim()).set_extent(get(bounds.getExtent()));
      break; // Halide: all elements of an output have the bounds of the first
    }
  }
}
