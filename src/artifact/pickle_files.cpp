// SPDX-License-Identifier: Apache-2.0
#include "artifact/pickle_files.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifact/content.h"
#include "artifact/index_text.h"
#include "artifact/weights_files.h"
#include "artifact/zip_listing.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

constexpr std::string_view kIndexEnding = ".bin.index.json";
constexpr std::size_t kNamesShown = 5;

struct Archive {
  std::string name;
  bool is_zip = false;
  std::int64_t num_storages = 0;
  std::int64_t storage_bytes = 0;  // of the members below data/: one tensor's memory each
};

class PickleFiles {
 public:
  PickleFiles(ArtifactParts& parts, bool has_weights) : parts_(parts), has_weights_(has_weights) {}

  void tell() {
    for (const File& file : parts_.files)
      if (file.path.find('/') == std::string::npos && has_pickle_name(file.path)) look_at(file.path);
    if (!has_weights_) check_index();
    if (archives_.empty()) return;
    const std::string &where = archives_.front().name, sizes = describe();
    if (has_weights_)
      add("PICKLE_PRESENT", FindingLevel::kWarning, FindingKind::kCheckFailed, where,
          "a Python pickle lies beside the weights; it is ignored and never unpickled" + sizes,
          "remove it: loading a pickle runs its code");
    else
      add("PICKLE_ONLY", FindingLevel::kError, FindingKind::kUnsupported, where,
          "the only weights are a Python pickle; it is never unpickled, since loading runs its code" + sizes,
          "convert it to safetensors in a sandbox, or get a safetensors revision");
  }

 private:
  void add(std::string id, FindingLevel level, FindingKind kind, std::string where, std::string message,
           std::string fix) {
    parts_.findings.push_back(
        {std::move(id), level, kind, std::move(where), std::move(message), std::move(fix)});
  }

  void look_at(const std::string& name) {
    const auto mapped = MappedFile::open(parts_.folder + "/" + name);
    if (!mapped) return;
    const auto bytes = mapped->bytes();
    if (!looks_like_pickle(bytes)) {
      auto foreign = foreign_content(bytes, name);  // a pointer in place of the only weights
      if (has_weights_) return;
      if (foreign)
        parts_.findings.push_back(std::move(*foreign));
      else if (name.starts_with("pytorch_model") || name.starts_with("consolidated"))
        add("PICKLE_DAMAGED", FindingLevel::kError, FindingKind::kMalformed, name,
            fmt::format(
                "the file of {} bytes is under the name of a checkpoint of PyTorch, and neither a zip "
                "archive nor a pickle",
                bytes.size()),
            "download the file again");
      return;
    }
    Archive archive{name, looks_like_zip(bytes), 0, 0};
    if (archive.is_zip) list(bytes, archive);
    archives_.push_back(std::move(archive));
  }

  void list(std::span<const std::byte> bytes, Archive& archive) {
    const Status listed = for_each_zip_member(bytes, archive.name, [&](const ZipMember& member) {
      const std::size_t slash = member.name.find('/');
      if (slash == std::string_view::npos || !member.name.substr(slash).starts_with("/data/")) return;
      const auto sum = checked_sum(archive.storage_bytes, member.bytes);
      if (!sum) return;
      ++archive.num_storages;
      archive.storage_bytes = *sum;
    });
    if (listed) return;
    add("PICKLE_DAMAGED", has_weights_ ? FindingLevel::kWarning : FindingLevel::kError,
        FindingKind::kMalformed, archive.name, listed.error().message, listed.error().fix);
  }

  // "; pytorch_model.bin holds 12 tensor storages with 7264 bytes"
  std::string describe() const {
    std::int64_t storages = 0;
    std::optional<std::int64_t> bytes = 0;
    bool is_all_zip = true;
    for (const Archive& archive : archives_) {
      storages += archive.num_storages;
      bytes = bytes ? checked_sum(*bytes, archive.storage_bytes) : std::nullopt;
      is_all_zip &= archive.is_zip;
    }
    const std::string names =
        archives_.size() == 1 ? archives_.front().name : fmt::format("{} files", archives_.size());
    if (!is_all_zip || !bytes)
      return fmt::format("; {}: how many bytes are tensors is not known without running it", names);
    return fmt::format("; {} hold{} {} tensor storages with {} bytes", names,
                       archives_.size() == 1 ? "s" : "", storages, *bytes);
  }

  void check_index() {
    for (const File& file : parts_.files) {
      if (file.path.find('/') != std::string::npos || !file.path.ends_with(kIndexEnding)) continue;
      const auto index = read_index_text(parts_.folder + "/" + file.path, file.path, parts_.findings);
      if (!index) continue;
      parts_.index_total_size_bytes = index->total_size.as_integer();
      tell_absent(*index, file.path);
      return;
    }
  }

  void tell_absent(const IndexText& index, const std::string& where) {
    std::string names;
    std::size_t count = 0;
    for (const std::string& shard : index.shards) {
      if (find_file(parts_.files, shard) >= 0) continue;
      if (++count <= kNamesShown) names += (names.empty() ? "" : ", ") + shard;
    }
    if (count > kNamesShown) names += fmt::format(" and {} more", count - kNamesShown);
    if (count > 0)
      add("IDX_ABSENT_SHARD", FindingLevel::kError, FindingKind::kMalformed, where,
          fmt::format("the index names {} of {} files that are not in the folder: {}", count,
                      index.shards.size(), names),
          "download the missing files");
    if (!index.refused_values.empty())
      add("IDX_PATH", FindingLevel::kError, FindingKind::kMalformed, where,
          fmt::format("weight_map leads out of the model folder: {}; refused before any open",
                      index.refused_values.front()),
          "the index must name files of its own folder");
  }

  ArtifactParts& parts_;
  bool has_weights_;
  std::vector<Archive> archives_;
};

}  // namespace

std::optional<Finding> pickle_beside(std::span<const std::string_view> paths) {
  for (const std::string_view path : paths)
    if (path.find('/') == std::string_view::npos && has_pickle_name(path) && !path.starts_with("adapter"))
      return Finding{"PICKLE_PRESENT",
                     FindingLevel::kWarning,
                     FindingKind::kCheckFailed,
                     std::string(path),
                     "a file under the name of a Python pickle lies beside the weights; it is not downloaded",
                     "leave it out: loading a pickle runs its code"};
  return std::nullopt;
}

void note_pickles(ArtifactParts& parts, bool has_weights) {
  PickleFiles(parts, has_weights).tell();
}

}  // namespace plimsoll::artifact
