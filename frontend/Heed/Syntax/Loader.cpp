//===- Loader.cpp - A file with all that it imports -----------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loader.h"
#include "Config.h"
#include "Library.h"
#include "Parser.h"
#include "support/Format.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <set>

using namespace heed;
using namespace heed::ast;
using llvm::SMRange;
using llvm::StringRef;

namespace {
class Loader {
public:
  Loader(const LoadOptions &options, Sources &sources, Diagnostics &diags)
      : options(options), sources(sources), diags(diags) {}

  Program run(StringRef path, std::optional<StringRef> text);

private:
  File *load(StringRef path, StringRef text, StringRef key, bool isLibrary);
  File *loadShipped(StringRef path);
  File *importShipped(const File &file, StringRef import);
  void import(File &file, ImportDecl &decl);
  void config(ConfigDecl &decl);
  void checkNames(const File &file);
  std::optional<std::string> readFile(StringRef path, std::string &error);
  ExprPtr valueOf(const llvm::json::Value &json, SMRange range, bool nested,
                  const std::string &path);
  void addDefault(ConfigDecl &decl, std::unique_ptr<ConstStmt> stmt);

  const LoadOptions &options;
  Sources &sources;
  Diagnostics &diags;
  Program program;
  std::string modelFolder;
  llvm::StringMap<File *> loaded; ///< by real path, or "library:" and name
  std::vector<std::string> chain; ///< the keys of the files being loaded
};
} // namespace

/// Refuses folders, and files that no person writes.
std::optional<std::string> Loader::readFile(StringRef path,
                                            std::string &error) {
  constexpr uint64_t maxSize = 64 << 20;
  auto buffer = path == "-" ? llvm::MemoryBuffer::getSTDIN()
                            : llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    error = StringRef(buffer.getError().message()).lower();
    return std::nullopt;
  }
  if ((*buffer)->getBufferSize() > maxSize) {
    error = "larger than 64 MiB";
    return std::nullopt;
  }
  program.reads.push_back(path.str());
  return (*buffer)->getBuffer().str();
}

static std::string keyOf(StringRef path) {
  llvm::SmallString<256> real;
  if (llvm::sys::fs::real_path(path, real))
    return path.str();
  return real.str().str();
}

static std::string relativeTo(StringRef folder, StringRef path) {
  llvm::SmallString<256> joined(folder);
  llvm::sys::path::append(joined, path);
  return llvm::sys::path::is_absolute(path) ? path.str() : joined.str().str();
}

/// Records at any depth mean the names of that file.
static void settle(Expr &value, const File &file) {
  auto *record = llvm::dyn_cast<RecordExpr>(&value);
  if (!record)
    return;
  record->file = &file;
  for (RecordExpr::Entry &entry : record->entries)
    settle(*entry.value, file);
}

File *Loader::load(StringRef path, StringRef text, StringRef key,
                   bool isLibrary) {
  StringRef kept = sources.add(path, text);
  program.files.push_back(parseFile(path, kept, diags));
  File &file = *program.files.back();
  file.isLibrary = isLibrary;
  loaded[key] = &file;
  chain.push_back(key.str());
  for (ImportDecl &decl : file.imports)
    import(file, decl);
  chain.pop_back();
  for (ConfigDecl &decl : file.configs) {
    config(decl);
    for (auto &stmt : decl.values) {
      stmt->file = &file;
      settle(*stmt->value, file);
    }
  }
  for (auto &stmt : file.consts)
    stmt->file = &file;
  checkNames(file);
  return &file;
}

/// The file of options.shipped that is called `path`; null: there is none.
File *Loader::loadShipped(StringRef path) {
  if (File *known = loaded.lookup(path))
    return known;
  for (const LibraryFile &one : options.shipped)
    if (path == relativeTo(options.shippedFolder, one.path))
      return load(path, one.text, path, /*isLibrary=*/false);
  return nullptr;
}

