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

Json to_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back(Json::object({{"id", finding.id},
                                 {"level", to_string(finding.level)},
                                 {"where", finding.where},
                                 {"message", finding.message},
                                 {"fix", finding.fix.empty() ? Json() : Json(finding.fix)}}));
  return list;
}

}  // namespace plimsoll
