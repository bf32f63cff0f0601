// SPDX-License-Identifier: Apache-2.0
// What does one entry of a safetensors header say: {"dtype", "shape", "data_offsets"}? Sound entries are read
// in place; for all others the exact reader finds the words. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/finding_list.h"
#include "artifact/json_scan.h"

namespace plimsoll::artifact {

constexpr int kEntryDepth = 7;  // levels inside an entry: it has 2, strange writers may add some

/// Reads sound entries. Remembers the few spellings of dtypes that a file uses.
class PlainEntries {
 public:
  /// True when the entry is sound; else nothing is said of `tensor` or of the scan's position. `name` and
  /// `file` of the tensor are left alone.
  bool read_plain(JsonScan& scan, std::int64_t data_start, Tensor& tensor);

 private:
  // A beginning of an entry as this file has spelled it, up to its offsets, and what that says.
  struct Beginning {
    std::string_view text;
    Tensor tensor;
    std::size_t next = 0;  // of the entry that came behind the last one of these
  };

  const Beginning* beginning_of(std::string_view entry);
  bool read_like_another(JsonScan& scan, std::int64_t data_start, Tensor& tensor);
  bool read_dtype(JsonScan& scan, DType& dtype);
  void remember(std::string_view text, const Tensor& tensor);

  std::vector<Beginning> beginnings_;
  std::size_t last_ = 0;    // of the entry before
  std::size_t oldest_ = 0;  // the next to be replaced
  std::vector<std::pair<std::string_view, DType>> known_;
};

struct OddEntry {
  std::optional<Tensor> tensor;  // empty: the entry cannot be meant
  bool is_incomplete = false;    // its bytes in the file are not all accounted for
};
/// Reads an entry that is not plain, and tells what is wrong with it.
OddEntry read_odd_entry(std::string_view name, std::string_view text, std::int64_t data_start,
                        FindingList& findings);

}  // namespace plimsoll::artifact
