// SPDX-License-Identifier: Apache-2.0
#include "inspect/card_html.h"

#include <algorithm>
#include <array>

namespace plimsoll::inspect {
namespace {

constexpr std::size_t kMostColumns = 64, kMostRows = 4096, kLongestCell = 200;
constexpr int kMostSpan = 1000;

// A cell that goes on in the rows below.
struct Span {
  int rows = 0;
  std::string text;
};

// The number in rowspan="3"; 1 without one.
int rows_of(std::string_view tag) {
  constexpr std::string_view kName = "rowspan=";
  std::size_t at = tag.find(kName);
  if (at == tag.npos) return 1;
  at += kName.size();
  if (at < tag.size() && (tag[at] == '"' || tag[at] == '\'')) ++at;
  int rows = 0;
  for (; at < tag.size() && tag[at] >= '0' && tag[at] <= '9' && rows < kMostSpan; ++at)
    rows = rows * 10 + (tag[at] - '0');
  return std::clamp(rows, 1, kMostSpan);
}

class HtmlTable {
 public:
  std::string read(std::string_view html) {
    for (std::size_t at = 0; at < html.size();) {
      const std::size_t open = std::min(html.find('<', at), html.size());
      add_text(html.substr(at, open - at));
      const std::size_t close = html.find('>', open);
      if (close == html.npos) break;
      enter(html.substr(open, close - open));
      at = close + 1;
    }
    end_row();
    return std::move(markdown_);
  }

 private:
  void enter(std::string_view tag) {
    if (tag.starts_with("<tr") || tag.starts_with("</tr")) {
      end_row();
    } else if (tag.starts_with("<td") || (tag.starts_with("<th") && !tag.starts_with("<thead"))) {
      end_cell();
      is_in_cell_ = true;
      rows_ = rows_of(tag);
    } else {
      add_text(" ");
    }
  }

  void add_text(std::string_view text) {
    if (!is_in_cell_) return;
    for (const char c : text.substr(0, kLongestCell - std::min(kLongestCell, cell_.size())))
      cell_ += c == '\n' || c == '|' ? ' ' : c;
  }

  // Columns that a cell above reaches into come first.
  void take_spans() {
    for (; column_ < kMostColumns && spans_[column_].rows > 0; ++column_) {
      --spans_[column_].rows;
      row_ += "| " + spans_[column_].text + " ";
    }
  }

  void end_cell() {
    if (!is_in_cell_) return;
    is_in_cell_ = false;
    take_spans();
    if (column_ < kMostColumns) {
      row_ += "| " + cell_ + " ";
      if (rows_ > 1) spans_[column_] = {rows_ - 1, cell_};
      ++column_;
    }
    cell_.clear();
  }

  void end_row() {
    end_cell();
    if (row_.empty()) return;  // a row ends with its tag and again with the next one's
    take_spans();
    column_ = 0;
    if (num_rows_ >= kMostRows) {
      row_.clear();
      return;
    }
    markdown_ += "\n" + row_ + "|";
    if (num_rows_++ == 0) markdown_ += "\n|---|";
    row_.clear();
  }

  std::array<Span, kMostColumns> spans_;
  std::string markdown_, row_, cell_;
  std::size_t column_ = 0, num_rows_ = 0;
  int rows_ = 1;
  bool is_in_cell_ = false;
};

}  // namespace

std::string with_markdown_tables(std::string_view text) {
  constexpr std::string_view kOpen = "<table", kClose = "</table>";
  std::string result;
  std::size_t at = 0;
  for (std::size_t open = 0; (open = text.find(kOpen, at)) != text.npos;) {
    const std::size_t close = text.find(kClose, open);
    if (close == text.npos) break;
    result += text.substr(at, open - at);
    result += HtmlTable().read(text.substr(open, close - open)) + "\n\n";
    at = close + kClose.size();
  }
  result += text.substr(at);
  return result;
}

}  // namespace plimsoll::inspect
