//===- Types.h - Types of values, and how they go together ------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a value of a model may be, before it is an IR type: literals, indices
// and dims adapt to what they meet.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_TYPES_H
#define HEED_FRONTEND_COMMON_TYPES_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace heed {

/// What the elements of parameters, or states, that a model declares f32 are in
/// memory: what the file of weights has (f32 where that is not known, and for
/// states), or one type for all.
enum class HeldType { Stored, F32, BF16, F16 };

} // namespace heed

namespace heed::sema {

/// The type of a value. AnyInt and AnyReal adapt to what they meet: literals,
/// indices, dims and what is made of them.
enum class Ty { AnyInt, AnyReal, Bool, I8, I32, I64, F16, BF16, F32 };

inline bool isReal(Ty ty) { return ty == Ty::AnyReal || ty >= Ty::F16; }
inline bool isInt(Ty ty) {
  return ty == Ty::AnyInt || (ty >= Ty::I8 && ty <= Ty::I64);
}
llvm::StringRef spelling(Ty ty);
/// The real type of a quotient or a root of values of this type.
Ty realOf(Ty ty);
/// What a tensor of this type stores: AnyInt is i32, AnyReal is f32.
Ty stored(Ty ty);
/// The type of a sum, a comparison or the branches of an `if`; none if a and b
/// do not go together.
std::optional<Ty> join(Ty a, Ty b);

} // namespace heed::sema

#endif // HEED_FRONTEND_COMMON_TYPES_H
