// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/python_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/json.h"
#include "base/utf8.h"
#include "text/jinja/callable.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

// Values share their parts, so that a small one may spell a text of any length: writing stops here, and
// whoever counts the text refuses it.
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

void append_repr(std::string& out, const Value& value);

void append_escape(std::string& out, char32_t c) {
  const auto code = static_cast<std::uint32_t>(c);
  out += code < 0x100     ? fmt::format("\\x{:02x}", code)
         : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                          : fmt::format("\\U{:08x}", code);
}

void append_string_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && text[plain] >= ' ' && text[plain] <= '~' && text[plain] != quote &&
           text[plain] != '\\')
      ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const DecodedChar next = decode_utf8(text);
    const char32_t c = next.code_point;
    text.remove_prefix(static_cast<std::size_t>(next.bytes));
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      append_utf8(out, c);
    } else {
      append_escape(out, c);
    }
  }
  out += quote;
}

void append_items(std::string& out, std::span<const Value> items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    append_repr(out, items[i]);
  }
}

void append_entries(std::string& out, const Dict& dict) {
  out += '{';
  bool is_first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!std::exchange(is_first, false)) out += ", ";
    append_repr(out, key);
    out += ": ";
    append_repr(out, value);
  }
  out += '}';
}

void append_sequence(std::string& out, const Sequence& list) {
  switch (list.form) {
    case SequenceForm::kList:
      out += '[';
      append_items(out, list.items);
      out += ']';
      return;
    case SequenceForm::kTuple:
      out += '(';
      append_items(out, list.items);
      out += list.items.size() == 1 ? ",)" : ")";
      return;
    case SequenceForm::kRange: {
      // A range is known by its first elements; an empty one prints as the empty range of Python.
      std::int64_t first = 0, second = 1, last = -1;
      if (!list.items.empty()) {
        list.items.front().as_int(first);
        list.items.back().as_int(last);
        second = first + 1;
        if (list.items.size() > 1) list.items[1].as_int(second);
      }
      const std::int64_t step = second - first;
      out += fmt::format("range({}, {}", first, last + (step > 0 ? 1 : -1));
      out += step == 1 ? ")" : fmt::format(", {})", step);
      return;
    }
    case SequenceForm::kGenerator:
      out += "<generator object>";
      return;
    default:
      out += type_name(Value::borrowed(list));
      out += "([";
      append_items(out, list.items);
      out += "])";
  }
}

void append_repr(std::string& out, const Value& value) {
  if (out.size() > kMaxTextBytes) return;
  if (const std::string* text = value.string()) {
    if (value.is_markup()) out += "Markup(";
    append_string_repr(out, *text);
    if (value.is_markup()) out += ')';
  } else if (const Sequence* list = value.sequence()) {
    append_sequence(out, *list);
  } else if (const Dict* dict = value.dict()) {
    append_entries(out, *dict);
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else {
    out += python_str(value);
  }
}

void append_json_text(std::string& out, std::string_view text, bool ensure_ascii) {
  if (!ensure_ascii) {  // json.dumps leaves DEL alone and writes control characters as base/json does
    append_json_string(out, text);
    return;
  }
  std::string quoted;
  append_json_string(quoted, text);
  for (const char32_t c : to_code_points(quoted)) {
    const auto code = static_cast<std::uint32_t>(c);
    if (code < 0x80)
      out += static_cast<char>(c);
    else if (code < 0x10000)
      out += fmt::format("\\u{:04x}", code);
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                         0xDC00 + ((code - 0x10000) & 0x3FF));
  }
}

class JsonWriter {
 public:
  JsonWriter(const JsonFormat& format, std::string& bad_type) : format_(format), bad_type_(bad_type) {}

  bool write(const Value& value, int level) {
    if (out.size() > kMaxTextBytes) return true;
    if (const std::string* text = value.string())
      return append_json_text(out, *text, format_.ensure_ascii), true;
    if (value.is_none()) return out += "null", true;
    if (value.is_bool()) return out += value.is_true() ? "true" : "false", true;
    double number = 0;
    if (value.as_double(number)) return out += number_text(value, number), true;
    if (const Dict* dict = value.dict()) return write_dict(*dict, level);
    if (const Sequence* list = value.sequence(); list && list->form <= SequenceForm::kTuple)
      return write_list(*list, level);
    bad_type_ = type_name(value);
    return false;
  }

