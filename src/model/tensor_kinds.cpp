// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_kinds.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include "base/units.h"

namespace plimsoll::model {
namespace {

constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads what it multiplies

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * kMix;
  return hash ^ hash >> 29;
}

std::uint64_t load_up_to_8(const char* text, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, text, std::min<std::size_t>(size, 8));
  return value;
}

bool is_number(std::string_view segment) {
  return !segment.empty() &&
         std::all_of(segment.begin(), segment.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t number_of(std::string_view digits) {
  std::int64_t number = 0;
  for (const char c : digits.substr(0, 18)) number = number * 10 + (c - '0');  // 18 digits fit 63 bits
  return number;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t end = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at + 8 <= end && load_up_to_8(a.data() + at, 8) == load_up_to_8(b.data() + at, 8)) at += 8;
  while (at < end && a[at] == b[at]) ++at;
  return at;
}

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }();
  return value;
}

// Hashes names without their numbers. A name shares its first segments with the one before it as a rule, so
// the state after each segment is kept and only the rest is looked at.
class NameScanner {
 public:
  struct State {
    std::size_t begin = 0;  // of the segment to come
    std::uint64_t hash = 0;
    std::int64_t first_number = -1;
  };

  State scan(std::string_view name) {
    const std::size_t shared = common_prefix(name, last_);
    while (states_.size() > 1 && states_.back().begin > shared) states_.pop_back();
    last_ = name;
    State state = states_.back();
    while (state.begin <= name.size()) {
      const std::size_t end = std::min(name.find('.', state.begin), name.size());
      add_segment(name.substr(state.begin, end - state.begin), state);
      state.begin = end + 1;
      if (end < name.size()) states_.push_back(state);
    }
    return state;
  }

 private:
  static void add_segment(std::string_view segment, State& state) {
    if (is_number(segment)) {
      if (state.first_number < 0) state.first_number = number_of(segment);
      state.hash = mix(state.hash, '*');
      return;
    }
    for (std::size_t at = 0; at < segment.size(); at += 8)
      state.hash = mix(state.hash, load_up_to_8(segment.data() + at, segment.size() - at));
    state.hash = mix(state.hash, segment.size());
  }

  std::string_view last_;
  // Hashes begin at a number of this process, so that no file can hold names that were made to collide.
  std::vector<State> states_{State{0, seed(), -1}};
};

// Open addressing over the hash of pattern, dtype and shape.
class KindTable {
 public:
  explicit KindTable(TensorKinds& result) : result_(result), slots_(64) {}

  std::uint32_t index_of(const artifact::Tensor& tensor, std::uint64_t hash, std::size_t position) {
    hash = mix(hash, static_cast<std::uint64_t>(tensor.dtype) + 1);
    for (const std::int64_t dimension : tensor.shape) hash = mix(hash, static_cast<std::uint64_t>(dimension));
    for (std::size_t at = hash;; ++at) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.kind == kFree) return add(tensor, hash, position);
      if (slot.hash != hash || !is_kind_of(slot.kind, tensor)) continue;
      names_[slot.kind] = tensor.name;
      return slot.kind;
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0xffffffff;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t kind = kFree;
  };

  bool is_kind_of(std::uint32_t kind, const artifact::Tensor& tensor) const {
    const TensorKind& known = result_.kinds[kind];
    return known.dtype == tensor.dtype && have_one_pattern(tensor.name, names_[kind]) &&
           std::equal(known.shape.begin(), known.shape.end(), tensor.shape.begin(), tensor.shape.end());
  }

  std::uint32_t add(const artifact::Tensor& tensor, std::uint64_t hash, std::size_t position) {
    if ((result_.kinds.size() + 1) * 2 > slots_.size()) grow();
    TensorKind kind;
    kind.pattern = name_pattern(tensor.name);
    kind.dtype = tensor.dtype;
    kind.shape.assign(tensor.shape.begin(), tensor.shape.end());
    kind.elements = 1;
    for (const std::int64_t dimension : kind.shape) kind.elements = capped_product(kind.elements, dimension);
    kind.first = position;
    const auto index = static_cast<std::uint32_t>(result_.kinds.size());
    result_.kinds.push_back(std::move(kind));
    names_.push_back(tensor.name);
    place(hash, index);
    return index;
  }

  void place(std::uint64_t hash, std::uint32_t kind) {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].kind != kFree) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {hash, kind};
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.kind != kFree) place(slot.hash, slot.kind);
  }

  TensorKinds& result_;
  std::vector<std::string_view> names_;  // the latest of each kind: the next one differs in a number
  std::vector<Slot> slots_;              // a power of two of them, at most half in use
};

}  // namespace

std::int64_t capped_sum(std::int64_t a, std::int64_t b) {
  return checked_sum(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}

std::int64_t capped_product(std::int64_t a, std::int64_t b) {
  return checked_product(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}

std::int64_t TensorKind::total_elements() const {
  return capped_product(elements, count);
}

bool have_one_pattern(std::string_view a, std::string_view b) {
  for (std::size_t i = 0, j = 0;;) {
    const std::size_t shared = common_prefix(a.substr(i), b.substr(j));
    std::size_t back = 0;  // to where the segment begins in which they part
    while (back < shared && a[i + shared - 1 - back] != '.') ++back;
    i += shared, j += shared;
    if (i == a.size() && j == b.size()) return true;
    i -= back, j -= back;
    const std::size_t end = std::min(a.find('.', i), a.size()), other = std::min(b.find('.', j), b.size());
    if (!is_number(a.substr(i, end - i)) || !is_number(b.substr(j, other - j))) return false;
    i = end, j = other;
  }
}

std::string name_pattern(std::string_view name) {
  std::string pattern;
  pattern.reserve(name.size());
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view segment = name.substr(begin, end - begin);
    pattern += is_number(segment) ? std::string_view("*") : segment;
    if (end < name.size()) pattern += '.';
    begin = end + 1;
  }
  return pattern;
}

TensorKinds tensor_kinds(const artifact::Artifact& artifact) {
  const auto& tensors = artifact.tensors();
  TensorKinds result;
  result.kind_of.reserve(tensors.size());
  NameScanner scanner;
  KindTable table(result);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto state = scanner.scan(tensors[i].name);
    const std::uint32_t index = table.index_of(tensors[i], state.hash, i);
    result.kind_of.push_back(index);
    TensorKind& kind = result.kinds[index];
    kind.count += 1;
    kind.bytes = capped_sum(kind.bytes, tensors[i].bytes);
    if (kind.runs.empty() || kind.runs.back().number != state.first_number)
      kind.runs.push_back({state.first_number, 0});
    kind.runs.back().count += 1;
  }
  return result;
}

}  // namespace plimsoll::model
