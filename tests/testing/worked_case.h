// SPDX-License-Identifier: Apache-2.0
// The worked case of a formula page as numbers, so that page and code cannot drift apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace plimsoll::testing {

/// The rows `| quantity | value |` below "## Worked case" of docs/formulas/`page`, commas taken out.
class WorkedCase {
 public:
  explicit WorkedCase(const std::string& page);
  /// Each fails the test when the page has no such row.
  std::int64_t integer(const std::string& quantity) const;
  std::string text(const std::string& quantity) const;

 private:
  std::map<std::string, std::string> rows_;
};

}  // namespace plimsoll::testing