  std::string out;

 private:
  static std::string number_text(const Value& value, double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    return python_str(value);
  }
  void new_line(int level) {
    if (!format_.indent) return;
    out += '\n';
    for (int i = 0; i < level; ++i) out += *format_.indent;
  }
  bool write_list(const Sequence& list, int level) {
    out += '[';
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i) out += format_.item_separator;
      new_line(level + 1);
      if (!write(list.items[i], level + 1)) return false;
    }
    if (!list.items.empty()) new_line(level);
    out += ']';
    return true;
  }
  bool write_dict(const Dict& dict, int level) {
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (format_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
        return a->first.string() && b->first.string() && *a->first.string() < *b->first.string();
      });
    out += '{';
    bool is_first = true;
    for (const auto* entry : entries) {
      if (!std::exchange(is_first, false)) out += format_.item_separator;
      new_line(level + 1);
      if (!write_key(entry->first)) return false;
      out += format_.key_separator;
      if (!write(entry->second, level + 1)) return false;
    }
    if (!entries.empty()) new_line(level);
    out += '}';
    return true;
  }
  bool write_key(const Value& key) {
    if (key.string()) return write(key, 0);
    if (!key.is_none() && !key.is_number()) {
      bad_type_ = type_name(key);
      return false;
    }
    out += '"';
    write(key, 0);
    out += '"';
    return true;
  }

  const JsonFormat& format_;
  std::string& bad_type_;
};

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
  const std::string scientific(text, end);  // [-]d[.ddd]e[+-]dd
  const std::size_t mark = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + mark + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  const auto [fixed_end, fixed_error] =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed);
  std::string fixed(text, fixed_end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

namespace {

// A namespace may hold itself, so that one inside another is not opened.
std::string namespace_repr(const Namespace& space) {
  static thread_local int level = 0;
  if (level >= 1) return "<Namespace {...}>";
  ++level;
  std::string out = "<Namespace {";
  bool is_first = true;
  for (const auto& [name, value] : space.attributes) {
    if (!std::exchange(is_first, false)) out += ", ";
    append_string_repr(out, name);
    out += ": ";
    append_repr(out, value);
  }
  --level;
  return out + "}>";
}

}  // namespace

std::string python_str(const Value& value) {
  if (const std::string* text = value.string()) return *text;
  if (value.is_undefined()) return "";
  if (value.is_none()) return "None";
  if (value.is_bool()) return value.is_true() ? "True" : "False";
  std::int64_t whole = 0;
  if (value.as_int(whole)) return std::to_string(whole);
  double number = 0;
  if (value.as_double(number)) return python_float(number);
  if (const Callable* callable = value.callable()) {
    if (callable->kind == Callable::Kind::kMacro) return "<Macro '" + callable->name + "'>";
    return (callable->kind == Callable::Kind::kMethod ? "<built-in method " : "<function ") + callable->name +
           ">";
  }
  if (const Namespace* space = value.name_space()) return namespace_repr(*space);
  if (const Loop* loop = value.loop())
    return fmt::format("<LoopContext {}/{}>", loop->position + 1, loop->items.size());
  return python_repr(value);
}

std::string python_repr(const Value& value) {
  std::string out;
  append_repr(out, value);
  return out;
}

std::string as_ascii(std::string_view repr) {
  std::string out;
  for (const char32_t c : to_code_points(repr))
    if (c < 0x80)
      out += static_cast<char>(c);
    else
      append_escape(out, c);
  return out;
}

std::optional<std::string> python_json(const Value& value, const JsonFormat& format, std::string& bad_type) {
  JsonWriter writer(format, bad_type);
  if (!writer.write(value, 0)) return std::nullopt;
  return std::move(writer.out);
}

}  // namespace plimsoll::text::jinja
