// SPDX-License-Identifier: Apache-2.0
// jinja2's filters, in four tables: those on text, on numbers, on sequences, and for layout; and its tests.
#pragma once

#include <string_view>

#include "text/jinja/callable.h"

namespace plimsoll::text::jinja {

struct FilterEntry {
  std::string_view name;
  Function function;
  std::string_view parameters;  // "width,first", or "*" when it looks for itself
};

/// The filter of this name, or null: of one table each, and of all.
const FilterEntry* text_filter(std::string_view name);
const FilterEntry* number_filter(std::string_view name);
const FilterEntry* sequence_filter(std::string_view name);
const FilterEntry* layout_filter(std::string_view name);
const FilterEntry* find_filter(std::string_view name);

struct TestEntry {
  std::string_view name;
  Test test;
  std::size_t num_arguments = 0;
};

/// The test of this name, or null.
const TestEntry* find_test(std::string_view name);

template <class Table>
auto entry_named(const Table& table, std::string_view name) -> decltype(table.data()) {
  for (const auto& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace plimsoll::text::jinja
