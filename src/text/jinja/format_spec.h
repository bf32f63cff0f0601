// SPDX-License-Identifier: Apache-2.0
// One field of a format: how wide, how precise, which way padded; numbers spelled by it. Shared by the two
// formatting languages (percent_format.cpp, brace_format.cpp). Plain functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace plimsoll::text::jinja {

constexpr int kMaxFieldWidth = 10'000;  // wider is an attack, not a layout

struct FieldSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '-';    // - + space
  bool is_alternate = false;
  bool has_commas = false;
  int width = 0;
  int precision = -1;
  char type = '\0';
};

/// Digits from `at` on, which moves behind them; more than the widest field counts as one more than it.
int read_number(std::string_view text, std::size_t& at);
/// "0>8,.2f" after the colon of a brace field; false when it is no such specification.
bool parse_field_spec(std::string_view text, bool is_number, FieldSpec& spec);
/// Padded to the width; the sign stays in front of what '=' fills in.
std::string padded(const FieldSpec& spec, const std::string& sign, const std::string& body,
                   char default_align);
/// format(value, spec) for numbers; nothing when the type letter does not fit.
std::optional<std::string> formatted_number(const Value& value, const FieldSpec& spec);

}  // namespace plimsoll::text::jinja
