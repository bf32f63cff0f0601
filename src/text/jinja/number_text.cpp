// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/number_text.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

// Without white space around it, in lower case, digits of any script as ASCII ones; nothing when other
// characters are inside, which no number has.
std::optional<std::string> ascii_number(std::string_view text) {
  std::string out;
  for (const char32_t c : to_code_points(strip(text, Side::kBoth))) {
    if (c < 0x80)
      out += static_cast<char>(c >= U'A' && c <= U'Z' ? c - U'A' + U'a' : c);
    else if (is_decimal(c))
      out += static_cast<char>('0' + decimal_value(c));
    else
      return std::nullopt;
  }
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_digit_or_letter(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z');
}

// Takes single underscores out; false when one is not between two digits.
bool drop_underscores(std::string& text, bool (*is_one)(char)) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '_' && (i == 0 || i + 1 == text.size() || !is_one(text[i - 1]) || !is_one(text[i + 1])))
      return false;
  std::erase(text, '_');
  return true;
}

char take_sign(std::string& text) {
  const char sign = text.empty() || (text[0] != '-' && text[0] != '+') ? '\0' : text[0];
  if (sign) text.erase(0, 1);
  return sign;
}

int base_of_prefix(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 10;
  return text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : text[1] == 'b' ? 2 : 10;
}

// digits [. digits] [e [sign] digits], with some digit before the exponent.
bool is_float(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t start = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - start;
  };
  std::size_t count = digits();
  if (at < text.size() && text[at] == '.') ++at, count += digits();
  if (count == 0) return false;
  if (at < text.size() && text[at] == 'e') {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

}  // namespace

WholeText whole_of_text(std::string_view text, std::int64_t base) {
  auto digits = ascii_number(text);
  if (!digits || base < 0 || base == 1 || base > 36) return {};
  const bool is_negative = take_sign(*digits) == '-';
  const int prefix = base_of_prefix(*digits);
  const bool has_prefix = prefix != 10 && (base == 0 || base == prefix);
  if (has_prefix) {
    digits->erase(0, 2);
    if (digits->starts_with('_')) digits->erase(0, 1);
  }
  if (!drop_underscores(*digits, is_digit_or_letter) || digits->empty() || (*digits)[0] == '-') return {};
  if (base == 0 && !has_prefix && digits->size() > 1 && (*digits)[0] == '0' &&
      digits->find_first_not_of('0') != std::string::npos)
    return {};  // Python takes "010" for a mistake
  const int radix = base == 0 ? prefix : static_cast<int>(base);
  if (is_negative) digits->insert(0, 1, '-');
  WholeText found;
  const char* last = digits->data() + digits->size();
  const auto [end, error] = std::from_chars(digits->data(), last, found.value, radix);
  found.is_valid = end == last && error != std::errc::invalid_argument;
  found.fits = error == std::errc{};
  return found;
}

std::optional<double> float_of_text(std::string_view text) {
  auto digits = ascii_number(text);
  if (!digits) return std::nullopt;
  const double sign = take_sign(*digits) == '-' ? -1 : 1;
  if (*digits == "inf" || *digits == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (*digits == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (!drop_underscores(*digits, is_digit) || !is_float(*digits)) return std::nullopt;
  return sign * std::strtod(digits->c_str(), nullptr);
}

}  // namespace plimsoll::text::jinja
