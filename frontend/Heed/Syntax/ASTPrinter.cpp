//===- ASTPrinter.cpp - The syntax tree as text ---------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ASTPrinter.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace heed;
using namespace heed::ast;
using llvm::raw_ostream;
using llvm::StringRef;

namespace {
class Printer {
public:
  explicit Printer(raw_ostream &os) : os(os) {}
  void print(const File &file);
  void print(const Expr &expr);

private:
  void print(const FnDecl &fn);
  void print(const ModelDecl &model);
  void print(const Argument &arg);
  void print(const Block &block);
  void print(const Stmt &stmt);
  void print(const Type &type);
  void print(const Left &left);
  void print(const Carried &carried);
  void real(double value);
  void binders(llvm::ArrayRef<Binder> list, const Expr *where);
  void arguments(llvm::ArrayRef<Argument> args);
  /// " (key expr)", or nothing for null.
  void optional(StringRef key, const Expr *expr);
  raw_ostream &line() { return (os << '\n').indent(2 * indent); }

  raw_ostream &os;
  unsigned indent = 0;
};
} // namespace

/// The shortest decimal that reads back as the same f64.
void Printer::real(double value) {
  if (std::isinf(value)) {
    os << (value < 0 ? "-inf" : "inf");
    return;
  }
  char buffer[32];
  for (int digits = 6; digits <= 17; ++digits) {
    snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
    if (strtod(buffer, nullptr) == value)
      break;
  }
  os << buffer;
  if (!StringRef(buffer).contains_insensitive('e') &&
      !StringRef(buffer).contains('.'))
    os << ".0";
}

void Printer::optional(StringRef key, const Expr *expr) {
  if (!expr)
    return;
  os << " (" << key << ' ';
  print(*expr);
  os << ')';
}

void Printer::binders(llvm::ArrayRef<Binder> list, const Expr *where) {
  os << " [";
  llvm::interleave(
      list,
      [&](const Binder &binder) {
        os << binder.name.text;
        if (binder.extent) {
          os << ':';
          print(*binder.extent);
        }
      },
      [&] { os << ' '; });
  os << ']';
  optional("where", where);
}

