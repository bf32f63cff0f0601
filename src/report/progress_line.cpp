// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>

#include "base/printable.h"
#include "report/report.h"

namespace plimsoll::report {
namespace {
constexpr std::chrono::milliseconds kTerminalPause{250};
constexpr std::chrono::seconds kLogPause{5};
}  // namespace

ProgressLine::ProgressLine(bool is_quiet) : is_quiet_(is_quiet), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (has_open_line_) std::cerr << "\n";
}

bool ProgressLine::is_due() const {
  return !is_quiet_ && std::chrono::steady_clock::now() >= next_;
}

void ProgressLine::show(std::string_view text, bool is_last) {
  if (is_quiet_ || (!is_last && !is_due())) return;
  next_ = std::chrono::steady_clock::now() +
          (is_terminal_ ? std::chrono::steady_clock::duration(kTerminalPause) : kLogPause);
  // "\033[K" clears what a longer text left behind.
  if (is_terminal_)
    std::cerr << "\r" << printable(text) << "\033[K" << (is_last ? "\n" : "") << std::flush;
  else
    std::cerr << printable(text) << "\n";
  has_open_line_ = is_terminal_ && !is_last;
}

}  // namespace plimsoll::report
