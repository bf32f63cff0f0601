// SPDX-License-Identifier: Apache-2.0
// Under which heading of a Markdown table does a place of a card stand? Follows a text from front to back and
// reads each line once. Views into the text that it was made with; one thread.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace plimsoll::inspect {

class CardTable {
 public:
  explicit CardTable(std::string_view text) : text_(text) {}

  /// The heading of the column that holds `at`; empty outside tables. `at` must not become smaller.
  std::string_view heading_at(std::size_t at);

  /// The first cell of the line that heading_at() looked at last, where the heading above it says that it
  /// names a model; else empty.
  std::string_view row_model() const { return row_model_; }

 private:
  void enter_line(std::size_t begin);

  std::string_view text_;
  std::size_t begin_ = 0, end_ = 0;      // of the line that was read last; end_ is behind its new line
  std::size_t counted_ = 0;              // bars before it are in column_
  std::size_t column_ = 0;               // bars between begin_ and counted_
  std::vector<std::string_view> above_;  // cells of the line before
  std::vector<std::string_view> headings_;
  std::string_view row_model_;
};

}  // namespace plimsoll::inspect
