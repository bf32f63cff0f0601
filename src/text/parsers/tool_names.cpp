// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/tool_names.h"

#include <algorithm>

#include "text/parsers/markers.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxNameBytes = 64;  // OpenAI's limit

}  // namespace

ToolNames::ToolNames(const Json& tools) {
  for (const Json& entry : tools.items()) {
    const Json& function = entry.contains("function") ? entry["function"] : entry;
    if (const std::string* name = function["name"].as_string()) declared_.insert(*name);
  }
}

bool ToolNames::accepts(std::string_view name) const {
  if (!declared_.empty()) return declared_.contains(name);
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), is_tool_name_byte);
}

}  // namespace plimsoll::text
