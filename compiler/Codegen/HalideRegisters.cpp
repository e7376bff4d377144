//===- HalideRegisters.cpp - a block's arrays in its threads' registers ---===//
//
// What is computed once for a block of a GPU and stored in registers, libHalide
// gives to each thread whole, at the places that it has in the block: an array
// in memory. Here each thread keeps the elements that it writes, by numbers
// that are constants, so that LLVM makes registers of them. A thread that would
// read what another one has written is an error; libHalide compiles it, and the
// thread finds nothing there.

#include "compiler/Codegen/HalideLowering.h"
#include <map>
#include <optional>
#include <set>
#include <sstream>

using namespace Halide;
using namespace Halide::Internal;

namespace {

/// A sum of numbers times names, and of a number.
struct Affine {
  std::map<std::string, int64_t> by;
  int64_t rest = 0;

  Affine &add(const Affine &other, int64_t times) {
    rest += times * other.rest;
    for (const auto &[name, factor] : other.by)
      if ((by[name] += times * factor) == 0)
        by.erase(name);
    return *this;
  }
};

/// Reads expressions of i32 and i64 as sums, through the names that are bound
/// around them. Indices are within their arrays, so no sum wraps.
class AffineReader {
public:
  std::map<std::string, Expr> lets;
  std::map<std::string, int64_t> counts; ///< of names that count from 0
  std::map<std::string, int64_t> pinned; ///< names of one value here

  /// What \p condition says of the names that count, where it holds. Returns
  /// what was pinned before.
  std::map<std::string, int64_t> pin(const Expr &condition) {
    std::map<std::string, int64_t> before = pinned;
    std::map<std::string, std::pair<int64_t, int64_t>> ranges;
    for (const auto &[name, count] : counts)
      ranges[name] = {0, count - 1};
    narrow(condition, ranges);
    for (const auto &[name, range] : ranges)
      if (range.first == range.second)
        pinned[name] = range.first;
    return before;
  }

  /// Of how many threads \p loop is, 0 if that is not known.
  int64_t addLoop(const For *loop) {
    auto count = as_const_int(simplify(loop->extent));
    if (count && is_const_zero(loop->min))
      counts[loop->name] = *count;
    return count.value_or(0);
  }

  Affine read(const Expr &e) const {
    Affine result;
    if (auto number = as_const_int(e)) {
      result.rest = *number;
    } else if (auto number = as_const_uint(e)) {
      result.rest = int64_t(*number);
    } else if (const auto *cast = e.as<Cast>();
               cast && cast->type.is_int() && cast->value.type().is_int()) {
      return read(cast->value);
    } else if (const auto *sum = e.as<Add>()) {
      return read(sum->a).add(read(sum->b), 1);
    } else if (const auto *difference = e.as<Sub>()) {
      return read(difference->a).add(read(difference->b), -1);
    } else if (const auto *product = e.as<Mul>()) {
      Affine a = read(product->a), b = read(product->b);
      if (b.by.empty())
        return result.add(a, b.rest);
      if (a.by.empty())
        return result.add(b, a.rest);
      result.by[text(e)] = 1;
    } else if (const auto *remainder = e.as<Mod>()) {
      auto [whole, part] = divided(remainder->a, remainder->b);
      if (part)
        return *part;
      result.by[text(e)] = 1;
    } else if (const auto *quotient = e.as<Div>()) {
      auto [whole, part] = divided(quotient->a, quotient->b);
      if (part)
        return whole;
      result.by[text(e)] = 1;
    } else if (const auto *variable = e.as<Variable>()) {
      auto let = lets.find(variable->name);
      if (let != lets.end())
        return read(let->second);
      result.by[variable->name] = 1;
    } else {
      result.by[text(e)] = 1;
    }
    return result;
  }

private:
  /// Comparisons of a name with a number, and several of them.
  static void
  narrow(const Expr &e,
         std::map<std::string, std::pair<int64_t, int64_t>> &ranges) {
    auto both = [&](const auto *op, int64_t less) {
      const auto *left = op->a.template as<Variable>(),
                 *right = op->b.template as<Variable>();
      auto low = as_const_int(op->a), high = as_const_int(op->b);
      if (left && high && ranges.count(left->name)) {
        int64_t &last = ranges[left->name].second;
        last = std::min(last, *high - less);
      } else if (right && low && ranges.count(right->name)) {
        int64_t &first = ranges[right->name].first;
        first = std::max(first, *low + less);
      }
    };
    if (const auto *all = e.as<And>()) {
      narrow(all->a, ranges);
      narrow(all->b, ranges);
    } else if (const auto *order = e.as<LE>()) {
      both(order, 0);
    } else if (const auto *order = e.as<LT>()) {
      both(order, 1);
    } else if (const auto *same = e.as<EQ>()) {
      const auto *name = same->a.as<Variable>();
      if (auto number = as_const_int(same->b); name && number)
        if (ranges.count(name->name))
          ranges[name->name] = {*number, *number};
    }
  }

