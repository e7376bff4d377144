//===- PrintSymbolicDims.h - registration of a pass of heed-opt -*- C++ -*-===//
#ifndef HEED_COMPILER_OPT_PRINTSYMBOLICDIMS_H
#define HEED_COMPILER_OPT_PRINTSYMBOLICDIMS_H

namespace heed {

/// `print-symbolic-dims`.
void registerPrintSymbolicDims();

} // namespace heed

#endif
