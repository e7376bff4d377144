//===- Summary.cpp - what a call of a model takes, as a remark ------------===//
#include "passes/Lower/Summary.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Plan/Cost.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <set>

using namespace mlir;
using namespace heed;

namespace {

class Summary {
public:
  Summary(func::FuncOp model, const KernelCalls &callers) : model(model) {
    llvm::for_each(model.getArguments(), [&](Value v) { addInput(v); });
    model.walk([&](attn::ParamOp param) { addInput(param); });
    for (auto &[kernel, calls] : callers)
      for (halide::CallOp call : calls)
        kernelOf[call] = cast<func::FuncOp>(kernel);
  }

  void remark() {
    Taken taken = takenBy(model.getBody().front());
    std::set<std::pair<double, std::string>> stored;
    for (const Choice &each : taken.stored)
      stored.insert({-each.estimate(), text(each)});
    auto remark = mlir::remark::analysis(
        model.getLoc(), remarkOptions(model, "attn-to-halide", "summary"));
    using Arg = mlir::remark::detail::Remark::Arg;
    remark << Arg("kernels", kernels.size());
    remark << Arg("flops", text(taken.flops));
    remark << Arg("bytes", text(taken.bytes));
    llvm::StringSet<> said;
    for (auto &[estimate, elements] : stored)
      if (said.insert(elements).second)
        remark << Arg("stored", elements);
  }

private:
  /// What a call takes in one order of its products or in the other, as its
  /// sizes say: the same, mostly.
  struct Choice {
    Size one, other;

    /// Which of two is taken for the larger: with every extent 1000.
    double estimate() const {
      return std::max(one.estimate(1000), other.estimate(1000));
    }
  };
  /// Sums, and the tensors between two kernels.
  struct Taken {
    SmallVector<Choice, 1> flops{{}}, bytes{{}};
    SmallVector<Choice> stored;
  };

  std::string text(const Choice &choice) {
    std::string one = text(choice.one);
    return dims.equal(choice.one, choice.other)
               ? one
               : format("({} or {})", one, text(choice.other));
  }

  /// In the names that the model has for sizes, those of parameters too.
  std::string text(const Size &size) {
    Size sum;
    for (auto &[product, coefficient] : size.terms) {
      Size left, term(1);
      left.add(product, coefficient);
      for (unsigned symbol : product) {
        const Whole &whole = wholeOf(symbol);
        if (std::optional<Size> rest = left.dividedBy(whole.parts);
            rest && whole.parts != 0) {
          left = *rest;
          term *= whole.name;
        }
      }
      for (unsigned symbol : left.terms.begin()->first)
        term *= named(symbol);
      sum += term * Size(left.terms.begin()->second);
    }
    return names.str(sum);
  }

  /// An extent of an input, and the product that is equal to it: D and
  /// 4 * (D // 4). Of no parts: none is known.
  struct Whole {
    Size parts, name;
  };
  const Whole &wholeOf(unsigned symbol) {
    auto [known, isNew] = wholes.try_emplace(symbol);
    if (!isNew || dims.source(symbol).value)
      return known->second;
    Size part = Size::atom(symbol);
    for (unsigned input : inputs) {
      for (int64_t number = 2; number <= 64; ++number)
        if (dims.equal(part * number, Size::atom(input)))
          return known->second = {part * number, named(input)};
      for (unsigned other : inputs)
        if (dims.equal(part * Size::atom(other), Size::atom(input)))
          return known->second = {part * Size::atom(other), named(input)};
    }
    return known->second;
  }

  Size named(unsigned symbol) {
    Size size = Size::atom(symbol);
    for (unsigned input : inputs)
      if (dims.equal(Size::atom(input), size))
        return namedSource(input);
    return namedSource(symbol);
  }

  Size namedSource(unsigned symbol) {
    Size size = Size::atom(symbol);
    auto [value, axis] = dims.source(symbol);
    auto param = value ? value.getDefiningOp<attn::ParamOp>() : nullptr;
    auto written =
        param ? param->getAttrOfType<ArrayAttr>(attn::kDimsAttr) : nullptr;
    if (!written || axis < 0 || axis >= int64_t(written.size())) {
      std::string name = withNames(dims.str(size), symbol);
      // A quotient is one factor; minima have brackets of their own.
      return byName(StringRef(name).contains("//") &&
                            !StringRef(name).ends_with(")")
                        ? format("({})", name)
                        : name);
    }
    Size product(1);
    SmallVector<StringRef> factors;
    cast<StringAttr>(written[axis]).getValue().split(factors, '*');
    for (StringRef factor : factors)
      if (int64_t number; !factor.getAsInteger(10, number))
        product *= number;
      else if (llvm::all_of(factor, llvm::isAlnum))
        product *= byName(factor);
      else
        return byName(
            format("({})", cast<StringAttr>(written[axis]).getValue()));
    return product;
  }

