// SPDX-License-Identifier: Apache-2.0
// "%05.2f" % x: the parts of Python's printf-style formatting that templates use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/format_spec.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/jinja/string_methods.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

constexpr std::string_view kNumberTypes = "diuxXoeEfFgG";

class PercentFormat {
 public:
  PercentFormat(Interpreter& run, const Value& pattern, const Value& values)
      : run_(run),
        text_(*pattern.string()),
        is_markup_(pattern.is_markup()),
        values_(values),
        given_(&values, 1) {
    if (const Sequence* tuple = values.sequence(SequenceForm::kTuple)) given_ = tuple->items;
  }

  Value result() {
    run_.charge_steps(static_cast<std::int64_t>(text_.size()) / 16);
    while (at_ < text_.size() && !run_.failed()) {
      const std::size_t sign = std::min(text_.find('%', at_), text_.size());
      out_ += text_.substr(at_, sign - at_);
      at_ = sign + 1;
      if (sign < text_.size()) conversion();
    }
    if (run_.failed()) return {};
    if (used_ < given_.size() && !values_.dict() && !values_.is_undefined() &&
        !(values_.sequence(SequenceForm::kList) && used_ == 0))
      return run_.type_error("not all arguments converted during string formatting");
    return run_.string(std::move(out_), is_markup_);
  }

 private:
  // What follows a percent sign.
  void conversion() {
    if (!run_.charge_steps(1) || !run_.allows_length(out_.size())) return;
    if (at_ < text_.size() && text_[at_] == '%') {
      ++at_;
      out_ += '%';
      return;
    }
    const Value* value = nullptr;
    if (at_ < text_.size() && text_[at_] == '(') {
      value = named();
      if (!value) return;
    }
    FieldSpec spec;
    if (!parse(spec)) return;
    if (!value) {
      if (used_ >= given_.size()) {
        run_.type_error("not enough arguments for format string");
        return;
      }
      value = &given_[used_++];
    }
    if (spec.type == 's' || spec.type == 'r' || spec.type == 'a')
      append_text(spec, *value);
    else
      append_number(spec, *value);
  }

  // "(name)".
  const Value* named() {
    const std::size_t close = text_.find(')', at_);
    const Dict* dict = values_.dict();
    if (close == std::string_view::npos) {
      run_.fail("ValueError", "incomplete format key");
    } else if (!dict) {
      run_.type_error("format requires a mapping");
    } else {
      const std::string_view key = text_.substr(at_ + 1, close - at_ - 1);
      at_ = close + 1;
      if (const Value* found = dict->find_text(key)) return found;
      run_.fail("KeyError", "'" + std::string(key) + "'");
    }
    return nullptr;
  }

  // Flags, width, precision and type letter.
  bool parse(FieldSpec& spec) {
    for (; at_ < text_.size() && std::string_view("-+ 0#").find(text_[at_]) != std::string_view::npos;
         ++at_) {
      const char flag = text_[at_];
      if (flag == '-') spec.align = '<', spec.fill = " ";
      if (flag == '0' && spec.align == '\0') spec.align = '=', spec.fill = "0";
      if (flag == '+' || flag == ' ') spec.sign = flag;
      if (flag == '#') spec.is_alternate = true;
    }
    spec.width = read_number(text_, at_);
    if (at_ < text_.size() && text_[at_] == '.') spec.precision = read_number(text_, ++at_);
    if (at_ >= text_.size()) {
      run_.fail("ValueError", "incomplete format");
      return false;
    }
    if (spec.width > kMaxFieldWidth || spec.precision > kMaxFieldWidth) {
      run_.fail("LimitError", "format field is too wide");
      return false;
    }
    spec.type = text_[at_++];
    return true;
  }

  void append_text(FieldSpec& spec, const Value& value) {
    std::string text = spec.type == 's' ? run_.to_text(value) : run_.to_repr(value);
    // In a markup plain values are escaped, before any of it is cut off.
    if (is_markup_ && !(spec.type == 's' && value.is_markup())) text = escaped_markup(text);
    if (spec.type == 'a') text = as_ascii(text);
    if (spec.precision >= 0)
      text = to_utf8(to_code_points(text).substr(0, static_cast<std::size_t>(spec.precision)));
    if (spec.align == '=') spec.align = '>', spec.fill = " ";  // zeros are for numbers
    out_ += padded(spec, "", text, '>');
  }

  void append_number(FieldSpec& spec, const Value& value) {
    const std::string letter(1, spec.type);
    if (kNumberTypes.find(spec.type) == std::string_view::npos) {
      const std::size_t index = num_code_points(text_.substr(0, at_ - 1));
      const char32_t wide = to_code_points(text_.substr(at_ - 1, 4))[0];
      const std::string shown = wide < 0x80 ? letter : std::string("?");
      run_.fail("ValueError", fmt::format("unsupported format character '{}' (0x{:x}) at index {}", shown,
                                          static_cast<std::uint32_t>(wide), index));
      return;
    }
    if (run_.refuse_undefined(value)) return;
    if (!value.is_number()) {
      run_.type_error("%" + letter + " format: a real number is required, not " + type_name(value));
      return;
    }
    Value number = value;
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    if (spec.type == 'd' && value.is_float()) {
      double real = 0;
      value.as_double(real);
      if (!(std::fabs(real) < 9e18)) {
        run_.fail("OverflowError", "cannot convert float to integer");
        return;
      }
      number = static_cast<std::int64_t>(real);
    }
    const auto body = formatted_number(number, spec);
    if (!body) {
      run_.type_error("%" + letter + " format: an integer is required, not float");
      return;
    }
    out_ += *body;
  }

  Interpreter& run_;
  std::string_view text_;
  bool is_markup_;
  const Value& values_;
  std::span<const Value> given_;
  std::string out_;
  std::size_t at_ = 0, used_ = 0;
};

}  // namespace

Value percent_format(Interpreter& run, const Value& pattern, const Value& values) {
  return PercentFormat(run, pattern, values).result();
}

}  // namespace plimsoll::text::jinja
