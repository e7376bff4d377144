//===- HalideTurns.cpp - what a block of a GPU skips, it skips at once ----===//
//
// Where a turn of a block's loop is under a condition, libHalide asks it of
// each stage and has the barriers between them outside. What a stage leaves in
// registers then lives on, to LLVM, through turns that are skipped: as many
// registers for all of the loop. Stages under one condition that is the same in
// all threads become one part, with the barriers between them.

#include "compiler/Codegen/HalideLowering.h"
#include <map>
#include <set>

using namespace Halide;
using namespace Halide::Internal;

namespace {

/// The arrays into which something is stored.
struct FindStored : IRVisitor {
  using IRVisitor::visit;
  std::set<std::string> names;
  void visit(const Store *store) override {
    names.insert(store->name);
    IRVisitor::visit(store);
  }
};

class JoinTurns : public IRMutator {
  using IRMutator::visit;

  /// Whether an expression may differ between threads of a block.
  struct IsOfThread : IRVisitor {
    using IRVisitor::visit;
    explicit IsOfThread(const JoinTurns &around) : around(around) {}
    const JoinTurns &around;
    bool found = false;

    void visit(const Variable *name) override {
      found |= around.ofThread.count(name->name) > 0;
    }
    void visit(const Load *load) override {
      found |= around.stored.count(load->name) > 0;
      IRVisitor::visit(load);
    }
    void visit(const Call *call) override {
      found |= !call->is_pure();
      IRVisitor::visit(call);
    }
    void visit(const Let *let) override {
      let->value.accept(this);
      let->body.accept(this); // a value of a thread has been found by now
    }
  };
  bool isOfThread(const Expr &e) const {
    if (!inThreads)
      return false;
    IsOfThread visitor(*this);
    e.accept(&visitor);
    return visitor.found;
  }

  struct HasLoad : IRVisitor {
    using IRVisitor::visit;
    bool found = false;
    void visit(const Load *) override { found = true; }
  };

  /// The part under a condition that all threads of a block answer alike and
  /// that is the same wherever it stands; null for something else.
  const IfThenElse *asPart(const Stmt &s) const {
    const auto *branch = s.as<IfThenElse>();
    if (!branch || branch->else_case.defined() || isOfThread(branch->condition))
      return nullptr;
    HasLoad loads;
    branch->condition.accept(&loads);
    return loads.found ? nullptr : branch;
  }

  /// \p condition by what its names stand for, as far as that is one of two
  /// that are the same: libHalide asks for a stage that two others read under
  /// one condition by "it or it".
  Expr plain(const Expr &condition) const {
    if (const auto *name = condition.as<Variable>()) {
      auto value = lets.find(name->name);
      if (value == lets.end())
        return condition;
      Expr inner = plain(value->second);
      return inner.same_as(value->second) && !inner.as<Variable>() ? condition
                                                                   : inner;
    }
    auto ofBoth = [&](const auto *op) {
      Expr a = plain(op->a), b = plain(op->b);
      return equal(a, b) ? a : condition;
    };
    if (const auto *any = condition.as<Or>())
      return ofBoth(any);
    if (const auto *all = condition.as<And>())
      return ofBoth(all);
    return condition;
  }

  static bool isBarrier(const Stmt &s) {
    const auto *evaluate = s.as<Evaluate>();
    const auto *call = evaluate ? evaluate->value.as<Call>() : nullptr;
    return call && call->is_intrinsic(Call::gpu_thread_barrier);
  }

  static void flatten(const Stmt &s, std::vector<Stmt> &parts) {
    if (const auto *block = s.as<Block>()) {
      flatten(block->first, parts);
      flatten(block->rest, parts);
    } else {
      parts.push_back(s);
    }
  }

  Stmt visit(const Block *block) override {
    if (!inThreads)
      return IRMutator::visit(block);
    std::vector<Stmt> parts, joined;
    flatten(block, parts);
    for (Stmt &part : parts)
      part = mutate(part);
    for (size_t at = 0; at < parts.size();) {
      const IfThenElse *first = asPart(parts[at]);
      size_t last = at; // of the parts that are joined
      for (size_t next = at + 1; first && next < parts.size(); ++next) {
        const IfThenElse *branch = asPart(parts[next]);
        if (branch && equal(plain(branch->condition), plain(first->condition)))
          last = next;
        else if (!isBarrier(parts[next]))
          break;
      }
      if (last == at) {
        joined.push_back(parts[at++]);
        continue;
      }
      std::vector<Stmt> inside;
      Expr condition = first->condition;
      for (; at <= last; ++at) {
        const auto *branch = parts[at].as<IfThenElse>();
        inside.push_back(branch ? branch->then_case : parts[at]);
      }
      joined.push_back(IfThenElse::make(condition, Block::make(inside)));
    }
    return Block::make(joined);
  }

  Stmt visit(const For *loop) override {
    bool isKernel = loop->for_type == ForType::GPUBlock && stored.empty(),
         isThread = loop->for_type == ForType::GPUThread;
    if (isKernel) {
      FindStored find;
      loop->body.accept(&find);
      stored = find.names;
    }
    inThreads += isThread;
    if (isThread || isOfThread(loop->min) || isOfThread(loop->extent))
      ofThread.insert(loop->name);
    Stmt same = IRMutator::visit(loop);
    inThreads -= isThread;
    if (isKernel)
      stored.clear();
    return same;
  }

  Stmt visit(const LetStmt *let) override {
    if (isOfThread(let->value))
      ofThread.insert(let->name);
    if (let->value.type().is_bool())
      lets[let->name] = let->value;
    // libHalide's own goes through a chain of lets without a call for each.
    Stmt body = mutate(let->body);
    if (body.same_as(let->body))
      return let;
    return LetStmt::make(let->name, let->value, body);
  }

  Expr visit(const Let *let) override { return let; }

  /// Names of values that may differ between threads; no two are alike.
  std::set<std::string> ofThread;
  std::map<std::string, Expr> lets; ///< names of conditions
  std::set<std::string> stored;     ///< arrays of the kernel
  int inThreads = 0;                ///< loops over threads that are around
};

} // namespace

IRMutator *heed::makeTurnPass() { return new JoinTurns; }
