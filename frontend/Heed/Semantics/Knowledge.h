//===- Knowledge.h - What the analysis of an entry knows --------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to this room: the data of Analysis (Analysis.h), whose functions fill
// and ask it.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SEMANTICS_KNOWLEDGE_H
#define HEED_FRONTEND_HEED_SEMANTICS_KNOWLEDGE_H

#include "Frames.h"
#include "Semantics.h"

namespace heed::sema {

struct Knowledge {
  Knowledge(Entry &entry, const Program &program,
            const FrontendOptions &options, const Sources &sources,
            Diagnostics &diags, std::set<std::string> &usedSettings)
      : entry(entry), program(program), options(options), sources(sources),
        diags(diags), sizes(entry.sizes), sink(&entry.steps),
        usedSettings(usedSettings) {}

  Entry &entry;
  const Program &program;
  const FrontendOptions &options;
  const Sources &sources;
  Diagnostics &diags;
  SizeTable &sizes;           ///< of the entry
  Steps *sink;                ///< where steps go
  std::vector<Size> positive; ///< divisors that are checked not to be 0
  std::map<const ast::ConstStmt *, Binding> constants;
  std::set<const ast::ConstStmt *> open;   ///< constants under evaluation
  std::vector<const ast::FnDecl *> active; ///< calls under way
  unsigned numCalls = 0;                   ///< of functions, so far
  bool tooManyCopies = false; ///< that was said: the rest need not be looked at
  unsigned depth = 0; ///< of the expression, calls included, that infer() is in
  std::set<std::string> &usedSettings; ///< of all entries
  /// Extents that --weights gives to dims of the signature.
  llvm::StringMap<int64_t> dimsOfWeights;
  std::vector<RolledLoop> loops; ///< those around, from the outermost in
  std::vector<OpenScan> scans;   ///< likewise
  Equation::Loops running;       ///< the loops of the body under construction
  bool staticArgument = false;   ///< `/` between integers divides exactly
  unsigned rolled = 0;           ///< rolled loops around
  unsigned speculating = 0;      ///< messages wait until the loop stands
  bool needsUnroll = false;
  std::string unlike; ///< why, where a name changes from turn to turn
  std::vector<Pending> pending;

  /// Functions whose bodies are looked through for the states they change.
  std::vector<const ast::FnDecl *> asked;

  // States.cpp
  std::vector<ast::Argument> states; ///< of the model
  /// What those start with that do not start with zeros.
  llvm::StringMap<const ast::Expr *> starts;
  Steps checks; ///< of positions, to be done before a state changes
  std::optional<FirstUpdate> firstUpdate;
  std::deque<ast::NameExpr> plainPositions; ///< names that a left side has
};

} // namespace heed::sema

#endif // HEED_FRONTEND_HEED_SEMANTICS_KNOWLEDGE_H
