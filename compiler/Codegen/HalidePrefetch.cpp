// halide.prefetch_lines, halide.prefetch_spread and halide.prefetch_next: lines
// of the cache in each turn of a loop.
//
// libHalide's own directive prefetches all that a later turn of a loop reads.
// Where many turns of an outer loop read the same, each of them would prefetch
// all of it, in one burst. The prefetches are therefore put into the lowered
// loops, which still have the names of the schedule.

#include "compiler/Codegen/HalideTranslate.h"
#include "llvm/ADT/StringRef.h"

using namespace heed;
using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// Where a statement first reads \p source, or with \p writes stores to it.
class FirstRead : public IRVisitor {
public:
  explicit FirstRead(const std::string &source, bool writes = false)
      : source(source), writes(writes) {}
  Expr index; ///< in terms of names that are known outside of the statement

private:
  using IRVisitor::visit;
  void visit(const LetStmt *let) override {
    let->value.accept(this);
    lets.emplace_back(let->name, let->value);
    let->body.accept(this);
    lets.pop_back();
  }
  void visit(const Let *let) override {
    let->value.accept(this);
    lets.emplace_back(let->name, let->value);
    let->body.accept(this);
    lets.pop_back();
  }
  void visit(const For *loop) override {
    lets.emplace_back(loop->name, loop->min);
    loop->body.accept(this);
    lets.pop_back();
  }
  void visit(const IfThenElse *branch) override {
    branch->condition.accept(this);
    bool found = index.defined();
    branch->then_case.accept(this);
    if (branch->else_case.defined())
      branch->else_case.accept(this);
    isGuarded |= index.defined() && !found;
  }
  void visit(const Load *load) override {
    if (writes || index.defined() || load->name != source)
      return IRVisitor::visit(load);
    found(load->index, load->type);
  }
  void visit(const Store *store) override {
    if (!writes || index.defined() || store->name != source)
      return IRVisitor::visit(store);
    found(store->index, store->value.type());
  }

  void found(const Expr &at, Halide::Type element) {
    index = at;
    for (auto let = lets.rbegin(); let != lets.rend(); ++let)
      index = substitute(let->first, let->second, index);
    type = element.element_of();
  }

  const std::string &source;
  const bool writes;
  std::vector<std::pair<std::string, Expr>> lets;

public:
  Halide::Type type;
  bool isGuarded = false; ///< not every turn may read
};

/// The first lane of \p index; undefined if it has a vector of another place.
Expr firstLane(const Expr &index) {
  struct Finder : IRVisitor {
    using IRVisitor::visit;
    void visit(const Variable *variable) override {
      found |= variable->type.is_vector();
    }
    bool found = false;
  } finder;
  if (!index.defined() || !index.type().is_vector())
    return index;
  index.accept(&finder);
  return finder.found ? Expr() : simplify(extract_lane(index, 0));
}

/// Whether \p e reads an array.
bool hasLoad(const Expr &e) {
  struct Finder : IRVisitor {
    using IRVisitor::visit;
    void visit(const Load *) override { found = true; }
    bool found = false;
  } finder;
  e.accept(&finder);
  return finder.found;
}

/// Whether \p name is that of loop \p end of a stage whose name begins with
/// \p start.
bool hasName(llvm::StringRef name, llvm::StringRef start, llvm::StringRef end) {
  name.consume_back(".rebased");
  return name.starts_with(start) && name.ends_with(end);
}

class PrefetchLines : public IRMutator {
public:
  explicit PrefetchLines(std::vector<LinePrefetch> requests)
      : requests(std::move(requests)) {}

private:
  using IRMutator::visit;
  Stmt visit(const LetStmt *let) override {
    around.push_back({nullptr, let});
    Stmt result = IRMutator::visit(let);
    around.pop_back();
    return result;
  }

  Stmt visit(const IfThenElse *branch) override {
    around.push_back({nullptr, nullptr});
    Stmt result = IRMutator::visit(branch);
    around.pop_back();
    return result;
  }

  Stmt visit(const For *loop) override {
    around.push_back({loop, nullptr});
    Stmt body = mutate(loop->body);
    for (const LinePrefetch &request : requests)
      if (hasName(loop->name, request.stage, request.at)) {
        Stmt prefetch =
            request.lines ? spread(request) : makePrefetch(loop, request);
        if (prefetch.defined()) {
          request.directive->isMet = true;
          body = Block::make(prefetch, body);
        }
      }
    around.pop_back();
    if (body.same_as(loop->body))
      return loop;
    return For::make(loop->name, loop->min, loop->extent, loop->for_type,
                     loop->partition_policy, loop->device_api, body);
  }

  /// Nothing where the loop does not read the source.
  Stmt makePrefetch(const For *loop, const LinePrefetch &request) {
    FirstRead first(request.source);
    loop->body.accept(&first);
    if (!first.index.defined())
      return {};
    if (request.parts == 0)
      return prefetchNext(first, request);
    Expr index = firstLane(first.index);
    if (!index.defined())
      return {};
    Expr line = turnOf(loop);
    for (const Around &outer : around) // a loop of one turn is none any more
      if (outer.loop && outer.loop != loop &&
          hasName(outer.loop->name, request.consumer, request.over))
        line += turnOf(outer.loop) % request.parts * loop->extent;
    Halide::Type type = Halide::Int(64);
    Expr start = Halide::cast(type, substitute(loop->name, loop->min, index));
    Expr offset =
        (start + make_const(type, request.ahead)) * first.type.bytes() +
        Halide::cast(type, line) * lineBytes;
    return prefetch(request, offset);
  }

