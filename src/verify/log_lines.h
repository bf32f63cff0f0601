// SPDX-License-Identifier: Apache-2.0
// Inside the verify room: which words of which engine say what about memory? One table of lines, each a row
// of words and the field that the number behind them is; wording differs by release, so rows are many and
// code is little. Pure.
#pragma once

#include <string_view>

#include "verify/log_reader.h"

namespace plimsoll::verify {

/// How far a start is when a line is printed.
enum Phase { kNotKnown = 0, kConfigured, kLoading, kProfiled, kSized, kSummed, kAnywhere };

/// Reads the line into `run` and returns its phase; kNotKnown, and `run` as it was, for other lines.
Phase read_known_line(std::string_view line, EngineStart& run);

/// True for the sentence with which an engine refuses to start; its figures go into `run`.
bool read_refusal(std::string_view line, EngineStart& run);

/// True for a line with words of memory that no row knows.
bool speaks_of_memory(std::string_view line);

}  // namespace plimsoll::verify
