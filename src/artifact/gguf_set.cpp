// SPDX-License-Identifier: Apache-2.0
#include "artifact/gguf_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "artifact/finding_list.h"
#include "artifact/gguf.h"
#include "artifact/shard_name.h"
#include "artifact/tensor_merge.h"
#include "artifact/weights_files.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;

class SetReader {
 public:
  SetReader(std::string folder, ArtifactParts& parts) : folder_(std::move(folder)), parts_(parts) {}

  // `names` are those of one model that exist, in the order of the parts.
  void read(const std::vector<std::string>& names) {
    parts_.form = Form::kGguf;
    std::vector<GgufHeader> headers;
    for (const std::string& name : names) headers.push_back(read_part(name));
    merge(names, headers);
    if (const auto shard = shard_name(names.front()); shard && shard->count > 1)
      check_complete(*shard, names);
    const Json& architecture = parts_.config["general.architecture"];
    if (has_readable_ && !architecture.is_string())
      add("GGUF_NO_ARCH", names.front() + ": general.architecture",
          "the key general.architecture is absent: nothing says what model this is");
    else if (has_readable_ && parts_.tensors.empty() && !has_error())
      parts_.findings.push_back(
          {"WEIGHTS_EMPTY", FindingLevel::kError, FindingKind::kUnsupported, names.front(),
           "the file holds keys and no tensor: a vocabulary alone, or the first part of "
           "a split that has none",
           "give the file that holds the weights"});
  }

 private:
  bool has_error() const {
    return std::any_of(parts_.findings.begin(), parts_.findings.end(),
                       [](const Finding& finding) { return finding.level == FindingLevel::kError; });
  }

  void add(std::string id, std::string where, std::string message) {
    parts_.findings.push_back({std::move(id), FindingLevel::kError, FindingKind::kMalformed, std::move(where),
                               std::move(message), "download or convert the file again"});
  }

  GgufHeader read_part(const std::string& name) {
    const int file = find_file(parts_.files, name);
    auto mapped = MappedFile::open(folder_.empty() ? name : folder_ + "/" + name);
    if (!mapped) {
      add("FILE_UNREADABLE", name, mapped.error().message);
      return {};
    }
    GgufHeader header = read_gguf({mapped->bytes(), name, {}, &*mapped}, parts_.findings);
    const bool is_first = parts_.mappings.emplace(file, std::move(*mapped)).second;
    PLIMSOLL_CHECK(is_first, "names of tensors view the mapping, so that a part is read once");
    check_number(name, header);
    for (Tensor& tensor : header.tensors) tensor.file = file;
    has_readable_ |= header.is_readable;
    if (parts_.config.is_null()) parts_.config = std::move(header.metadata);
    return header;
  }

  void merge(const std::vector<std::string>& names, std::vector<GgufHeader>& headers) {
    std::size_t count = 0;
    for (const GgufHeader& header : headers) count += header.tensors.size();
    TensorMerge merge(parts_, count);
    for (std::size_t i = 0; i < names.size(); ++i) {
      FindingList findings(names[i], parts_.findings);
      for (std::size_t j = 0; j < headers[i].tensors.size(); ++j) {
        const std::string_view name = headers[i].tensors[j].name;
        if (merge.add(std::move(headers[i].tensors[j]), headers[i].hashes[j]))
          findings.add("GGUF_DUP_TENSOR", name,
                       fmt::format("an earlier part holds a tensor of the name \"{}\" too", name));
      }
    }
  }

  void check_number(const std::string& name, const GgufHeader& header) {
    const auto shard = shard_name(name);
    const auto number = header.metadata["split.no"].as_integer();
    if (!shard || shard->count < 2 || !header.is_readable || number == shard->number - 1) return;
    add("GGUF_SPLIT_NO", name + ": split.no",
        fmt::format("split.no is {}, and part {} of {} should say {} (counted from 0)",
                    dump(header.metadata["split.no"]), shard->number, shard->count, shard->number - 1));
  }

  void check_complete(const ShardName& shard, const std::vector<std::string>& names) {
    std::string absent;
    int num_absent = 0;
    for (int i = 1; i <= shard.count; ++i) {
      const std::string name = shard.of_number(i);
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      if (num_absent < 5) absent += (num_absent ? ", " : "") + name;
      ++num_absent;
    }
    if (num_absent == 0) return;
    const auto expected = parts_.config["split.tensors.count"].as_integer();
    add("GGUF_SPLIT_MISSING", names.front(),
        fmt::format("{} of {} parts are absent: {}; {} of {} tensors found", num_absent, shard.count, absent,
                    parts_.tensors.size(), expected ? std::to_string(*expected) : "an unknown number of"));
  }

  std::string folder_;
  ArtifactParts& parts_;
  bool has_readable_ = false;
};

}  // namespace

void read_folder_gguf(const WeightSet& set, ArtifactParts& parts) {
  if (!set.others.empty())
    parts.findings.push_back(
        {"WEIGHTS_AMBIGUOUS", FindingLevel::kWarning, FindingKind::kCheckFailed, set.others.front(),
         fmt::format("the folder holds more than one GGUF model ({} and {} among {} files); {} is "
                     "taken, they are not added up",
                     set.files.front(), set.others.front(), set.files.size() + set.others.size(),
                     set.files.front()),
         "name the file that is meant"});
  SetReader(parts.folder, parts).read(set.files);
}

void read_gguf_files(const std::vector<std::string>& names, ArtifactParts& parts) {
  SetReader(parts.folder, parts).read(names);
}

void read_lone_gguf(const std::string& path, ArtifactParts& parts) {
  const fs::path file(path);
  const std::string name = file.filename().string(), folder = file.parent_path().string();
  std::vector<std::string> set = {name};
  if (shard_name(name)) {
    std::vector<std::string> all;
    std::error_code error;
    for (fs::directory_iterator walk(folder.empty() ? "." : folder, error);
         !error && walk != fs::directory_iterator(); walk.increment(error))
      all.push_back(walk->path().filename().string());
    set = parts_of(name, all);
  }
  for (const auto& part : set) {
    std::error_code error;
    const auto size = fs::file_size(file.parent_path() / part, error);
    parts.files.push_back({part, Bytes(error ? 0 : static_cast<std::int64_t>(size)), FileRole::kWeights});
  }
  SetReader(folder, parts).read(set);
}

}  // namespace plimsoll::artifact
