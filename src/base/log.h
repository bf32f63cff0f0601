// SPDX-License-Identifier: Apache-2.0
// Lines for people on stderr, with time and level; stdout belongs to results. What steers a terminal is
// escaped. Any thread may call.
#pragma once

#include <string_view>

#include "base/result.h"

namespace plimsoll {

enum class LogLevel { kQuiet, kNormal, kVerbose };
void set_log_level(LogLevel level);

void log_info(std::string_view line);     // shown unless quiet
void log_warning(std::string_view line);  // always shown
void log_warning(const Error& error);     // sentence, place and advice in one line
void log_debug(std::string_view line);    // shown with -v

}  // namespace plimsoll
