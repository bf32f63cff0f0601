// SPDX-License-Identifier: Apache-2.0
// The conversation as values: strings stay where the JSON holds them, containers lie in blocks that are freed
// together. Values made here are borrowed: the JSON and this object must outlive them. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/json.h"
#include "text/jinja/value.h"

namespace plimsoll::text::jinja {

class JsonValues {
 public:
  JsonValues() = default;
  JsonValues(const JsonValues&) = delete;
  JsonValues& operator=(const JsonValues&) = delete;
  /// The value of this tree. Trees nested deeper than kMaxJsonDepth are refused.
  Value convert(const Json& json);
  bool is_too_deep() const { return is_too_deep_; }

 private:
  static constexpr int kMaxJsonDepth = 400;  // the parser's bound, twice: arguments of tool calls are opened

  Value array(const Json& json);
  Value object(const Json& json);
  /// Room for `count` objects, not yet constructed.
  template <class T>
  T* room(std::size_t count);

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  static constexpr std::size_t kFirstBytes = 6000;          // enough for most conversations
  alignas(std::max_align_t) std::byte first_[kFirstBytes];  // not zeroed
  std::byte* free_ = first_;
  std::size_t free_bytes_ = kFirstBytes / alignof(std::max_align_t) * alignof(std::max_align_t);
  std::vector<Value> large_;  // dicts with an index: they own memory
  int level_ = 0;
  bool is_too_deep_ = false;
};

}  // namespace plimsoll::text::jinja
