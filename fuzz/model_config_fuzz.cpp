// SPDX-License-Identifier: Apache-2.0
// Any JSON as a model's config: it becomes a spec or an error, never a crash, and the spec can be asked for
// bytes.
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "model/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = plimsoll::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  if (!config) return 0;
  const auto spec = plimsoll::model::read_spec(*config, "fuzz.json");
  (void)spec.has_value();
  return 0;
}
