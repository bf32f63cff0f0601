// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cstdio>
#include <cstdlib>

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

/// Text that may come from a file or a peer, fit for a terminal: control bytes escaped, a middle that is too
/// long cut.
std::string printable(const std::string& text) {
  constexpr std::size_t kLongest = 1000;
  constexpr char kHex[] = "0123456789abcdef";
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      shown += c;
    } else {
      shown += "\\x";
      shown += kHex[byte >> 4];
      shown += kHex[byte & 15];
    }
  }
  if (shown.size() > kLongest) shown.replace(kLongest / 2, shown.size() - kLongest, " ... ");
  return replace_invalid_utf8(shown);
}

}  // namespace

std::string Error::describe() const {
  std::string text = printable(message);
  if (!where.empty()) text += " (" + printable(where) + ")";
  if (!fix.empty()) text += "\n" + printable(fix);
  return text;
}

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "plimsoll: internal error: %.*s\n  %s does not hold at %s:%d; please report it\n",
               static_cast<int>(message.size()), message.data(), condition, file, line);
  std::_Exit(70);  // EX_SOFTWARE, the exit status promised for our own bugs
}

}  // namespace plimsoll
