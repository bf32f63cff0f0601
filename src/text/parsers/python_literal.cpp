// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/python_literal.h"

#include <cstdint>

#include "base/json.h"
#include "base/utf8.h"
#include "text/parsers/argument_types.h"
#include "text/parsers/markers.h"

namespace plimsoll::text {
namespace {

constexpr int kMaxDepth = 64;  // arguments nest a few levels; the recursion below is bounded by it

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<std::string> read() {
    if (!value(0)) return std::nullopt;
    skip_blanks();
    if (at_ != text_.size()) return std::nullopt;
    return std::move(out_);
  }

 private:
  void skip_blanks() { at_ += num_leading_blanks(text_.substr(at_)); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    skip_blanks();
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  bool value(int depth) {
    skip_blanks();
    if (depth > kMaxDepth) return false;
    const char c = peek();
    if (c == '[') return sequence(depth, ']');
    if (c == '(') return sequence(depth, ')');
    if (c == '{') return dict(depth);
    if (c == '"' || c == '\'') return string();
    if (is_digit(c) || c == '-' || c == '+' || c == '.') return number();
    return constant();
  }

  bool sequence(int depth, char close) {
    ++at_;
    out_ += '[';
    bool is_first = true;
    while (!take(close)) {
      if (!is_first) out_ += ", ";
      is_first = false;
      if (!value(depth + 1)) return false;
      if (take(',')) continue;
      if (!take(close)) return false;
      break;
    }
    out_ += ']';
    return true;
  }

  bool dict(int depth) {
    ++at_;
    out_ += '{';
    bool is_first = true;
    while (!take('}')) {
      if (!is_first) out_ += ", ";
      is_first = false;
      skip_blanks();
      if (!key(depth + 1) || !take(':')) return false;
      out_ += ": ";
      if (!value(depth + 1)) return false;
      if (take(',')) continue;
      if (!take('}')) return false;
      break;
    }
    out_ += '}';
    return true;
  }

  /// JSON's keys are strings: other scalars are written within quotes, as Python's json does.
  bool key(int depth) {
    const char c = peek();
    if (c == '[' || c == '(' || c == '{') return false;
    if (c == '"' || c == '\'') return string();
    out_ += '"';
    if (!value(depth)) return false;
    out_ += '"';
    return true;
  }

  bool constant() {
    static constexpr struct {
      std::string_view python, json;
    } kConstants[] = {{"None", "null"}, {"True", "true"}, {"False", "false"},
                      {"null", "null"}, {"true", "true"}, {"false", "false"}};
    for (const auto& row : kConstants) {
      if (!text_.substr(at_).starts_with(row.python)) continue;
      at_ += row.python.size();
      out_ += row.json;
      return true;
    }
    return false;
  }

  bool number() {
    if (peek() == '+' || peek() == '-') {
      if (peek() == '-') out_ += '-';
      ++at_;
    }
    const std::size_t start = at_;
    while (is_digit(peek())) ++at_;
    std::string_view whole = text_.substr(start, at_ - start);
    if (whole.size() > 1 && whole.front() == '0' && peek() != '.') return false;
    while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
    std::string_view fraction;
    if (peek() == '.') {
      const std::size_t from = ++at_;
      while (is_digit(peek())) ++at_;
      fraction = text_.substr(from, at_ - from);
      if (whole.empty() && fraction.empty()) return false;
      out_ += whole.empty() ? "0" : whole;
      out_ += '.';
      out_ += fraction.empty() ? "0" : fraction;
    } else {
      if (whole.empty()) return false;
      out_ += whole;
    }
    if (peek() != 'e' && peek() != 'E') return true;
    out_ += 'e';
    ++at_;
    if (peek() == '+' || peek() == '-') out_ += text_[at_++];
    if (!is_digit(peek())) return false;
    while (is_digit(peek())) out_ += text_[at_++];
    return true;
  }

  bool string() {
    const char quote = peek();
    ++at_;
    std::string decoded;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        decoded += text_[at_++];
      } else if (!escape(decoded)) {
        return false;
      }
    }
    if (at_ == text_.size()) return false;
    ++at_;
    out_ += json_string(decoded);
    return true;
  }

  bool escape(std::string& decoded) {
    ++at_;
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    static constexpr std::string_view kFrom = "ntrbfav0\\'\"";
    static constexpr std::string_view kTo("\n\t\r\b\f\a\v\0\\'\"", 11);
    if (const auto found = kFrom.find(c); found != std::string_view::npos) {
      decoded += kTo[found];
      return true;
    }
    if (c == '\n') return true;  // a continued line
    const int num_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (num_digits == 0) {  // Python keeps what it does not know
      decoded += '\\';
      decoded += c;
      return true;
    }
    std::uint32_t code_point = 0;
    if (!hex(num_digits, code_point)) return false;
    // Models write JSON's surrogate pairs in Python strings too.
    std::uint32_t low = 0;
    if (code_point >= 0xD800 && code_point < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      if (!hex(4, low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return false;
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) return false;
    append_utf8(decoded, static_cast<char32_t>(code_point));
    return true;
  }

  bool hex(int num_digits, std::uint32_t& value) {
    for (int i = 0; i < num_digits; ++i, ++at_) {
      const int digit = hex_value(peek());
      if (digit < 0) return false;
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> python_literal_to_json(std::string_view text) {
  return Reader(text).read();
}

}  // namespace plimsoll::text
