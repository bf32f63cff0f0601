// SPDX-License-Identifier: Apache-2.0
// Which keys does a text start with? A double-array trie over the bytes of up to millions of keys: one array
// read per byte of the text. Knows no tokenizer; values are the caller's. Owns its array; keys may go after
// building. Read-only then, for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace plimsoll::text {

class PrefixTrie {
 public:
  struct Key {
    std::string_view bytes;
    std::int32_t value = 0;  // not negative
  };
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;

  PrefixTrie() : PrefixTrie(std::vector<Key>{}) {}
  /// Of equal keys the last one counts; empty keys are never found.
  explicit PrefixTrie(std::vector<Key> keys);

  /// The node that `bytes` lead to from the root, when some key goes on from there or ends there.
  std::optional<Node> node_of(std::string_view bytes) const;

  /// Calls found(length, value) for each key that `text` starts with, shortest first. Started at another node
  /// than the root, keys are taken without the bytes that led there.
  template <class Found>
  void each_prefix(std::string_view text, Found&& found, Node node = kRoot) const {
    for (std::size_t at = 0; at < text.size(); ++at) {
      const Node child = units_[node].base ^ static_cast<unsigned char>(text[at]);
      if (units_[child].parent != node) return;
      node = child;
      if (units_[node].value >= 0) found(at + 1, units_[node].value);
    }
  }

 private:
  struct Unit {
    std::uint32_t base = 0;  // child of byte b: unit base ^ b, if its parent is this unit
    std::uint32_t parent = kFree;
    std::int32_t value = -1;  // -1: no key ends here
  };
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};
  friend class PrefixTrieBuilder;

  std::vector<Unit> units_;  // a multiple of 256, so that base ^ b stays inside
};

}  // namespace plimsoll::text
