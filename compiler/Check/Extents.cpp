//===- Extents.cpp - the text of an extent, "2*R+1", and what it is worth -===//
#include "compiler/Check/Extents.h"
#include <algorithm>
#include <cctype>

namespace heed::check {

namespace {

struct Expression {
  const std::string &text;
  std::map<std::string, int64_t> &dims;
  const std::function<int64_t(const std::string &)> &draw;
  size_t at = 0;
  bool good = true;

  char peek() {
    while (at < text.size() && text[at] == ' ')
      ++at;
    return at < text.size() ? text[at] : '\0';
  }
  bool accept(char c) {
    if (peek() != c)
      return false;
    ++at;
    return true;
  }
  int64_t bracket() {
    int64_t value = sum();
    good &= accept(')');
    return value;
  }
  int64_t factor() {
    if (accept('('))
      return bracket();
    if (accept('-'))
      return -factor();
    size_t start = at;
    while (at < text.size() && (isalnum(text[at]) || text[at] == '_'))
      ++at;
    std::string word = text.substr(start, at - start);
    if (word.empty() || word.size() > 60) {
      good = false;
      return 0;
    }
    if (isdigit(word[0])) {
      good &= word.find_first_not_of("0123456789") == std::string::npos &&
              word.size() <= 18;
      return good ? std::stoll(word) : 0;
    }
    if ((word == "min" || word == "max") && accept('(')) {
      int64_t a = sum();
      good &= accept(',');
      int64_t b = bracket();
      return word == "min" ? std::min(a, b) : std::max(a, b);
    }
    if (word == "ilog2" && accept('(')) {
      int64_t value = bracket(), result = 0;
      good &= value > 0;
      for (; good && value > 1; value /= 2)
        ++result;
      return result;
    }
    auto found = dims.find(word);
    return found != dims.end() ? found->second : dims[word] = draw(word);
  }
  int64_t product() {
    int64_t value = factor();
    while (good) {
      if (accept('*')) {
        value *= factor();
        continue;
      }
      if (!accept('/'))
        break;
      accept('/');
      int64_t other = factor();
      if (other > 0)
        value = value >= 0 ? value / other : -((-value + other - 1) / other);
      else
        good = false;
    }
    return value;
  }
  int64_t sum() {
    int64_t value = product();
    while (good && (peek() == '+' || peek() == '-'))
      value += text[at++] == '+' ? product() : -product();
    return value;
  }
};

} // namespace

std::optional<int64_t>
evaluateExtent(const std::string &text, std::map<std::string, int64_t> &dims,
               const std::function<int64_t(const std::string &)> &draw) {
  Expression expression{text, dims, draw};
  int64_t value = expression.sum();
  if (!expression.good || expression.peek() || value < 0)
    return std::nullopt;
  return value;
}

} // namespace heed::check
