// SPDX-License-Identifier: Apache-2.0
// What does the header of one safetensors file say, and does it keep the format's rules?
// Reads the length field and the JSON header, never tensor data, in one pass. Pure; names are views into the
// bytes that were given, or into the result where the file spells them with escapes.
// Format and ids of findings: docs/formats/safetensors.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "base/finding.h"
#include "base/mapped_file.h"

namespace plimsoll::artifact {

struct SafetensorsHeader {
  bool is_readable = false;           // the header is JSON; tensors that break a rule alone are left out
  std::vector<Tensor> tensors;        // by offset; `file` is left 0
  std::vector<std::uint64_t> hashes;  // hash_of the name, per tensor
  std::list<std::string> spelled;     // blocks of names that are not views into the file
};

struct HeaderSource {
  std::span<const std::byte> bytes;        // the file, or its beginning with the whole header
  std::string_view path;                   // place of findings
  std::optional<std::int64_t> file_bytes;  // where `bytes` is only the beginning
  const MappedFile* mapping = nullptr;     // whose `bytes` are: pages of a very long header are given back
};

/// How much of a file its header takes, by its first eight bytes; all of a file that says nothing sensible.
std::size_t header_bytes(std::span<const std::byte> first, std::size_t file_bytes);

/// Reads the headers of many files, one after the other, into one list of tensors. One thread.
class HeaderListReader {
 public:
  /// `num_files`: that are to come, for the room of the list.
  explicit HeaderListReader(std::size_t num_files);
  HeaderListReader(const HeaderListReader&) = delete;
  HeaderListReader& operator=(const HeaderListReader&) = delete;
  ~HeaderListReader();

  /// Appends the tensors of a file, which are sorted among themselves. Findings as of read_safetensors.
  /// Returns whether the header is readable.
  bool read(const HeaderSource& source, Findings& findings);
  std::size_t num_tensors() const { return list_.tensors.size(); }
  /// The whole list; its is_readable says nothing.
  SafetensorsHeader take() { return std::move(list_); }

 private:
  struct Scratch;

  std::size_t num_files_;
  SafetensorsHeader list_;
  std::unique_ptr<Scratch> scratch_;
};

/// Reads the header of a file. Everything wrong is appended to `findings`. Tensors whose range leaves the
/// file are listed all the same (the header still counts them); reading their data fails.
SafetensorsHeader read_safetensors(const HeaderSource& source, Findings& findings);

}  // namespace plimsoll::artifact
