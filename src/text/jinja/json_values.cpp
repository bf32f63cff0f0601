// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/json_values.h"

#include <algorithm>
#include <new>

namespace plimsoll::text::jinja {
namespace {

constexpr std::size_t kBlockBytes = 8192;
constexpr std::size_t kMaxPlainMembers = 24;  // more: make_dict, which keeps an index

}  // namespace

template <class T>
T* JsonValues::room(std::size_t count) {
  // Nothing here is destroyed: borrowed values own nothing, and neither do containers of them.
  static_assert(alignof(T) <= alignof(std::max_align_t));
  constexpr std::size_t kAlign = alignof(std::max_align_t);
  const std::size_t bytes = (count * sizeof(T) + kAlign - 1) / kAlign * kAlign;
  if (bytes > free_bytes_) {
    const std::size_t size = std::max(bytes, kBlockBytes);
    blocks_.emplace_back(new std::byte[size]);  // not zeroed
    free_ = blocks_.back().get();
    free_bytes_ = size;
  }
  auto* found = reinterpret_cast<T*>(free_);
  free_ += bytes;
  free_bytes_ -= bytes;
  return found;
}

Value JsonValues::convert(const Json& json) {
  if (const std::string* text = json.as_string()) return Value::borrowed(*text);
  if (json.is_object()) return object(json);
  if (json.is_array()) return array(json);
  if (json.is_bool()) return *json.as_bool();
  if (json.is_integer()) return *json.as_integer();
  if (json.is_double()) return *json.as_double();
  return None{};
}

Value JsonValues::array(const Json& json) {
  if (++level_ > kMaxJsonDepth) is_too_deep_ = true;
  auto* made = new (room<Sequence>(1)) Sequence;
  if (!is_too_deep_ && json.size() > 0) {
    auto* items = room<Value>(json.size());
    std::size_t used = 0;
    for (const Json& item : json.items()) {
      const Value& value = *new (items + used++) Value(convert(item));
      made->depth = std::max(made->depth, value.depth() + 1);
      made->weight += value.weight();
    }
    made->items = {items, used};
  }
  --level_;
  return Value::borrowed(*made);
}

Value JsonValues::object(const Json& json) {
  if (++level_ > kMaxJsonDepth) is_too_deep_ = true;
  if (json.size() > kMaxPlainMembers && !is_too_deep_) {
    std::vector<Dict::Entry> entries;
    entries.reserve(json.size());
    for (const auto& [key, value] : json.members())
      entries.emplace_back(Value::borrowed(key), convert(value));
    --level_;
    return large_.emplace_back(make_dict(std::move(entries))).borrowed();
  }
  auto* made = new (room<Dict>(1)) Dict;
  if (!is_too_deep_ && json.size() > 0) {
    auto* entries = room<Dict::Entry>(json.size());
    std::size_t used = 0;
    for (const auto& [key, member] : json.members()) {
      const auto known = std::find_if(entries, entries + used,
                                      [&](const auto& entry) { return *entry.first.string() == key; });
      if (known != entries + used) {
        known->second = convert(member);
        continue;
      }
      new (entries + used++) Dict::Entry(Value::borrowed(key), convert(member));
    }
    for (const auto& [key, value] : std::span(entries, used)) {
      made->depth = std::max(made->depth, value.depth() + 1);
      made->weight += value.weight() + 1;
    }
    made->entries = {entries, used};
  }
  --level_;
  return Value::borrowed(*made);
}

}  // namespace plimsoll::text::jinja
