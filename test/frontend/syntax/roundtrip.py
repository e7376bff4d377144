# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_src %heed_bin/heedc %t
"""The printed tree says all that the file says: written as source again, with every pair of parentheses, it parses to
the same tree. For all models, the library, the examples of the reference and the files of the front end's tests."""
import glob
import os
import re
import sys

from runs import expect, finish, run

source, heedc, folder = sys.argv[1:]


class Reader:
    """Reads the tree and gives source."""

    def __init__(self, text):
        spaced = [m.group() for m in re.finditer(r'"(?:[^"{]|\{[^}]*\})*"|==|!=|<=|>=|\.\.|\(|\)|\[|\]|:|,|=|[^\s()\[\]:=,"]+', text)]
        self.tokens, self.at = spaced, 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def next(self, want=None):
        token = self.peek()
        assert want in (None, token), f"expected {want}, found {token} before {self.tokens[self.at:self.at + 8]}"
        self.at += 1
        return token

    def until(self, end, read):
        items = []
        while self.peek() != end:
            items.append(read())
            if self.peek() == ",":
                self.next()
        self.next(end)
        return items

    def string(self):
        return re.sub(r"\{([^}]*)\}", lambda m: "{" + Reader(m[1]).expr() + "}", self.next())

    def binders(self):
        def one():
            name = self.next()
            return name + (":" + self.expr() if self.peek() == ":" and self.next() else "")
        self.next("[")
        text = ", ".join(self.until("]", one))
        for key, before in (("where", " where "), ("sink", "; sink = ")):
            if self.peek() == "(" and self.peek(1) == key:
                self.next(), self.next()
                text += before + self.expr()
                self.next(")")
        return text

    def expr(self):
        if self.peek() != "(":
            return self.string() if self.peek().startswith('"') else self.next()
        self.next("(")
        head = self.next()
        if head == "read":
            return f"{self.next()}[{', '.join(self.until(')', self.expr))}]"
        if head == "call":
            def argument():
                named = self.peek(1) == "="
                return (self.next() + self.next() if named else "") + self.expr()
            return f"{self.next()}({', '.join(self.until(')', argument))})"
        if head in ("sum", "max", "min", "mean", "prod", "any", "all", "argmax", "softmax", "log_softmax", "sparsemax", "entmax15"):
            text = f"({head}({self.binders()}) ({self.expr()}))"
        elif head == "concat":
            index = self.binders()
            return f"concat({index})({', '.join(self.until(')', self.expr))})"
        elif head == "table":
            return f"[{', '.join(self.until(')', self.expr))}]"
        elif head == "if":
            text = f"(if {self.expr()} then {self.expr()} else {self.expr()})"
        elif head == "compare":
            text = "(" + " ".join(self.until(")", lambda: self.next() if self.peek() in ("==", "!=", "<", "<=", ">", ">=") else self.expr())) + ")"
            return text
        elif head == "neg":
            text = f"(-{self.expr()})"
        elif head == "not":
            text = f"(not {self.expr()})"
        else:
            text = f"({self.expr()} {head.split('@')[0]} {self.expr()})"
        self.next(")")
        return text

    def shaped(self):
        """A type, or a left side."""
        def item():
            text = self.expr()
            return text + (":" + self.expr() if self.peek() == ":" and self.next() else "")
        text = "" if self.peek() == "[" else self.next()
        return text + (f"[{', '.join(self.until(']', item))}]" if self.peek() == "[" and self.next() else "")

    def block(self):
        lines = []
        while self.peek() not in (")", "else"):
            lines.append(self.statement())
        return "{\n" + "\n".join(lines) + "\n}"

    def carried(self):
        text = ""
        while self.peek() == "(" and self.peek(1) == "carry":
            self.next(), self.next()
            text += f", {self.next()}: {self.shaped()} = {self.expr()}"
            self.next(")")
        return text

    def equation(self):
        self.next("=")
        text = f"{self.shaped()} = {self.expr()}"
        if self.peek() == "where":
            self.next("where")
            text += f" where {self.expr()}"
        return text

    def statement(self):
        self.next("(")
        if self.peek() == "=":
            text = self.equation()
        else:
            head = self.next()
            if head == "bind":
                self.next("[")
                text = ", ".join(self.until("]", self.next)) + " = " + self.expr()
            elif head == "return":
                def result():
                    if self.peek() == "(" and self.peek(1) == "=":
                        self.next()
                        text = self.equation()
                        self.next(")")
                        return text
                    return self.expr()
                return "return " + ", ".join(self.until(")", result))
            elif head == "param":
                text = f"param {self.next()}: {self.shaped()}"
                names = self.until(")", self.string)
                return text + (" @ " + " | ".join(names) if names else "")
            elif head in ("dim", "const"):
                text = f"{head} {self.next()} = {self.expr()}"
            elif head == "let":
                text = f"let {self.next()}: {self.shaped()}"
            elif head == "for":
                text = f"for {self.next()} in {self.expr()}..{self.expr()} {self.block()}"
            elif head == "if":
                text = f"if {self.expr()} {self.block()}"
                if self.peek() == "else":
                    self.next()
                    text += f" else {self.block()}"
            elif head == "scan":
                text = f"scan {self.next()} in {self.expr()}..{self.expr()}{self.carried()} {self.block()}"
            elif head == "while":
                text = f"while {self.expr()}{self.carried()} {self.block()}"
            else:
                assert head == "do", head
                text = self.expr()
        self.next(")")
        return text

    def signature(self):
        parts = {"input": [], "option": [], "changed": []}
        while self.peek() == "(" and self.peek(1) in parts:
            self.next()
            kind, text = self.next(), self.next()
            if self.peek() == ":":
                self.next()
                text += ": " + self.shaped()
            if self.peek() == "=":
                self.next()
                text += " = " + self.expr()
            self.next(")")
            parts["option" if kind == "option" else "input"].append("state " * (kind == "changed") + text)
        return "(" + ", ".join(parts["input"]) + ("; " + ", ".join(parts["option"]) if parts["option"] else "") + ")"

    def declaration(self):
        self.next("(")
        head = self.next()
        if head in ("import", "config"):
            text = f"{head} {self.next()}"
            self.until(")", self.statement)
            return text
        if head == "const":
            text = f"const {self.next()} = {self.expr()}"
        elif head == "fn":
            text = f"fn {self.next()}{self.signature()} {self.block()}"
        else:
            text = f"model {self.next()}"
            signature, lines = self.signature(), []
            while self.peek() == "(" and self.peek(1) == "state":
                self.next(), self.next()
                lines.append(f"state {self.next()}: {self.shaped()}")
                if self.peek() != ")":
                    lines[-1] += f" = {self.expr()}"
                self.next(")")
            while self.peek() == "(" and self.peek(1) != "entry":
                lines.append(self.statement())
            while self.peek() == "(":
                self.next(), self.next()
                entry, results = f"entry {self.next()}{self.signature()}", []
                while self.peek() == "(" and self.peek(1) == "result":
                    self.next(), self.next()
                    results.append(self.shaped())
                    self.next(")")
                lines.append(entry + (" -> " + ", ".join(results) if results else "") + " " + self.block())
                self.next(")")
            later = any(line.startswith(("state ", "entry ")) for line in lines)
            text += ("" if later and signature == "()" else signature) + " {\n" + "\n".join(lines) + "\n}"
        self.next(")")
        return text

    def file(self):
        lines = []
        while self.peek():
            lines.append(self.declaration())
        return "\n".join(lines) + "\n"


def tree(path, beside):
    return run(heedc, "--emit=ast", "-I", beside, "--model-dir", beside, "-o", "-", path)


def check(path, beside, what):
    first = tree(path, beside)
    if first.returncode:
        return 0  # wrong on purpose
    again = os.path.join(folder, "again.heed")
    with open(again, "w") as file:
        file.write(Reader(first.stdout).file())
    second = tree(again, beside)
    expect(second.stdout == first.stdout, f"{what}:\n{first.stdout}\n{open(again).read()}\n{second.stderr}{second.stdout}")
    return 1


count = 0
for top in ("models", "frontend/Heed/lib", "test/frontend"):
    for path in sorted(glob.glob(os.path.join(source, top, "**/*.heed"), recursive=True)):
        count += check(path, os.path.dirname(path), path)
document = os.path.join(source, "docs/language.md")
for k, example in enumerate(re.findall(r"^```heed(?:-error|-warning)?\n(.*?)^```", open(document).read(), re.S | re.M)):
    path = os.path.join(folder, "example.heed")
    with open(path, "w") as file:
        file.write(example)
    count += check(path, folder, f"{document}, example {k}")
print(count, "files")
expect(count > 120, f"only {count} files were read")
finish()
