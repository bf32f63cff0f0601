// SPDX-License-Identifier: Apache-2.0
// Follows jinja2 3.1.6 lexer.py: the order of its rules decides, so the same order is kept here.
#include "text/jinja/lexer.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/jinja/string_methods.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(normalize_newlines(source)) {}

  std::vector<Token> run() {
    while (at_ < text_.size() && !has_failed_) root();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  bool at(std::string_view expected, std::size_t position) const {
    return text_.compare(position, expected.size(), expected) == 0;
  }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_, column()}); }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }
  void fail(std::string message) {
    if (!has_failed_) add(TokenKind::kError, std::move(message));
    has_failed_ = true;
    at_ = text_.size();
  }
  void advance(std::size_t to) {
    for (; at_ < to; ++at_)
      if (text_[at_] == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      }
    if (to > 0) line_starting_ = text_[to - 1] == '\n';
  }
  std::size_t skip_spaces(std::size_t position) const {
    const std::string_view rest = std::string_view(text_).substr(position);
    return text_.size() - trimmed(rest, Side::kLeft).size();
  }

  // The text before a tag loses white space: all of it after '-', the blanks of its last line before a
  // block.
  std::string_view trimmed_before(std::string_view data, char sign, bool is_variable) const {
    if (sign == '-') return trimmed(data, Side::kRight);
    if (sign == '+' || is_variable) return data;
    const std::size_t newline = data.rfind('\n');
    const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    if (start == 0 && !line_starting_) return data;
    return trimmed(data.substr(start), Side::kBoth).empty() ? data.substr(0, start) : data;
  }

  // End of a block or comment whose closing mark starts at `position` (after its sign): "%}" and, unless '+',
  // one newline; after '-' all white space.
  std::size_t after_end(std::size_t position, char sign, bool trims_newline) const {
    position += 2;
    if (sign == '-') return skip_spaces(position);
    if (sign != '+' && trims_newline && position < text_.size() && text_[position] == '\n') ++position;
    return position;
  }

  void root() {
    std::size_t open = at_;
    while ((open = text_.find('{', open)) != std::string::npos && !at("{{", open) && !at("{%", open) &&
           !at("{#", open))
      ++open;
    if (open == std::string::npos) {
      add(TokenKind::kData, text_.substr(at_));
      advance(text_.size());
      return;
    }
    const char mark = text_[open + 1];
    const char next = open + 2 < text_.size() ? text_[open + 2] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    const std::string data(
        trimmed_before(std::string_view(text_).substr(at_, open - at_), sign, mark == '{'));
    if (!data.empty()) add(TokenKind::kData, data);
    advance(open);
    std::size_t inside = open + (sign ? 3 : 2);
    if (mark == '#') return comment(inside);
    if (mark == '%') {
      if (const std::size_t raw = raw_begin(inside); raw != 0) return raw_block(raw);
      add(TokenKind::kBlockBegin, "{%");
      advance(inside);
      return code(TokenKind::kBlockEnd);
    }
    add(TokenKind::kVariableBegin, "{{");
    advance(inside);
    code(TokenKind::kVariableEnd);
  }

  void comment(std::size_t inside) {
    if (inside == text_.size()) return advance(inside);  // nothing to find an end for
    const std::size_t end = text_.find("#}", inside);
    if (end == std::string::npos) return fail("Missing end of comment tag");
    const char sign = end > inside ? text_[end - 1] : '\0';
    advance(after_end(end, sign == '-' || sign == '+' ? sign : '\0', true));
  }

  // Position after "{% raw %}", or 0 when this is no raw tag.
  std::size_t raw_begin(std::size_t inside) const {
    std::size_t position = skip_spaces(inside);
    if (!at("raw", position)) return 0;
    position = skip_spaces(position + 3);
    if (at("-%}", position)) return skip_spaces(position + 3);
    return at("%}", position) ? position + 2 : 0;
  }

  void raw_block(std::size_t inside) {
    advance(inside);
    if (inside == text_.size()) return;
    for (std::size_t open = inside; (open = text_.find("{%", open)) != std::string::npos; ++open) {
      char sign = open + 2 < text_.size() ? text_[open + 2] : '\0';
      sign = sign == '-' || sign == '+' ? sign : '\0';
      std::size_t position = skip_spaces(open + (sign ? 3 : 2));
      if (!at("endraw", position)) continue;
      position = skip_spaces(position + 6);
      char end_sign = position < text_.size() ? text_[position] : '\0';
      end_sign = end_sign == '-' || end_sign == '+' ? end_sign : '\0';
      if (end_sign) ++position;
      if (!at("%}", position)) continue;
      const std::string data(
          trimmed_before(std::string_view(text_).substr(inside, open - inside), sign, false));
      if (!data.empty()) add(TokenKind::kData, data);
      return advance(after_end(position, end_sign, true));
    }
    fail("Missing end of raw directive");
  }

  // Tokens up to the closing mark of this kind.
  void code(TokenKind end) {
    const std::string_view mark = end == TokenKind::kBlockEnd ? "%}" : "}}";
    std::string balance;  // closing brackets that are due
    while (at_ < text_.size()) {
      if (balance.empty()) {
        const char sign = text_[at_];
        const bool has_sign = sign == '-' || (sign == '+' && end == TokenKind::kBlockEnd);
        if (const std::size_t start = at_ + (has_sign ? 1 : 0); at(mark, start)) {
          add(end, std::string(mark));
          return advance(after_end(start, has_sign ? sign : '\0', end == TokenKind::kBlockEnd));
        }
      }
      if (const std::size_t next = skip_spaces(at_); next != at_)
        advance(next);
      else
        token(balance);
    }
  }

  void token(std::string& balance) {
    const char c = text_[at_];
    if (is_digit(c)) return number();
    if (is_name_byte(c)) {
      std::size_t end = at_;
      while (end < text_.size() && is_name_byte(text_[end])) ++end;
      add(TokenKind::kName, text_.substr(at_, end - at_));
      return advance(end);
    }
    if (c == '"' || c == '\'') return string(c);
    operator_token(balance);
  }

  // Digits with single underscores between them; returns the position after them.
  std::size_t digits(std::size_t position) const {
    while (position < text_.size() &&
           (is_digit(text_[position]) ||
            (text_[position] == '_' && position + 1 < text_.size() && is_digit(text_[position + 1]))))
      ++position;
    return position;
  }

  // "0x1f": digits of another base, or 0 when this is none.
  std::size_t based_number_end() const {
    static constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
    if (text_[at_] != '0' || at_ + 2 >= text_.size()) return 0;
    const char base = text_[at_ + 1];
    const std::string_view allowed = base == 'x' || base == 'X'   ? kDigits
                                     : base == 'o' || base == 'O' ? kDigits.substr(0, 8)
                                     : base == 'b' || base == 'B' ? kDigits.substr(0, 2)
                                                                  : std::string_view();
    std::size_t end = at_ + 2;
    const auto is_digit_at = [&](std::size_t i) {
      return i < text_.size() && allowed.find(text_[i]) != std::string_view::npos;
    };
    while (is_digit_at(end) || (end < text_.size() && text_[end] == '_' && is_digit_at(end + 1))) ++end;
    return end > at_ + 2 ? end : 0;
  }

  void number() {
    if (const std::size_t end = based_number_end(); end != 0) {
      std::string text = text_.substr(at_, end - at_);
      std::erase(text, '_');
      add(TokenKind::kInteger, std::move(text));
      return advance(end);
    }
    std::size_t end = digits(at_);
    bool is_float = false;
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';
    if (!after_dot && end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
      is_float = true;
      end = digits(end + 1);
    }
    if (!after_dot && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        is_float = true;
        end = digits(exponent);
      }
    }
    if (!is_float && text_[at_] == '0') {  // a leading zero stands with zeros only
      std::size_t zeros = at_ + 1;
      while (zeros < end && (text_[zeros] == '0' || (text_[zeros] == '_' && text_[zeros + 1] == '0')))
        ++zeros;
      end = zeros;
    }
    std::string text = text_.substr(at_, end - at_);
    std::erase(text, '_');
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(text));
    advance(end);
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size())
      return fail("unexpected char " + std::string(quote == '"' ? "'\"'" : "\"'\"") + " at " +
                  std::to_string(num_code_points(std::string_view(text_).substr(0, at_))));
    std::string value;
    if (!unescape(std::string_view(text_).substr(at_ + 1, end - at_ - 1), value))
      return fail("truncated \\xXX escape");
    add(TokenKind::kString, std::move(value));
    advance(end + 1);
  }

  static bool hex_escape(std::string_view body, std::size_t& i, std::size_t length, std::string& out) {
    if (i + length > body.size()) return false;
    char32_t code = 0;
    for (std::size_t k = 0; k < length; ++k) {
      const char c = body[i + k];
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return false;
      code = code * 16 + static_cast<char32_t>(digit);
    }
    if (code > 0x10FFFF) return false;
    append_utf8(out, code >= 0xD800 && code < 0xE000 ? kReplacementCharacter : code);
    i += length;
    return true;
  }

  // Python's unicode-escape codec.
  static bool unescape(std::string_view body, std::string& out) {
    static constexpr std::string_view kPlain = "\\'\"abfnrtv";
    static constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    for (std::size_t i = 0; i < body.size();) {
      if (body[i] != '\\' || i + 1 >= body.size()) {
        out += body[i++];
        continue;
      }
      const char c = body[i + 1];
      i += 2;
      if (c == '\n') continue;
      if (const std::size_t plain = kPlain.find(c); plain != std::string_view::npos) {
        out += kMeaning[plain];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        if (!hex_escape(body, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, out)) return false;
      } else if (c >= '0' && c <= '7') {
        char32_t code = static_cast<char32_t>(c - '0');
        for (int k = 0; k < 2 && i < body.size() && body[i] >= '0' && body[i] <= '7'; ++k)
          code = code * 8 + static_cast<char32_t>(body[i++] - '0');
        append_utf8(out, code);
      } else {
        out += '\\';
        out += c;
      }
    }
    return true;
  }

  void operator_token(std::string& balance) {
    static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!at(op, at_)) continue;
      const char c = op[0];
      if (c == '(' || c == '[' || c == '{') balance += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (balance.empty()) return fail("unexpected '" + std::string(op) + "'");
        if (balance.back() != c)
          return fail("unexpected '" + std::string(op) + "', expected '" + balance.back() + "'");
        balance.pop_back();
      }
      add(TokenKind::kOperator, std::string(op));
      return advance(at_ + op.size());
    }
    fail("unexpected char '" + std::string(1, text_[at_]) + "' at " +
         std::to_string(num_code_points(std::string_view(text_).substr(0, at_))));
  }

  std::string text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
  bool has_failed_ = false;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace plimsoll::text::jinja