  /// The quotient and the remainder of \p e by a positive number, the latter
  /// only if both are sums, too: where it is in range by the counts of its
  /// names.
  std::pair<Affine, std::optional<Affine>> divided(const Expr &e,
                                                   const Expr &by) const {
    auto number = as_const_int(by);
    Affine whole, part;
    if (!number || *number <= 0)
      return {whole, std::nullopt};
    Affine all = read(e);
    int64_t least = mod_imp(all.rest, *number), most = least;
    part.rest = least;
    whole.rest = div_imp(all.rest, *number);
    for (const auto &[name, factor] : all.by) {
      if (factor % *number == 0) {
        whole.by[name] = factor / *number;
        continue;
      }
      auto count = counts.find(name);
      if (count == counts.end())
        return {whole, std::nullopt};
      part.by[name] = factor;
      (factor > 0 ? most : least) += factor * (count->second - 1);
    }
    if (least < 0 || most >= *number)
      return {whole, std::nullopt};
    return {whole, part};
  }

  static std::string text(const Expr &e) {
    std::ostringstream out;
    out << e;
    return out.str();
  }
};

/// One dim of the threads of a block.
struct Threads {
  std::string name;
  int64_t count;
};

/// The number of the element at \p at, if that is \p base but for a number.
/// Where a condition leaves one thread, libHalide writes that one's place.
std::optional<int64_t> numberAt(const Affine &at, const Affine &base,
                                const std::map<std::string, int64_t> &pinned) {
  Affine rest = at;
  rest.add(base, -1);
  for (const auto &[name, factor] : std::map(rest.by)) {
    auto value = pinned.find(name);
    if (value == pinned.end())
      return std::nullopt;
    rest.rest += factor * value->second;
  }
  return rest.rest;
}

/// The elements of one array that a thread touches.
struct Elements {
  struct Access {
    Affine at;
    int lanes;
    std::map<std::string, int64_t> pinned;
  };
  std::vector<Access> accesses;
  Affine base; ///< of each access, but for a number
  std::set<int64_t> numbers;
  bool isKnown = true;

  void access(const Expr &index, const AffineReader &reader) {
    const auto *ramp = index.as<Ramp>();
    isKnown &=
        !index.type().is_vector() || (ramp && is_const_one(ramp->stride));
    if (isKnown)
      accesses.push_back({reader.read(ramp ? ramp->base : index),
                          ramp ? ramp->lanes : 1, reader.pinned});
  }

  /// After the last access: the base is that of most names.
  void number() {
    for (const Access &one : accesses)
      if (one.at.by.size() > base.by.size())
        base.by = one.at.by;
    for (const Access &one : accesses) {
      auto number = numberAt(one.at, base, one.pinned);
      isKnown &= number.has_value();
      for (int lane = 0; number && lane < one.lanes; ++lane)
        numbers.insert(*number + lane);
    }
  }

  /// Whether no element is touched by two of \p threads. What else a place
  /// depends on might bring one there in another turn of a loop.
  bool isApart(const std::vector<Threads> &threads) const {
    if (!isKnown)
      return false;
    int64_t all = 1;
    std::vector<int64_t> factors;
    std::map<std::string, int64_t> left = base.by;
    for (const Threads &dim : threads) {
      auto it = left.find(dim.name);
      factors.push_back(it == left.end() ? 0 : it->second);
      left.erase(dim.name);
      all *= dim.count;
    }
    if (!left.empty())
      return false;
    std::set<int64_t> taken;
    for (int64_t thread = 0; thread < all; ++thread) {
      int64_t place = 0, rest = thread;
      for (size_t dim = 0; dim < threads.size(); ++dim) {
        place += rest % threads[dim].count * factors[dim];
        rest /= threads[dim].count;
      }
      for (int64_t number : numbers)
        if (!taken.insert(place + number).second)
          return false;
    }
    return true;
  }
};

/// Finds what is accessed of one array.
class FindElements : public IRVisitor {
public:
  FindElements(const std::string &array, const AffineReader &reader)
      : array(array), reader(reader) {}
  Elements elements;
  std::vector<Threads> threads;

private:
  using IRVisitor::visit;
  /// All stages of a block are in one nest of threads by now.
  void visit(const For *loop) override {
    if (loop->for_type == ForType::GPUThread)
      threads.push_back({loop->name, reader.addLoop(loop)});
    IRVisitor::visit(loop);
  }
  void visit(const IfThenElse *branch) override {
    branch->condition.accept(this);
    auto before = reader.pin(branch->condition);
    branch->then_case.accept(this);
    reader.pinned = before;
    if (branch->else_case.defined())
      branch->else_case.accept(this);
  }
  void visit(const LetStmt *let) override {
    let->value.accept(this);
    reader.lets[let->name] = let->value;
    let->body.accept(this);
  }
  void visit(const Let *let) override {
    let->value.accept(this);
    reader.lets[let->name] = let->value;
    let->body.accept(this);
  }
  void visit(const Load *load) override {
    IRVisitor::visit(load);
    if (load->name == array)
      elements.access(load->index, reader);
  }
  void visit(const Store *store) override {
    IRVisitor::visit(store);
    if (store->name == array)
      elements.access(store->index, reader);
  }

