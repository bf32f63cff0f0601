// SPDX-License-Identifier: Apache-2.0
// Which of the known names look like this one? For messages about a name that nobody knows. Pure; the views
// are those given.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace plimsoll::model {

/// The `count` names of `known` that take the fewest changed letters (put in, left out or replaced), nearest
/// first; equal ones in the order given. Only the first 100 letters of a name are looked at.
std::vector<std::string_view> nearest_names(std::string_view name, std::span<const std::string_view> known,
                                            std::size_t count);

}  // namespace plimsoll::model
