// SPDX-License-Identifier: Apache-2.0
#include "artifact/weights_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "artifact/finding_list.h"
#include "artifact/gguf_set.h"
#include "artifact/index_text.h"
#include "artifact/pickle_files.h"
#include "artifact/shard_headers.h"
#include "artifact/shard_index.h"
#include "artifact/shard_name.h"
#include "artifact/tensor_merge.h"
#include "artifact/weight_set.h"

namespace plimsoll::artifact {
namespace {

constexpr std::string_view kEnding = ".safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

// Reads every listed file's header; tensors of a name seen before are left out and told.
void read_all(const std::vector<std::string>& names, ArtifactParts& parts) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  merge_headers(read_shard_headers(parts.folder, names), order, parts,
                [&](std::size_t shard, const Tensor& tensor, std::uint32_t) {
                  FindingList(names[shard], parts.findings)
                      .add("IDX_DUP_TENSOR", tensor.name,
                           fmt::format("\"{}\" is in more than one shard; counted once", tensor.name),
                           FindingLevel::kWarning, "keep the tensor in one file", FindingKind::kCheckFailed);
                });
}

// Shards without an index: complete when every number of the set is there.
void read_shards_by_name(const std::vector<std::string>& names, ArtifactParts& parts) {
  const auto first = shard_name(names.front());
  std::vector<std::string> present, absent;
  for (int i = 1; i <= first->count; ++i) {
    std::string name = first->of_number(i);
    const bool is_here = std::binary_search(names.begin(), names.end(), name);
    (is_here ? present : absent).push_back(std::move(name));
  }
  const std::string where = names.front();
  if (absent.empty())
    parts.findings.push_back({"IDX_MISSING", FindingLevel::kWarning, FindingKind::kCheckFailed, where,
                              fmt::format("no {}; {} found by {} complete", kIndex,
                                          first->count == 1 ? "the one shard was"
                                                            : fmt::format("the {} shards were", first->count),
                                          first->count == 1 ? "its name and is" : "their names and are"),
                              "transformers needs the index; vLLM does not"});
  else
    parts.findings.push_back({"IDX_MISSING", FindingLevel::kError, FindingKind::kMalformed, where,
                              fmt::format("no {}, and {} of {} shards are absent, the first of them {}",
                                          kIndex, absent.size(), first->count, absent.front()),
                              "download the missing files"});
  read_all(present, parts);
}

// Files of other names (tests' data, adapters) may be anything.
bool is_model_name(std::string_view name) {
  for (const std::string_view start : {"consolidated", "model", "pytorch_model"})
    if (name.starts_with(start)) return true;
  return shard_name(name).has_value();
}

// What is trained on top of a model, or left of training it.
bool goes_with_model(std::string_view name) {
  for (const std::string_view start : {"adapter", "optimizer", "scheduler", "training"})
    if (name.starts_with(start)) return true;
  return false;
}

// Weights of other names or kinds beside the set, which loaders pass over.
void note_extra(const std::vector<std::string>& extra, ArtifactParts& parts) {
  if (extra.empty()) return;
  constexpr std::size_t kShown = 5;
  parts.findings.push_back(
      {"WEIGHTS_EXTRA", FindingLevel::kInfo, FindingKind::kCheckFailed, extra.front(),
       fmt::format(
           "{} weights files beside the model's are taken by no loader, and are not counted: {}{}",
           extra.size(),
           fmt::join(extra.begin(),
                     extra.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, extra.size())), ", "),
           extra.size() > kShown ? ", ..." : ""),
       "name the file itself as the model if it is meant"});
}

// The same weights again: another split, another maker's names, or copies in folders below.
void note_other_sets(const std::vector<std::string>& taken, ArtifactParts& parts) {
  const auto tell = [&](const std::string& where, const std::string& what) {
    parts.findings.push_back({"WEIGHTS_DUPLICATE_SET", FindingLevel::kInfo, FindingKind::kCheckFailed, where,
                              fmt::format("{} not part of the set that loaders take ({}); not counted", what,
                                          taken.empty() ? std::string("none") : taken.front()),
                              "leave the other set out of downloads: it is not needed"});
  };
  struct Below {
    std::size_t files = 0;
    std::int64_t bytes = 0;
  };
  std::map<std::string, Below> folders;
  std::vector<std::string> extra;
  for (const File& file : parts.files) {
    const bool is_gguf = file.path.ends_with(".gguf") && file.path.find('/') == std::string::npos;
    if (is_gguf) extra.push_back(file.path);
    if (!file.path.ends_with(kEnding)) continue;
    if (const std::size_t slash = file.path.find('/'); slash != std::string::npos) {
      if (std::binary_search(taken.begin(), taken.end(), file.path)) continue;  // the index names it
      Below& below = folders[file.path.substr(0, slash)];
      ++below.files;
      below.bytes = checked_sum(below.bytes, file.bytes.value).value_or(below.bytes);
    } else if (!std::binary_search(taken.begin(), taken.end(), file.path)) {
      if (is_model_name(file.path))
        tell(file.path, fmt::format("{} with {} bytes is", file.path, file.bytes.value));
      else if (!goes_with_model(file.path))
        extra.push_back(file.path);
    }
  }
  note_extra(extra, parts);
  for (const auto& [folder, below] : folders)
    tell(folder, fmt::format("{} files with {} bytes in {}/ are", below.files, below.bytes, folder));
}