/// The one that `file` imports, which is one of them or names it.
File *Loader::importShipped(const File &file, StringRef import) {
  llvm::SmallString<128> path;
  if (!options.shippedName.empty() && import.consume_front(options.shippedName))
    path = relativeTo(options.shippedFolder, import);
  else if (!options.shippedFolder.empty() &&
           StringRef(file.path).starts_with(options.shippedFolder))
    path = relativeTo(llvm::sys::path::parent_path(file.path), import);
  else
    return nullptr;
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  return loadShipped(path);
}

void Loader::import(File &file, ImportDecl &decl) {
  if ((decl.file = importShipped(file, decl.path)))
    return;
  std::vector<std::string> places;
  if (!file.isLibrary)
    places.push_back(
        relativeTo(llvm::sys::path::parent_path(file.path), decl.path));
  for (const std::string &folder : options.includeFolders)
    places.push_back(relativeTo(folder, decl.path));
  for (const std::string &place : places) {
    if (!llvm::sys::fs::exists(place))
      continue;
    std::string key = keyOf(place);
    if (llvm::is_contained(chain, key)) {
      diags.error(decl.range,
                  heed::format("the import of \"{}\" is a cycle", decl.path));
      return;
    }
    File *known = loaded.lookup(key);
    if (!known) {
      std::string error;
      std::optional<std::string> text = readFile(place, error);
      if (!text) {
        diags.error(decl.range,
                    heed::format("cannot read \"{}\": {}", place, error));
        return;
      }
      known = load(place, *text, key, /*isLibrary=*/false);
    }
    decl.file = known;
    return;
  }
  std::vector<StringRef> names;
  for (const LibraryFile &library : libraryFiles()) {
    names.push_back(library.path);
    if (library.path == decl.path) {
      decl.file = loaded.lookup(heed::format("library:{}", library.path));
      return;
    }
  }
  diags.error(decl.range,
              heed::format("no file \"{}\" beside this one, in the folders of "
                           "-I, or in the standard library{}",
                           decl.path, didYouMean(decl.path, names)));
}

/// Long: one kind of value after the other.
/// Null for what has no meaning as a constant. \p nested: in a list. \p path:
/// the names that lead to it.
ExprPtr Loader::valueOf(const llvm::json::Value &json, SMRange range,
                        bool nested, const std::string &path) {
  auto place = [&](auto node) {
    node->range = range;
    return node;
  };
  if (std::optional<bool> value = json.getAsBoolean()) {
    auto node = place(std::make_unique<BoolExpr>());
    node->value = *value;
    return node;
  }
  if (json.kind() == llvm::json::Value::Number) {
    // 1e-5 and 2.0 are real, 12 is an integer: told by exactness, since JSON
    // does not tell them apart. A real that is whole, such as 1.0, becomes an
    // integer; integers adapt to the other operand, so nothing changes but for
    // the division in a dim.
    if (std::optional<int64_t> value = json.getAsInteger()) {
      auto node = place(std::make_unique<IntExpr>());
      node->value = *value;
      return node;
    }
    auto node = place(std::make_unique<RealExpr>());
    node->value = *json.getAsNumber();
    return node;
  }
  if (std::optional<StringRef> value = json.getAsString()) {
    auto node = place(std::make_unique<StringExpr>());
    node->raw = sources.keep(*value);
    node->parts.push_back({node->raw, nullptr});
    return node;
  }
  if (auto real = spelledNumber(json)) {
    auto node = place(std::make_unique<RealExpr>());
    node->value = *real;
    return node;
  }
  if (nested && json.kind() != llvm::json::Value::Array)
    return nullptr;
  if (json.getAsNull())
    return place(std::make_unique<NoneExpr>());
  if (const llvm::json::Object *object = json.getAsObject()) {
    auto node = place(std::make_unique<RecordExpr>());
    for (StringRef key : keysOf(*object)) {
      std::string inner = heed::format("{}.{}", path, key);
      if (ExprPtr value = valueOf(*object->get(key), range, nested, inner))
        node->entries.push_back({sources.keep(inner), std::move(value)});
    }
    return node;
  }
  const llvm::json::Array *array = json.getAsArray();
  if (!array || array->empty())
    return nullptr;
  auto node = place(std::make_unique<TableExpr>());
  for (const llvm::json::Value &row : *array) {
    node->rows.push_back(valueOf(row, range, /*nested=*/true, path));
    if (!node->rows.back())
      return nullptr;
    node->height = std::max(node->height, node->rows.back()->height + 1);
    if (node->height > 16)
      return nullptr;
  }
  return node;
}

