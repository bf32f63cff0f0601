// SPDX-License-Identifier: Apache-2.0
// What do the small text files under /proc and /sys say? Reading and taking apart; what is missing or
// malformed is absent. Any thread may call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// A file of the kernel, up to 4 MiB; empty when it cannot be read. Such files tell no size.
std::string read_kernel_file(const std::string& path);

/// The number at the start of a text, behind blanks; absent when there is none or it is negative.
std::optional<std::int64_t> leading_integer(std::string_view text);

/// The rest of the first line that begins with `key`.
std::optional<std::string_view> line_after(std::string_view text, std::string_view key);

/// The CPUs of a list such as "0-3,8", ascending; a malformed part ends it.
std::vector<int> parse_cpu_list(std::string_view text);

/// Folders of this process's control groups, from its own one up to the root, as each may set a limit of its
/// own: of the unified hierarchy, or of a version 1 controller ("memory", "cpu") where `controller` names
/// one. Empty where there is no such hierarchy. `root` is where /proc and /sys lie.
std::vector<std::string> group_folders(const std::string& root, std::string_view controller);

}  // namespace plimsoll
