// SPDX-License-Identifier: Apache-2.0
// The reader of shard indices over any bytes: no crash, and no name that leads out of the folder.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "artifact/folder.h"
#include "artifact/index_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::Findings findings;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = plimsoll::artifact::read_index_text(text, "input", findings);
  if (!index && findings.empty()) __builtin_trap();
  if (!index) return 0;
  for (const auto& entry : index->entries)
    if (entry.shard >= index->shards.size()) __builtin_trap();
  for (const auto& shard : index->shards)
    if (!plimsoll::artifact::is_inside(shard)) __builtin_trap();
  return 0;
}