  /// What is computed from sizes of parameters, \p text of \p symbol, with
  /// their names: SymbolicDims calls symbol 7 "?7".
  std::string withNames(StringRef text, unsigned symbol) {
    std::string result;
    while (!text.empty()) {
      StringRef rest = text.drop_front();
      unsigned number;
      if (text.front() == '?' && !rest.consumeInteger(10, number)) {
        Size size = number == symbol ? Size(0) : namedSource(number);
        std::string name = size == 0 ? format("?{}", number) : names.str(size);
        result += size == 0 || size.asAtom() ? name : format("({})", name);
      } else {
        result += text.front();
        rest = text.drop_front();
      }
      text = rest;
    }
    return result;
  }

  Size byName(StringRef name) {
    auto [known, isNew] = atoms.try_emplace(name);
    if (isNew)
      known->second = names.dim(name);
    return known->second;
  }

  std::string text(ArrayRef<Choice> sum) {
    std::string parts;
    for (const Choice &part : sum)
      if (part.one != 0 || part.other != 0)
        parts += (parts.empty() ? "" : " + ") + text(part);
    return parts.empty() ? "0" : parts;
  }

  /// Adds \p part to \p sum, whose first one is what has no alternative.
  void add(SmallVectorImpl<Choice> &sum, ArrayRef<Choice> part,
           const Size &times) {
    for (const Choice &choice : part)
      if (dims.equal(choice.one, choice.other)) {
        sum[0].one += choice.one * times;
        sum[0].other = sum[0].one;
      } else {
        sum.push_back({choice.one * times, choice.other * times});
      }
  }

  void addInput(Value input) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    for (int64_t axis = 0; type && axis < type.getRank(); ++axis)
      if (auto symbol = dims.dim(input, axis).asAtom();
          symbol && !llvm::is_contained(inputs, *symbol))
        inputs.push_back(*symbol);
  }

  Taken takenBy(Block &block) {
    Taken sum;
    auto add = [&](const Taken &part, const Size &times) {
      this->add(sum.flops, part.flops, times);
      this->add(sum.bytes, part.bytes, times);
      llvm::append_range(sum.stored, part.stored);
    };
    for (Operation &op : block)
      if (auto call = dyn_cast<halide::CallOp>(op))
        add(takenBy(call), 1);
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        add(takenBy(loop), 1);
      else if (auto branch = dyn_cast<scf::IfOp>(op))
        add(takenBy(branch), 1);
    return sum;
  }

  Taken takenBy(halide::CallOp call) {
    func::FuncOp kernel = kernelOf.lookup(call);
    if (!kernel)
      return {};
    kernels.insert(kernel);
    auto [flops, bytes] = costOf(kernel, call.getInputs(), dims);
    Taken taken{{{flops, flops}}, {{bytes, bytes}}, {}};
    for (Value result : call.getResults())
      if (llvm::SmallPtrSet<Value, 8> seen; isRead(result, seen)) {
        Size elements = dims.elements(result);
        taken.stored.push_back({elements, elements});
      }
    return taken;
  }

  Taken takenBy(scf::IfOp branch) {
    Taken first = takenBy(*branch.thenBlock());
    if (!branch.elseBlock())
      return first;
    Taken second = takenBy(*branch.elseBlock()), either;
    either.flops = eitherOf(first.flops, second.flops);
    either.bytes = eitherOf(first.bytes, second.bytes);
    // The largest one of each order stands beside that of the other, and so on.
    for (auto *stored : {&first.stored, &second.stored})
      llvm::sort(*stored, [](const Choice &a, const Choice &b) {
        return b.estimate() < a.estimate();
      });
    size_t common = std::min(first.stored.size(), second.stored.size());
    for (size_t k = 0; k < common; ++k)
      either.stored.push_back({first.stored[k].one, second.stored[k].other});
    llvm::append_range(either.stored, llvm::drop_begin(first.stored, common));
    llvm::append_range(either.stored, llvm::drop_begin(second.stored, common));
    return either;
  }

  /// Choices inside of a branch stay what they are.
  SmallVector<Choice, 1> eitherOf(ArrayRef<Choice> first,
                                  ArrayRef<Choice> second) {
    SmallVector<Choice, 1> result{{}};
    add(result, Choice{first[0].one, second[0].one}, 1);
    add(result, first.drop_front(), 1);
    add(result, second.drop_front(), 1);
    return result;
  }

