// SPDX-License-Identifier: Apache-2.0
// Any bytes as JSON: reading never crashes, and what was read writes to a text that stays the same from then
// on.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto first = plimsoll::parse_json(text, "fuzz");
  if (!first) return 0;
  // Trees may differ (NaN is written as null), texts may not.
  const std::string written = plimsoll::dump(*first);
  const auto second = plimsoll::parse_json(written, "written");
  if (!second || plimsoll::dump(*second) != written) std::abort();
  const auto pretty = plimsoll::parse_json(plimsoll::dump_pretty(*first), "pretty");
  if (!pretty || plimsoll::dump(*pretty) != written) std::abort();
  return 0;
}
