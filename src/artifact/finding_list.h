// SPDX-License-Identifier: Apache-2.0
// How are a million faults of one file told? The first ones of each id as findings of their own, the rest in
// one line, so that a hostile file cannot fill the memory. Appends to the caller's list; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"

namespace plimsoll::artifact {

class FindingList {
 public:
  FindingList(std::string path, Findings& findings) : path_(std::move(path)), findings_(findings) {}
  FindingList(const FindingList&) = delete;
  FindingList& operator=(const FindingList&) = delete;
  ~FindingList();  // tells how many were not listed

  /// `place` within the file. Always false, so that a reader can `return add(...)`.
  bool add(std::string_view id, std::string_view place, std::string message,
           FindingLevel level = FindingLevel::kError,
           std::string_view fix = "download or convert the file again",
           FindingKind kind = FindingKind::kMalformed);

 private:
  struct Count {
    std::string id;
    FindingLevel level;
    FindingKind kind;
    std::int64_t added = 0;
  };

  std::string path_;
  Findings& findings_;
  std::vector<Count> counts_;  // a handful of ids
};

}  // namespace plimsoll::artifact
