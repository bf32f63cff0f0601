// SPDX-License-Identifier: Apache-2.0
#include "tests/text/template_rendering.h"

namespace plimsoll::text {
namespace {

constexpr const char* kNow = "2026-01-15T09:30:00";

}  // namespace

Rendered render(const std::string& source, const Json& context) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) return tl::unexpected(parsed.error());
  return (*parsed)->render(context, kNow);
}

}  // namespace plimsoll::text
