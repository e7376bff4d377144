//===- Grammar.cpp - attention models drawn from a grammar
//------------------===//
#include "compiler/Check/Grammar.h"
#include "compiler/Check/Random.h"
#include <vector>

namespace heed::check {

std::string drawModel(uint64_t seed) {
  Random random(seed);
  auto one = [&](int of) { return random.below(of) == 0; };
  std::string head = one(3) ? "h*G/H" : "h";
  std::string G = head == "h" ? "H" : "G";
  bool self = one(3); // as many keys as queries
  std::string M = self ? "N" : "M";
  std::string inputs = "q: f32[B, H, N, E], k: f32[B, " + G + ", " + M +
                       ", E], v: f32[B, " + G + ", " + M + ", F]";
  std::string lines;

  // The first term, then others, each an equation of its own or none.
  switch (random.below(5)) {
  case 0:
    inputs += ", a: f32[E]";
    lines += "  s[b,h,i,j] = sum(e) a[e] * tanh(q[b,h,i,e] + k[b," + head +
             ",j,e])\n";
    break;
  case 1:
    inputs += ", u: f32[H, E]";
    lines += "  s[b,h,i,j] = (sum(e) (q[b,h,i,e] + u[h,e]) * k[b," + head +
             ",j,e]) / sqrt(E)\n";
    break;
  case 2:
    lines += "  s[b,h,i,j] = sum(e) (q[b,h,i,e] / sqrt(E)) * k[b," + head +
             ",j,e]\n";
    break;
  default:
    lines +=
        "  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b," + head + ",j,e] / sqrt(E)\n";
  }
  if (one(5)) {
    inputs += ", bias: f32[H, N, " + M + "]";
    lines += "  s[b,h,i,j] = s[b,h,i,j] + bias[h,i,j]\n";
  }
  if (one(5)) {
    inputs += ", slope: f32[H]";
    lines += "  s[b,h,i,j] = s[b,h,i,j] - slope[h] * abs(i - j)\n";
  }
  if (one(5)) {
    inputs += ", rel: f32[N + " + M + ", H]";
    lines += "  s[b,h,i,j] = s[b,h,i,j] + rel[j - i + N, h]\n";
  }
  if (one(4))
    lines += "  s[b,h,i,j] = 5.0 * tanh(s[b,h,i,j] / 5.0)\n";

  std::vector<std::string> masks;
  for (int count = random.below(3); count > 0; --count)
    switch (random.below(7)) {
    case 0:
      masks.push_back("j <= i");
      break;
    case 1:
      masks.push_back("j <= i + (" + M + " - N)");
      break;
    case 2:
      masks.push_back("abs(i - j) <= " + std::to_string(random.below(6)));
      break;
    case 3:
      masks.push_back("(i - j) % " + std::to_string(2 + random.below(3)) +
                      " == 0");
      break;
    case 4:
      if (inputs.find("length") == std::string::npos)
        inputs += ", length: i32[B]";
      masks.push_back("j < length[b]");
      break;
    case 5:
      if (inputs.find("allow") == std::string::npos)
        inputs += ", allow: bool[B, N, " + M + "]";
      masks.push_back("allow[b,i,j]");
      break;
    default:
      masks.push_back("j < " + std::to_string(random.below(9)));
    }
  std::string where;
  for (size_t k = 0; k < masks.size(); ++k)
    where += (k == 0 ? " where " : one(2) ? " and " : " or ") + masks[k];

  std::string value = "v[b," + head + ",j,f]", result;
  switch (random.below(6)) {
  case 0: // not normalised over the row
    lines += "  return o[b,h,i,f] = sum(j" + where +
             ") sigmoid(s[b,h,i,j]) * " + value + "\n";
    break;
  case 1:
    inputs += ", sink: f32[H]";
    lines +=
        "  p[b,h,i,j] = softmax(j" + where + "; sink = sink[h]) s[b,h,i,j]\n";
    lines += "  return o[b,h,i,f] = sum(j) p[b,h,i,j] * " + value + "\n";
    break;
  default:
    lines += "  p[b,h,i,j] = softmax(j" + where + ") s[b,h,i,j]\n";
    lines += "  return o[b,h,i,f] = sum(j) p[b,h,i,j] * " + value + "\n";
  }
  return "# Drawn by heed-check --random, seed " + std::to_string(seed) +
         "\nmodel drawn(" + inputs + ") {\n" + lines + "}\n";
}

} // namespace heed::check
