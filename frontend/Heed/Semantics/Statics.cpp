//===- Statics.cpp - Values known when compiling --------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers, sizes, strings, bools, none and tables: the questions that
// statements ask.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::dyn_cast;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

Binding Binding::of(const Size &size) {
  Binding binding;
  binding.kind = Int;
  binding.size = size.wrapped(); // integers of the language wrap
  return binding;
}

Binding Binding::of(double real) {
  Binding binding;
  binding.kind = Real;
  binding.real = real;
  return binding;
}

Binding Binding::ofBool(bool flag) {
  Binding binding;
  binding.kind = Bool;
  binding.flag = flag;
  return binding;
}

Binding Binding::of(TensorVal tensor, Range place) {
  Binding binding;
  binding.kind = Tensor;
  binding.tensor = std::move(tensor);
  binding.place = place;
  return binding;
}

std::optional<double> Binding::number() const {
  if (kind == Real)
    return real;
  if (auto c = size.constant(); c && kind == Int)
    return double(*c);
  return std::nullopt;
}

std::optional<std::string> Text::plain() const {
  std::string all;
  for (const Part &part : parts) {
    if (!part.size) {
      all += part.text;
      continue;
    }
    auto number = part.size->constant();
    if (!number)
      return std::nullopt;
    all += format("{}", *number);
  }
  return all;
}

/// `rope_scaling.factor`: an entry of what the names before the last point
/// mean. An entry of none is none.
std::optional<Binding> Analysis::lookupEntry(const Env &env, StringRef name) {
  auto [base, last] = name.rsplit('.');
  auto record = lookup(env, base);
  if (!record || record->kind == Binding::Poison ||
      record->kind == Binding::None)
    return record;
  const ExprPtr *value =
      record->kind == Binding::Record ? record->record->find(last) : nullptr;
  if (!value)
    return std::nullopt;
  auto empty = std::make_shared<Env>();
  empty->file = record->record->file;
  auto found = constant(**value, empty, format("entry '{}'", name));
  if (!found)
    return Binding();
  found->place = (*value)->range;
  return found;
}

std::optional<Binding> Analysis::lookup(const Env &env, StringRef name) {
  if (name.contains('.'))
    return lookupEntry(env, name);
  if (auto it = env.names.find(name); it != env.names.end())
    return it->second;
  const ConstStmt *stmt = program.findConst(*env.file, name);
  if (!stmt)
    return std::nullopt;
  auto [it, isNew] = constants.try_emplace(stmt);
  if (!isNew) {
    if (!open.count(stmt))
      return it->second;
    error(stmt->name.range, format("constant '{}' depends on itself", name));
    return Binding();
  }
  open.insert(stmt);
  llvm::scope_exit leave([&] { open.erase(stmt); });
  auto empty = std::make_shared<Env>();
  empty->file = stmt->file;
  if (auto value = constant(*stmt->value, empty, format("constant '{}'", name)))
    constants[stmt] = *value;
  constants[stmt].place = stmt->name.range;
  return constants[stmt];
}

std::vector<StringRef> Analysis::visible(const Env &env) {
  std::vector<StringRef> names;
  for (auto &entry : env.names)
    names.push_back(entry.first);
  auto consts = program.visibleConsts(*env.file);
  names.insert(names.end(), consts.begin(), consts.end());
  return names;
}

//===----------------------------------------------------------------------===//
// Questions of statements
//===----------------------------------------------------------------------===//

std::optional<Binding>
Analysis::staticValue(const Expr &expr, const EnvPtr &env, const Twine &what) {
  Equation eq;
  Scope scope;
  scope.env = env;
  std::string name = what.str();
  const Info *info = infer(expr, scope, eq);
  if (!info)
    return std::nullopt;
  if (info->fixed)
    return info->fixed;
  if (info->pure && rolled)
    needsUnroll = true;
  error(expr.range, format("{} must be static (constants and sizes){}", name,
                           (info->pure ? ", known when compiling" : "")));
  return std::nullopt;
}

std::optional<Size> Analysis::sizeValue(const Expr &expr, const EnvPtr &env,
                                        const Twine &what) {
  std::string name = what.str();
  auto value = staticValue(expr, env, name);
  if (!value)
    return std::nullopt;
  if (value->kind != Binding::Int) {
    error(expr.range,
          format("{} must be an integer, found {}", name, kindOf(*value)));
    return std::nullopt;
  }
  if (auto c = value->size.constant(); c && *c < 0) {
    error(expr.range, format("{} is {}: it must not be negative", name, *c));
    return std::nullopt;
  }
  return value->size;
}

std::string Analysis::kindOf(const Binding &binding) {
  switch (binding.kind) {
  case Binding::None:
    return "none";
  case Binding::Bool:
    return "bool";
  case Binding::Int:
    return "integer";
  case Binding::Real:
    return "real";
  case Binding::String:
    return "a string";
  case Binding::Record:
    return "a record";
  case Binding::List:
    return "a list of strings";
  case Binding::Table:
    return "a table";
  case Binding::Tensor:
  case Binding::Collection:
    return "a tensor";
  case Binding::Stacked:
    return "what a step of a scan leaves";
  case Binding::Scalar:
    return "a run-time scalar";
  default:
    return "a value";
  }
}

