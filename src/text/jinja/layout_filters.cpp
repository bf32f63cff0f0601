// SPDX-License-Identifier: Apache-2.0
// Filters that lay text out: widths, lines, words, quoting.
#include <algorithm>
#include <array>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/jinja/string_methods.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::int64_t kMaxIndent = 1000;
constexpr std::int64_t kMaxPadding = 1'000'000;

// jinja's title differs from str.title: words begin after blanks, hyphens and opening brackets.
std::string jinja_title(std::string_view utf8) {
  std::u32string word;
  std::string out;
  const auto finish = [&] {
    out += capitalize(to_utf8(word));
    word.clear();
  };
  for (const char32_t c : to_code_points(utf8)) {
    const bool is_break =
        is_python_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
    if (!is_break) {
      word += c;
      continue;
    }
    finish();
    out += to_utf8(std::u32string(1, c));
  }
  finish();
  return out;
}

Value title_filter(Interpreter& run, const Value& value, const Arguments&) {
  return run.string(jinja_title(run.to_text(value)), value.is_markup());
}

Value indent(Interpreter& run, const Value& value, const Arguments& given) {
  std::string by(4, ' ');
  if (const Value* width = given.get(0, "width")) {
    std::int64_t count = 0;
    if (const std::string* text = width->string())
      by = *text;
    else if (width->as_int(count))
      by.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, kMaxIndent)), ' ');
  }
  const Value* first = given.get(1, "first");
  const Value* blank = given.get(2, "blank");
  if (run.refuse_undefined(value)) return {};
  if (value.sequence(SequenceForm::kList))  // Python adds a string's characters to a list
    return run.fail("AttributeError", "'list' object has no attribute 'splitlines'");
  if (!value.string())
    return run.type_error("unsupported operand type(s) for +=: '" + type_name(value) + "' and 'str'");
  if (!run.charge_bytes(most_lines(*value.string()) * sizeof(std::string))) return {};
  const std::vector<std::string> lines = split_lines(*value.string() + "\n");
  if (!run.charge_bytes(lines.size() * by.size())) return {};
  std::string out = first && first->is_true() ? by : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i) out += '\n';
    if (i && ((blank && blank->is_true()) || !lines[i].empty())) out += by;
    out += lines[i];
  }
  return run.string(std::move(out), value.is_markup());
}

Value truncate(Interpreter& run, const Value& value, const Arguments& given) {
  std::int64_t length = 255, leeway = 5;
  if (const Value* wanted = given.get(0, "length")) wanted->as_int(length);
  const Value* kill_words = given.get(1, "killwords");
  const Value* end_value = given.get(2, "end");
  if (const Value* slack = given.get(3, "leeway"); slack && !slack->is_none()) slack->as_int(leeway);
  // No text is that long; sums of the two stay whole numbers.
  length = std::clamp<std::int64_t>(length, -1, 1'000'000'000);
  leeway = std::clamp<std::int64_t>(leeway, -1, 1'000'000'000);
  if (!value.is_string()) {
    std::int64_t size = 0;
    const Value counted = run.apply_filter("length", value, {});
    if (run.failed() || !counted.as_int(size) || size <= length + leeway) return value;
    return run.type_error("can only concatenate " + type_name(value) + " (not \"str\") to " +
                          type_name(value));
  }
  const std::u32string end = to_code_points(end_value ? run.to_text(*end_value) : "...");
  const std::u32string text = to_code_points(run.to_text(value));
  const auto room = length - static_cast<std::int64_t>(end.size());
  if (room < 0 || leeway < 0) return run.fail("AssertionError", "expected length >= len(end)");
  if (static_cast<std::int64_t>(text.size()) <= length + leeway) return value;
  std::u32string cut = text.substr(0, static_cast<std::size_t>(room));
  if (!kill_words || !kill_words->is_true()) cut = cut.substr(0, cut.rfind(U' '));
  return run.string(to_utf8(cut + end));
}

Value word_count(Interpreter& run, const Value& value, const Arguments&) {
  std::int64_t count = 0;
  bool inside = false;
  for (const char32_t c : to_code_points(run.to_text(value))) {
    const bool is_word = is_alphabetic(c) || is_decimal(c) || c == U'_';
    if (is_word && !inside) ++count;
    inside = is_word;
  }
  return count;
}

std::string url_quoted(std::string_view text, bool keeps_slash) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          std::string_view("_.-~").find(c) != std::string_view::npos ||
                          (keeps_slash && c == '/');
    if (is_plain)
      out += c;
    else
      (out += '%') += {kHex[static_cast<unsigned char>(c) >> 4], kHex[static_cast<unsigned char>(c) & 15]};
  }
  return out;
}

Value url_encode(Interpreter& run, const Value& value, const Arguments&) {
  if (value.is_string() || (!value.dict() && !value.sequence() && !value.is_undefined()))
    return run.string(url_quoted(run.to_text(value), true));
  const Value pairs = value.dict() ? run.apply_filter("items", value, {}) : value;
  std::string out;
  for (const Value& pair : run.iterate(pairs)) {
    if (!pair.is_string() && !pair.sequence() && !pair.dict())
      return run.type_error("cannot unpack non-iterable " + type_name(pair) + " object");
    const std::vector<Value> parts = run.elements(pair);
    if (parts.size() < 2)
      return run.fail("ValueError",
                      "not enough values to unpack (expected 2, got " + std::to_string(parts.size()) + ")");
    if (parts.size() > 2) return run.fail("ValueError", "too many values to unpack (expected 2)");
    if (!out.empty()) out += '&';
    out += url_quoted(run.to_text(parts[0]), false) + "=" + url_quoted(run.to_text(parts[1]), false);
    if (!run.charge_bytes(out.size() / 8)) return {};
  }
  return run.string(std::move(out));
}

Value center(Interpreter& run, const Value& value, const Arguments& given) {
  std::int64_t width = 80;
  if (const Value* wanted = given.get(0, "width"); wanted && !wanted->as_int(width))
    return run.type_error("'" + type_name(*wanted) + "' object cannot be interpreted as an integer");
  const std::string text = run.to_text(value);
  const std::int64_t missing =
      std::max<std::int64_t>(0, width - static_cast<std::int64_t>(num_code_points(text)));
  if (missing > kMaxPadding) return run.fail("LimitError", "padding is too wide");
  const auto before = static_cast<std::size_t>(missing / 2 + (missing & width & 1));
  return run.string(
      std::string(before, ' ') + text + std::string(static_cast<std::size_t>(missing) - before, ' '),
      value.is_markup());
}

Value force_escape(Interpreter& run, const Value& value, const Arguments&) {
  return run.binary(Operator::kAdd, Value("", true), Value(run.to_text(value)));
}

constexpr std::array kLayoutFilters = {
    FilterEntry{"center", center, "width"},
    FilterEntry{"forceescape", force_escape, ""},
    FilterEntry{"indent", indent, "width,first,blank"},
    FilterEntry{"title", title_filter, ""},
    FilterEntry{"truncate", truncate, "length,killwords,end,leeway"},
    FilterEntry{"urlencode", url_encode, ""},
    FilterEntry{"wordcount", word_count, ""},
};

}  // namespace

const FilterEntry* layout_filter(std::string_view name) {
  return entry_named(kLayoutFilters, name);
}

}  // namespace plimsoll::text::jinja
