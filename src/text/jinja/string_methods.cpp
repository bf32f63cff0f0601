// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/string_methods.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::int64_t kMaxPadding = 1'000'000;

const std::string& text_of(const Value& self) {
  return *self.string();
}

Value like(Interpreter& run, const Value& self, std::string text) {
  return run.string(std::move(text), self.is_markup());
}

template <Side kSide>
Value strip_method(Interpreter& run, const Value& self, const Arguments& given) {
  const Value* characters = given.get(0, "chars");
  if (characters && run.refuse_undefined(*characters)) return {};
  if (characters && !characters->is_none() && !characters->string())
    return run.type_error("strip arg must be None or str");
  const std::string* given_set = characters ? characters->string() : nullptr;
  const std::string_view cut =
      given_set ? strip(text_of(self), kSide, given_set) : trimmed(text_of(self), kSide);
  return cut.size() == text_of(self).size() ? self : like(run, self, std::string(cut));
}

Value split_spaces(Interpreter& run, const Value& self, std::int64_t limit, bool from_right) {
  std::vector<Value> parts;
  std::string_view rest = text_of(self);
  for (;;) {
    rest = trimmed(rest, from_right ? Side::kRight : Side::kLeft);
    if (rest.empty()) break;
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(like(run, self, std::string(rest)));
      break;
    }
    std::size_t cut = 0;  // bytes of the word
    if (!from_right) {
      while (cut < rest.size()) {
        const DecodedChar next = decode_utf8(rest.substr(cut));
        if (is_python_space(next.code_point)) break;
        cut += static_cast<std::size_t>(next.bytes);
      }
      parts.push_back(like(run, self, std::string(rest.substr(0, cut))));
      rest.remove_prefix(cut);
    } else {
      std::size_t start = 0;
      for (std::size_t i = 0; i < rest.size();) {
        const DecodedChar next = decode_utf8(rest.substr(i));
        i += static_cast<std::size_t>(next.bytes);
        if (is_python_space(next.code_point)) start = i;
      }
      parts.push_back(like(run, self, std::string(rest.substr(start))));
      rest = rest.substr(0, start);
      if (!run.charge_steps(static_cast<std::int64_t>(start) / 16)) break;
    }
    if (!run.charge_steps(1)) break;
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return run.sequence(std::move(parts));
}

template <bool kFromRight>
Value split_method(Interpreter& run, const Value& self, const Arguments& given) {
  const Value* separator = given.get(0, "sep");
  const Value* maximum = given.get(1, "maxsplit");
  std::int64_t limit = -1;
  if (maximum && !maximum->as_int(limit))
    return run.type_error("'" + type_name(*maximum) + "' object cannot be interpreted as an integer");
  if (separator && run.refuse_undefined(*separator)) return {};
  if (!separator || separator->is_none()) return split_spaces(run, self, limit, kFromRight);
  const std::string* by = separator->string();
  if (!by) return run.type_error("must be str or None, not " + type_name(*separator));
  if (by->empty()) return run.fail("ValueError", "empty separator");
  std::vector<Value> parts;
  std::string_view rest = text_of(self);
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t at = kFromRight ? rest.rfind(*by) : rest.find(*by);
    if (at == std::string_view::npos || !run.charge_steps(1)) break;
    parts.push_back(
        like(run, self, std::string(kFromRight ? rest.substr(at + by->size()) : rest.substr(0, at))));
    rest = kFromRight ? rest.substr(0, at) : rest.substr(at + by->size());
  }
  parts.push_back(like(run, self, std::string(rest)));
  if (kFromRight) std::reverse(parts.begin(), parts.end());
  return run.sequence(std::move(parts));
}

template <bool kAtEnd>
Value affix_method(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string name = kAtEnd ? "endswith" : "startswith";
  if (given.positional.empty()) return run.type_error(name + "() takes at least 1 argument (0 given)");
  std::vector<Value> options = {given.positional[0]};
  if (const Sequence* tuple = options[0].sequence(SequenceForm::kTuple))
    options.assign(tuple->items.begin(), tuple->items.end());
  std::string_view text = text_of(self);
  if (given.positional.size() > 1) {
    std::int64_t start = 0;
    if (!given.positional[1].as_int(start)) return run.type_error("slice indices must be integers or None");
    const std::u32string wide = to_code_points(text);
    if (start < 0) start = std::max<std::int64_t>(0, start + static_cast<std::int64_t>(wide.size()));
    if (start > static_cast<std::int64_t>(wide.size())) return false;
    std::size_t bytes = to_utf8(wide.substr(0, static_cast<std::size_t>(start))).size();
    text.remove_prefix(bytes);
  }
  for (const Value& option : options) {
    if (run.refuse_undefined(option)) return {};
    const std::string* affix = option.string();
    if (!affix)
      return run.type_error(name + " first arg must be str or a tuple of str, not " + type_name(option));
    if (kAtEnd ? text.ends_with(*affix) : text.starts_with(*affix)) return true;
  }
  return false;
}

