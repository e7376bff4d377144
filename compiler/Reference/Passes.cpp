//===- Passes.cpp - registration of the reference backend's passes --------===//
#include "compiler/Reference/Passes.h"

namespace heed::reference {

#define GEN_PASS_REGISTRATION
#include "compiler/Reference/Passes.h.inc"

void registerPasses() { registerReferencePasses(); }

} // namespace heed::reference
