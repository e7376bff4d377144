//===- ParamNames.h - the names of attn.param -------------------*- C++ -*-===//
#ifndef HEED_DIALECTS_ATTN_PARAMNAMES_H
#define HEED_DIALECTS_ATTN_PARAMNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace heed {

/// \p name with "{k}" replaced by replacements[k].
std::string fillParamName(llvm::StringRef name,
                          llvm::ArrayRef<std::string> replacements);

} // namespace heed

#endif
