// SPDX-License-Identifier: Apache-2.0
// Lock records over any bytes: no crash, no path that leaves a folder, and what reads is written the same
// again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "artifact/hub/listing.h"
#include "artifact/lock.h"
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::artifact;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = plimsoll::parse_json(text, "input");
  if (!json) return 0;
  const auto record = read_lock(*json, "input");
  if (!record) return 0;
  for (const LockedFile& file : record->files)
    if (!is_safe_name(file.path) || file.bytes < 0) __builtin_trap();
  const auto again = read_lock(to_json(*record), "again");
  if (!again || again->commit != record->commit || again->files.size() != record->files.size())
    __builtin_trap();
  return 0;
}
