// SPDX-License-Identifier: Apache-2.0
// Files as bytes: mapped read-only (weights), or read whole with a limit (configs).
// A MappedFile owns its mapping and is movable; its bytes stay at one address for its life and may be read by
// any thread. Opening the first one installs a handler of SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace plimsoll {

class MappedFile {
 public:
  /// Maps a regular file for reading; an empty file maps to no bytes.
  /// Errors: kMalformed when it is absent, no regular file, or cannot be opened.
  static Result<MappedFile> open(const std::string& path);

  /// How much of a file is wanted, by its first bytes (8, or all of a shorter file) and its size.
  using BytesWanted = std::size_t (*)(std::span<const std::byte> first, std::size_t file_bytes);
  /// The same for the beginning of a file alone: what is not mapped need not be unmapped, which for a file of
  /// gigabytes takes as long as reading its header.
  static Result<MappedFile> open_beginning(const std::string& path, BytesWanted wanted);
  /// The whole of a file whose beginning is mapped here. Errors: also kMalformed when another file has taken
  /// its place, or it was written to, since.
  Result<MappedFile> open_whole(const std::string& path) const;

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Of the file as it was opened; bytes() may be its beginning.
  std::size_t file_bytes() const { return identity_.bytes; }
  /// True when the file became shorter while it was mapped and somebody read behind its new end: instead of a
  /// SIGBUS, which would end the process, such bytes read as zeros from then on.
  bool was_cut() const;
  /// True when that happened to any file that this process ever mapped: results may rest on zeros.
  static bool any_was_cut();
  /// `part` of bytes() is not needed now: it stays readable, its pages need not stay in memory.
  void release(std::span<const std::byte> part) const;

 private:
  // Two files that agree in this are one, and nobody wrote to it in between.
  struct Identity {
    std::size_t bytes = 0;
    std::uint64_t device = 0, number = 0;
    std::int64_t written_s = 0, written_ns = 0;
    bool operator==(const Identity&) const = default;
  };

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Identity identity_;
  int watch_ = -1;  // in the table of mappings that the handler of SIGBUS looks through; -1: not in it
};

/// The whole file. Errors: kMalformed when absent, unreadable, no regular file, or larger than `max_bytes`.
Result<std::string> read_file(const std::string& path, std::int64_t max_bytes = std::int64_t{256} << 20);

/// Writes the whole file: atomically (a temporary file beside it, then a rename) when `path` is a regular
/// file or not there, in place when it is something else (a device, a pipe). Links are followed, never
/// replaced; a file that is there keeps its mode. Errors: kUsage naming `path` and the system's reason.
Status write_file(const std::string& path, std::string_view content);

}  // namespace plimsoll
