// SPDX-License-Identifier: Apache-2.0
// Which members does a zip archive list, and how large are they? Reads the central directory alone, as
// torch's .bin and .pt files have it; no member is opened, unpacked or unpickled. Views the bytes; pure.
// Format: docs/formats/pickle.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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

struct ZipDirectory {
  std::uint64_t offset = 0, bytes = 0, count = 0;  // as stated: they may not fit the file
};
/// End records and the longest comment: where there is a directory, this much of a file's end names it.
inline constexpr std::size_t kZipTail = 66'000;
/// Where the directory is, from `tail`, the last bytes of a file of `file_bytes`; nothing when its end names
/// none. The 64-bit record is believed where it lies in `tail`.
std::optional<ZipDirectory> find_zip_directory(std::span<const std::byte> tail, std::uint64_t file_bytes);

/// Visits the members in the order of the directory. The 64-bit directory is read where there is one.
/// Errors: kMalformed when there is no directory, or when it or a member cannot lie in the file.
Status for_each_zip_member(std::span<const std::byte> file, std::string_view path,
                           const std::function<void(const ZipMember&)>& visit);

}  // namespace plimsoll::artifact