// The only argument as a string; fails otherwise.
const std::string* one_string(Interpreter& run, const Arguments& given, const char* method) {
  if (given.positional.empty()) {
    run.type_error(std::string(method) + "() takes exactly one argument (0 given)");
    return nullptr;
  }
  if (run.refuse_undefined(given.positional[0])) return nullptr;
  const std::string* text = given.positional[0].string();
  if (!text)
    run.type_error(std::string(method) + "() argument must be str, not " + type_name(given.positional[0]));
  return text;
}

Value replace_method(Interpreter& run, const Value& self, const Arguments& given) {
  if (given.positional.size() < 2)
    return run.type_error("replace expected at least 2 arguments, got " +
                          std::to_string(given.positional.size()));
  for (std::size_t i = 0; i < 2; ++i) {
    if (run.refuse_undefined(given.positional[i])) return {};
    if (!given.positional[i].string())
      return run.type_error("replace() argument " + std::to_string(i + 1) + " must be str, not " +
                            type_name(given.positional[i]));
  }
  std::int64_t count = -1;
  if (const Value* limit = given.get(2, "count"); limit && !limit->as_int(count))
    return run.type_error("'" + type_name(*limit) + "' object cannot be interpreted as an integer");
  const std::string& from = *given.positional[0].string();
  const std::string& to = *given.positional[1].string();
  const std::size_t most = text_of(self).size() / std::max<std::size_t>(from.size(), 1) + 1;
  if (!run.charge_bytes(text_of(self).size() + most * (to.size() > from.size() ? to.size() : 0))) return {};
  return like(run, self, replaced(text_of(self), from, to, count));
}

template <bool kFromRight>
Value find_method(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string* part = one_string(run, given, "find");
  if (!part) return {};
  const std::size_t at = kFromRight ? text_of(self).rfind(*part) : text_of(self).find(*part);
  if (at == std::string::npos) return -1;
  return static_cast<std::int64_t>(num_code_points(std::string_view(text_of(self)).substr(0, at)));
}

Value index_method(Interpreter& run, const Value& self, const Arguments& given) {
  Value at = find_method<false>(run, self, given);
  if (!run.failed() && at.equals(Value(-1))) return run.fail("ValueError", "substring not found");
  return at;
}

Value count_method(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string* part = one_string(run, given, "count");
  if (!part) return {};
  if (part->empty()) return static_cast<std::int64_t>(num_code_points(text_of(self)) + 1);
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = text_of(self).find(*part, at)) != std::string::npos; at += part->size())
    ++count;
  return count;
}

Value join_method(Interpreter& run, const Value& self, const Arguments& given) {
  if (given.positional.size() != 1) return run.type_error("str.join() takes exactly one argument");
  std::string out;
  std::int64_t index = 0;
  for (const Value& part : run.iterate(given.positional[0])) {
    const std::string* text = part.string();
    if (!text)
      return run.type_error("sequence item " + std::to_string(index) + ": expected str instance, " +
                            type_name(part) + " found");
    if (index++) out += text_of(self);
    out += *text;
    if (!run.charge_bytes(text->size() + text_of(self).size())) return {};
  }
  return like(run, self, std::move(out));
}

template <bool kAtEnd>
Value remove_affix(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string* affix = one_string(run, given, kAtEnd ? "removesuffix" : "removeprefix");
  if (!affix) return {};
  std::string_view text = text_of(self);
  if (kAtEnd ? text.ends_with(*affix) : text.starts_with(*affix))
    text = kAtEnd ? text.substr(0, text.size() - affix->size()) : text.substr(affix->size());
  return like(run, self, std::string(text));
}

template <bool kFromRight>
Value partition_method(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string* by = one_string(run, given, "partition");
  if (!by) return {};
  if (by->empty()) return run.fail("ValueError", "empty separator");
  const std::string& text = text_of(self);
  const std::size_t at = kFromRight ? text.rfind(*by) : text.find(*by);
  if (at == std::string::npos)
    return kFromRight ? make_tuple({Value(""), Value(""), self}) : make_tuple({self, Value(""), Value("")});
  return make_tuple({like(run, self, text.substr(0, at)), like(run, self, *by),
                     like(run, self, text.substr(at + by->size()))});
}

template <std::string (*kChange)(std::string_view)>
Value case_method(Interpreter& run, const Value& self, const Arguments&) {
  return like(run, self, kChange(text_of(self)));
}

template <bool (*kIs)(char32_t)>
Value all_method(Interpreter&, const Value& self, const Arguments&) {
  const std::u32string text = to_code_points(text_of(self));
  return !text.empty() && std::all_of(text.begin(), text.end(), kIs);
}

template <bool (*kWanted)(char32_t), bool (*kOther)(char32_t)>
Value cased_method(Interpreter&, const Value& self, const Arguments&) {
  const std::u32string text = to_code_points(text_of(self));
  return std::any_of(text.begin(), text.end(), kWanted) && std::none_of(text.begin(), text.end(), kOther);
}

bool is_alphanumeric(char32_t c) {
  return is_alphabetic(c) || is_decimal(c);
}

