// SPDX-License-Identifier: Apache-2.0
// What does the driver's own tool say of this machine's GPUs? Runs it once per call; any thread may call.
#pragma once

#include <string>

namespace plimsoll {

/// Lines of name, total memory, driver and compute capability, as facts::parse_nvidia_smi reads them; empty
/// where there is no such tool, or where it does not answer within 10 seconds.
std::string nvidia_smi_output();

}  // namespace plimsoll
