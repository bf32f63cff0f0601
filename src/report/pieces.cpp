// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/printable.h"
#include "base/utf8.h"
#include "report/report.h"

namespace plimsoll::report {
namespace {

// Backgrounds of the 256-colour table on which black and white text can be read, far apart for neighbours.
constexpr int kBackgrounds[] = {153, 157, 223, 218, 189};

std::string visible(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const DecodedChar next = decode_utf8(text);
    const char32_t c = next.code_point;
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += printable(text.substr(0, static_cast<std::size_t>(next.bytes)));
    text.remove_prefix(static_cast<std::size_t>(next.bytes));
  }
  return out;
}

}  // namespace

std::string side_by_side(std::span<const std::string> pieces, bool is_coloured) {
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (is_coloured)
      out += fmt::format("\033[30;48;5;{}m{}\033[0m", kBackgrounds[i % std::size(kBackgrounds)],
                         visible(pieces[i]));
    else
      out += (i > 0 ? "|" : "") + visible(pieces[i]);
  }
  return out;
}

bool stdout_takes_colours() {
  const char* refusal = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && !(refusal && *refusal);
}

}  // namespace plimsoll::report
