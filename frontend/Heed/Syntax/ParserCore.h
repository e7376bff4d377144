//===- ParserCore.h - The recursive-descent parser --------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One class, its methods split by subject: ParserCore.cpp (tokens, errors,
// nesting), ParseExpr.cpp, ParseStmt.cpp, ParseDecl.cpp. Not for others; they
// use Parser.h.
//
// A method that fails has reported why and returns null, false or nothing; its
// caller passes that on up to the statement, which skips to the next one.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SYNTAX_PARSERCORE_H
#define HEED_FRONTEND_HEED_SYNTAX_PARSERCORE_H

#include "AST.h"
#include "Lexer.h"
#include "frontend/Common/Diagnostics.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/SaveAndRestore.h"

namespace heed {

class Parser {
public:
  /// `endName` is what messages call the end of `text`.
  Parser(llvm::StringRef text, Diagnostics &diags,
         llvm::StringRef endName = "the end of the file");

  void parseFile(ast::File &file);
  ast::ExprPtr parseWholeExpr();
  ast::ExprPtr parseWholeTable();

private:
  // Tokens.
  const Token &token(unsigned ahead = 0) const;
  bool at(llvm::StringRef spelling, unsigned ahead = 0) const {
    return token(ahead).is(spelling);
  }
  bool atKind(TokenKind kind, unsigned ahead = 0) const {
    return token(ahead).kind == kind;
  }
  bool atAnyOf(llvm::ArrayRef<llvm::StringRef> spellings) const;
  const Token &take();
  bool accept(llvm::StringRef spelling);
  bool expect(llvm::StringRef spelling);
  bool parseName(ast::Name &name, llvm::StringRef what = "a name");
  /// The same with the names of records before it: `rope_scaling.factor`.
  bool parseEntryName(ast::Name &name);
  /// item, item, ... and the closing bracket, which a comma may precede.
  bool parseUntil(llvm::StringRef close, llvm::function_ref<bool()> item);
  /// item, item, ...: at least one.
  bool parseList(llvm::function_ref<bool()> item);
  void skipNewlines();

  // Errors.
  std::nullptr_t fail(llvm::StringRef wanted, const llvm::Twine &hint = "");
  bool inUnclosed() const;
  std::nullptr_t failAt(ast::Range range, const llvm::Twine &message);
  /// To the end of this statement, not over the `}` that ends the block.
  void recover();
  /// Gives up: all that follows would be guesswork, or as deep.
  void stop() { next = tokens.size() - 1; }
  bool stopped() const { return next == tokens.size() - 1; }

  /// Counts one level of nesting while it lives; false beyond the limit.
  class Nest {
  public:
    explicit Nest(Parser &parser);
    ~Nest() { --parser.depth; }
    explicit operator bool() const { return fits; }

  private:
    Parser &parser;
    bool fits;
  };
  llvm::SaveAndRestore<ast::Place> in(ast::Place newPlace) {
    return {place, newPlace};
  }

  // Nodes.
  llvm::SMLoc here() const { return token().range.Start; }
  ast::Range from(llvm::SMLoc begin) const { return {begin, lastEnd}; }
  /// Gives `node` its range and its height above `children` (null ones are left
  /// out); null with an error if it is too high.
  ast::ExprPtr finish(std::unique_ptr<ast::Expr> node, llvm::SMLoc begin,
                      llvm::ArrayRef<const ast::Expr *> children = {});

