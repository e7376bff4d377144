//===- Heed.cpp - From a program to attn IR -------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Heed.h"

#include "frontend/Common/Resolved.h"
#include "frontend/Emit/Emit.h"

using namespace mlir;

OwningOpRef<ModuleOp> heed::compileHeed(MLIRContext &context,
                                        const Program &program,
                                        const FrontendOptions &options,
                                        const Sources &sources,
                                        Diagnostics &diags) {
  auto model = analyse(program, options, sources, diags);
  return model ? emitModel(context, *model, sources, diags) : nullptr;
}
