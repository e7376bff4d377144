//===- Passes.cpp - registration of every pass of ours --------------------===//
#include "passes/Passes.h"

namespace heed {

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

void registerPasses() { registerHeedPasses(); }

} // namespace heed