void Loader::config(ConfigDecl &decl) {
  std::string path = relativeTo(modelFolder, decl.path), error;
  std::optional<std::string> text = readFile(path, error);
  if (!text) {
    diags.error(decl.range,
                heed::format("cannot read the config \"{}\": {}", path, error));
    return;
  }
  std::optional<llvm::json::Object> object = parseConfig(*text, error);
  if (!object) {
    diags.error(decl.range, heed::format("the config \"{}\" {}", path, error));
    return;
  }
  for (StringRef key : keysOf(*object)) {
    ExprPtr value =
        valueOf(*object->get(key), decl.range, /*nested=*/false, key.str());
    if (!value)
      continue;
    auto stmt = std::make_unique<ConstStmt>();
    stmt->name = {sources.keep(key), decl.range};
    stmt->value = std::move(value);
    stmt->range = decl.range;
    decl.values.push_back(std::move(stmt));
  }
  for (std::unique_ptr<ConstStmt> &stmt : decl.defaults)
    addDefault(decl, std::move(stmt));
  decl.defaults.clear();
}

/// Takes a default where the file has no such entry. A record that it lacks is
/// made; in what is none, or no record, nothing can be added.
void Loader::addDefault(ConfigDecl &decl, std::unique_ptr<ConstStmt> stmt) {
  StringRef path = stmt->name.text;
  StringRef first, rest;
  std::tie(first, rest) = path.split('.');
  auto record = [&]() -> ExprPtr {
    auto node = std::make_unique<RecordExpr>();
    node->range = stmt->range;
    return node;
  };
  auto known = llvm::find_if(decl.values, [&](const auto &value) {
    return value->name.text == first;
  });
  if (known == decl.values.end()) {
    auto added = std::make_unique<ConstStmt>();
    added->name = {first, stmt->name.range};
    added->range = stmt->range;
    added->value = rest.empty() ? std::move(stmt->value) : record();
    decl.values.push_back(std::move(added));
    known = std::prev(decl.values.end());
  }
  ExprPtr *at = &(*known)->value;
  while (!rest.empty()) {
    auto *around = llvm::dyn_cast<RecordExpr>(at->get());
    if (!around)
      return;
    std::tie(first, rest) = rest.split('.');
    if (ExprPtr *next = around->find(first)) {
      at = next;
      continue;
    }
    StringRef to(path.begin(), first.end() - path.begin());
    around->entries.push_back(
        {to, rest.empty() ? std::move(stmt->value) : record()});
    at = &around->entries.back().value;
  }
}

/// A name is declared once in a file. A function, a constant and a model live
/// in one space.
void Loader::checkNames(const File &file) {
  llvm::StringMap<SMRange> seen;
  auto check = [&](const Name &name) {
    auto [first, isNew] = seen.try_emplace(name.text, name.range);
    if (!isNew)
      diags.error(name.range, heed::format("'{}' is defined twice", name.text))
          .note(first->second, "first here");
  };
  // In the order of the text, so that the later one is the error.
  std::vector<Name> names;
  for (const auto &decl : file.consts)
    names.push_back(decl->name);
  for (const auto &decl : file.fns)
    names.push_back(decl->name);
  for (const auto &decl : file.models)
    names.push_back(decl->name);
  llvm::sort(names, [](const Name &a, const Name &b) {
    return a.range.Start.getPointer() < b.range.Start.getPointer();
  });
  llvm::for_each(names, check);
}

