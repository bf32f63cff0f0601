// SPDX-License-Identifier: Apache-2.0
// What does a *.safetensors.index.json or *.bin.index.json say: which file holds which tensor? Reads the text
// in one pass, for indices of 100,000 entries; whether the files keep the promise is for others. The result
// owns the text that its names view; one thread.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/json.h"
#include "base/mapped_file.h"

namespace plimsoll::artifact {

/// Larger indices are not read, here or on a hub.
constexpr std::int64_t kMaxIndexBytes = std::int64_t{128} << 20;

struct IndexText {
  struct Entry {
    std::string_view tensor;
    std::uint32_t shard = 0;  // index into shards
  };
  std::vector<Entry> entries;       // in the order of the text
  std::vector<std::string> shards;  // names inside the folder, in order of first mention
  Json total_size;                  // metadata.total_size as it stands

  std::vector<std::string> refused_values;  // that are no names inside the folder, as JSON; the first few
  std::set<std::string, std::less<>> refused_tensors;
  std::int64_t num_repeated = 0;  // keys given more than once, as far as they were looked for
  std::string first_repeated;

  MappedFile text;
  std::list<std::string> spelled;  // names with escapes

  /// Of entries for one tensor the last remains, as in Python. Looks at all names: for callers that met one
  /// twice.
  void keep_last_of_repeated();
};

/// Reads the index at `path`; `name` is its place in findings. Nothing when it is none: the finding
/// (IDX_JSON, LFS_POINTER, ...) is added then.
std::optional<IndexText> read_index_text(const std::string& path, const std::string& name,
                                         Findings& findings);

/// The same over text in memory, which must outlive the result.
std::optional<IndexText> read_index_text(std::string_view text, const std::string& name, Findings& findings);

}  // namespace plimsoll::artifact
