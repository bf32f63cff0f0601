// SPDX-License-Identifier: Apache-2.0
#include "cli/idle_flags.h"

#include <CLI/CLI.hpp>

namespace plimsoll::cli {

Status refuse_idle_flags(const CLI::App& verb, const std::vector<IdleFlags>& entries) {
  for (const IdleFlags& entry : entries) {
    if (!entry.are_idle) continue;
    std::string given;
    for (const std::string& flag : entry.flags)
      if (verb.get_option(flag)->count() > 0) given += (given.empty() ? "" : ", ") + flag;
    if (!given.empty())
      return fail(ErrorCode::kUsage, given + " would have no effect " + entry.reason, "",
                  "leave out what has no effect");
  }
  return {};
}

}  // namespace plimsoll::cli
