//===- HuggingFace.h - Checkpoints by their architecture --------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An architecture is a Heed file, architectures/<model_type>.heed, which reads
// the checkpoint's config.json. All of them are compiled in, with what they
// import (lib/); this finds the one that a folder names.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HUGGINGFACE_HUGGINGFACE_H
#define HEED_FRONTEND_HUGGINGFACE_HUGGINGFACE_H

#include "frontend/Heed/Syntax/Library.h"

#include <string>
#include <vector>

namespace heed {

/// What the paths of the files below begin with in messages.
constexpr llvm::StringLiteral huggingFaceFolder = "<huggingface>";
/// What imports of other files write before them.
constexpr llvm::StringLiteral huggingFaceName = "huggingface/";

/// "architectures/llama.heed", "lib/rope.heed", ..., sorted.
llvm::ArrayRef<LibraryFile> huggingFaceFiles();

/// The `model_type`s that there is an architecture for, sorted.
std::vector<llvm::StringRef> modelTypes();

/// The architecture that config.json of the folder names. Null after an error:
/// no config, no or an unknown `model_type`, a quantised checkpoint.
const LibraryFile *findArchitecture(llvm::StringRef folder, std::string &error);

/// The architecture as a file that compiles wherever it lies: it imports
/// "huggingface/lib/rope.heed".
std::string asOwnFile(const LibraryFile &architecture);

} // namespace heed

#endif // HEED_FRONTEND_HUGGINGFACE_HUGGINGFACE_H
