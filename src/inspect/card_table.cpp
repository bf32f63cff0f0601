// SPDX-License-Identifier: Apache-2.0
#include "inspect/card_table.h"

#include <algorithm>
#include <utility>

namespace plimsoll::inspect {
namespace {

constexpr std::size_t kMostColumns = 64;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t at = 0; at <= line.size() && cells.size() < kMostColumns;) {
    const std::size_t end = std::min(line.find('|', at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return cells;
}

bool is_blank(std::string_view cell) {
  return cell.find_first_not_of(" \t\r") == cell.npos;
}

// "**Model**", "Model Name", "Models"
bool heads_models(std::string_view heading) {
  const std::size_t at = heading.find_first_of("Mm");
  return at != heading.npos && heading.substr(at + 1).starts_with("odel");
}

// The line below a table's headings: bars, hyphens and colons alone.
bool is_rule(std::string_view line) {
  return line.find('|') != line.npos && line.find('-') != line.npos &&
         line.find_first_not_of("|-: \t\r\n") == line.npos;
}

}  // namespace

void CardTable::enter_line(std::size_t begin) {
  begin_ = counted_ = begin;
  column_ = 0;
  row_model_ = {};
  end_ = std::min(text_.find('\n', begin), text_.size());
  const std::string_view line = text_.substr(begin, end_ - begin);
  if (end_ < text_.size()) ++end_;
  if (is_rule(line)) {
    headings_ = std::exchange(above_, {});
    return;
  }
  above_.clear();
  if (line.find('|') == line.npos) {
    headings_.clear();
    return;
  }
  above_ = cells_of(line);
  if (headings_.empty()) return;
  const std::size_t first = is_blank(headings_.front()) ? 1 : 0;  // a line may open with a bar
  if (first < headings_.size() && first < above_.size() && heads_models(headings_[first]))
    row_model_ = above_[first];
}

std::string_view CardTable::heading_at(std::size_t at) {
  while (at >= end_ && end_ < text_.size()) enter_line(end_);
  for (; counted_ < at; ++counted_) column_ += text_[counted_] == '|';
  return column_ < headings_.size() ? headings_[column_] : std::string_view();
}

}  // namespace plimsoll::inspect
