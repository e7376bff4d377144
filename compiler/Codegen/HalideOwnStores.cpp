//===- HalideOwnStores.cpp - stores of what is there already --------------===//
//
// An update of a tuple stores all of its elements; one that stays is loaded and
// stored again. libHalide leaves out a store of a load, but here the load has a
// name. LLVM leaves such stores out as well, but only behind the passes that
// keep what a loop stores in registers: as long as they stand there they may
// store into another element that does.

#include "compiler/Codegen/HalideLowering.h"
#include <map>

using namespace Halide;
using namespace Halide::Internal;

namespace {

class LeaveOwnStores : public IRMutator {
  using IRMutator::visit;

  /// What a name stands for: an element as it is while nothing is stored into
  /// its array.
  struct Loaded {
    const Load *load;
    int storesBefore;
  };
  std::map<std::string, Loaded> loaded;
  std::map<std::string, int> stores; ///< so far, of each array

  Stmt visit(const LetStmt *let) override {
    auto before = loaded;
    if (auto load = let->value.as<Load>())
      loaded[let->name] = {load, stores[load->name]};
    else
      loaded.erase(let->name);
    // Names in an index may mean something else inside.
    for (auto it = loaded.begin(); it != loaded.end();)
      it = it->first != let->name &&
                   expr_uses_var(it->second.load->index, let->name)
               ? loaded.erase(it)
               : std::next(it);
    Stmt body = mutate(let->body);
    loaded = std::move(before);
    if (body.same_as(let->body))
      return let;
    return LetStmt::make(let->name, let->value, body);
  }

  /// What is known before a loop may not be so in its second turn.
  Stmt visit(const For *loop) override {
    auto before = std::exchange(loaded, {});
    Stmt same = IRMutator::visit(loop);
    loaded = std::move(before);
    return same;
  }

  Stmt visit(const Store *store) override {
    auto name = store->value.as<Variable>();
    auto found = name ? loaded.find(name->name) : loaded.end();
    if (found != loaded.end()) {
      const auto &[load, storesBefore] = found->second;
      if (load->name == store->name && stores[store->name] == storesBefore &&
          is_const_one(load->predicate) && is_const_one(store->predicate) &&
          equal(load->index, store->index))
        return Evaluate::make(0);
    }
    ++stores[store->name];
    return store;
  }
};

} // namespace

IRMutator *heed::makeOwnStorePass() { return new LeaveOwnStores; }
