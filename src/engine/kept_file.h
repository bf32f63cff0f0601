// SPDX-License-Identifier: Apache-2.0
// Files that the engine keeps for its next start: what model they belong to, and how they come to be whole or
// not at all. A KeptFileWriter owns its descriptor and its unfinished file; one thread each.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/hash.h"
#include "base/result.h"

namespace plimsoll::engine {

void add_text(Digest& digest, std::string_view text);
/// What results depend on of a model: its config, and names, shapes, types, sizes, times and samples of its
/// weights.
void add_model(Digest& digest, const artifact::Artifact& artifact);

/// Makes the folder of `path`, and removes what a process left there that was killed while it wrote.
/// Errors: kUsage naming the folder; `flag` is what named it.
Status make_room_for(const std::string& path, std::string_view flag);

/// A new file of the owner's beside `path`, written with its digest. What is not put in place is removed.
class KeptFileWriter {
 public:
  explicit KeptFileWriter(const std::string& path);
  KeptFileWriter(const KeptFileWriter&) = delete;
  KeptFileWriter& operator=(const KeptFileWriter&) = delete;
  ~KeptFileWriter();

  void add(std::span<const std::byte> data);
  template <class T>
  void add_number(const T& value) {
    add(std::as_bytes(std::span(&value, 1)));
  }
  /// Without a share in the digest: it takes as long as reading the file.
  void add_unchecked(std::span<const std::byte> data) { write(data); }
  /// Ends the file with its digest and puts it in place. The system's reason when something went wrong.
  std::optional<std::string> put_in_place(const std::string& path);

 private:
  void write(std::span<const std::byte> data);

  std::string temporary_;
  Digest digest_;
  int fd_ = -1;
  int error_ = 0;
};

}  // namespace plimsoll::engine
