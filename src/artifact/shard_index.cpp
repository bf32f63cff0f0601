// SPDX-License-Identifier: Apache-2.0
#include "artifact/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "artifact/folder.h"
#include "artifact/index_text.h"
#include "artifact/shard_headers.h"
#include "artifact/tensor_merge.h"

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kNamesShown = 5;
constexpr int kNotHere = -1;
constexpr std::string_view kMap = "/weight_map", kTotal = "/metadata/total_size";

// A key as a JSON pointer spells it.
std::string escaped(std::string_view key) {
  std::string text;
  for (const char c : key) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

// Names with one fault in common, told in one finding however many there are.
struct Names {
  std::vector<std::string> shown;
  std::size_t count = 0;
  void add(std::string_view name) {
    if (++count <= kNamesShown) shown.emplace_back(name.substr(0, 512));
  }
  // Where the first of them stands in the index.
  std::string place() const { return fmt::format("{}/{}", kMap, escaped(shown.front())); }
  std::string list() const {
    std::string text;
    for (const std::string& name : shown) text += (text.empty() ? "" : ", ") + name;
    if (count > shown.size()) text += fmt::format(" and {} more", count - shown.size());
    return text;
  }
};

class IndexReader {
 public:
  IndexReader(const std::string& index, ArtifactParts& parts) : index_(index), parts_(parts) {}

  std::vector<std::string> read(const std::vector<std::string>& likely) {
    std::optional<IndexText> text;
    ShardHeaders headers = read_shard_headers(parts_.folder, likely, [&] {
      text = read_index_text(parts_.folder + "/" + index_, index_, parts_.findings);
    });
    if (!text) return {};
    map_ = std::move(*text);
    parts_.index_total_size_bytes = map_.total_size.as_integer();
    tell_refused();
    const std::vector<std::string> present = present_shards();
    read_shards(present, likely, std::move(headers));
    match();
    tell_repeated();
    tell_map();
    check_total(map_.total_size);
    return present;
  }

 private:
  // A stretch of parts_.tensors that one shard gave, and where the next of its tensors is looked for first.
  struct Shard {
    int file = kNotHere;
    bool is_readable = false;
    std::uint32_t next = 0;
    std::size_t num_listed = 0;
  };

  // `pointer`: where in the index.
  void add(std::string id, FindingLevel level, FindingKind kind, std::string_view pointer,
           std::string message, std::string fix = {}) {
    parts_.findings.push_back({std::move(id), level, kind, fmt::format("{}: {}", index_, pointer),
                               std::move(message), std::move(fix)});
  }

  void tell_refused() {
    is_complete_ = map_.refused_values.empty();
    Names refused;
    for (const std::string& value : map_.refused_values) refused.add(value);
    if (refused.count != 0)
      add("IDX_PATH", FindingLevel::kError, FindingKind::kMalformed, kMap,
          fmt::format("the index names {}: only relative names inside the folder are followed",
                      refused.list()),
          "download the index again; it may name files of its own folder alone");
  }

  void tell_repeated() {
    if (map_.num_repeated != 0)
      add("IDX_DUP_KEY", FindingLevel::kWarning, FindingKind::kCheckFailed, kMap,
          fmt::format(
              "the index gives {} keys more than once, the first of them \"{}\"; Python takes the last",
              map_.num_repeated, map_.first_repeated),
          "write the index again");
  }

  // Sorted by name, so that tensors come in the order of the files.
  std::vector<std::string> present_shards() {
    shards_.resize(map_.shards.size());
    for (const auto& entry : map_.entries) ++shards_[entry.shard].num_listed;
    std::vector<std::pair<std::string, std::size_t>> order;
    for (std::size_t i = 0; i < map_.shards.size(); ++i)
      if (shards_[i].num_listed > 0) order.emplace_back(map_.shards[i], i);
    std::sort(order.begin(), order.end());
    std::vector<std::string> present;
    Names absent;
    std::size_t num_tensors = 0;
    for (const auto& [name, number] : order) {
      shards_[number].file = find_sorted_file(name);
      if (shards_[number].file != kNotHere) {
        present.push_back(name);
        present_.push_back(number);
        continue;
      }
      absent.add(fmt::format("{} ({} tensors)", name, shards_[number].num_listed));
      num_tensors += shards_[number].num_listed;
    }
    if (absent.count != 0)
      add("IDX_ABSENT_SHARD", FindingLevel::kError, FindingKind::kMalformed, kMap,
          fmt::format("the index names {} with {} tensors in all, not in the folder: {}",
                      absent.count == 1 ? "a file" : std::to_string(absent.count) + " files", num_tensors,
                      absent.list()),
          "download the missing files");
    return present;
  }

  // list_folder sorts by path.
  int find_sorted_file(std::string_view name) const {
    const auto found =
        std::lower_bound(parts_.files.begin(), parts_.files.end(), name,
                         [](const File& file, std::string_view path) { return file.path < path; });
    return found == parts_.files.end() || found->path != name
               ? kNotHere
               : static_cast<int>(found - parts_.files.begin());
  }

  void read_shards(const std::vector<std::string>& present, const std::vector<std::string>& likely,
                   ShardHeaders headers) {
    std::vector<std::size_t> order;  // of `present` in `headers`
    for (const std::string& name : present) {
      const auto found = std::lower_bound(likely.begin(), likely.end(), name);
      if (found != likely.end() && *found == name)
        order.push_back(static_cast<std::size_t>(found - likely.begin()));
    }
    if (order.size() < present.size()) {
      headers = read_shard_headers(parts_.folder, present);
      order.resize(present.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
    }
    for (std::size_t i = 0; i < present.size(); ++i)
      shards_[present_[i]].is_readable = headers.shards[order[i]].is_readable;
    const auto starts = merge_headers(std::move(headers), order, parts_,
                                      [&](std::size_t, const Tensor& tensor, std::uint32_t earlier) {
                                        doubled_.add(tensor.name);
                                        others_.emplace_back(earlier, tensor);
                                      });
    for (std::size_t i = 0; i < present.size(); ++i) shards_[present_[i]].next = starts[i];
  }

  // The tensor of this name, looked for first where its shard's last one was.
  std::optional<std::uint32_t> place_of(std::string_view name, Shard& shard) {
    auto& tensors = parts_.tensors;
    if (shard.next < tensors.size() && tensors[shard.next].name == name) return shard.next++;
    const auto found =
        parts_.names.find(hash_of(name), [&](std::uint32_t place) { return tensors[place].name == name; });
    if (found) shard.next = *found + 1;
    return found;
  }

  // Repeated keys are rare: they are looked for when a tensor is met twice, or not at all.
  void match() {
    // A tensor in two shards is counted once: where the index says, else where it is met first.
    std::sort(others_.begin(), others_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (match_entries()) return;
    const std::size_t before = map_.entries.size();
    map_.keep_last_of_repeated();
    if (map_.entries.size() < before) match_entries();
  }

  // False when an entry has no tensor, or one that an earlier entry has.
  bool match_entries() {
    bool is_one_to_one = true;
    absent_ = elsewhere_ = Names{};
    listed_.assign(parts_.tensors.size(), false);
    for (const auto& entry : map_.entries) {
      Shard& shard = shards_[entry.shard];
      const auto place = place_of(entry.tensor, shard);
      const bool is_told = shard.file == kNotHere || !shard.is_readable;  // the shard's own fault
      if (!place) {
        if (!is_told) absent_.add(entry.tensor);
        is_complete_ = is_one_to_one = false;
        continue;
      }
      is_one_to_one = is_one_to_one && !listed_[*place];
      listed_[*place] = true;
      if (parts_.tensors[*place].file != shard.file && !take_other(*place, shard.file) && !is_told)
        elsewhere_.add(entry.tensor);
    }
    return is_one_to_one;
  }

  // Puts the copy of a doubled tensor that lies in `file` in the place of the first one.
  bool take_other(std::uint32_t place, int file) {
    for (auto other = std::lower_bound(others_.begin(), others_.end(), place,
                                       [](const auto& pair, std::uint32_t at) { return pair.first < at; });
         other != others_.end() && other->first == place; ++other) {
      if (other->second.file != file) continue;
      parts_.tensors[place] = other->second;
      return true;
    }
    return false;
  }

  void tell_map() {
    using enum FindingLevel;
    const auto kind = FindingKind::kCheckFailed;
    Names unlisted;
    for (std::size_t i = 0; i < parts_.tensors.size(); ++i)
      if (!listed_[i] && !map_.refused_tensors.contains(parts_.tensors[i].name))
        unlisted.add(parts_.tensors[i].name);
    if (absent_.count != 0)
      add("IDX_ABSENT_TENSOR", kError, kind, absent_.place(),
          fmt::format("no shard holds {}, which the index names", absent_.list()),
          "download the shards and the index of one revision again");
    if (elsewhere_.count != 0)
      add("IDX_WRONG_SHARD", kError, kind, elsewhere_.place(),
          fmt::format("the index names the wrong shard for {}", elsewhere_.list()), "write the index again");
    if (unlisted.count != 0)
      add("IDX_UNLISTED_TENSOR", kWarning, kind, kMap,
          fmt::format("the shards hold {}, which the index does not list", unlisted.list()),
          "write the index again; loaders that go by it leave these tensors out");
    if (doubled_.count != 0)
      add("IDX_DUP_TENSOR", kWarning, kind, doubled_.place(),
          fmt::format("more than one shard holds {}; counted once", doubled_.list()),
          "keep each tensor in one shard, and write the index again");
  }

  void check_total(const Json& total) {
    if (total.is_null()) {
      add("IDX_NO_TOTAL", FindingLevel::kInfo, FindingKind::kCheckFailed, kTotal,
          "the index has no metadata.total_size; sizes come from the shards' headers",
          "nothing need be done; a current writer states it");
      return;
    }
    const bool has_unreadable = std::any_of(shards_.begin(), shards_.end(), [](const Shard& shard) {
      return shard.num_listed > 0 && (shard.file == kNotHere || !shard.is_readable);
    });
    if (!is_complete_ || has_unreadable) return;  // those faults are told already
    std::int64_t listed = 0, all = 0;
    for (std::size_t i = 0; i < parts_.tensors.size(); ++i) {
      all += parts_.tensors[i].bytes;
      if (listed_[i]) listed += parts_.tensors[i].bytes;
    }
    const auto stated = total.as_integer();
    if (!stated || (*stated != listed && *stated != all))
      add("IDX_TOTAL_SIZE", FindingLevel::kWarning, FindingKind::kCheckFailed, kTotal,
          fmt::format("metadata.total_size states {} bytes, the tensors have {}; the tensors' sum is used",
                      dump(total), listed),
          fmt::format("write {} there, or download the index again", listed));
  }

  std::string index_;
  ArtifactParts& parts_;
  IndexText map_;
  std::vector<Shard> shards_;  // as map_.shards
  std::vector<std::pair<std::uint32_t, Tensor>>
      others_;                        // copies of doubled tensors: place of the first, copy
  std::vector<std::size_t> present_;  // numbers of the shards that are here, by name
  std::vector<bool> listed_;          // as parts_.tensors
  Names doubled_, absent_, elsewhere_;
  bool is_complete_ = true;
};

}  // namespace

std::vector<std::string> read_indexed(const std::string& index, const std::vector<std::string>& likely,
                                      ArtifactParts& parts) {
  return IndexReader(index, parts).read(likely);
}

}  // namespace plimsoll::artifact
