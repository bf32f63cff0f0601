// SPDX-License-Identifier: Apache-2.0
#include "artifact/weights_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "artifact/content.h"
#include "artifact/folder.h"
#include "artifact/gguf_set.h"
#include "artifact/safetensors.h"
#include "artifact/shard_index.h"
#include "artifact/shard_name.h"

namespace plimsoll::artifact {
namespace {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

// Weights files directly in the folder whose names end so; deeper ones belong to other components.
std::vector<std::string> top_files(const ArtifactParts& parts, std::string_view ending) {
  std::vector<std::string> names;
  for (const File& file : parts.files)
    if (file.path.find('/') == std::string::npos && file.path.ends_with(ending)) names.push_back(file.path);
  return names;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Reads every listed file's header; tensors of a name seen before are left out and told.
void read_all(const std::vector<std::string>& names, ArtifactParts& parts) {
  std::set<std::string, std::less<>> seen;
  for (const std::string& name : names) {
    const int file = find_file(parts.files, name);
    for (Tensor& tensor : read_safetensors_file(parts, file).tensors) {
      if (!seen.insert(tensor.name).second) {
        parts.findings.push_back({"IDX_DUP_TENSOR",
                                  FindingLevel::kWarning,
                                  FindingKind::kCheckFailed,
                                  name + ": " + tensor.name,
                                  fmt::format("\"{}\" is in more than one shard; counted once", tensor.name),
                                  {}});
        continue;
      }
      parts.tensors.push_back(std::move(tensor));
    }
  }
}

// Shards without an index: complete when every number of the set is there.
void read_shards_by_name(const std::vector<std::string>& names, ArtifactParts& parts) {
  const auto first = shard_name(names.front());
  std::vector<std::string> present, absent;
  for (int i = 1; i <= first->count; ++i) {
    std::string name = first->of_number(i);
    (contains(names, name) ? present : absent).push_back(std::move(name));
  }
  const std::string where = names.front();
  if (absent.empty())
    parts.findings.push_back(
        {"IDX_MISSING", FindingLevel::kWarning, FindingKind::kCheckFailed, where,
         fmt::format("no {}; the {} shards were found by their names and are complete", kIndex, first->count),
         "transformers needs the index; vLLM does not"});
  else
    parts.findings.push_back({"IDX_MISSING", FindingLevel::kError, FindingKind::kMalformed, where,
                              fmt::format("no {}, and {} of {} shards are absent, the first of them {}",
                                          kIndex, absent.size(), first->count, absent.front()),
                              "download the missing files"});
  read_all(present, parts);
}

void note_other_sets(const std::vector<std::string>& all, const std::vector<std::string>& taken,
                     ArtifactParts& parts) {
  for (const std::string& name : all) {
    const bool is_set = name.starts_with("consolidated") || name.starts_with("model") || shard_name(name);
    if (!is_set || contains(taken, name)) continue;
    parts.findings.push_back(
        {"WEIGHTS_DUPLICATE_SET",
         FindingLevel::kInfo,
         FindingKind::kCheckFailed,
         name,
         fmt::format("{} is not part of the set that loaders take ({}); it is not counted", name,
                     taken.empty() ? std::string("none") : taken.front()),
         {}});
  }
}

// Returns true when the folder has a set of safetensors files.
bool read_safetensors_set(ArtifactParts& parts) {
  const auto all = top_files(parts, ".safetensors");
  const auto indices = top_files(parts, ".safetensors.index.json");
  std::vector<std::string> taken;
  if (contains(all, kSingle)) {
    taken = {std::string(kSingle)};
    if (contains(indices, kIndex)) {
      parts.findings.push_back(
          {"WEIGHTS_AMBIGUOUS", FindingLevel::kWarning, FindingKind::kCheckFailed, std::string(kIndex),
           "the folder has both model.safetensors and an index; the single file is taken, as "
           "transformers does, and the shards are not counted",
           "remove one of the two sets"});
      read_all(taken, parts);
      return true;
    }
    read_all(taken, parts);
  } else if (!indices.empty()) {
    taken = read_indexed(contains(indices, kIndex) ? std::string(kIndex) : indices.front(), parts);
  } else if (!all.empty()) {
    const auto sharded =
        std::find_if(all.begin(), all.end(), [](const auto& name) { return shard_name(name); });
    if (sharded != all.end()) {
      for (const auto& name : all)
        if (const auto shard = shard_name(name); shard && shard->same_set(*shard_name(*sharded)))
          taken.push_back(name);
      read_shards_by_name(taken, parts);
    } else {
      taken = {all.front()};
      read_all(taken, parts);
    }
  } else {
    return false;
  }
  note_other_sets(all, taken, parts);
  return true;
}

void note_pickles(ArtifactParts& parts, bool has_weights) {
  for (const char* ending : {".bin", ".pt", ".pth", ".ckpt"}) {
    for (const std::string& name : top_files(parts, ending)) {
      const auto mapped = MappedFile::open(parts.folder + "/" + name);
      if (!mapped || !looks_like_pickle(mapped->bytes())) continue;
      if (has_weights)
        parts.findings.push_back(
            {"PICKLE_PRESENT", FindingLevel::kWarning, FindingKind::kCheckFailed, name,
             "a Python pickle lies beside the weights; it is ignored and never unpickled",
             "remove it: loading a pickle runs its code"});
      else
        parts.findings.push_back(
            {"PICKLE_ONLY", FindingLevel::kError, FindingKind::kUnsupported, name,
             "the only weights are a Python pickle; it is never unpickled, since loading runs "
             "its code",
             "convert it to safetensors in a sandbox, or get a safetensors revision"});
    }
  }
}

}  // namespace

int find_file(const std::vector<File>& files, std::string_view path) {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const File& file) { return file.path == path; });
  return found == files.end() ? -1 : static_cast<int>(found - files.begin());
}

SafetensorsHeader read_safetensors_file(ArtifactParts& parts, int file) {
  const std::string& path = parts.files[static_cast<std::size_t>(file)].path;
  auto mapped = MappedFile::open(parts.folder + "/" + path);
  if (!mapped) {
    parts.findings.push_back({"FILE_UNREADABLE", FindingLevel::kError, FindingKind::kMalformed, path,
                              mapped.error().message, "check the file's permissions"});
    return {};
  }
  SafetensorsHeader header = read_safetensors(mapped->bytes(), path, parts.findings);
  for (Tensor& tensor : header.tensors) tensor.file = file;
  parts.mappings.emplace(file, std::move(*mapped));
  return header;
}

void read_folder_weights(ArtifactParts& parts) {
  bool has_weights = read_safetensors_set(parts);
  if (has_weights)
    parts.form = Form::kSafetensors;
  else if (const auto names = top_files(parts, ".gguf"); !names.empty())
    has_weights = read_folder_gguf(names, parts);
  note_pickles(parts, has_weights);
}

}  // namespace plimsoll::artifact
