//===- Grammar.cpp - attention models drawn from a grammar ----------------===//
#include "compiler/Check/Grammar.h"
#include "compiler/Check/Random.h"
#include "support/Format.h"
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
    if (inputs.find(format(" {}:", name)) == std::string::npos)
      inputs += format("{}{}: {}", inputs.empty() ? " " : ", ", name, type);
  }
  template <typename... Parts>
  void line(fmt::format_string<Parts...> text, Parts &&...parts) {
    lines += format("  {}\n", format(text, std::forward<Parts>(parts)...));
  }
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
    return term.empty() ? text : format("{}{})", term, text);
  };
  // One set of keys for each head, for groups of heads, for all heads.
  int sharing = int(random.below(4));
  std::string G = sharing < 2 ? "H" : sharing == 2 ? "G" : "";
  std::string g = sharing < 2 ? "h" : sharing == 2 ? "h*G/H" : "";
  bool inner = one(3); // heads behind the positions
  auto tensor = [&](const std::string &head, const std::string &at,
                    const std::string &width) {
    std::string comma = head.empty() ? "" : format("{}, ", head);
    return inner ? format("{}, {}{}", at, comma, width)
                 : format("{}{}, {}", comma, at, width);
  };
  input("q", format("{}[B, {}]", type, tensor("H", N, E)));
  q = read(format("q[b, {}]", tensor("h", "i", "e")));
  if (one(6)) { // keys as columns
    std::string comma = G.empty() ? "" : format("{}, ", G),
                at = g.empty() ? "" : format("{}, ", g);
    input("k", format("{}[B, {}{}, {}]", type, comma, E, M));
    k = read(format("k[b, {}e, j]", at));
  } else {
    input("k", format("{}[B, {}]", type, tensor(G, M, E)));
    k = read(format("k[b, {}]", tensor(g, "j", "e")));
  }
  input("v", format("{}[B, {}]", type, tensor(G, M, F)));
  v = read(format("v[b, {}]", tensor(g, "j", "f")));
  if (one(10)) {
    input("relv", format("f32[N + {}, {}]", M, F));
    v = format("({} + relv[j - i + N, f])", v);
  }
  out = pick(
      {"b, h, i, f", "b, h, i, f", "b, i, h, f", format("b, i, h*{} + f", F)});
}

/// A scaled product of query and key, in one of its spellings.
std::string Grammar::dot() {
  std::string root = format("sqrt({})", E);
  switch (random.below(7)) {
  case 0:
    return format("sum(e) {} * {} / {}", q, k, root);
  case 1:
    return format("(sum(e) {} * {}) / {}", q, k, root);
  case 2:
    return format("sum(e) ({} / {}) * {}", q, root, k);
  case 3:
    return format("0.125 * (sum(e) {} * {})", q, k);
  case 4:
    line("t[b,h,i,j] = sum(e) {} * {}", q, k);
    return format("t[b,h,i,j] / {}", root);
  case 5:
    line("z[b,h,i,e] = {} / {}", q, root);
    return format("sum(e) z[b,h,i,e] * {}", k);
  default:
    return format("sum(e) {} * {} * (1 / {})", k, q, root);
  }
}

void Grammar::score() {
  std::string root = format("sqrt({})", E);
  switch (random.below(14)) {
  case 0:
    input("a", format("f32[{}]", E));
    return line("s[b,h,i,j] = sum(e) a[e] * tanh({} + {})", q, k);
  case 1:
    input("u", format("f32[H, {}]", E));
    return line("s[b,h,i,j] = (sum(e) ({} + u[h,e]) * {}) / {}", q, k, root);
  case 2:
    input("u", format("f32[H, {}]", E));
    input("w", format("f32[{}]", E));
    return line("s[b,h,i,j] = (sum(e) ({} + u[h,e]) * ({} + w[e])) / {}", q, k,
                root);
  case 3:
    input("qr", "f32[B, H, N, R]");
    input("kr", format("f32[B, {}, R]", M));
    return line(
        "s[b,h,i,j] = (sum(e) {} * {}) + (sum(r) qr[b,h,i,r] * kr[b,j,r])", q,
        k);
  case 4:
    input("relk", format("f32[N + {}, {}]", M, E));
    return line("s[b,h,i,j] = (sum(e) {} * ({} + relk[j - i + N, e])) / {}", q,
                k, root);
  default: {
    std::string right = dot();
    return line("s[b,h,i,j] = {}", right);
  }
  }
}