  /// What all iterations of \p loop take.
  Taken takenBy(scf::ForOp loop) {
    Taken taken = takenBy(*loop.getBody());
    std::optional<unsigned> part = partOf(loop);
    Size length =
        dims.size(loop.getUpperBound()) - dims.size(loop.getLowerBound());
    int64_t least = 1, most = 1;
    std::tie(least, most) = boundsOf(loop.getStep());
    Size count = dims.parts(length, least);
    auto inAll = [&](Size &size) {
      size = overParts(size, part, length, count, most);
    };
    for (auto *choices : {&taken.flops, &taken.bytes})
      for (Choice &choice : *choices) {
        inAll(choice.one);
        inAll(choice.other);
      }
    // At most as much is stored as where the part is a whole step.
    for (Choice &choice : taken.stored)
      for (Size *size : {&choice.one, &choice.other})
        *size = overParts(*size, part, most, 1, most);
    return taken;
  }

  /// The least and the largest number that \p step may be: one of those that
  /// are chosen from, else 1.
  std::pair<int64_t, int64_t> boundsOf(Value step) {
    if (std::optional<int64_t> number = dims.size(step).constant())
      return {std::max<int64_t>(*number, 1), std::max<int64_t>(*number, 1)};
    auto choice = step.getDefiningOp<arith::SelectOp>();
    if (!choice)
      return {1, 1};
    auto [low, high] = boundsOf(choice.getTrueValue());
    auto [otherLow, otherHigh] = boundsOf(choice.getFalseValue());
    return {std::min(low, otherLow), std::max(high, otherHigh)};
  }

  /// What stands for the part of \p loop's range that an iteration computes,
  /// its step or what is left, if one asks for it.
  std::optional<unsigned> partOf(scf::ForOp loop) {
    std::optional<unsigned> part;
    loop.getBody()->walk([&](arith::MinSIOp least) {
      for (int k : {0, 1}) {
        auto rest = least->getOperand(1 - k).getDefiningOp<arith::SubIOp>();
        if (least->getOperand(k) == loop.getStep() && rest &&
            rest.getLhs() == loop.getUpperBound() &&
            rest.getRhs() == loop.getInductionVar())
          part = dims.size(least.getResult()).asAtom();
      }
    });
    return part;
  }

  /// \p size summed up over \p count iterations, whose parts are \p length
  /// together and \p step at most each.
  static Size overParts(const Size &size, std::optional<unsigned> part,
                        const Size &length, const Size &count, int64_t step) {
    Size sum;
    for (auto &[product, coefficient] : size.terms) {
      Size term(coefficient);
      bool isPart = false;
      for (unsigned symbol : product)
        if (symbol != part)
          term *= Size::atom(symbol);
        else
          term *= std::exchange(isPart, true) ? Size(step) : length;
      sum += isPart ? term : term * count;
    }
    return sum;
  }

  /// Whether an operation other than the model's return reads elements of
  /// \p tensor.
  static bool isRead(Value tensor, llvm::SmallPtrSetImpl<Value> &seen) {
    if (!seen.insert(tensor).second)
      return false;
    return llvm::any_of(tensor.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (isa<func::ReturnOp, tensor::DimOp>(user))
        return false;
      if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
              tensor::ExtractSliceOp, tensor::InsertSliceOp>(user))
        return isRead(user->getResult(0), seen);
      if (auto loop = dyn_cast<scf::ForOp>(user))
        return isRead(loop.getTiedLoopRegionIterArg(&use), seen) ||
               isRead(loop.getTiedLoopResult(&use), seen);
      if (isa<scf::YieldOp>(user)) {
        Operation *parent = user->getParentOp();
        unsigned number = use.getOperandNumber();
        if (auto loop = dyn_cast<scf::ForOp>(parent);
            loop && isRead(loop.getRegionIterArg(number), seen))
          return true;
        return isRead(parent->getResult(number), seen);
      }
      return true;
    });
  }

  func::FuncOp model;
  DenseMap<halide::CallOp, func::FuncOp> kernelOf;
  attn::SymbolicDims dims;
  SmallVector<unsigned> inputs; ///< symbols: extents of inputs and parameters
  /// What is printed: equal names are one size.
  SizeTable names{/*byName=*/true};
  llvm::StringMap<Size> atoms;
  DenseMap<unsigned, Whole> wholes;
  llvm::SmallPtrSet<Operation *, 8> kernels;
};

} // namespace

void heed::remarkSummary(func::FuncOp model, const KernelCalls &callers) {
  if (model.getContext()->getRemarkEngine())
    Summary(model, callers).remark();
}
