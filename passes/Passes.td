//===- Passes.td - every pass of ours, one entry each --------------------------------------===//
// An entry's description holds the IR before and after; its lit test has the same case. Keep DESIGN.md's order.

#ifndef HEED_PASSES_PASSES_TD
#define HEED_PASSES_PASSES_TD

include "passes/AttnPasses.td"
include "passes/RecurrencePasses.td"
include "passes/PlanPasses.td"
include "passes/KernelPasses.td"
include "passes/MergePasses.td"
include "passes/HostPasses.td"
include "passes/VerifyPasses.td"

#endif
