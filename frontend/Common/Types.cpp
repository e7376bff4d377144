//===- Types.cpp - Types of values, and how they go together --------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Common/Types.h"

#include <algorithm>

using namespace heed;
using namespace heed::sema;
using llvm::StringRef;

StringRef heed::sema::spelling(Ty ty) {
  switch (ty) {
  case Ty::AnyInt:
    return "integer";
  case Ty::AnyReal:
    return "real";
  case Ty::Bool:
    return "bool";
  case Ty::I8:
    return "i8";
  case Ty::I32:
    return "i32";
  case Ty::I64:
    return "i64";
  case Ty::F16:
    return "f16";
  case Ty::BF16:
    return "bf16";
  case Ty::F32:
    return "f32";
  }
  return "";
}

Ty heed::sema::stored(Ty ty) {
  return ty == Ty::AnyInt ? Ty::I32 : ty == Ty::AnyReal ? Ty::F32 : ty;
}

Ty heed::sema::realOf(Ty ty) {
  return ty == Ty::AnyInt ? Ty::AnyReal : isInt(ty) ? Ty::F32 : ty;
}

std::optional<Ty> heed::sema::join(Ty a, Ty b) {
  if (a == b)
    return a;
  if (a == Ty::Bool || b == Ty::Bool)
    return std::nullopt;
  if (isReal(a) != isReal(b)) {
    Ty real = isReal(a) ? a : b, integer = isReal(a) ? b : a;
    return real == Ty::AnyReal && integer != Ty::AnyInt ? Ty::F32 : real;
  }
  if ((a == Ty::F16 && b == Ty::BF16) || (a == Ty::BF16 && b == Ty::F16))
    return std::nullopt;
  // Within the integers, and within the reals, the enum goes from narrow to
  // wide, and the adaptable kind comes first.
  return std::max(a, b);
}
