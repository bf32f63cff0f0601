// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cstdio>
#include <cstdlib>

#include "base/printable.h"
#include "base/utf8.h"

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

namespace {

/// A part of an error on one line, with a middle that is too long cut.
std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 1000;
  std::string shown = printable(text);
  if (shown.size() > kLongest) shown.replace(kLongest / 2, shown.size() - kLongest, " ... ");
  return replace_invalid_utf8(shown);  // the cut may go through a character
}

}  // namespace

std::string Error::describe() const {
  std::string text = shortened(message);
  if (!where.empty()) text += " (" + shortened(where) + ")";
  if (!fix.empty()) text += "\n" + shortened(fix);
  return text;
}

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "plimsoll: internal error: %.*s\n  %s does not hold at %s:%d; please report it\n",
               static_cast<int>(message.size()), message.data(), condition, file, line);
  std::_Exit(70);  // EX_SOFTWARE, the exit status promised for our own bugs
}

}  // namespace plimsoll
