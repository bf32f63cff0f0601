// SPDX-License-Identifier: Apache-2.0
#include "cli/idle_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace plimsoll::cli {

std::vector<std::string> flags_except(const CLI::App& verb, const std::vector<std::string>& kept) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : verb.get_options()) {
    const bool is_kept = std::any_of(kept.begin(), kept.end(),
                                     [&](const std::string& name) { return option->check_name(name); });
    if (!is_kept) flags.push_back(option->get_name());
  }
  return flags;
}

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
