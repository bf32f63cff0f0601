// SPDX-License-Identifier: Apache-2.0
#include "artifact/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "artifact/folder.h"
#include "artifact/weights_files.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kMaxIndexBytes = 256 * kMiB;
constexpr std::size_t kNamesShown = 5;

// Names with one fault in common, told in one finding however many there are.
struct Names {
  std::vector<std::string> names;
  std::string list() const {
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += (i ? ", " : "") + names[i];
    if (names.size() > kNamesShown) text += fmt::format(" and {} more", names.size() - kNamesShown);
    return text;
  }
};

class IndexReader {
 public:
  IndexReader(const std::string& index, ArtifactParts& parts) : index_(index), parts_(parts) {}

  std::vector<std::string> read() {
    auto json = read_json_with_bom(parts_.folder + "/" + index_, kMaxIndexBytes);
    if (!json || !json->value["weight_map"].is_object()) {
      add("IDX_JSON", FindingLevel::kError, FindingKind::kMalformed,
          json ? std::string("the index has no object \"weight_map\"") : json.error().message,
          "download it again");
      return {};
    }
    read_weight_map(json->value["weight_map"]);
    for (const std::string& shard : shards_) read_shard(shard);
    check_map();
    check_total(json->value["metadata"]["total_size"]);
    std::vector<std::string> read;
    for (const auto& shard : shards_)
      if (find_file(parts_.files, shard) >= 0) read.push_back(shard);
    return read;
  }

 private:
  void add(std::string id, FindingLevel level, FindingKind kind, std::string message, std::string fix = {}) {
    parts_.findings.push_back({std::move(id), level, kind, index_, std::move(message), std::move(fix)});
  }

  void read_weight_map(const Json& map) {
    Names refused;
    for (const auto& [tensor, value] : map.members()) {
      const std::string* shard = value.as_string();
      if (!shard || !is_inside(*shard)) {
        const std::string shown = dump(value);
        if (std::find(refused.names.begin(), refused.names.end(), shown) == refused.names.end())
          refused.names.push_back(shown);
        is_complete_ = false;
        refused_tensors_.insert(tensor);
        continue;
      }
      shards_.insert(*shard);
      shard_of_.insert_or_assign(tensor, *shard);
    }
    if (!refused.names.empty())
      add("IDX_PATH", FindingLevel::kError, FindingKind::kMalformed,
          fmt::format("weight_map leads out of the model folder: {}; refused before any open",
                      refused.list()),
          "the index must name files of its own folder");
  }

  void read_shard(const std::string& shard) {
    const int file = find_file(parts_.files, shard);
    if (file < 0) {
      add("IDX_ABSENT_SHARD", FindingLevel::kError, FindingKind::kMalformed,
          fmt::format("the index names {}, which is not in the folder", shard), "download the missing file");
      unreadable_.insert(shard);
      return;
    }
    SafetensorsHeader header = read_safetensors_file(parts_, file);
    if (!header.is_readable) unreadable_.insert(shard);
    for (Tensor& tensor : header.tensors) take(std::move(tensor), shard);
  }

  // A tensor in two shards is counted once: where the index says, else where it is met first.
  void take(Tensor tensor, const std::string& shard) {
    const auto mapped = shard_of_.find(tensor.name);
    if (mapped == shard_of_.end() && !refused_tensors_.contains(tensor.name))
      unlisted_.names.push_back(tensor.name);
    const auto [known, is_new] = position_.emplace(tensor.name, parts_.tensors.size());
    if (is_new) {
      parts_.tensors.push_back(std::move(tensor));
      return;
    }
    doubled_.names.push_back(tensor.name);
    if (mapped != shard_of_.end() && mapped->second == shard)
      parts_.tensors[known->second] = std::move(tensor);
  }

  void check_map() {
    Names absent, elsewhere;
    for (const auto& [tensor, shard] : shard_of_) {
      const auto found = position_.find(tensor);
      if (found == position_.end()) {
        if (!unreadable_.contains(shard)) absent.names.push_back(tensor);
        is_complete_ = false;
      } else if (parts_.files[static_cast<std::size_t>(parts_.tensors[found->second].file)].path != shard &&
                 !unreadable_.contains(shard)) {
        elsewhere.names.push_back(tensor);
      }
    }
    using enum FindingLevel;
    const auto kind = FindingKind::kCheckFailed;
    if (!absent.names.empty())
      add("IDX_ABSENT_TENSOR", kError, kind,
          fmt::format("no shard holds {}, which the index names", absent.list()));
    if (!elsewhere.names.empty())
      add("IDX_WRONG_SHARD", kError, kind,
          fmt::format("the index names the wrong shard for {}", elsewhere.list()), "write the index again");
    if (!unlisted_.names.empty())
      add("IDX_UNLISTED_TENSOR", kWarning, kind,
          fmt::format("the shards hold {}, which the index does not list", unlisted_.list()));
    if (!doubled_.names.empty())
      add("IDX_DUP_TENSOR", kWarning, kind,
          fmt::format("more than one shard holds {}; counted once", doubled_.list()));
  }

  void check_total(const Json& total) {
    if (total.is_null()) {
      add("IDX_NO_TOTAL", FindingLevel::kInfo, FindingKind::kCheckFailed,
          "the index has no metadata.total_size; sizes come from the shards' headers");
      return;
    }
    if (!is_complete_ || !unreadable_.empty()) return;  // those faults are told already
    std::int64_t listed = 0, all = 0;
    for (const Tensor& tensor : parts_.tensors) {
      all += tensor.bytes;
      if (shard_of_.contains(tensor.name)) listed += tensor.bytes;
    }
    const auto stated = total.as_integer();
    if (!stated || (*stated != listed && *stated != all))
      add("IDX_TOTAL_SIZE", FindingLevel::kWarning, FindingKind::kCheckFailed,
          fmt::format("metadata.total_size states {} bytes, the tensors have {}; the tensors' sum is used",
                      dump(total), listed));
  }

  std::string index_;
  ArtifactParts& parts_;
  std::set<std::string> shards_;
  std::map<std::string, std::string> shard_of_;
  std::set<std::string> unreadable_;                       // shards that gave no tensor list
  std::set<std::string> refused_tensors_;                  // listed under a name that is not followed
  std::unordered_map<std::string, std::size_t> position_;  // of a tensor in parts_.tensors
  Names unlisted_, doubled_;
  bool is_complete_ = true;
};

}  // namespace

std::vector<std::string> read_indexed(const std::string& index, ArtifactParts& parts) {
  return IndexReader(index, parts).read();
}

}  // namespace plimsoll::artifact
