//===- HuggingFace.cpp - Checkpoints by their architecture ----------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HuggingFace.h"
#include "frontend/Common/Diagnostics.h"
#include "frontend/Heed/Syntax/Config.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace heed;
using llvm::StringRef;

constexpr llvm::StringLiteral architectures = "architectures/",
                              ending = ".heed";

std::vector<StringRef> heed::modelTypes() {
  std::vector<StringRef> types;
  for (const LibraryFile &file : huggingFaceFiles()) {
    StringRef name = file.path;
    if (name.consume_front(architectures) && name.consume_back(ending))
      types.push_back(name);
  }
  return types;
}

static const LibraryFile *find(StringRef path) {
  auto files = huggingFaceFiles();
  auto *file = llvm::find_if(
      files, [&](const LibraryFile &one) { return one.path == path; });
  return file == files.end() ? nullptr : file;
}

const LibraryFile *heed::findArchitecture(StringRef folder,
                                          std::string &error) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, "config.json");
  auto fail = [&](const std::string &what) -> const LibraryFile * {
    error = heed::format("{} {}", path.str(), what);
    return nullptr;
  };
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return fail(
        heed::format("cannot be read: {}: expected the folder of a Hugging "
                     "Face checkpoint",
                     StringRef(text.getError().message()).lower()));
  std::string reason;
  auto config = parseConfig((*text)->getBuffer().str(), reason);
  if (!config)
    return fail(reason);
  auto type = config->getString("model_type");
  if (!type)
    return fail("has no 'model_type'");
  const LibraryFile *file = find(heed::format(
      "{}{}{}", StringRef(architectures), *type, StringRef(ending)));
  if (!file) {
    std::vector<StringRef> known = modelTypes();
    return fail(heed::format("has model_type '{}': expected one of {}{}", *type,
                             llvm::join(known, ", "),
                             didYouMean(*type, known)));
  }
  auto has = [&](StringRef key) {
    const llvm::json::Value *value = config->get(key);
    return value && !value->getAsNull();
  };
  if (has("quantization_config"))
    return fail("has a 'quantization_config': quantised checkpoints are not "
                "supported yet");
  if (has("per_layer_config"))
    return fail("has a 'per_layer_config': layers with configs of their own "
                "are not supported");
  // The library loads the adapter, too, whatever weights lie beside it.
  llvm::SmallString<128> adapter(folder);
  llvm::sys::path::append(adapter, "adapter_config.json");
  if (llvm::sys::fs::exists(adapter)) {
    error = heed::format("{}: adapters are not supported: expected a "
                         "checkpoint into which this one is merged",
                         adapter.str());
    return nullptr;
  }
  return file;
}

std::string heed::asOwnFile(const LibraryFile &architecture) {
  std::string text = architecture.text.str();
  const std::string old = "import \"../", own = "import \"huggingface/";
  for (size_t at = 0; (at = text.find(old, at)) != std::string::npos;)
    text.replace(at, old.size(), own);
  return text;
}
