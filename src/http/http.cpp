// SPDX-License-Identifier: Apache-2.0
#include "http/http.h"

#include <algorithm>

#include "base/text.h"

namespace plimsoll::http {
namespace {

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_ascii(x) == lower_ascii(y); });
}

}  // namespace

std::string_view header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (equal_without_case(key, name)) return value;
  return {};
}

}  // namespace plimsoll::http
