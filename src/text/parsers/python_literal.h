// SPDX-License-Identifier: Apache-2.0
// Python literals (None, True, numbers, strings, lists, tuples, dicts) as JSON text. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::text {

/// JSON text of the one literal that `text` holds, or nothing when it holds anything else, nests deeper than
/// 64, or is a number JSON cannot write. JSON's true, false and null are taken too.
std::optional<std::string> python_literal_to_json(std::string_view text);

}  // namespace plimsoll::text
