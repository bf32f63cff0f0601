// SPDX-License-Identifier: Apache-2.0
// The scanner of large headers beside the exact reader of JSON: what one takes, the other takes too.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "artifact/json_scan.h"
#include "base/json.h"

namespace {

// A number that is read eight digits at a time is the one that the standard library reads.
void check_number(std::string_view text) {
  plimsoll::artifact::JsonScan scan(text);
  const auto number = scan.plain_number();
  if (!number) return;
  std::int64_t expected = -1;
  const std::string_view digits = text.substr(0, scan.position());
  const auto [end, error] = std::from_chars(digits.data() + digits.find_first_of("0123456789"),
                                            digits.data() + digits.size(), expected);
  if (error != std::errc{} || end != digits.data() + digits.size() || expected != *number) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr int kDepth = 50;
  plimsoll::artifact::JsonScan scan(text);
  bool is_sound = scan.value(kDepth).has_value();
  scan.skip_space();
  is_sound = is_sound && scan.is_at_end();
  const auto value =
      plimsoll::parse_json(text, "input", {.max_depth = kDepth + 1, .allow_bare_constants = false});
  // The exact reader may be kinder (it keeps the last digit of any number); the scanner must never be.
  if (is_sound && !value) __builtin_trap();
  check_number(text);
  return 0;
}
