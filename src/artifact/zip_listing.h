// SPDX-License-Identifier: Apache-2.0
// Which members does a zip archive list, and how large are they? Reads the central directory alone, as
// torch's .bin and .pt files have it; no member is opened, unpacked or unpickled. Views the bytes; pure.
// Format: docs/formats/pickle.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace plimsoll::artifact {

struct ZipMember {
  std::string_view name;
  std::int64_t bytes = 0;         // unpacked
  std::int64_t stored_bytes = 0;  // in the archive
  bool is_packed = false;         // by some method; torch packs nothing
};

/// True when the bytes begin as a zip archive does.
bool looks_like_zip(std::span<const std::byte> file);

/// Visits the members in the order of the directory. The 64-bit directory is read where there is one.
/// Errors: kMalformed when there is no directory, or when it or a member cannot lie in the file.
Status for_each_zip_member(std::span<const std::byte> file, std::string_view path,
                           const std::function<void(const ZipMember&)>& visit);

}  // namespace plimsoll::artifact
