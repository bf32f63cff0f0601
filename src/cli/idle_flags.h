// SPDX-License-Identifier: Apache-2.0
// Which flags were given that do nothing beside the others? They are refused: the answer would be about
// something else than what was asked.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

/// Flags that one use of a verb has no effect for.
struct IdleFlags {
  bool are_idle = false;
  std::vector<std::string> flags;
  std::string reason;  // goes on behind "would have no effect "
};

/// All flags of `verb` but those named.
std::vector<std::string> flags_except(const CLI::App& verb, const std::vector<std::string>& kept);

/// Errors: kUsage naming the flags of the first entry that are idle and were given on the command line.
Status refuse_idle_flags(const CLI::App& verb, const std::vector<IdleFlags>& entries);

}  // namespace plimsoll::cli
