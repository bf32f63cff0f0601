// SPDX-License-Identifier: Apache-2.0
#include "artifact/store.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "artifact/folder.h"
#include "artifact/given_path.h"
#include "artifact/weights_files.h"

namespace plimsoll::artifact {
namespace {

constexpr std::int64_t kMaxSmallFile = 64 * kMiB;

/// What a JSON file may have at most: trees take some 50 bytes for each value.
struct JsonLimits {
  std::int64_t max_bytes, max_values;
};
constexpr JsonLimits kOfTokenizers{kMaxSmallFile, 4'000'000};  // the largest published ones have 2 million
constexpr JsonLimits kOfOthers{16 * kMiB, 500'000};            // settings; added tokens by the thousand

}  // namespace

StoredArtifact::StoredArtifact(ArtifactParts parts) : parts_(std::move(parts)) {}

const Tensor* StoredArtifact::find(std::string_view name) const {
  const auto found = parts_.names.find(
      hash_of(name), [&](std::uint32_t place) { return parts_.tensors[place].name == name; });
  return found ? &parts_.tensors[*found] : nullptr;
}

std::string StoredArtifact::path_of(const File& file) const {
  // A lone file, and the other parts of a split one, are named as they are beside it.
  if (parts_.folder.empty()) return (std::filesystem::path(parts_.root).parent_path() / file.path).string();
  return parts_.folder + "/" + file.path;
}

std::vector<std::string> StoredArtifact::cut_files() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  for (const auto& [file, mapping] : parts_.mappings)
    if (const auto whole = whole_.find(file);
        mapping.was_cut() || (whole != whole_.end() && whole->second.was_cut()))
      paths.push_back(parts_.files[static_cast<std::size_t>(file)].path);
  return paths;
}

std::vector<int> StoredArtifact::weights_files() const {
  std::vector<int> places;
  for (const auto& [file, _] : parts_.mappings) places.push_back(file);
  return places;
}

void StoredArtifact::release(std::span<const std::byte> part) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [_, mapping] : parts_.mappings) mapping.release(part);
  for (const auto& [_, mapping] : whole_) mapping.release(part);
}

const StoredArtifact::ReadJson& StoredArtifact::read_json(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = json_files_.find(name); found != json_files_.end()) return *found->second;
  auto file = std::make_unique<ReadJson>();
  // A lone tokenizer.json is its own and only file.
  const bool is_lone =
      parts_.form == Form::kTokenizerOnly && is_lone_file(*this) && parts_.files.front().path == name;
  if (is_lone || (!parts_.folder.empty() && is_inside(name) && find_file(parts_.files, name) >= 0)) {
    const JsonLimits& limits = name == "tokenizer.json" || is_lone ? kOfTokenizers : kOfOthers;
    auto read = read_json_with_bom(is_lone ? parts_.root : parts_.folder + "/" + std::string(name),
                                   limits.max_bytes, limits.max_values);
    if (read) {
      file->value = std::move(read->value);
    } else {
      file->error = std::move(read).error();
      // Its place below the model's folder, as findings have it.
      const std::string start = parts_.folder + "/";
      if (file->error->where.starts_with(start)) file->error->where.erase(0, start.size());
    }
  }
  return *json_files_.emplace(std::string(name), std::move(file)).first->second;
}

const Json& StoredArtifact::json_file(std::string_view name) const {
  return read_json(name).value;
}

std::optional<Error> StoredArtifact::json_file_error(std::string_view name) const {
  return read_json(name).error;
}

Result<std::string> StoredArtifact::text_file(std::string_view name) const {
  if (parts_.folder.empty())
    return fail(ErrorCode::kMalformed, "a lone file has no files beside it", std::string(name));
  if (!is_inside(name))
    return fail(ErrorCode::kMalformed, "the name leads out of the model folder", std::string(name));
  return read_file(parts_.folder + "/" + std::string(name), kMaxSmallFile);
}

// Null when the file is absent.
Result<const MappedFile*> StoredArtifact::mapped(int file) const {
  const auto opened = parts_.mappings.find(file);
  if (opened == parts_.mappings.end()) return nullptr;
  if (opened->second.bytes().size() == opened->second.file_bytes()) return &opened->second;
  const std::lock_guard lock(mutex_);
  if (const auto known = whole_.find(file); known != whole_.end()) return &known->second;
  PLIMSOLL_TRY(MappedFile whole,
               opened->second.open_whole(path_of(parts_.files[static_cast<std::size_t>(file)])));
  return &whole_.emplace(file, std::move(whole)).first->second;
}

Result<std::span<const std::byte>> StoredArtifact::data(const Tensor& tensor) const {
  PLIMSOLL_TRY(const MappedFile* file, mapped(tensor.file));
  if (!file)
    return fail(ErrorCode::kMalformed, fmt::format("reading tensor {}: its file is absent", tensor.name),
                parts_.root);
  const auto bytes = file->bytes();
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (tensor.offset_bytes < 0 || tensor.bytes < 0 || tensor.offset_bytes > size ||
      tensor.bytes > size - tensor.offset_bytes)
    return fail(ErrorCode::kMalformed,
                fmt::format("reading tensor {}: bytes {} to {} of a file that ends at {}", tensor.name,
                            tensor.offset_bytes, tensor.offset_bytes + tensor.bytes, size),
                parts_.files[static_cast<std::size_t>(tensor.file)].path, "download the file again");
  return bytes.subspan(static_cast<std::size_t>(tensor.offset_bytes), static_cast<std::size_t>(tensor.bytes));
}

}  // namespace plimsoll::artifact
