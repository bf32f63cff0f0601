// SPDX-License-Identifier: Apache-2.0
// Methods of str that tell something about a text: where a part is, what its characters are.
#include <algorithm>
#include <array>
#include <span>

#include "base/utf8.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/string_methods.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {

bool charge_backwards(Interpreter& run, std::string_view text, std::string_view part) {
  constexpr double kComparedPerStep = 1024;
  const double work = static_cast<double>(text.size()) * static_cast<double>(part.size()) / kComparedPerStep;
  return run.charge_steps(static_cast<std::int64_t>(std::min(work, 1e15)));
}

const std::string* one_string(Interpreter& run, const Arguments& given, const char* method,
                              const char* complaint) {
  if (given.positional.empty()) {
    run.type_error(std::string(method) + "() takes at least 1 argument (0 given)");
    return nullptr;
  }
  const std::string* text = given.positional[0].string();
  if (!text) run.type_error(complaint + type_name(given.positional[0]));
  return text;
}

namespace {

const std::string& text_of(const Value& self) {
  return *self.string();
}

// The part of the text that "start" and "stop" at these positions select; nothing after an error or when the
// start lies behind the end.
std::optional<std::string_view> selected(Interpreter& run, std::string_view text, const Arguments& given,
                                         std::size_t first) {
  std::int64_t bounds[2] = {0, INT64_MAX};
  for (std::size_t i = 0; i < 2 && first + i < given.positional.size(); ++i) {
    const Value& bound = given.positional[first + i];
    if (!bound.is_none() && !bound.as_int(bounds[i])) {
      run.type_error("slice indices must be integers or None or have an __index__ method");
      return std::nullopt;
    }
  }
  if (bounds[0] == 0 && bounds[1] == INT64_MAX) return text;
  const auto size = static_cast<std::int64_t>(num_code_points(text));
  for (std::int64_t& bound : bounds)
    if (bound < 0) bound = std::max<std::int64_t>(0, bound + size);
  bounds[1] = std::min(bounds[1], size);
  if (bounds[0] > bounds[1]) return std::nullopt;
  const auto offset = [&](std::int64_t position) {
    std::size_t at = 0;
    for (; position > 0; --position) at += static_cast<std::size_t>(decode_utf8(text.substr(at)).bytes);
    return at;
  };
  const std::size_t start = offset(bounds[0]);
  return text.substr(start, offset(bounds[1]) - start);
}

template <bool kAtEnd>
Value affix_method(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string name = kAtEnd ? "endswith" : "startswith";
  if (given.positional.empty()) return run.type_error(name + "() takes at least 1 argument (0 given)");
  const Sequence* tuple = given.positional[0].sequence(SequenceForm::kTuple);
  const std::span<const Value> options = tuple ? tuple->items : std::span(&given.positional[0], 1);
  if (!tuple && !options[0].is_string())
    return run.type_error(name + " first arg must be str or a tuple of str, not " + type_name(options[0]));
  const auto text = selected(run, text_of(self), given, 1);
  if (run.failed()) return {};
  for (const Value& option : options) {
    const std::string* affix = option.string();
    if (!run.charge_reading(option) || (tuple && !run.charge_steps(1))) return {};
    if (!affix)
      return run.type_error("tuple for " + name + " must only contain str, not " + type_name(option));
    if (text && (kAtEnd ? text->ends_with(*affix) : text->starts_with(*affix))) return true;
  }
  return false;
}

template <bool kFromRight>
Value find_method(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string* part = one_string(run, given, "find");
  if (!part) return {};
  const auto text = selected(run, text_of(self), given, 1);
  if (run.failed() || !text) return -1;
  if (kFromRight && !charge_backwards(run, *text, *part)) return {};
  const std::size_t at = kFromRight ? text->rfind(*part) : part->empty() ? 0 : find_text(*text, *part);
  if (at == std::string_view::npos) return -1;
  const std::string_view before(text_of(self).data(),
                                static_cast<std::size_t>(text->data() + at - text_of(self).data()));
  return static_cast<std::int64_t>(num_code_points(before));
}

template <bool kFromRight>
Value index_method(Interpreter& run, const Value& self, const Arguments& given) {
  Value at = find_method<kFromRight>(run, self, given);
  if (!run.failed() && at.equals(Value(-1))) return run.fail("ValueError", "substring not found");
  return at;
}

Value count_method(Interpreter& run, const Value& self, const Arguments& given) {
  const std::string* part = one_string(run, given, "count");
  if (!part) return {};
  const auto text = selected(run, text_of(self), given, 1);
  if (run.failed() || !text) return 0;
  if (part->empty()) return static_cast<std::int64_t>(num_code_points(*text) + 1);
  std::int64_t count = 0;
  std::string_view rest = *text;
  for (std::size_t at = 0; (at = find_text(rest, *part)) != std::string_view::npos; ++count)
    rest.remove_prefix(at + part->size());
  return count;
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
  return is_alphabetic(c) || is_numeric(c);
}

Value is_ascii_method(Interpreter&, const Value& self, const Arguments&) {
  return is_ascii(text_of(self));
}

Value is_printable_method(Interpreter&, const Value& self, const Arguments&) {
  const std::u32string text = to_code_points(text_of(self));
  return std::all_of(text.begin(), text.end(), is_printable);
}

Value is_title_method(Interpreter&, const Value& self, const Arguments&) {
  bool found = false, follows_cased = false;
  for (const char32_t c : to_code_points(text_of(self))) {
    if (is_upper(c) ? follows_cased : is_lower(c) && !follows_cased) return false;
    follows_cased = is_upper(c) || is_lower(c);
    found = found || follows_cased;
  }
  return found;
}

constexpr std::array kQuestions = {
    MethodEntry{"count", count_method},
    MethodEntry{"endswith", affix_method<true>},
    MethodEntry{"find", find_method<false>},
    MethodEntry{"index", index_method<false>},
    MethodEntry{"isalnum", all_method<is_alphanumeric>, Arity::kNone},
    MethodEntry{"isalpha", all_method<is_alphabetic>, Arity::kNone},
    MethodEntry{"isascii", is_ascii_method, Arity::kNone},
    MethodEntry{"isdecimal", all_method<is_decimal>, Arity::kNone},
    MethodEntry{"isdigit", all_method<is_digit>, Arity::kNone},
    MethodEntry{"islower", cased_method<is_lower, is_upper>, Arity::kNone},
    MethodEntry{"isnumeric", all_method<is_numeric>, Arity::kNone},
    MethodEntry{"isprintable", is_printable_method, Arity::kNone},
    MethodEntry{"isspace", all_method<is_python_space>, Arity::kNone},
    MethodEntry{"istitle", is_title_method, Arity::kNone},
    MethodEntry{"isupper", cased_method<is_upper, is_lower>, Arity::kNone},
    MethodEntry{"rfind", find_method<true>},
    MethodEntry{"rindex", index_method<true>},
    MethodEntry{"startswith", affix_method<false>},
};

}  // namespace

Method string_question(std::string_view name) {
  for (const MethodEntry& entry : kQuestions)
    if (entry.name == name) return {entry.function, entry.arity};
  return {};
}

}  // namespace plimsoll::text::jinja