  // Expressions, loosest first.
  ast::ExprPtr parseExpr();
  ast::ExprPtr parseExprIn(ast::Place newPlace);
  ast::ExprPtr parseIf();
  ast::ExprPtr parseLogic(bool isAnd);
  ast::ExprPtr parseNot();
  ast::ExprPtr parseCompare();
  ast::ExprPtr parseSum();
  ast::ExprPtr parseSumIn(ast::Place newPlace);
  ast::ExprPtr parseProduct();
  ast::ExprPtr parseUnary();
  ast::ExprPtr parsePrimary();
  ast::ExprPtr parseBinary(ast::ExprPtr lhs, ast::BinaryOp op,
                           llvm::function_ref<ast::ExprPtr()> parseRight);
  ast::ExprPtr parseNumber();
  std::unique_ptr<ast::StringExpr> parseString();
  ast::ExprPtr parseRead();
  std::unique_ptr<ast::CallExpr> parseCall();
  bool atReduction() const;
  bool isBinderList() const;
  ast::ExprPtr parseReduction();
  ast::ExprPtr failNextLine(llvm::StringRef op);
  ast::ExprPtr parseReduceOperand(ast::ReduceOp op);
  ast::ExprPtr parseTruthOperand();
  ast::ExprPtr parseSoftmax();
  bool parseBinders(std::vector<ast::Binder> &binders);
  ast::ExprPtr parseTable();
  ast::ExprPtr parseRight();

  // Statements.
  bool parseBlock(ast::Block &block);
  bool parseStmt(std::vector<ast::StmtPtr> &out);
  void parseStmtOrRecover(std::vector<ast::StmtPtr> &out);
  bool endStmt();
  bool parseReturn(std::vector<ast::StmtPtr> &out);
  bool parseEquation(std::vector<ast::StmtPtr> &out);
  bool parseStaticIf(std::vector<ast::StmtPtr> &out);
  bool parseFor(std::vector<ast::StmtPtr> &out);
  bool parseScan(std::vector<ast::StmtPtr> &out);
  bool parseWhile(std::vector<ast::StmtPtr> &out);
  bool parseCarried(std::vector<ast::Carried> &state);
  bool parseParams(std::vector<ast::StmtPtr> &out);
  bool parseDims(std::vector<ast::StmtPtr> &out);
  bool parseLets(std::vector<ast::StmtPtr> &out);
  bool parseConsts(std::vector<std::unique_ptr<ast::ConstStmt>> &out);
  bool parseBounds(ast::ExprPtr &lo, ast::ExprPtr &hi);
  bool parseLeft(ast::Left &left);
  bool parseLeftIndex(ast::LeftIndex &index);
  bool atEquation(unsigned ahead = 0) const;
  bool parseTyped(std::vector<ast::Name> &names, ast::TypePtr &type);
  ast::TypePtr parseType();
  template <typename T>
  void push(std::vector<ast::StmtPtr> &out, std::unique_ptr<T> stmt,
            llvm::SMLoc begin) {
    stmt->range = from(begin);
    out.push_back(std::move(stmt));
  }

  // Declarations.
  enum class Owner { Fn, Model, Entry };
  bool parseDecl(ast::File &file);
  bool parsePath(llvm::StringRef &path);
  bool parseFn(ast::File &file);
  bool parseModel(ast::File &file);
  bool parseModelBody(ast::ModelDecl &model);
  bool parseStates(ast::ModelDecl &model);
  bool parseEntry(ast::ModelDecl &model);
  bool settleUntyped(std::vector<ast::Argument> &pending, Owner owner,
                     bool late, std::vector<ast::Argument> &args);
  bool parseStateArguments(std::vector<ast::Argument> &pending, Owner owner,
                           std::vector<ast::Argument> &args);
  bool parseArgument(std::vector<ast::Argument> &pending, Owner owner,
                     bool late, std::vector<ast::Argument> &args);
  bool parseSignature(std::vector<ast::Argument> &args, Owner owner);
  bool checkSignature(llvm::ArrayRef<ast::Argument> args);

  Diagnostics &diags;
  llvm::StringRef endName;
  std::vector<Token> tokens;
  unsigned next = 0;
  llvm::SMLoc lastEnd;
  ast::Place place = ast::Place::Value;
  unsigned depth = 0;
  unsigned reductions = 0; ///< how many operands of reductions we stand in
};

} // namespace heed

#endif // HEED_FRONTEND_HEED_SYNTAX_PARSERCORE_H