/// Appends the numbers of a table, row by row; false if rows differ in length.
bool Analysis::flatten(const Expr &expr, const EnvPtr &env, unsigned depth,
                       Table &table, std::vector<Binding> &values) {
  auto *rows = dyn_cast<TableExpr>(&expr);
  if (!rows) {
    if (depth != table.shape.size())
      return error(expr.range, "rows of different depths");
    auto value = staticValue(expr, env, "an element of a table");
    if (!value)
      return false;
    if (value->kind != Binding::Int && value->kind != Binding::Real &&
        value->kind != Binding::Bool && value->kind != Binding::String)
      return error(expr.range, format("an element of a table must be a number, "
                                      "bool or string, found {}",
                                      kindOf(*value)));
    values.push_back(*value);
    return true;
  }
  if (depth == table.shape.size()) {
    if (!values.empty())
      return error(expr.range, "rows of different depths");
    table.shape.push_back(rows->rows.size());
  }
  if (table.shape[depth] != int64_t(rows->rows.size()))
    return error(expr.range,
                 format("rows of different lengths: expected {}, found {}",
                        table.shape[depth], rows->rows.size()));
  for (const ExprPtr &row : rows->rows)
    if (!flatten(*row, env, depth + 1, table, values))
      return false;
  return true;
}

std::optional<Binding> Analysis::constant(const Expr &expr, const EnvPtr &env,
                                          const Twine &what) {
  if (expr.kind != ExprKind::Table)
    return staticValue(expr, env, what);
  auto table = std::make_shared<Table>();
  std::vector<Binding> values;
  if (!flatten(expr, env, 0, *table, values))
    return std::nullopt;
  bool reals = false, bools = !values.empty(), texts = false;
  for (const Binding &value : values) {
    reals |= value.kind == Binding::Real;
    bools &= value.kind == Binding::Bool;
    texts |= value.kind == Binding::String;
  }
  Binding binding;
  binding.table = table;
  if (texts) {
    binding.kind = Binding::List;
    binding.texts = std::make_shared<std::vector<Text>>();
    for (const Binding &value : values)
      if (value.kind == Binding::String) {
        binding.texts->push_back(value.text);
      } else {
        error(expr.range, "a table holds strings or numbers, not both");
        return std::nullopt;
      }
    return binding;
  }
  table->elem = bools ? Ty::Bool : reals ? Ty::AnyReal : Ty::AnyInt;
  for (const Binding &value : values) {
    if (!bools && value.kind == Binding::Bool) {
      error(expr.range, "a table holds numbers or bools, not both");
      return std::nullopt;
    }
    auto number = value.number();
    if (!bools && !number) {
      error(expr.range, "an element of a table must be known when compiling");
      return std::nullopt;
    }
    if (reals)
      table->reals.push_back(*number);
    else
      table->ints.push_back(bools ? value.flag : *value.size.constant());
  }
  binding.kind = Binding::Table;
  return binding;
}

std::optional<Text> Analysis::textValue(const StringExpr &expr,
                                        const EnvPtr &env) {
  Text text;
  auto append = [&](const std::string &piece) {
    if (!text.parts.empty() && !text.parts.back().size)
      text.parts.back().text += piece;
    else
      text.parts.push_back({piece, std::nullopt});
  };
  if (expr.isPlain()) {
    append(expr.raw.str());
    return text;
  }
  for (const StringExpr::Part &part : expr.parts) {
    if (!part.expr) {
      append(part.text.str());
      continue;
    }
    auto value = staticValue(*part.expr, env, "what stands in '{ }'");
    if (!value)
      return std::nullopt;
    switch (value->kind) {
    case Binding::String:
      for (const Text::Part &inner : value->text.parts) {
        if (inner.size)
          text.parts.push_back(inner);
        else
          append(inner.text);
      }
      break;
    case Binding::Int:
      if (auto c = value->size.constant())
        append(format("{}", *c));
      else
        text.parts.push_back({"", value->size});
      break;
    case Binding::Bool:
      append(value->flag ? "true" : "false");
      break;
    default:
      error(part.expr->range,
            format("'{{ }}' takes an integer or a string, found {}",
                   kindOf(*value)));
      return std::nullopt;
    }
  }
  return text;
}

std::optional<Ty> Analysis::tyOf(ElementType type, Range place) {
  switch (type) {
  case ElementType::F32:
    return Ty::F32;
  case ElementType::F16:
    return Ty::F16;
  case ElementType::BF16:
    return Ty::BF16;
  case ElementType::I8:
    return Ty::I8;
  case ElementType::I32:
    return Ty::I32;
  case ElementType::I64:
    return Ty::I64;
  case ElementType::Bool:
    return Ty::Bool;
  default:
    error(place, format("type '{}' is not supported; use f32, f16, bf16, i32, "
                        "i64, i8 or bool",
                        ast::spelling(type)));
    return std::nullopt;
  }
}