// An index beside model.safetensors: of another set, of shards that are gone, or of that file itself.
void note_ambiguous(ArtifactParts& parts) {
  const std::string where(kIndex);
  const auto index = read_index_text(parts.folder + "/" + where, where, parts.findings);
  if (index) parts.index_total_size_bytes = index->total_size.as_integer();
  const auto is_other = [](const std::string& shard) { return shard != "model.safetensors"; };
  if (index && !index->shards.empty() && std::none_of(index->shards.begin(), index->shards.end(), is_other))
    return;
  const auto is_here = [&](const std::string& shard) {
    return is_other(shard) && find_file(parts.files, shard) >= 0;
  };
  const bool are_gone =
      index && !index->shards.empty() && std::none_of(index->shards.begin(), index->shards.end(), is_here);
  parts.findings.push_back(
      {"WEIGHTS_AMBIGUOUS", are_gone ? FindingLevel::kInfo : FindingLevel::kWarning,
       FindingKind::kCheckFailed, where,
       are_gone ? "the folder has model.safetensors, which is taken, and an index of shards that are not here"
                : "the folder has both model.safetensors and an index; the single file is taken, as "
                  "transformers does, and the shards are not counted",
       are_gone ? "remove the index" : "remove one of the two sets"});
}

// Weights that transformers finds under a name that it is told alone, if at all.
void note_names(const WeightSet& set, const std::vector<std::string>& taken, ArtifactParts& parts) {
  const bool is_variant = !set.index.empty() && set.index != kIndex && set.index.starts_with("model.");
  const bool is_odd = set.index.empty() && !set.is_split && !taken.empty() &&
                      taken.front() != "model.safetensors" && !taken.front().starts_with("consolidated");
  if (!is_variant && !is_odd) return;
  parts.findings.push_back(
      {"WEIGHTS_NAME",
       FindingLevel::kInfo,
       FindingKind::kCheckFailed,
       is_variant ? set.index : taken.front(),
       fmt::format(
           "there is no model.safetensors and no {}: transformers finds these weights only when it is "
           "told their name or variant; vLLM reads every .safetensors file, which is counted here "
           "({} file{})",
           kIndex, taken.size(), taken.size() == 1 ? "" : "s"),
       {}});
}

std::string text_in(const Json& value) {
  const std::string* text = value.as_string();
  return text ? *text : std::string();
}

// Changes to a model (LoRA and its like): engines load them beside it and never alone.
void note_adapters(const WeightSet& set, ArtifactParts& parts) {
  constexpr std::int64_t kMostBytes = 1 * kMiB;
  constexpr std::size_t kLongest = 120;
  if (set.adapters.empty()) return;
  const auto config = read_json_file(parts.folder + "/adapter_config.json", kMostBytes);
  std::string what = "an adapter";
  if (config) {
    const std::string type = text_in((*config)["peft_type"]).substr(0, kLongest),
                      base = text_in((*config)["base_model_name_or_path"]).substr(0, kLongest);
    if (!type.empty()) what += " (" + type + ")";
    if (!base.empty()) what += " for " + base;
  }
  const std::string& file = set.adapters.front();
  if (set.kind == WeightSet::Kind::kNone)
    parts.findings.push_back(
        {"ADAPTER_ONLY", FindingLevel::kError, FindingKind::kUnsupported, file,
         fmt::format("{} is {}: it holds changes to a model and not the model", file, what),
         "give the model that it was made for; engines load an adapter beside it (vLLM: "
         "--lora-modules)"});
  else
    parts.findings.push_back(
        {"ADAPTER_PRESENT",
         FindingLevel::kInfo,
         FindingKind::kCheckFailed,
         file,
         fmt::format("{} is {}: it lies beside the weights, is not counted and is not applied", file, what),
         {}});
}

void read_safetensors_set(const WeightSet& set, ArtifactParts& parts) {
  std::vector<std::string> taken = set.files;
  if (set.has_index_beside) note_ambiguous(parts);
  if (!set.index.empty())
    taken = read_indexed(set.index, set.files, parts);
  else if (set.is_split)
    read_shards_by_name(taken, parts);
  else
    read_all(taken, parts);
  note_names(set, taken, parts);
  if (!set.has_index_beside) note_other_sets(taken, parts);  // else it is told that there are two
}

}  // namespace

int find_file(const std::vector<File>& files, std::string_view path) {
  auto found = std::lower_bound(files.begin(), files.end(), path,
                                [](const File& file, std::string_view name) { return file.path < name; });
  if (found == files.end() || found->path != path)
    found = std::find_if(files.begin(), files.end(), [&](const File& file) { return file.path == path; });
  return found == files.end() ? -1 : static_cast<int>(found - files.begin());
}

void read_folder_weights(ArtifactParts& parts) {
  std::vector<std::string_view> paths;
  paths.reserve(parts.files.size());
  for (const File& file : parts.files) paths.push_back(file.path);
  const WeightSet set = choose_weight_set(paths);
  if (set.kind == WeightSet::Kind::kSafetensors) {
    parts.form = Form::kSafetensors;
    read_safetensors_set(set, parts);
  } else if (set.kind == WeightSet::Kind::kGguf) {
    read_folder_gguf(set, parts);
  }
  note_adapters(set, parts);
  note_pickles(parts, set.kind == WeightSet::Kind::kSafetensors || set.kind == WeightSet::Kind::kGguf);
}

}  // namespace plimsoll::artifact
