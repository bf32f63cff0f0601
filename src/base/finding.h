// SPDX-License-Identifier: Apache-2.0
// One thing that a check found: the unit that every room reports in, so that `inspect` can show them all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace plimsoll {

enum class FindingLevel { kInfo, kWarning, kError };
/// info warning error
std::string_view to_string(FindingLevel level);

/// What an error finding means for the exit status of `inspect`.
enum class FindingKind {
  kCheckFailed,  // every file reads, a check fails        -> 1
  kMalformed,    // a file cannot be read as what it is    -> 3
  kUnsupported,  // valid, but we or engines do not do it  -> 4
};

struct Finding {
  std::string id;  // UPPER_SNAKE, stable
  FindingLevel level = FindingLevel::kInfo;
  FindingKind kind = FindingKind::kCheckFailed;
  std::string where;    // file relative to the model root, ": " and a place in it
  std::string message;  // with the figures found and expected
  std::string fix;      // what to do
};

using Findings = std::vector<Finding>;

/// The worst level, or nothing worse than info -> kInfo.
FindingLevel worst_level(const Findings& findings);

/// The array `findings` of every document; a finding without a fix has null there.
Json to_json(const Findings& findings);

}  // namespace plimsoll