void Grammar::maps() {
  std::string s = "s[b,h,i,j] = s[b,h,i,j]";
  if (one(6)) {
    input("bias", format("f32[H, N, {}]", M));
    line("{} + bias[h,i,j]", s);
  }
  if (one(6)) {
    input("slope", "f32[H]");
    line("{} - slope[h] * abs(i - j)", s);
  }
  if (one(6)) {
    input("rel", format("f32[N + {}, H]", M));
    line("{} + rel[j - i + N, h]", s);
  }
  if (one(8)) {
    input("side", format("f32[B, {}]", M));
    line("{} + side[b,j]", s);
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
      condition = format("j <= i + ({} - N)", M);
      break;
    case 2:
      condition = format("abs(i - j) <= {}", random.below(6));
      break;
    case 3:
      condition = format("(i - j) % {} == 0", 2 + random.below(3));
      break;
    case 4:
      input("length", "i32[B]");
      condition = "j < length[b]";
      break;
    case 5:
      input("allow", format("bool[B, N, {}]", M));
      condition = "allow[b,i,j]";
      break;
    case 6:
      condition = "j // 4 == i // 4";
      break;
    default:
      condition = format("j < {}", random.below(9));
    }
    mask += (mask.empty() ? "" : one(2) ? " and " : " or ") + condition;
  }
}

void Grammar::normaliser() {
  std::string s = "s[b,h,i,j]",
              over = mask.empty() ? "j" : format("j where {}", mask);
  std::string factor;
  if (one(12)) {
    input("gate", format("f32[B, {}]", M));
    factor = " * gate[b,j]";
  }
  std::string result = format("return o[{}] = ", out);
  int kind = int(random.below(10));
  if (kind == 9 && mask.empty())
    kind = 0;      // a chain of products without a normaliser is no attention
  if (kind >= 7) { // not normalised over the row
    std::string weight = kind == 7   ? format("sigmoid({})", s)
                         : kind == 8 ? format("relu({})", s)
                                     : s;
    line("{}sum({}) {}{} * {}", result, over, weight, factor, v);
    meaning = lines;
    return;
  }
  std::string before = lines, sink;
  if (kind == 6) {
    input("sink", "f32[H]");
    sink = "; sink = sink[h]";
  }
  // What it means.
  line("p[b,h,i,j] = softmax({}{}) {}", over, sink, s);
  line("{}sum(j) p[b,h,i,j]{} * {}", result, factor, v);
  meaning = lines;
  if (kind < 3 || kind == 6)
    if (mask.empty() || !one(4))
      return;
  // Other spellings: the mask in the score, then softmax or its parts.
  lines = before;
  if (!mask.empty() && one(2)) {
    if (one(2)) {
      line("s[b,h,i,j] = if {} then {} else -inf", mask, s);
    } else {
      line("m[b:B, i:N, j:{}] = if {} then 0.0 else -inf", M, mask);
      line("s[b,h,i,j] = {} + m[b,i,j]", s);
    }
    over = "j";
  }
  if (kind < 3 || kind == 6) {
    line("p[b,h,i,j] = softmax({}{}) {}", over, sink, s);
    line("{}sum(j) p[b,h,i,j]{} * {}", result, factor, v);
    return;
  }
  // The parts written out: rows without a live key are 0 / 0. Raised, a key
  // that is masked in its score is absent, and no exponential overflows.
  bool inScore = !mask.empty() && over == "j", divided = kind == 3;
  std::string spelt = lines;
  lines = before;
  parts(mask.empty() ? "j" : format("j where {}", mask), factor, result,
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
  std::string s = "s[b,h,i,j]", sum = format("sum({}) ", over);
  if (shifted)
    line("top[b,h,i] = max({}) {}", over, s);
  line("x[b,h,i,j] = exp({}{})", s, shifted ? " - top[b,h,i]" : "");
  line("l[b,h,i] = {}x[b,h,i,j]", sum);
  if (divided && quotients) {
    line("{}sum(j) (if {} then x[b,h,i,j] / l[b,h,i]{} * {} else 0.0 / "
         "l[b,h,i])",
         result, mask, factor, v);
  } else if (divided) {
    line("p[b,h,i,j] = x[b,h,i,j] / l[b,h,i]");
    line("{}{}p[b,h,i,j]{} * {}", result, sum, factor, v);
  } else {
    line("{}({}x[b,h,i,j]{} * {}) / l[b,h,i]", result, sum, factor, v);
  }
}

DrawnModel Grammar::draw() {
  heads();
  score();
  maps();
  masks();
  normaliser();
  std::string head =
      format("# Drawn by heed-check, number {}\nmodel drawn({}) {{\n", number,
             inputs.substr(1));
  return {format("{}{}}}\n", head, lines), format("{}{}}}\n", head, meaning)};
}

} // namespace

DrawnModel drawModel(uint64_t number) { return Grammar(number).draw(); }

} // namespace heed::check