  const std::string &array;
  AffineReader reader;
};

class KeepInRegisters : public IRMutator {
  using IRMutator::visit;

  Stmt visit(const For *loop) override {
    bool isBlock = loop->for_type == ForType::GPUBlock;
    if (loop->for_type == ForType::GPUThread)
      reader.addLoop(loop);
    blocks += isBlock;
    Stmt same = IRMutator::visit(loop);
    blocks -= isBlock;
    return same;
  }

  Stmt visit(const IfThenElse *branch) override {
    Expr condition = mutate(branch->condition);
    auto before = reader.pin(condition);
    Stmt yes = mutate(branch->then_case);
    reader.pinned = before;
    return IfThenElse::make(condition, yes, mutate(branch->else_case));
  }

  Stmt visit(const LetStmt *let) override {
    Expr value = mutate(let->value);
    reader.lets[let->name] = value;
    Stmt body = mutate(let->body);
    return LetStmt::make(let->name, value, body);
  }
  Expr visit(const Let *let) override {
    Expr value = mutate(let->value);
    reader.lets[let->name] = value;
    Expr body = mutate(let->body);
    return Let::make(let->name, value, body);
  }

  Stmt visit(const Allocate *allocation) override {
    if (allocation->memory_type != MemoryType::Register || !blocks)
      return IRMutator::visit(allocation);
    FindElements find(allocation->name, reader);
    allocation->body.accept(&find);
    Elements &elements = find.elements;
    elements.number();
    bool isOfBlock = !elements.isKnown;
    for (const Threads &dim : find.threads)
      isOfBlock |= elements.base.by.count(dim.name) > 0;
    if (!isOfBlock)
      return IRMutator::visit(allocation);
    if (!elements.isApart(find.threads))
      throw CompileError(
          "'" + allocation->name.substr(0, allocation->name.find('.')) +
          "' is in registers, but its elements are not each one thread's");
    Own &own = slots[allocation->name];
    own.base = elements.base;
    for (int64_t number : elements.numbers)
      own.slots.emplace(number, int(own.slots.size()));
    Stmt body = mutate(allocation->body);
    int size = int(own.slots.size());
    slots.erase(allocation->name);
    return Allocate::make(allocation->name, allocation->type,
                          allocation->memory_type, {size},
                          allocation->condition, body);
  }

  Expr slotOf(const std::string &array, const Expr &index) {
    const auto *ramp = index.as<Ramp>();
    const Own &own = slots[array];
    auto number = numberAt(reader.read(ramp ? ramp->base : index), own.base,
                           reader.pinned);
    Expr slot = make_const(index.type().element_of(), own.slots.at(*number));
    return ramp ? Ramp::make(slot, make_one(slot.type()), ramp->lanes) : slot;
  }

  Expr visit(const Load *load) override {
    if (!slots.count(load->name))
      return IRMutator::visit(load);
    return Load::make(load->type, load->name, slotOf(load->name, load->index),
                      load->image, load->param, mutate(load->predicate),
                      ModulusRemainder());
  }
  Stmt visit(const Store *store) override {
    if (!slots.count(store->name))
      return IRMutator::visit(store);
    return Store::make(store->name, mutate(store->value),
                       slotOf(store->name, store->index), store->param,
                       mutate(store->predicate), ModulusRemainder());
  }

  AffineReader reader;
  int blocks = 0; ///< loops over blocks that are around
  /// A thread's elements of an array.
  struct Own {
    Affine base;
    std::map<int64_t, int> slots; ///< by number
  };
  std::map<std::string, Own> slots;
};

} // namespace

IRMutator *heed::makeRegisterPass() { return new KeepInRegisters; }