// ljust, rjust, center, zfill.
template <char kAlign>
Value pad_method(Interpreter& run, const Value& self, const Arguments& given) {
  std::int64_t width = 0;
  if (given.positional.empty() || !given.positional[0].as_int(width))
    return run.type_error("width must be an integer");
  std::string fill = kAlign == '0' ? "0" : " ";
  if (given.positional.size() > 1 && given.positional[1].string()) fill = *given.positional[1].string();
  if (num_code_points(fill) != 1)
    return run.type_error("The fill character must be exactly one character long");
  const auto size = static_cast<std::int64_t>(num_code_points(text_of(self)));
  const std::int64_t missing = std::max<std::int64_t>(0, width - size);
  if (missing > kMaxPadding) return run.fail("LimitError", "padding is too wide");
  if (!run.charge_bytes(static_cast<std::size_t>(missing) * fill.size())) return {};
  std::int64_t before = kAlign == 'l' ? 0 : kAlign == 'c' ? missing / 2 + (missing & width & 1) : missing;
  std::string text = text_of(self), left, right;
  if (kAlign == '0' && (text.starts_with('-') || text.starts_with('+'))) {
    left = text.substr(0, 1);
    text.erase(0, 1);
  }
  for (std::int64_t i = 0; i < before; ++i) left += fill;
  for (std::int64_t i = before; i < missing; ++i) right += fill;
  return like(run, self, left + text + right);
}

Value splitlines_method(Interpreter& run, const Value& self, const Arguments& given) {
  const Value* keep = given.get(0, "keepends");
  if (keep && keep->is_true()) return run.fail("LimitError", "splitlines(keepends=True) is not supported");
  std::vector<Value> lines;
  for (std::string& line : split_lines(text_of(self))) lines.push_back(like(run, self, std::move(line)));
  return run.sequence(std::move(lines));
}

struct Entry {
  std::string_view name;
  Function function;
};

constexpr std::array kMethods = {
    Entry{"capitalize", case_method<capitalize>},
    Entry{"casefold", case_method<to_lower>},
    Entry{"center", pad_method<'c'>},
    Entry{"count", count_method},
    Entry{"endswith", affix_method<true>},
    Entry{"find", find_method<false>},
    Entry{"format", brace_format},
    Entry{"index", index_method},
    Entry{"isalnum", all_method<is_alphanumeric>},
    Entry{"isalpha", all_method<is_alphabetic>},
    Entry{"isdecimal", all_method<is_decimal>},
    Entry{"isdigit", all_method<is_decimal>},
    Entry{"islower", cased_method<is_lower, is_upper>},
    Entry{"isnumeric", all_method<is_decimal>},
    Entry{"isspace", all_method<is_python_space>},
    Entry{"isupper", cased_method<is_upper, is_lower>},
    Entry{"join", join_method},
    Entry{"ljust", pad_method<'l'>},
    Entry{"lower", case_method<to_lower>},
    Entry{"lstrip", strip_method<Side::kLeft>},
    Entry{"partition", partition_method<false>},
    Entry{"removeprefix", remove_affix<false>},
    Entry{"removesuffix", remove_affix<true>},
    Entry{"replace", replace_method},
    Entry{"rfind", find_method<true>},
    Entry{"rjust", pad_method<'r'>},
    Entry{"rpartition", partition_method<true>},
    Entry{"rsplit", split_method<true>},
    Entry{"rstrip", strip_method<Side::kRight>},
    Entry{"split", split_method<false>},
    Entry{"splitlines", splitlines_method},
    Entry{"startswith", affix_method<false>},
    Entry{"strip", strip_method<Side::kBoth>},
    Entry{"title", case_method<to_title>},
    Entry{"upper", case_method<to_upper>},
    Entry{"zfill", pad_method<'0'>},
};

}  // namespace

Function string_method(std::string_view name) {
  for (const Entry& entry : kMethods)
    if (entry.name == name) return entry.function;
  return nullptr;
}

std::string_view trimmed(std::string_view text, Side side) {
  const auto is_blank = [](char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
  };
  const auto is_wide = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (side != Side::kRight) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    if (!text.empty() && is_wide(text.front())) return strip(text, side);
  }
  if (side != Side::kLeft) {
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    if (!text.empty() && is_wide(text.back())) return strip(text, side);
  }
  return text;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to, std::int64_t count) {
  std::string out;
  if (from.empty()) {
    while (count != 0) {
      out += to;
      if (count > 0) --count;
      if (text.empty()) return out;
      const auto bytes = static_cast<std::size_t>(decode_utf8(text).bytes);
      out += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
    return out += text;
  }
  for (; count != 0; count -= count > 0 ? 1 : 0) {
    const std::size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::string line;
  bool has_open_line = false;
  for (std::size_t i = 0; i < text.size();) {
    const DecodedChar next = decode_utf8(text.substr(i));
    const char32_t c = next.code_point;
    const auto bytes = static_cast<std::size_t>(next.bytes);
    if ((c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029) {
      lines.push_back(std::exchange(line, {}));
      has_open_line = false;
      i += bytes;
      if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
      continue;
    }
    line += text.substr(i, bytes);
    has_open_line = true;
    i += bytes;
  }
  if (has_open_line) lines.push_back(std::move(line));
  return lines;
}

}  // namespace plimsoll::text::jinja
