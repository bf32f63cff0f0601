// SPDX-License-Identifier: Apache-2.0
// jinja2's filters, in two tables: those on text and numbers, and those on sequences.
#pragma once

#include <string_view>

#include "text/jinja/callable.h"

namespace plimsoll::text::jinja {

/// The filter of this name, or null.
Function text_filter(std::string_view name);
Function sequence_filter(std::string_view name);
/// Of both tables.
Function find_filter(std::string_view name);
/// The test of this name, or null.
Test find_test(std::string_view name);

struct FilterEntry {
  std::string_view name;
  Function function;
};

}  // namespace plimsoll::text::jinja
