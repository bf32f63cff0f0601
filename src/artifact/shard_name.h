// SPDX-License-Identifier: Apache-2.0
// Names of split files: model-00001-of-00003.safetensors, name-00002-of-00005.gguf. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::artifact {

struct ShardName {
  std::string prefix;     // "model"
  std::string extension;  // ".safetensors", ".fp16.safetensors"
  int digits = 5;
  int number = 0;  // from 1
  int count = 0;

  std::string of_number(int other) const;
  bool same_set(const ShardName& other) const {
    return prefix == other.prefix && extension == other.extension && count == other.count;
  }
};

/// The parts of a split file's name; nothing when the name is no such. At most 100,000 parts.
std::optional<ShardName> shard_name(std::string_view name);

}  // namespace plimsoll::artifact
