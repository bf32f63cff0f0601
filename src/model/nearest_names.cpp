// SPDX-License-Identifier: Apache-2.0
#include "model/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace plimsoll::model {
namespace {

constexpr std::size_t kMaxLetters = 100;

// Levenshtein's distance, one row of the table at a time.
std::size_t distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kMaxLetters);
  b = b.substr(0, kMaxLetters);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = corner + (a[i] == b[j] ? 0 : 1);
      corner = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string_view> nearest_names(std::string_view name, std::span<const std::string_view> known,
                                            std::size_t count) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const std::string_view other : known) ranked.emplace_back(distance(name, other), other);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  std::vector<std::string_view> nearest;
  for (const auto& [changes, other] : ranked) {
    if (nearest.size() == count) break;
    nearest.push_back(other);
  }
  return nearest;
}

}  // namespace plimsoll::model
