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
  if (characters && !characters->is_none() && !characters->string())
    return run.type_error(std::string(kSide == Side::kBoth   ? ""
                                      : kSide == Side::kLeft ? "l"
                                                             : "r") +
                          "strip arg must be None or str");
  const std::string* given_set = characters ? characters->string() : nullptr;
  if (given_set && !run.charge_steps(strip_cost(*given_set))) return {};
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
  if (!separator || separator->is_none()) return split_spaces(run, self, limit, kFromRight);
  const std::string* by = separator->string();
  if (!by) return run.type_error("must be str or None, not " + type_name(*separator));
  if (by->empty()) return run.fail("ValueError", "empty separator");
  if (kFromRight && !charge_backwards(run, text_of(self), *by)) return {};
  std::vector<Value> parts;
  std::string_view rest = text_of(self);
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t at = kFromRight ? rest.rfind(*by) : find_text(rest, *by);
    if (at == std::string_view::npos || !run.charge_steps(1)) break;
    parts.push_back(
        like(run, self, std::string(kFromRight ? rest.substr(at + by->size()) : rest.substr(0, at))));
    rest = kFromRight ? rest.substr(0, at) : rest.substr(at + by->size());
  }
  parts.push_back(like(run, self, std::string(rest)));
  if (kFromRight) std::reverse(parts.begin(), parts.end());
  return run.sequence(std::move(parts));
}

Value replace_method(Interpreter& run, const Value& self, const Arguments& given) {
  if (given.positional.size() < 2)
    return run.type_error("replace expected at least 2 arguments, got " +
                          std::to_string(given.positional.size()));
  for (std::size_t i = 0; i < 2; ++i) {
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
    if (!run.charge_steps(1) || !run.charge_bytes(text->size() + text_of(self).size()) ||
        !run.allows_length(out.size()))
      return {};
  }
  return like(run, self, std::move(out));
}

template <bool kAtEnd>
Value remove_affix(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string* affix = one_string(
      run, given, "",
      kAtEnd ? "removesuffix() argument must be str, not " : "removeprefix() argument must be str, not ");
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
  if (kFromRight && !charge_backwards(run, text, *by)) return {};
  const std::size_t at = kFromRight ? text.rfind(*by) : find_text(text, *by);
  if (at == std::string::npos)
    return kFromRight ? make_tuple({Value(""), Value(""), self}) : make_tuple({self, Value(""), Value("")});
  return make_tuple({like(run, self, text.substr(0, at)), like(run, self, *by),
                     like(run, self, text.substr(at + by->size()))});
}

template <std::string (*kChange)(std::string_view)>
Value case_method(Interpreter& run, const Value& self, const Arguments&) {
  return like(run, self, kChange(text_of(self)));
}

// ljust, rjust, center, zfill.
template <char kAlign>
Value pad_method(Interpreter& run, const Value& self, const Arguments& given) {
  std::int64_t width = 0;
  if (given.positional.empty() || !given.positional[0].as_int(width))
    return run.type_error(given.positional.empty() ? "expected at least 1 argument, got 0"
                                                   : "'" + type_name(given.positional[0]) +
                                                         "' object cannot be interpreted as an integer");
  if (given.positional.size() > 1 && !given.positional[1].is_string())
    return run.type_error("The fill character must be a unicode character, not " +
                          type_name(given.positional[1]));
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
  std::int64_t keeps_ends = 0;
  if (const Value* keep = given.get(0, "keepends"); keep && !keep->as_int(keeps_ends))
    return run.type_error("'" + type_name(*keep) + "' object cannot be interpreted as an integer");
  if (!run.charge_bytes(most_lines(text_of(self)) * sizeof(std::string))) return {};
  std::vector<Value> lines;
  for (std::string& line : split_lines(text_of(self), keeps_ends != 0)) {
    lines.push_back(like(run, self, std::move(line)));
    if (run.failed()) return {};
  }
  return run.sequence(std::move(lines));
}

Value expandtabs_method(Interpreter& run, const Value& self, const Arguments& given) {
  std::int64_t size = 8, column = 0;
  if (const Value* tab = given.get(0, "tabsize"); tab && !tab->as_int(size))
    return run.type_error("'" + type_name(*tab) + "' object cannot be interpreted as an integer");
  if (size > kMaxPadding) return run.fail("LimitError", "tabs are too wide");
  std::string out;
  for (const char c : text_of(self)) {
    if (c == '\t') {
      const std::int64_t blanks = size > 0 ? size - column % size : 0;
      if (!run.charge_bytes(static_cast<std::size_t>(blanks))) return {};
      out.append(static_cast<std::size_t>(blanks), ' ');
      column += blanks;
      continue;
    }
    out += c;
    const bool is_new_line = c == '\n' || c == '\r';
    column = is_new_line ? 0 : column + ((static_cast<unsigned char>(c) & 0xC0u) != 0x80u ? 1 : 0);
  }
  return like(run, self, std::move(out));
}

constexpr std::array kMethods = {
    MethodEntry{"capitalize", case_method<capitalize>, Arity::kNone},
    MethodEntry{"casefold", case_method<fold_case>, Arity::kNone},
    MethodEntry{"center", pad_method<'c'>},
    MethodEntry{"expandtabs", expandtabs_method},
    MethodEntry{"format", brace_format},
    MethodEntry{"join", join_method, Arity::kOne},
    MethodEntry{"ljust", pad_method<'l'>},
    MethodEntry{"lower", case_method<to_lower>, Arity::kNone},
    MethodEntry{"lstrip", strip_method<Side::kLeft>, Arity::kAtMostOne},
    MethodEntry{"partition", partition_method<false>, Arity::kOne},
    MethodEntry{"removeprefix", remove_affix<false>, Arity::kOne},
    MethodEntry{"removesuffix", remove_affix<true>, Arity::kOne},
    MethodEntry{"replace", replace_method},
    MethodEntry{"rjust", pad_method<'r'>},
    MethodEntry{"rpartition", partition_method<true>, Arity::kOne},
    MethodEntry{"rsplit", split_method<true>, Arity::kAtMostTwo},
    MethodEntry{"rstrip", strip_method<Side::kRight>, Arity::kAtMostOne},
    MethodEntry{"split", split_method<false>, Arity::kAtMostTwo},
    MethodEntry{"splitlines", splitlines_method},
    MethodEntry{"strip", strip_method<Side::kBoth>, Arity::kAtMostOne},
    MethodEntry{"swapcase", case_method<swap_case>, Arity::kNone},
    MethodEntry{"title", case_method<to_title>, Arity::kNone},
    MethodEntry{"upper", case_method<to_upper>, Arity::kNone},
    MethodEntry{"zfill", pad_method<'0'>, Arity::kOne},
};

}  // namespace

Method string_method(std::string_view name) {
  for (const MethodEntry& entry : kMethods)
    if (entry.name == name) return {entry.function, entry.arity};
  return string_question(name);
}

}  // namespace plimsoll::text::jinja
