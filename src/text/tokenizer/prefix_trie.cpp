// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/prefix_trie.h"

#include <algorithm>

namespace plimsoll::text {
namespace {

// Free places that are tried for a node with several children before a new block is opened: more pack the
// array tighter and take longer.
constexpr int kMaxTries = 24;
constexpr std::uint32_t kBlock = 256;

std::uint64_t first_bytes(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8; ++i)
    word = word << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u);
  return word;
}

struct SortedKey {
  std::uint64_t head;  // most comparisons end here
  std::string_view bytes;
  std::int32_t value;
  std::uint32_t place;  // among the keys: of equal ones the last counts
};

std::vector<SortedKey> sort(const std::vector<PrefixTrie::Key>& keys) {
  std::vector<SortedKey> sorted;
  sorted.reserve(keys.size());
  for (const PrefixTrie::Key& key : keys)
    if (!key.bytes.empty())
      sorted.push_back(
          {first_bytes(key.bytes), key.bytes, key.value, static_cast<std::uint32_t>(sorted.size())});
  const auto is_less = [](const SortedKey& a, const SortedKey& b) {
    if (a.head != b.head) return a.head < b.head;
    const int order = a.bytes.compare(b.bytes);
    return order != 0 ? order < 0 : a.place < b.place;
  };
  std::sort(sorted.begin(), sorted.end(), is_less);
  return sorted;
}

}  // namespace

/// Places nodes depth first. Free units form a ring through `next` and `previous`, oldest first.
class PrefixTrieBuilder {
 public:
  PrefixTrieBuilder(std::vector<PrefixTrie::Unit>& units, const std::vector<SortedKey>& keys)
      : units_(units), keys_(keys) {
    units_.reserve(keys.size() * 5 + kBlock);
    open_block();
    take(PrefixTrie::kRoot, PrefixTrie::kRoot);
  }

  void build() {
    std::vector<Task> tasks{{0, keys_.size(), 0, PrefixTrie::kRoot}};
    while (!tasks.empty()) {
      Task task = tasks.back();
      tasks.pop_back();
      while (task.begin < task.end && keys_[task.begin].bytes.size() == task.depth)
        units_[task.node].value = keys_[task.begin++].value;
      if (task.begin == task.end) continue;
      children_.clear();
      for (std::size_t i = task.begin; i < task.end; ++i) {
        const auto byte = static_cast<unsigned char>(keys_[i].bytes[task.depth]);
        if (children_.empty() || children_.back().byte != byte) children_.push_back({byte, i});
      }
      const std::uint32_t base = find_base();
      units_[task.node].base = base;
      for (std::size_t i = 0; i < children_.size(); ++i) {
        const PrefixTrie::Node child = base ^ children_[i].byte;
        take(child, task.node);
        const std::size_t end = i + 1 < children_.size() ? children_[i + 1].begin : task.end;
        tasks.push_back({children_[i].begin, end, task.depth + 1, child});
      }
    }
  }

 private:
  struct Task {
    std::size_t begin, end;  // keys that share the bytes leading to `node`
    std::size_t depth;
    PrefixTrie::Node node;
  };
  struct Child {
    unsigned char byte;
    std::size_t begin;
  };
  struct Links {
    std::uint32_t next, previous;
  };
  static constexpr std::uint32_t kNone = PrefixTrie::kFree;

  bool fits(std::uint32_t base) const {
    return std::all_of(children_.begin(), children_.end(), [&](const Child& child) {
      return units_[base ^ child.byte].parent == PrefixTrie::kFree;
    });
  }

  std::uint32_t find_base() {
    const unsigned char first = children_.front().byte;
    std::uint32_t place = head_;
    for (int tries = 0; place != kNone && tries < kMaxTries; ++tries, place = links_[place].next)
      if (fits(place ^ first)) return place ^ first;
    place = tail_;
    for (int tries = 0; place != kNone && tries < kMaxTries; ++tries, place = links_[place].previous)
      if (fits(place ^ first)) return place ^ first;
    const auto block = static_cast<std::uint32_t>(units_.size());
    open_block();
    return block;
  }

  void open_block() {
    const auto begin = static_cast<std::uint32_t>(units_.size());
    units_.resize(units_.size() + kBlock);
    links_.resize(units_.size());
    for (std::uint32_t unit = begin; unit < begin + kBlock; ++unit) {
      links_[unit] = {kNone, tail_};
      (tail_ == kNone ? head_ : links_[tail_].next) = unit;
      tail_ = unit;
    }
  }

  void take(PrefixTrie::Node unit, PrefixTrie::Node parent) {
    const Links links = links_[unit];
    (links.previous == kNone ? head_ : links_[links.previous].next) = links.next;
    (links.next == kNone ? tail_ : links_[links.next].previous) = links.previous;
    units_[unit].parent = parent;
  }

  std::vector<PrefixTrie::Unit>& units_;
  const std::vector<SortedKey>& keys_;
  std::vector<Links> links_;
  std::vector<Child> children_;  // of the node being placed
  std::uint32_t head_ = kNone, tail_ = kNone;
};

PrefixTrie::PrefixTrie(std::vector<Key> keys) {
  const std::vector<SortedKey> sorted = sort(keys);
  PrefixTrieBuilder(units_, sorted).build();
  // The root is its own parent for the builder; no byte must lead back to it.
  units_[kRoot].parent = kFree;
}

std::optional<PrefixTrie::Node> PrefixTrie::node_of(std::string_view bytes) const {
  Node node = kRoot;
  for (const char c : bytes) {
    const Node child = units_[node].base ^ static_cast<unsigned char>(c);
    if (units_[child].parent != node) return std::nullopt;
    node = child;
  }
  return node;
}

}  // namespace plimsoll::text
