// SPDX-License-Identifier: Apache-2.0
#include "artifact/tensor_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "artifact/weights_files.h"

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kAhead = 12;  // names whose places in the table are fetched while others are looked up

// One list in the order of the files. The first thread's list is the beginning of it as a rule, and stays.
std::vector<std::uint64_t> join_lists(ShardHeaders& headers, std::span<const std::size_t> order,
                                      std::vector<std::uint32_t>& starts, ArtifactParts& parts) {
  std::size_t total = 0, num_kept = 0, kept = 0;
  for (const std::size_t number : order) {
    const auto& shard = headers.shards[number];
    starts.push_back(static_cast<std::uint32_t>(total));
    if (shard.list == 0 && shard.first == kept && kept == total) {
      kept += shard.count;
      ++num_kept;
    }
    total += shard.count;
  }
  auto& first = headers.lists[0];
  std::vector<std::uint64_t> hashes;
  if (kept != first.tensors.size()) {  // it holds others as well
    num_kept = 0;
    parts.tensors.reserve(total);
  } else {
    parts.tensors = std::move(first.tensors);
    hashes = std::move(first.hashes);
    parts.tensors.reserve(total);
  }
  for (const std::size_t number : order.subspan(num_kept)) {
    const auto& shard = headers.shards[number];
    auto& list = headers.lists[shard.list];
    const auto at = static_cast<std::ptrdiff_t>(shard.first),
               end = at + static_cast<std::ptrdiff_t>(shard.count);
    parts.tensors.insert(parts.tensors.end(), std::make_move_iterator(list.tensors.begin() + at),
                         std::make_move_iterator(list.tensors.begin() + end));
    hashes.insert(hashes.end(), list.hashes.begin() + at, list.hashes.begin() + end);
  }
  return hashes;
}

}  // namespace

std::vector<std::uint32_t> merge_headers(ShardHeaders headers, std::span<const std::size_t> order,
                                         ArtifactParts& parts, const OnRepeated& on_repeated) {
  std::vector<std::uint32_t> starts;
  const std::vector<std::uint64_t> hashes = join_lists(headers, order, starts, parts);
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto& shard = headers.shards[order[i]];
    const int file = find_file(parts.files, shard.name);
    const std::size_t end = starts[i] + shard.count;
    for (std::size_t place = starts[i]; place < end; ++place) parts.tensors[place].file = file;
    std::move(shard.findings.begin(), shard.findings.end(), std::back_inserter(parts.findings));
    if (shard.is_mapped) parts.mappings.emplace(file, std::move(shard.mapping));
  }
  for (auto& list : headers.lists) parts.held_texts.splice(parts.held_texts.end(), list.spelled);
  TensorMerge(parts, parts.tensors.size())
      .take_out_repeated(hashes, starts, [&](std::size_t start, const Tensor& tensor, std::uint32_t earlier) {
        on_repeated(order[start], tensor, earlier);
      });
  return starts;
}

TensorMerge::TensorMerge(ArtifactParts& parts, std::size_t count) : parts_(parts) {
  parts_.tensors.reserve(count);
  parts_.names.reset(count);
}

std::optional<std::uint32_t> TensorMerge::add(Tensor&& tensor, std::uint64_t hash) {
  const auto place = static_cast<std::uint32_t>(parts_.tensors.size());
  const auto earlier = parts_.names.insert(
      hash, place, [&](std::uint32_t other) { return parts_.tensors[other].name == tensor.name; });
  if (earlier) return earlier;
  count(tensor);
  parts_.tensors.push_back(std::move(tensor));
  return std::nullopt;
}

void TensorMerge::count(Tensor& tensor) {
  std::int64_t bytes = 0, elements = 0;
  if (__builtin_add_overflow(bytes_, tensor.bytes, &bytes) ||
      __builtin_add_overflow(elements_, tensor.elements(), &elements)) {
    if (!std::exchange(has_overflow_, true))
      parts_.findings.push_back(
          {"ST_SHAPE_OVERFLOW", FindingLevel::kError, FindingKind::kMalformed,
           fmt::format("{}: {}", parts_.files[static_cast<std::size_t>(tensor.file)].path, tensor.name),
           "the sizes of all tensors together do not fit 63 bits; this one is counted as empty",
           "download or convert the file again"});
    tensor.bytes = 0;
    tensor.shape = Shape{0};
    return;
  }
  bytes_ = bytes;
  elements_ = elements;
}

void TensorMerge::take_out_repeated(
    std::span<const std::uint64_t> hashes, std::vector<std::uint32_t>& starts,
    const std::function<void(std::size_t start, const Tensor&, std::uint32_t)>& tell) {
  auto& tensors = parts_.tensors;
  std::uint32_t kept = 0;
  std::size_t start = 0;  // of starts: the next to be reached
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (; start < starts.size() && starts[start] == i; ++start) starts[start] = kept;
    if (i + kAhead < hashes.size()) parts_.names.fetch(hashes[i + kAhead]);
    Tensor& tensor = tensors[i];
    const auto earlier = parts_.names.insert(
        hashes[i], kept, [&](std::uint32_t other) { return tensors[other].name == tensor.name; });
    if (earlier) {
      tell(start - 1, tensor, *earlier);
      continue;
    }
    count(tensor);
    if (kept != i) tensors[kept] = std::move(tensor);
    ++kept;
  }
  for (; start < starts.size(); ++start) starts[start] = kept;
  tensors.erase(tensors.begin() + kept, tensors.end());
}

}  // namespace plimsoll::artifact