/// Long: one kind of expression after the other.
void Printer::print(const Expr &expr) {
  llvm::TypeSwitch<const Expr *>(&expr)
      .Case([&](const IntExpr *e) { os << e->value; })
      .Case([&](const RealExpr *e) { real(e->value); })
      .Case([&](const BoolExpr *e) { os << (e->value ? "true" : "false"); })
      .Case([&](const NoneExpr *) { os << "none"; })
      .Case([&](const StringExpr *e) {
        os << '"';
        for (const StringExpr::Part &part : e->parts) {
          if (!part.expr) {
            os << part.text;
            continue;
          }
          os << '{';
          print(*part.expr);
          os << '}';
        }
        os << '"';
      })
      .Case([&](const NameExpr *e) { os << e->name; })
      .Case([&](const ReadExpr *e) {
        os << "(read " << e->name.text;
        for (const Index &index : e->indices) {
          os << ' ';
          if (index.isDots())
            os << "..";
          else
            print(*index.expr);
        }
        os << ')';
      })
      .Case([&](const CallExpr *e) {
        os << "(call " << e->callee.text;
        for (const ExprPtr &arg : e->args) {
          os << ' ';
          print(*arg);
        }
        for (const NamedArgument &arg : e->named) {
          os << ' ' << arg.name.text << '=';
          print(*arg.value);
        }
        os << ')';
      })
      .Case([&](const ParenExpr *e) { print(*e->inner); })
      .Case([&](const NegateExpr *e) {
        os << "(neg ";
        print(*e->operand);
        os << ')';
      })
      .Case([&](const NotExpr *e) {
        os << "(not ";
        print(*e->operand);
        os << ')';
      })
      .Case([&](const BinaryExpr *e) {
        os << '(' << spelling(e->op);
        // What `/` means hangs on its place.
        if (e->op == BinaryOp::Div && e->place != Place::Value)
          os << (e->place == Place::Index ? "@index"
                 : e->place == Place::Dim ? "@dim"
                                          : "@static");
        os << ' ';
        print(*e->lhs);
        os << ' ';
        print(*e->rhs);
        os << ')';
      })
      .Case([&](const CompareExpr *e) {
        os << "(compare ";
        print(*e->operands[0]);
        for (size_t k = 0; k < e->ops.size(); ++k) {
          os << ' ' << spelling(e->ops[k]) << ' ';
          print(*e->operands[k + 1]);
        }
        os << ')';
      })
      .Case([&](const LogicExpr *e) {
        os << (e->isAnd ? "(and " : "(or ");
        print(*e->lhs);
        os << ' ';
        print(*e->rhs);
        os << ')';
      })
      .Case([&](const IfExpr *e) {
        os << "(if ";
        print(*e->condition);
        os << ' ';
        print(*e->thenValue);
        os << ' ';
        print(*e->elseValue);
        os << ')';
      })
      .Case([&](const ReduceExpr *e) {
        os << '(' << spelling(e->op);
        binders(e->binders, e->where.get());
        os << ' ';
        print(*e->operand);
        os << ')';
      })
      .Case([&](const SoftmaxExpr *e) {
        os << '(' << e->name;
        binders(e->binders, e->where.get());
        optional("sink", e->sink.get());
        os << ' ';
        print(*e->operand);
        os << ')';
      })
      .Case([&](const ConcatExpr *e) {
        os << "(concat [" << e->index.text << ']';
        for (const ExprPtr &part : e->parts) {
          os << ' ';
          print(*part);
        }
        os << ')';
      })
      .Case([&](const RecordExpr *e) {
        os << "(record";
        for (const RecordExpr::Entry &entry : e->entries) {
          os << " (" << entry.path << ' ';
          print(*entry.value);
          os << ')';
        }
        os << ')';
      })
      .Case([&](const TableExpr *e) {
        os << "(table";
        for (const ExprPtr &row : e->rows) {
          os << ' ';
          print(*row);
        }
        os << ')';
      });
}

void Printer::print(const Type &type) {
  if (type.element)
    os << spelling(*type.element);
  if (!type.hasExtents)
    return;
  os << '[';
  llvm::interleaveComma(type.extents, os, [&](const Extent &extent) {
    if (extent.isDots())
      os << "..";
    else
      print(*extent.extent);
  });
  os << ']';
}

void Printer::print(const Left &left) {
  os << left.name.text;
  if (!left.hasIndices)
    return;
  os << '[';
  llvm::interleaveComma(left.indices, os, [&](const LeftIndex &index) {
    switch (index.kind) {
    case LeftIndex::Dots:
      os << "..";
      break;
    case LeftIndex::Affine:
      print(*index.expr);
      break;
    case LeftIndex::Plain:
      os << index.name.text;
      if (index.extent) {
        os << ':';
        print(*index.extent);
      }
    }
  });
  os << ']';
}

void Printer::print(const Carried &carried) {
  os << " (carry " << carried.name.text << ' ';
  print(*carried.type);
  os << ' ';
  print(*carried.init);
  os << ')';
}

void Printer::print(const Block &block) {
  ++indent;
  for (const StmtPtr &stmt : block.stmts) {
    line();
    print(*stmt);
  }
  --indent;
}