  /// Groups of lines, in turn to each turn of the innermost loop around: as
  /// many as there are for it.
  Stmt spread(const LinePrefetch &request) {
    // The number of this turn among those of the loop that is meant.
    Expr number = 0, count = 1;
    int64_t known = 1;
    size_t k = around.size();
    for (; k-- > 0;) {
      const For *loop = around[k].loop;
      if (!loop)
        continue;
      if (hasName(loop->name, request.consumer, request.over))
        break;
      number += turnOf(loop) * count;
      count *= loop->extent;
      if (auto extent = as_const_int(loop->extent))
        known = std::min<int64_t>(known * *extent, request.lines);
    }
    if (k >= around.size())
      return {};
    FirstRead first(request.source, request.isOutput);
    around[k].loop->body.accept(&first);
    Expr index = firstLane(first.index);
    if (!index.defined())
      return {};
    const For *over = around[k].loop;
    Halide::Type type = Halide::Int(64);
    Expr ahead = make_const(type, request.ahead);
    if (request.places > 1)
      ahead += select(turnOf(over) == over->extent - 1,
                      make_const(type, request.apart * (request.places - 1)),
                      make_const(type, 0));
    Expr start = (Halide::cast(type, index) + ahead) * first.type.bytes();
    const int32_t ofPlace = (request.lines - 1) / request.places + 1,
                  group = std::min(ofPlace, request.group),
                  groups = ((ofPlace - 1) / group + 1) * request.places;
    auto atLeast =
        static_cast<int32_t>(std::max<int64_t>({known, request.turns, 1}));
    Expr last = simplify(select(count < request.turns, 0, groups));
    Expr each = (groups + count - 1) / count; // of a turn
    // From the last round, which the fewest turns have.
    Stmt all;
    for (int32_t round = (groups - 1) / atLeast; round >= 0; --round) {
      Expr which =
          request.inOrder ? number * each + round : count * round + number;
      Expr byte =
          Halide::cast(type, which / request.places) * (group * lineBytes) +
          Halide::cast(type, which % request.places) *
              make_const(type, request.apart * first.type.bytes());
      Stmt some = all;
      for (int32_t l = group; l-- > 0;) {
        Stmt one = prefetch(request, start + byte + l * lineBytes);
        some = some.defined() ? Block::make(one, some) : one;
      }
      Expr any = which < last;
      if (request.inOrder && round > 0)
        any = round < each && any;
      any = simplify(any);
      all = is_const_one(any) ? some : IfThenElse::make(any, some);
    }
    return all;
  }

  static Expr turnOf(const For *loop) {
    return Variable::make(Halide::Int(32), loop->name) - loop->min;
  }

  /// Nothing outside of the loop whose next turn is meant. An address may lie
  /// anywhere, but where data say what it is, these are read: of a turn that
  /// there is, and where every turn reads them.
  Stmt prefetchNext(const FirstRead &first, const LinePrefetch &request) {
    Expr index = first.index;
    bool isGuarded = first.isGuarded;
    for (size_t k = around.size(); k-- > 0;) {
      const auto &[loop, let] = around[k];
      if (let) {
        index = substitute(let->name, let->value, index);
      } else if (!loop) {
        isGuarded = true;
      } else if (hasName(loop->name, request.consumer, request.over)) {
        Expr next = Variable::make(Halide::Int(32), loop->name) + 1;
        if (hasLoad(index)) {
          if (isGuarded)
            return {};
          next = Halide::min(next, loop->min + loop->extent - 1);
        }
        index = firstLane(index);
        if (!index.defined())
          return {};
        Expr place =
            Halide::cast(Halide::Int(64), substitute(loop->name, next, index));
        return prefetch(request, place * first.type.bytes());
      }
    }
    return {};
  }

  /// Of the line \p offset bytes behind the start of the source.
  static Stmt prefetch(const LinePrefetch &request, const Expr &offset) {
    Expr base = Variable::make(Halide::Handle(), request.source);
    Expr address = Halide::reinterpret(Halide::Handle(),
                                       Halide::reinterpret<int64_t>(base) +
                                           simplify(offset));
    // libHalide's own prefetch is a non-temporal one, which passes the second
    // cache by.
    constexpr int read = 0, data = 1;
    const int keep = request.secondCache ? 2 : 3;
    return Evaluate::make(Call::make(
        Halide::Int(32), "llvm.prefetch.p0",
        {address, Expr(read), Expr(keep), Expr(data)}, Call::Extern));
  }

  /// A loop or a let around what is visited, or neither: a condition.
  struct Around {
    const For *loop;
    const LetStmt *let;
  };

  static constexpr int lineBytes = 64;
  std::vector<LinePrefetch> requests;
  std::vector<Around> around;
};

} // namespace

IRMutator *heed::makePrefetchPass(std::vector<LinePrefetch> requests) {
  return new PrefetchLines(std::move(requests));
}
