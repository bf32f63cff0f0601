// SPDX-License-Identifier: Apache-2.0
// Is this text the name of a tool, or prose that looks like a call? Answered by the request's tools; which
// text is asked about is left to the parsers. Owns its copy of the names; any number of threads may read one.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/json.h"

namespace plimsoll::text {

class ToolNames {
 public:
  /// `tools`: the request's, may be null.
  explicit ToolNames(const Json& tools);
  /// A declared name; without declared tools any of 1 to 64 letters, digits and _ . : / -.
  bool accepts(std::string_view name) const;

 private:
  std::set<std::string, std::less<>> declared_;
};

}  // namespace plimsoll::text
