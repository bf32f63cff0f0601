// SPDX-License-Identifier: Apache-2.0
// How a finding lists names: the first of them, and how many more there are. Pure.
#pragma once

#include <cstddef>
#include <string>

namespace plimsoll::inspect {

inline constexpr std::size_t kNamesShown = 5;
inline constexpr std::size_t kNameShown = 120;  // bytes of one name

/// "a, b, c, d, e and 7 more". `Names` is any sequence or set of strings.
template <typename Names>
std::string names_list(const Names& names) {
  std::string text;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (count++ == kNamesShown) return text + " and " + std::to_string(names.size() - kNamesShown) + " more";
    text += (text.empty() ? "" : ", ") + name.substr(0, kNameShown);
  }
  return text;
}

}  // namespace plimsoll::inspect
