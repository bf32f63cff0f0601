// SPDX-License-Identifier: Apache-2.0
// What do the headers of a folder's safetensors files say? Reads many of them at a time, on two threads; what
// they say together is for tensor_merge.h. Owns what was read until it is merged.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "artifact/safetensors.h"
#include "base/finding.h"
#include "base/mapped_file.h"

namespace plimsoll::artifact {

struct ShardHeaders {
  struct Shard {
    std::string name;
    bool is_mapped = false, is_readable = false;
    std::size_t list = 0;              // of `lists`, which holds its tensors
    std::size_t first = 0, count = 0;  // where in that list
    MappedFile mapping;
    Findings findings;
  };
  std::vector<Shard> shards;               // as the names that were given
  std::array<SafetensorsHeader, 2> lists;  // one per thread: the first files in their order, then the others
};

/// Maps these files of `folder` and reads their headers. `beside` is work that needs none of them: it is done
/// first where the files are few, else meanwhile.
ShardHeaders read_shard_headers(const std::string& folder, const std::vector<std::string>& names,
                                const std::function<void()>& beside = {});

}  // namespace plimsoll::artifact
