// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace plimsoll {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return "usage";
    case ErrorCode::kMalformed:
      return "malformed";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kNetwork:
      return "network";
    case ErrorCode::kNo:
      return "no";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

std::string Error::describe() const {
  std::string text = message;
  if (!where.empty()) text += " (" + where + ")";
  if (!fix.empty()) text += "\n" + fix;
  return text;
}

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "plimsoll: internal error: %.*s\n  %s does not hold at %s:%d; please report it\n",
               static_cast<int>(message.size()), message.data(), condition, file, line);
  std::_Exit(70);  // EX_SOFTWARE, the exit status promised for our own bugs
}

}  // namespace plimsoll