Program Loader::run(StringRef path, std::optional<StringRef> text) {
  modelFolder = options.modelFolder;
  if (modelFolder.empty() && path != "-")
    modelFolder = llvm::sys::path::parent_path(path).str();
  for (const LibraryFile &library : libraryFiles())
    load(heed::format("<library>/{}", library.path), library.text,
         heed::format("library:{}", library.path), /*isLibrary=*/true);
  std::string error;
  std::optional<std::string> read;
  if (!text) {
    llvm::sys::fs::file_status status;
    if (path != "-" && !llvm::sys::fs::status(path, status) &&
        llvm::sys::fs::is_directory(status))
      error = "is a directory";
    else
      read = readFile(path, error);
    if (!read) {
      diags.error(SMRange(), heed::format("cannot read '{}': {}", path, error));
      return std::move(program);
    }
    text = *read;
  }
  program.main = load(path == "-" ? "<stdin>" : path, *text, keyOf(path),
                      /*isLibrary=*/false);
  return std::move(program);
}

Program heed::loadProgram(StringRef path, const LoadOptions &options,
                          Sources &sources, Diagnostics &diags) {
  return Loader(options, sources, diags).run(path, std::nullopt);
}

Program heed::loadProgramText(StringRef path, StringRef text,
                              const LoadOptions &options, Sources &sources,
                              Diagnostics &diags) {
  return Loader(options, sources, diags).run(path, text);
}

//===----------------------------------------------------------------------===//
// What a name means
//===----------------------------------------------------------------------===//

/// Calls `visit` for `file`, then its imports before their imports, each once;
/// stops when it returns true. A later import comes before an earlier one.
static bool walk(const File &file, llvm::function_ref<bool(const File &)> visit,
                 std::set<const File *> &seen) {
  if (!seen.insert(&file).second)
    return false;
  if (visit(file))
    return true;
  for (const ImportDecl &decl : llvm::reverse(file.imports))
    if (decl.file && walk(*decl.file, visit, seen))
      return true;
  return false;
}

const FnDecl *Program::findFn(const File &file, StringRef name) const {
  const FnDecl *found = nullptr;
  auto visit = [&](const File &file) {
    for (const auto &fn : file.fns)
      if (fn->name.text == name)
        found = fn.get();
    return found != nullptr;
  };
  std::set<const File *> seen;
  if (walk(file, visit, seen))
    return found;
  for (const auto &other : files)
    if (other->isLibrary && visit(*other))
      return found;
  return nullptr;
}

const ConstStmt *Program::findConst(const File &file, StringRef name) const {
  const ConstStmt *found = nullptr;
  auto visit = [&](const File &file) {
    for (const ConfigDecl &config : file.configs)
      for (const auto &stmt : config.values)
        if (stmt->name.text == name)
          found = stmt.get();
    for (const auto &stmt : file.consts) // over the config's
      if (stmt->name.text == name)
        found = stmt.get();
    return found != nullptr;
  };
  std::set<const File *> seen;
  walk(file, visit, seen);
  return found;
}

static std::vector<StringRef> sorted(const std::set<StringRef> &names) {
  return {names.begin(), names.end()};
}

std::vector<StringRef> Program::visibleFns(const File &file) const {
  std::set<StringRef> names;
  auto visit = [&](const File &file) {
    for (const auto &fn : file.fns)
      names.insert(fn->name.text);
    return false;
  };
  std::set<const File *> seen;
  walk(file, visit, seen);
  for (const auto &other : files)
    if (other->isLibrary)
      visit(*other);
  return sorted(names);
}

static void addPaths(StringRef path, const Expr &value,
                     std::set<StringRef> &names) {
  names.insert(path);
  if (auto *record = llvm::dyn_cast<RecordExpr>(&value))
    for (const RecordExpr::Entry &entry : record->entries)
      addPaths(entry.path, *entry.value, names);
}

std::vector<StringRef> Program::visibleConsts(const File &file) const {
  std::set<StringRef> names;
  auto visit = [&](const File &file) {
    for (const ConfigDecl &config : file.configs)
      for (const auto &stmt : config.values)
        addPaths(stmt->name.text, *stmt->value, names);
    for (const auto &stmt : file.consts)
      names.insert(stmt->name.text);
    return false;
  };
  std::set<const File *> seen;
  walk(file, visit, seen);
  return sorted(names);
}
