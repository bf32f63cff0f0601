// SPDX-License-Identifier: Apache-2.0
// Which GPUs compute a quantization format natively, and which only load it? One row per quant_method and
// format, in NVIDIA's compute capability, as vLLM 0.33.0's kernels ask for it. Constants; any thread may
// call.
#pragma once

#include <optional>
#include <string_view>

namespace plimsoll::facts {

struct FormatCapability {
  std::string_view method;  // quant_method of the config; "" for plain 16-bit weights
  std::string_view format;  // what the sub-format's name holds ("nvfp4"); "" for any
  int native = 0;           // 89 = 8.9: computes in this format
  int least = 0;  // loads it and computes wider (weight-only kernels, emulation); equal: nothing in between
  std::string_view below;  // what happens between `least` and `native`
  std::string_view source;
};

/// The row for a method and format (case does not count); null when none is known.
const FormatCapability* find_format_capability(std::string_view method, std::string_view format);

/// "8.9" as 89; nothing for what is no NVIDIA capability ("gfx942").
std::optional<int> parse_capability(std::string_view text);

}  // namespace plimsoll::facts
