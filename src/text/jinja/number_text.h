// SPDX-License-Identifier: Apache-2.0
// What number does a text spell for Python's int() and float()? Their grammars are narrower than C's in
// places (no hexadecimal floats, no "nan(1)") and wider in others (underscores, digits of any script). Plain
// functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plimsoll::text::jinja {

struct WholeText {
  bool is_valid = false;
  bool fits = false;  // into 64 bits
  std::int64_t value = 0;
};
/// int(text, base); base 0 takes it from the prefix. Not valid for a base that Python refuses.
WholeText whole_of_text(std::string_view text, std::int64_t base);
/// float(text), nothing when it spells none.
std::optional<double> float_of_text(std::string_view text);

}  // namespace plimsoll::text::jinja
