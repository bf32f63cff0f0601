// SPDX-License-Identifier: Apache-2.0
// What besides its tokens tells the content of a block apart? Salt and adaptor count in the first block of a
// sequence and so, through the chain, in all behind it; images and the like count where they stand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

class ContentKey {
 public:
  ContentKey() = default;
  ContentKey(std::string_view cache_salt, std::string_view adapter, std::vector<ForeignContent> contents);

  /// The key of one block; `scratch` may hold it. Empty for most blocks. No two different contents give the
  /// same one.
  std::string_view of_block(std::int64_t block, int block_size, std::string& scratch) const;

 private:
  std::string first_;  // of the first block
  std::vector<ForeignContent> contents_;
};

}  // namespace plimsoll::schedule