/// Long: one kind of statement after the other.
void Printer::print(const Stmt &stmt) {
  os << '(';
  llvm::TypeSwitch<const Stmt *>(&stmt)
      .Case([&](const EquationStmt *s) {
        os << "= ";
        print(s->left);
        os << ' ';
        print(*s->right);
        if (s->where) {
          os << " where ";
          print(*s->where);
        }
      })
      .Case([&](const BindStmt *s) {
        os << "bind [";
        llvm::interleave(
            s->names, [&](const Name &name) { os << name.text; },
            [&] { os << ' '; });
        os << "] ";
        print(*s->right);
      })
      .Case([&](const ReturnStmt *s) {
        os << "return";
        for (const Result &result : s->results) {
          os << ' ';
          if (result.left) {
            os << "(= ";
            print(*result.left);
            os << ' ';
          }
          print(*result.right);
          if (result.left)
            os << ')';
        }
      })
      .Case([&](const ParamStmt *s) {
        os << "param " << s->name.text << ' ';
        print(*s->type);
        for (const auto &file : s->files) {
          os << ' ';
          print(*file);
        }
      })
      .Case([&](const DimStmt *s) {
        os << "dim " << s->name.text << ' ';
        print(*s->value);
      })
      .Case([&](const LetStmt *s) {
        os << "let " << s->name.text << ' ';
        print(*s->type);
      })
      .Case([&](const ConstStmt *s) {
        os << "const " << s->name.text << ' ';
        print(*s->value);
      })
      .Case([&](const ForStmt *s) {
        os << "for " << s->var.text << ' ';
        print(*s->lo);
        os << ' ';
        print(*s->hi);
        print(s->body);
      })
      .Case([&](const IfStmt *s) {
        os << "if ";
        print(*s->condition);
        print(s->thenBlock);
        if (!s->hasElse)
          return;
        line() << "else";
        print(s->elseBlock);
      })
      .Case([&](const ScanStmt *s) {
        os << "scan " << s->var.text << ' ';
        print(*s->lo);
        os << ' ';
        print(*s->hi);
        for (const Carried &carried : s->state)
          print(carried);
        print(s->body);
      })
      .Case([&](const WhileStmt *s) {
        os << "while ";
        print(*s->condition);
        for (const Carried &carried : s->state)
          print(carried);
        print(s->body);
      })
      .Case([&](const CallStmt *s) {
        os << "do ";
        print(*s->call);
      });
  os << ')';
}

void Printer::print(const Argument &arg) {
  os << arg.name.text;
  if (arg.type) {
    os << ": ";
    print(*arg.type);
  }
  if (arg.defaultValue) {
    os << " = ";
    print(*arg.defaultValue);
  }
}

void Printer::arguments(llvm::ArrayRef<Argument> args) {
  ++indent;
  for (const Argument &arg : args) {
    line() << (arg.afterSemicolon ? "(option "
               : arg.isState      ? "(changed "
                                  : "(input ");
    print(arg);
    os << ')';
  }
  --indent;
}

void Printer::print(const FnDecl &fn) {
  os << "(fn " << fn.name.text;
  arguments(fn.args);
  print(fn.body);
  os << ")\n";
}

void Printer::print(const ModelDecl &model) {
  os << "(model " << model.name.text;
  arguments(model.args);
  ++indent;
  for (const StateDecl &state : model.states) {
    line() << "(state " << state.name.text << ' ';
    print(*state.type);
    if (state.start) {
      os << ' ';
      print(*state.start);
    }
    os << ')';
  }
  --indent;
  print(model.body);
  ++indent;
  for (const EntryDecl &entry : model.entries) {
    line() << "(entry " << entry.name.text;
    arguments(entry.args);
    ++indent;
    for (const TypePtr &type : entry.results) {
      line() << "(result ";
      print(*type);
      os << ')';
    }
    --indent;
    print(entry.body);
    os << ')';
  }
  --indent;
  os << ")\n";
}

void Printer::print(const File &file) {
  for (const ImportDecl &decl : file.imports)
    os << "(import \"" << decl.path << "\")\n";
  for (const ConfigDecl &decl : file.configs) {
    os << "(config \"" << decl.path << '"';
    ++indent;
    for (const auto &value : decl.values) {
      line();
      print(*value);
    }
    --indent;
    os << ")\n";
  }
  for (const auto &decl : file.consts) {
    print(*decl);
    os << '\n';
  }
  for (const auto &decl : file.fns)
    print(*decl);
  for (const auto &decl : file.models)
    print(*decl);
}

void heed::printAST(const File &file, raw_ostream &os) {
  Printer(os).print(file);
}

void heed::printAST(const Expr &expr, raw_ostream &os) {
  Printer(os).print(expr);
}
