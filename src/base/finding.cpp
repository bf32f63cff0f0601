// SPDX-License-Identifier: Apache-2.0
#include "base/finding.h"

#include <algorithm>

namespace plimsoll {

std::string_view to_string(FindingLevel level) {
  switch (level) {
    case FindingLevel::kInfo:
      return "info";
    case FindingLevel::kWarning:
      return "warning";
    case FindingLevel::kError:
      return "error";
  }
  return "error";
}

FindingLevel worst_level(const Findings& findings) {
  FindingLevel worst = FindingLevel::kInfo;
  for (const auto& finding : findings) worst = std::max(worst, finding.level);
  return worst;
}

}  // namespace plimsoll
