// SPDX-License-Identifier: Apache-2.0
// What does the driver's own tool say of this machine's GPUs? Runs it once per call; any thread may call.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace plimsoll {

/// Lines of name, total memory, driver and compute capability, as facts::parse_nvidia_smi reads them; empty
/// where there is no such tool, or where it does not answer within 10 seconds.
std::string nvidia_smi_output();

/// Memory in use on all GPUs together, whoever uses it; absent where the tool does not say.
std::optional<Bytes> nvidia_smi_memory_used();
/// The sum of its lines of mebibytes, one GPU each; absent when one is no number ("[N/A]").
std::optional<Bytes> parse_memory_used(std::string_view lines);

}  // namespace plimsoll
