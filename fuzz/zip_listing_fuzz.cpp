// SPDX-License-Identifier: Apache-2.0
// The reader of zip directories over any bytes: no crash, no member larger than the file or with a negative
// size.
#include <cstddef>
#include <cstdint>
#include <span>

#include "artifact/zip_listing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto listed = plimsoll::artifact::for_each_zip_member(
      bytes, "input", [&](const plimsoll::artifact::ZipMember& member) {
        if (member.bytes < 0 || member.stored_bytes < 0 ||
            static_cast<std::uint64_t>(member.stored_bytes) > size)
          __builtin_trap();
      });
  (void)listed.has_value();
  return 0;
}
