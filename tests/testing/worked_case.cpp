// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/worked_case.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "base/mapped_file.h"

namespace plimsoll::testing {

WorkedCase::WorkedCase(const std::string& page) {
  const auto text = read_file(std::string(PLIMSOLL_SOURCE_DIR) + "/docs/formulas/" + page);
  EXPECT_TRUE(text) << page;
  if (!text) return;
  std::istringstream lines(*text);
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) is_inside = line == "## Worked case";
    const std::size_t first = line.find("| ");
    const std::size_t middle = line.find(" | ");
    const std::size_t last = line.rfind(" |");
    if (!is_inside || first != 0 || middle == std::string::npos || last <= middle) continue;
    std::string value;
    for (const char c : line.substr(middle + 3, last - middle - 3))
      if (c != ',') value += c;
    rows_[line.substr(2, middle - 2)] = value;
  }
}

std::string WorkedCase::text(const std::string& quantity) const {
  const auto row = rows_.find(quantity);
  EXPECT_NE(row, rows_.end()) << "the page has no row " << quantity;
  return row == rows_.end() ? "" : row->second;
}

std::int64_t WorkedCase::integer(const std::string& quantity) const {
  return std::atoll(text(quantity).c_str());
}

}  // namespace plimsoll::testing
