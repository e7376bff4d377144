//===- Grammar.cpp - attention models drawn from a grammar ----------------===//
#include "compiler/Check/Grammar.h"
#include "compiler/Check/Random.h"
#include <vector>

namespace heed::check {

namespace {

class Grammar {
public:
  explicit Grammar(uint64_t number) : random(number), number(number) {}
  DrawnModel draw();

private:
  bool one(int of) { return random.below(of) == 0; }
  std::string pick(const std::vector<std::string> &from) {
    return from[size_t(random.below(int64_t(from.size())))];
  }
  /// Adds an input once.
  void input(const std::string &name, const std::string &type) {
    if (inputs.find(" " + name + ":") == std::string::npos)
      inputs += (inputs.empty() ? " " : ", ") + name + ": " + type;
  }
  void line(const std::string &text) { lines += "  " + text + "\n"; }
  void heads();
  void score();
  std::string dot();
  void maps();
  void masks();
  void normaliser();
  void parts(const std::string &over, const std::string &factor,
             const std::string &result, bool shifted, bool divided,
             bool quotients);

  Random random;
  uint64_t number;
  std::string inputs, lines;
  // Extents; the element of a query, key and value; where an output stands.
  std::string N = "N", M, E, F, q, k, v, out;
  std::string term; ///< what stands around an input's element, "f32("
  std::string mask; ///< empty or a condition
  std::string meaning;
};

void Grammar::heads() {
  M = one(3) ? "N" : "M"; // as many keys as queries, or not
  E = one(5) ? pick({"4", "16", "24", "64"}) : "E";
  F = one(5) ? pick({"4", "16", "24", "64"}) : "F";
  std::string type = one(8) ? pick({"f16", "bf16"}) : "f32";
  term = type == "f32" ? "" : "f32(";
  auto read = [&](const std::string &text) {
    return term.empty() ? text : term + text + ")";
  };
  // One set of keys for each head, for groups of heads, for all heads.
  int sharing = int(random.below(4));
  std::string G = sharing < 2 ? "H" : sharing == 2 ? "G" : "";
  std::string g = sharing < 2 ? "h" : sharing == 2 ? "h*G/H" : "";
  bool inner = one(3); // heads behind the positions
  auto tensor = [&](const std::string &head, const std::string &at,
                    const std::string &width) {
    std::string comma = head.empty() ? "" : head + ", ";
    return inner ? at + ", " + comma + width : comma + at + ", " + width;
  };
  input("q", type + "[B, " + tensor("H", N, E) + "]");
  q = read("q[b, " + tensor("h", "i", "e") + "]");
  if (one(6)) { // keys as columns
    std::string comma = G.empty() ? "" : G + ", ",
                at = g.empty() ? "" : g + ", ";
    input("k", type + "[B, " + comma + E + ", " + M + "]");
    k = read("k[b, " + at + "e, j]");
  } else {
    input("k", type + "[B, " + tensor(G, M, E) + "]");
    k = read("k[b, " + tensor(g, "j", "e") + "]");
  }
  input("v", type + "[B, " + tensor(G, M, F) + "]");
  v = read("v[b, " + tensor(g, "j", "f") + "]");
  if (one(10)) {
    input("relv", "f32[N + " + M + ", " + F + "]");
    v = "(" + v + " + relv[j - i + N, f])";
  }
  out =
      pick({"b, h, i, f", "b, h, i, f", "b, i, h, f", "b, i, h*" + F + " + f"});
}

/// A scaled product of query and key, in one of its spellings.
std::string Grammar::dot() {
  std::string root = "sqrt(" + E + ")";
  switch (random.below(7)) {
  case 0:
    return "sum(e) " + q + " * " + k + " / " + root;
  case 1:
    return "(sum(e) " + q + " * " + k + ") / " + root;
  case 2:
    return "sum(e) (" + q + " / " + root + ") * " + k;
  case 3:
    return "0.125 * (sum(e) " + q + " * " + k + ")";
  case 4:
    line("t[b,h,i,j] = sum(e) " + q + " * " + k);
    return "t[b,h,i,j] / " + root;
  case 5:
    line("z[b,h,i,e] = " + q + " / " + root);
    return "sum(e) z[b,h,i,e] * " + k;
  default:
    return "sum(e) " + k + " * " + q + " * (1 / " + root + ")";
  }
}

void Grammar::score() {
  std::string root = "sqrt(" + E + ")";
  switch (random.below(14)) {
  case 0:
    input("a", "f32[" + E + "]");
    return line("s[b,h,i,j] = sum(e) a[e] * tanh(" + q + " + " + k + ")");
  case 1:
    input("u", "f32[H, " + E + "]");
    return line("s[b,h,i,j] = (sum(e) (" + q + " + u[h,e]) * " + k + ") / " +
                root);
  case 2:
    input("u", "f32[H, " + E + "]");
    input("w", "f32[" + E + "]");
    return line("s[b,h,i,j] = (sum(e) (" + q + " + u[h,e]) * (" + k +
                " + w[e])) / " + root);
  case 3:
    input("qr", "f32[B, H, N, R]");
    input("kr", "f32[B, " + M + ", R]");
    return line("s[b,h,i,j] = (sum(e) " + q + " * " + k +
                ") + (sum(r) qr[b,h,i,r] * kr[b,j,r])");
  case 4:
    input("relk", "f32[N + " + M + ", " + E + "]");
    return line("s[b,h,i,j] = (sum(e) " + q + " * (" + k +
                " + relk[j - i + N, e])) / " + root);
  default: {
    std::string right = dot();
    return line("s[b,h,i,j] = " + right);
  }
  }
}

void Grammar::maps() {
  std::string s = "s[b,h,i,j] = s[b,h,i,j]";
  if (one(6)) {
    input("bias", "f32[H, N, " + M + "]");
    line(s + " + bias[h,i,j]");
  }
  if (one(6)) {
    input("slope", "f32[H]");
    line(s + " - slope[h] * abs(i - j)");
  }
  if (one(6)) {
    input("rel", "f32[N + " + M + ", H]");
    line(s + " + rel[j - i + N, h]");
  }
  if (one(8)) {
    input("side", "f32[B, " + M + "]");
    line(s + " + side[b,j]");
  }
  if (one(5))
    line("s[b,h,i,j] = 5.0 * tanh(s[b,h,i,j] / 5.0)");
}

void Grammar::masks() {
  for (int64_t count = random.below(3); count > 0; --count) {
    std::string condition;
    switch (random.below(8)) {
    case 0:
      condition = "j <= i";
      break;
    case 1:
      condition = "j <= i + (" + M + " - N)";
      break;
    case 2:
      condition = "abs(i - j) <= " + std::to_string(random.below(6));
      break;
    case 3:
      condition = "(i - j) % " + std::to_string(2 + random.below(3)) + " == 0";
      break;
    case 4:
      input("length", "i32[B]");
      condition = "j < length[b]";
      break;
    case 5:
      input("allow", "bool[B, N, " + M + "]");
      condition = "allow[b,i,j]";
      break;
    case 6:
      condition = "j // 4 == i // 4";
      break;
    default:
      condition = "j < " + std::to_string(random.below(9));
    }
    mask += (mask.empty() ? "" : one(2) ? " and " : " or ") + condition;
  }
}

void Grammar::normaliser() {
  std::string s = "s[b,h,i,j]", over = mask.empty() ? "j" : "j where " + mask;
  std::string factor;
  if (one(12)) {
    input("gate", "f32[B, " + M + "]");
    factor = " * gate[b,j]";
  }
  std::string result = "return o[" + out + "] = ";
  int kind = int(random.below(10));
  if (kind == 9 && mask.empty())
    kind = 0;      // a chain of products without a normaliser is no attention
  if (kind >= 7) { // not normalised over the row
    std::string weight = kind == 7   ? "sigmoid(" + s + ")"
                         : kind == 8 ? "relu(" + s + ")"
                                     : s;
    line(result + "sum(" + over + ") " + weight + factor + " * " + v);
    meaning = lines;
    return;
  }
  std::string before = lines, sink;
  if (kind == 6) {
    input("sink", "f32[H]");
    sink = "; sink = sink[h]";
  }
  // What it means.
  line("p[b,h,i,j] = softmax(" + over + sink + ") " + s);
  line(result + "sum(j) p[b,h,i,j]" + factor + " * " + v);
  meaning = lines;
  if (kind < 3 || kind == 6)
    if (mask.empty() || !one(4))
      return;
  // Other spellings: the mask in the score, then softmax or its parts.
  lines = before;
  if (!mask.empty() && one(2)) {
    if (one(2)) {
      line("s[b,h,i,j] = if " + mask + " then " + s + " else -inf");
    } else {
      line("m[b:B, i:N, j:" + M + "] = if " + mask + " then 0.0 else -inf");
      line("s[b,h,i,j] = " + s + " + m[b,i,j]");
    }
    over = "j";
  }
  if (kind < 3 || kind == 6) {
    line("p[b,h,i,j] = softmax(" + over + sink + ") " + s);
    line(result + "sum(j) p[b,h,i,j]" + factor + " * " + v);
    return;
  }
  // The parts written out: rows without a live key are 0 / 0. Raised, a key
  // that is masked in its score is absent, and no exponential overflows.
  bool inScore = !mask.empty() && over == "j", divided = kind == 3;
  std::string spelt = lines;
  lines = before;
  parts(mask.empty() ? "j" : "j where " + mask, factor, result,
        /*shifted=*/true, divided, inScore);
  meaning = lines;
  lines = spelt;
  parts(over, factor, result, kind != 5, divided, /*quotients=*/false);
}

/// Exponentials and their sum; the quotient of each weight, if \p divided, or
/// of the whole sum. With \p quotients the weight of a masked key is 0 / sum,
/// not absent: no number where the sum is 0, and 0 if there are no keys.
void Grammar::parts(const std::string &over, const std::string &factor,
                    const std::string &result, bool shifted, bool divided,
                    bool quotients) {
  std::string s = "s[b,h,i,j]", sum = "sum(" + over + ") ";
  if (shifted)
    line("top[b,h,i] = max(" + over + ") " + s);
  line("x[b,h,i,j] = exp(" + s + (shifted ? " - top[b,h,i]" : "") + ")");
  line("l[b,h,i] = " + sum + "x[b,h,i,j]");
  if (divided && quotients) {
    line(result + "sum(j) (if " + mask + " then x[b,h,i,j] / l[b,h,i]" +
         factor + " * " + v + " else 0.0 / l[b,h,i])");
  } else if (divided) {
    line("p[b,h,i,j] = x[b,h,i,j] / l[b,h,i]");
    line(result + sum + "p[b,h,i,j]" + factor + " * " + v);
  } else {
    line(result + "(" + sum + "x[b,h,i,j]" + factor + " * " + v +
         ") / l[b,h,i]");
  }
}

DrawnModel Grammar::draw() {
  heads();
  score();
  maps();
  masks();
  normaliser();
  std::string head = "# Drawn by heed-check, number " + std::to_string(number) +
                     "\nmodel drawn(" + inputs.substr(1) + ") {\n";
  return {head + lines + "}\n", head + meaning + "}\n"};
}

} // namespace

DrawnModel drawModel(uint64_t number) { return Grammar(number).draw(); }

} // namespace heed::check
