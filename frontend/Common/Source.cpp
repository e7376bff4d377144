//===- Source.cpp - Source buffers and places in them ---------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Source.h"

using namespace heed;
using llvm::SMLoc;
using llvm::StringRef;

StringRef Sources::add(StringRef path, StringRef text) {
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, path);
  StringRef kept = buffer->getBuffer();
  mgr.AddNewSourceBuffer(std::move(buffer), SMLoc());
  return kept;
}

StringRef Sources::keep(StringRef text) { return saver.save(text); }

StringRef Sources::lineAt(SMLoc loc) const {
  unsigned id = loc.isValid() ? mgr.FindBufferContainingLoc(loc) : 0;
  if (!id)
    return {};
  StringRef text = mgr.getMemoryBuffer(id)->getBuffer();
  size_t at = loc.getPointer() - text.data();
  size_t newline = text.take_front(at).rfind('\n');
  size_t begin = newline == StringRef::npos ? 0 : newline + 1;
  return text.slice(begin, text.find('\n', at)).rtrim('\r');
}

Position Sources::position(SMLoc loc) const {
  unsigned id = loc.isValid() ? mgr.FindBufferContainingLoc(loc) : 0;
  if (!id)
    return {};
  Position pos;
  pos.file = mgr.getMemoryBuffer(id)->getBufferIdentifier();
  pos.line = mgr.FindLineNumber(loc, id);
  const char *begin = lineAt(loc).data();
  pos.column = 1;
  // Bytes that continue a UTF-8 character are no columns of their own.
  for (const char *p = begin; p < loc.getPointer(); ++p)
    pos.column += (static_cast<unsigned char>(*p) & 0xC0) != 0x80;
  return pos;
}
