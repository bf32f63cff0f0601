// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_kinds.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <utility>

#include "base/thread_pool.h"
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
  for (; at + 8 <= end; at += 8) {
    const std::uint64_t other = load_up_to_8(a.data() + at, 8) ^ load_up_to_8(b.data() + at, 8);
    if (other == 0) continue;
    if constexpr (std::endian::native == std::endian::little)
      return at + static_cast<std::size_t>(std::countr_zero(other)) / 8;
    break;
  }
  while (at < end && a[at] == b[at]) ++at;
  return at;
}

// npos where no segment of the name is a number.
std::size_t first_number_place(std::string_view name) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (is_number(name.substr(begin, end - begin))) return begin;
    begin = end + 1;
  }
  return std::string_view::npos;
}

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }();
  return value;
}

// Of a name without its numbers. Begins at a number of this process, so that no file can hold names that were
// made to collide.
std::uint64_t pattern_hash(std::string_view name) {
  std::uint64_t hash = seed();
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view segment = name.substr(begin, end - begin);
    begin = end + 1;
    if (is_number(segment)) {
      hash = mix(hash, '*');
      continue;
    }
    for (std::size_t at = 0; at < segment.size(); at += 8)
      hash = mix(hash, load_up_to_8(segment.data() + at, segment.size() - at));
    hash = mix(hash, segment.size());
  }
  return hash;
}

// Counts the kinds of neighbouring tensors. Files repeat themselves: after one kind there comes the one that
// came after it the last time, as a rule. Else open addressing over the hash of pattern, dtype and shape.
class KindCounter {
 public:
  explicit KindCounter(std::span<const artifact::Tensor> tensors) : tensors_(tensors), slots_(64) {}

  void count(std::size_t begin, std::size_t end) {
    result_.kind_of.reserve(end - begin);
    for (std::size_t position = begin; position < end; ++position) {
      const std::uint32_t index = next_kind(position);
      result_.kind_of.push_back(index);
      TensorKind& kind = result_.kinds[index];
      kind.count += 1;
      kind.bytes = capped_sum(kind.bytes, tensors_[position].bytes);
      const std::int64_t number = first_number(index);
      if (kind.runs.empty() || kind.runs.back().number != number) kind.runs.push_back({number, 0});
      kind.runs.back().count += 1;
    }
  }

  /// What `later` counted, which are the tensors behind those that were counted here.
  void append(const TensorKinds& later) {
    std::vector<std::uint32_t> here;
    here.reserve(later.kinds.size());
    for (const TensorKind& other : later.kinds) {
      here.push_back(look_up(other.first));
      TensorKind& kind = result_.kinds[here.back()];
      kind.count += other.count;
      kind.bytes = capped_sum(kind.bytes, other.bytes);
      std::span<const NumberRun> runs = other.runs;
      if (!kind.runs.empty() && kind.runs.back().number == runs.front().number) {
        kind.runs.back().count += runs.front().count;
        runs = runs.subspan(1);
      }
      kind.runs.insert(kind.runs.end(), runs.begin(), runs.end());
    }
    for (const std::uint32_t index : later.kind_of) result_.kind_of.push_back(here[index]);
  }

  TensorKinds take() { return std::move(result_); }

 private:
  static constexpr std::uint32_t kFree = 0xffffffff;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t kind = kFree;
  };

  std::uint32_t next_kind(std::size_t position) {
    const artifact::Tensor& tensor = tensors_[position];
    std::uint32_t index = last_ == kFree ? kFree : next_[last_];
    if (index == kFree || !is_kind_of(index, tensor)) {
      index = look_up(position);
      if (last_ != kFree) next_[last_] = index;
    }
    names_[index] = tensor.name;
    last_ = index;
    return index;
  }

  // In the name of the last tensor of the kind; -1 without any.
  std::int64_t first_number(std::uint32_t kind) const {
    const std::string_view name = names_[kind];
    const std::size_t at = number_at_[kind];
    if (at == std::string_view::npos) return -1;
    return number_of(name.substr(at, std::min(name.find('.', at), name.size()) - at));
  }

  std::uint32_t look_up(std::size_t position) {
    const artifact::Tensor& tensor = tensors_[position];
    std::uint64_t hash = mix(pattern_hash(tensor.name), static_cast<std::uint64_t>(tensor.dtype) + 1);
    for (const std::int64_t dimension : tensor.shape) hash = mix(hash, static_cast<std::uint64_t>(dimension));
    for (std::size_t at = hash;; ++at) {
      const Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.kind == kFree) return add(position, hash);
      if (slot.hash == hash && is_kind_of(slot.kind, tensor)) return slot.kind;
    }
  }

  bool is_kind_of(std::uint32_t kind, const artifact::Tensor& tensor) const {
    const TensorKind& known = result_.kinds[kind];
    return known.dtype == tensor.dtype &&
           std::equal(known.shape.begin(), known.shape.end(), tensor.shape.begin(), tensor.shape.end()) &&
           have_one_pattern(tensor.name, names_[kind]);
  }

  std::uint32_t add(std::size_t position, std::uint64_t hash) {
    if ((result_.kinds.size() + 1) * 2 > slots_.size()) grow();
    const artifact::Tensor& tensor = tensors_[position];
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
    next_.push_back(kFree);
    number_at_.push_back(first_number_place(tensor.name));
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

  std::span<const artifact::Tensor> tensors_;
  TensorKinds result_;
  std::uint32_t last_ = kFree;           // kind of the tensor before
  std::vector<std::string_view> names_;  // the latest of each kind: the next one differs in a number
  std::vector<std::uint32_t> next_;      // the kind that came behind this one the last time
  std::vector<std::size_t> number_at_;   // where the first number of its names begins, for all of them alike
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
  constexpr std::size_t kWorthAThread = 16'384;  // tensors that take as long as a thread to start
  const std::span<const artifact::Tensor> tensors = artifact.tensors();
  KindCounter first(tensors), second(tensors);
  if (tensors.size() < kWorthAThread) {
    first.count(0, tensors.size());
    return first.take();
  }
  const std::size_t middle = tensors.size() / 2;
  ThreadPool(2).run(2, [&](std::int64_t half, int) {
    half == 0 ? first.count(0, middle) : second.count(middle, tensors.size());
  });
  first.append(second.take());
  return first.take();
}

}  // namespace plimsoll::model
