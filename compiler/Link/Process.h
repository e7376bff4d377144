//===- Process.h - what every tool does first -------------------*- C++ -*-===//

#ifndef HEED_COMPILER_LINK_PROCESS_H
#define HEED_COMPILER_LINK_PROCESS_H

namespace heed {

/// To be called after llvm::InitLLVM, which handles signals. Makes the process
/// one that what follows may rely on:
/// * Descriptors 0, 1 and 2 are open: a file that is opened later never takes
///   the place of a closed standard output. What was closed still cannot be
///   read or written.
/// * A write beyond the limit on file sizes fails like one to a full disk.
/// * The stack may grow to 100 MB, which all that the front end accepts needs.
void prepareProcess();

} // namespace heed

#endif // HEED_COMPILER_LINK_PROCESS_H
