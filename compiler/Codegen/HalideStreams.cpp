// halide.stream_stores: marks the stores that may go past the caches.
//
// libHalide has no such store. In front of each vector that an output's stages
// write, the lowered loops call a function that does not exist; StreamStores
// replaces it in LLVM's IR. The call's argument is 0 if the array is so large
// that it pays, which is known when the kernel is called.

#include "compiler/Codegen/HalideTranslate.h"
#include "compiler/Codegen/StreamStores.h"

using namespace heed;
using namespace Halide::Internal;
using Halide::Expr;

namespace {

class MarkStores : public IRMutator {
public:
  explicit MarkStores(std::vector<StreamedOutput> outputs)
      : outputs(std::move(outputs)) {}

private:
  using IRMutator::mutate;
  using IRMutator::visit;

  /// The pass's first statement is all of the pipeline.
  Stmt mutate(const Stmt &stmt) override {
    if (inside)
      return IRMutator::mutate(stmt);
    inside = true;
    Stmt result = IRMutator::mutate(stmt);
    for (const StreamedOutput &output : outputs)
      result = LetStmt::make(keepName(output), keep(output), result);
    return result;
  }

  static std::string keepName(const StreamedOutput &output) {
    return output.name + ".keep";
  }

  static Expr keep(const StreamedOutput &output) {
    Halide::Type type = Halide::Int(64);
    Expr buffer = Variable::make(Halide::type_of<struct halide_buffer_t *>(),
                                 output.name + ".buffer");
    Expr bytes = make_const(type, output.bytes);
    for (int d = 0; d < output.dims; ++d)
      bytes *= Halide::cast(type,
                            Call::make(Halide::Int(32), Call::buffer_get_extent,
                                       {buffer, d}, Call::Extern));
    if (output.times.defined())
      bytes *= Halide::cast(type, output.times);
    return Halide::select(bytes > make_const(type, output.beyond),
                          make_zero(type), make_one(type));
  }

  /// Innermost loops have a version of their own: loops over what stays in the
  /// caches remain as they were.
  Stmt visit(const For *loop) override {
    const StreamedOutput *around = version;
    version =
        loop->for_type == ForType::Serial ? storedIn(loop->body) : nullptr;
    Stmt result = IRMutator::visit(loop);
    if (version)
      result = IfThenElse::make(flag(*version) == make_zero(Halide::Int(64)),
                                result, loop);
    version = around;
    return result;
  }

  Stmt visit(const Store *store) override {
    const StreamedOutput *output = streamed(store);
    if (!output || (version && output != version))
      return store;
    Expr argument = version ? make_zero(Halide::Int(64)) : flag(*output);
    Expr mark =
        Call::make(Halide::Int(32), streamMark, {argument}, Call::Extern);
    return Block::make(Evaluate::make(mark), store);
  }

  static Expr flag(const StreamedOutput &output) {
    return Variable::make(Halide::Int(64), keepName(output));
  }

  /// The output that a whole vector is stored into.
  const StreamedOutput *streamed(const Store *store) const {
    const Ramp *ramp = store->index.as<Ramp>();
    if (ramp && is_const_one(ramp->stride) && is_const_one(store->predicate))
      for (const StreamedOutput &output : outputs)
        if (output.name == store->name) {
          output.directive->isMet = true;
          return &output;
        }
    return nullptr;
  }

  /// What the body of an innermost loop streams; null if it is none.
  const StreamedOutput *storedIn(const Stmt &body) const {
    struct Find : IRVisitor {
      using IRVisitor::visit;
      explicit Find(const MarkStores &pass) : pass(pass) {}
      void visit(const Store *store) override {
        if (!found)
          found = pass.streamed(store);
      }
      void visit(const For *) override { innermost = false; }
      const MarkStores &pass;
      const StreamedOutput *found = nullptr;
      bool innermost = true;
    } find(*this);
    body.accept(&find);
    return find.innermost ? find.found : nullptr;
  }

  std::vector<StreamedOutput> outputs;
  const StreamedOutput *version = nullptr; ///< of the loop around
  bool inside = false;
};

} // namespace

IRMutator *heed::makeStreamPass(std::vector<StreamedOutput> outputs) {
  return new MarkStores(std::move(outputs));
}
