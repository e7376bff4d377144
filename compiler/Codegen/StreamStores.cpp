//===- StreamStores.cpp - stores that pass the caches by ------------------===//
//
// A store of a whole line reads the line from memory first, unless it goes past
// the caches; such a store asks for an aligned address. Arrays of callers start
// anywhere, so each marked store looks: whole vectors at their own alignment,
// quarters of 16 bytes at that of malloc, else the store as it was. Such stores
// are not ordered with others: functions that have them end with a fence.
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/StreamStores.h"
#include "compiler/Codegen/HostObject.h"
#include "support/Format.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {

constexpr uint64_t leastBytes = 16, lineBytes = 64;

/// The vector store behind \p mark, which it is about.
StoreInst *markedStore(CallInst *mark) {
  for (Instruction *next = mark->getNextNode(); next;
       next = next->getNextNode())
    if (auto *store = dyn_cast<StoreInst>(next))
      return store;
  return nullptr;
}

void setStreams(StoreInst *store, Align align) {
  LLVMContext &context = store->getContext();
  auto *one =
      ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(context), 1));
  store->setAlignment(align);
  store->setMetadata(LLVMContext::MD_nontemporal, MDNode::get(context, one));
}

/// Splits the block at \p store: where \p address has none of the bits below \p
/// align, what \p stream writes is run in its stead.
void streamIfAligned(StoreInst *store, Value *address, uint64_t align,
                     function_ref<void(IRBuilder<> &)> stream) {
  IRBuilder<> b(store);
  Value *low = b.CreateAnd(address, align - 1);
  Instruction *then, *otherwise;
  // The other ways lie outside of the loop.
  MDNode *likely = MDBuilder(store->getContext()).createLikelyBranchWeights();
  SplitBlockAndInsertIfThenElse(b.CreateICmpEQ(low, b.getInt64(0)), store,
                                &then, &otherwise, likely);
  b.SetInsertPoint(then);
  stream(b);
  store->moveBefore(otherwise->getIterator());
}

/// False if \p mark is about no store that can be streamed.
bool replaceMark(CallInst *mark, const DataLayout &layout) {
  StoreInst *store = markedStore(mark);
  if (!store || !store->isSimple())
    return false;
  Value *value = store->getValueOperand(), *place = store->getPointerOperand();
  auto *type = dyn_cast<FixedVectorType>(value->getType());
  uint64_t bytes = layout.getTypeStoreSize(value->getType());
  if (!type || bytes < leastBytes || bytes > lineBytes || !isPowerOf2_64(bytes))
    return false;
  IRBuilder<> b(store);
  // A flag of 1 makes every address an unaligned one.
  Value *address = b.CreateOr(b.CreatePtrToInt(place, b.getInt64Ty()),
                              mark->getArgOperand(0));
  streamIfAligned(store, address, bytes, [&](IRBuilder<> &inner) {
    setStreams(inner.CreateStore(value, place), Align(bytes));
  });
  if (bytes == leastBytes)
    return true;
  streamIfAligned(store, address, leastBytes, [&](IRBuilder<> &inner) {
    int lanes = type->getNumElements() * leastBytes / bytes;
    for (uint64_t at = 0; at < bytes; at += leastBytes) {
      SmallVector<int> part;
      for (int lane = 0; lane < lanes; ++lane)
        part.push_back(int(at / leastBytes) * lanes + lane);
      setStreams(inner.CreateStore(
                     inner.CreateShuffleVector(value, part),
                     inner.CreateConstGEP1_64(inner.getInt8Ty(), place, at)),
                 Align(leastBytes));
    }
  });
  return true;
}

void replaceMarks(Module &module) {
  Function *mark = module.getFunction(heed::streamMark);
  if (!mark)
    return;
  bool isX86 = module.getTargetTriple().isX86();
  SmallVector<Function *> streaming;
  for (User *user : make_early_inc_range(mark->users())) {
    auto *call = cast<CallInst>(user);
    Function *in = call->getFunction();
    if (isX86 && replaceMark(call, module.getDataLayout()) &&
        !is_contained(streaming, in))
      streaming.push_back(in);
    call->eraseFromParent();
  }
  mark->eraseFromParent();
  for (Function *function : streaming)
    for (BasicBlock &block : *function)
      if (auto *end = dyn_cast<ReturnInst>(block.getTerminator()))
        IRBuilder<>(end).CreateIntrinsic(Intrinsic::x86_sse_sfence, {});
}

} // namespace

bool heed::compileBitcode(StringRef bitcode, bool assembly, std::string &code,
                          std::string &error) {
  LLVMContext context;
  Expected<std::unique_ptr<Module>> module =
      parseBitcodeFile(MemoryBufferRef(bitcode, "kernel"), context);
  if (!module) {
    error = toString(module.takeError());
    return false;
  }
  replaceMarks(**module);
  // CPU and features stand with each function.
  HostTarget target;
  target.triple = (*module)->getTargetTriple().str();
  std::unique_ptr<TargetMachine> machine = makeTargetMachine(target, error);
  if (!machine)
    return false;
  machine->setOptLevel(CodeGenOptLevel::Aggressive);
  machine->Options.MCOptions.AsmVerbose = true; // as libHalide's is
  SmallString<0> bytes;
  raw_svector_ostream os(bytes);
  if (failed(emitHost(**module, *machine,
                      assembly ? HostOutput::Assembly : HostOutput::Object,
                      os))) {
    error = heed::format("LLVM makes no code for '{}'", target.triple);
    return false;
  }
  code = bytes.str();
  return true;
}
