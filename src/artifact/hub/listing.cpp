// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "artifact/folder.h"
#include "artifact/hub/refusal.h"
#include "base/text.h"

namespace plimsoll::artifact {
namespace {

constexpr std::size_t kMaxFiles = 100'000;
constexpr std::size_t kMaxNameParts = 16, kMaxPartBytes = 255, kMaxNameBytes = 1024;
constexpr std::size_t kMaxIdBytes = 96;  // the hub's own limit
constexpr std::size_t kShown = 80;
// 8 TiB: far above any file, few enough that all of a list add up, and no more than ext4 makes a sparse file
// of.
constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 43;

bool is_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

bool is_id_part(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), is_id_character) && part.front() != '-' &&
         part.front() != '.' && part.back() != '-' && part.back() != '.' &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos;
}

std::string text_in(const Json& value) {
  const std::string* text = value.as_string();
  return text ? *text : std::string();
}

std::string digest_in(const Json& value, std::size_t digits) {
  std::string text = text_in(value);
  return is_hex(text, digits) ? text : std::string();
}

// cardData.license, else the tag "license:...".
std::string license_in(const Json& answer) {
  if (const std::string text = text_in(answer["cardData"]["license"]); !text.empty()) return text;
  for (const Json& tag : answer["tags"].items())
    if (const std::string text = text_in(tag); text.starts_with("license:")) return text.substr(8);
  return {};
}

// The hub says false, true, "auto" or "manual".
bool is_yes(const Json& value) {
  return value.is_string() || value.as_bool().value_or(false);
}

}  // namespace

std::optional<HubId> parse_hub_id(std::string_view text) {
  HubId id;
  const std::size_t at = text.find('@');
  const std::string_view repo = text.substr(0, at);
  const std::size_t slash = repo.find('/');
  if (slash == std::string_view::npos || repo.size() > kMaxIdBytes || !is_id_part(repo.substr(0, slash)) ||
      !is_id_part(repo.substr(slash + 1)))
    return std::nullopt;
  for (const char* ending :
       {".gguf", ".json", ".safetensors", ".model", ".tiktoken", ".jsonl", ".txt", ".git"})
    if (repo.ends_with(ending)) return std::nullopt;
  id.repo = repo;
  if (at == std::string_view::npos) return id;
  id.revision = text.substr(at + 1);
  if (!is_safe_name(id.revision)) return std::nullopt;
  return id;
}

bool is_commit(std::string_view text) {
  return is_hex(text, 40);
}

bool is_safe_name(std::string_view path) {
  if (!is_inside(path) || path.size() > kMaxNameBytes || path.back() == '/') return false;
  std::size_t parts = 0;
  for (std::size_t at = 0; at <= path.size(); ++parts) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part.size() > kMaxPartBytes) return false;
    at = end + 1;
  }
  return parts <= kMaxNameParts && std::none_of(path.begin(), path.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

Result<HubInfo> read_info(const Json& answer) {
  HubInfo info;
  info.id = text_in(answer["id"]);
  if (info.id.empty()) info.id = text_in(answer["modelId"]);
  info.commit = digest_in(answer["sha"], 40);
  if (info.commit.empty())
    return fail(ErrorCode::kNetwork, "asking the hub: its answer names no commit of 40 digits",
                info.id.substr(0, kShown), "check HF_ENDPOINT");
  if (!parse_hub_id(info.id)) info.id.clear();
  info.license = license_in(answer);
  info.is_gated = is_yes(answer["gated"]);
  info.is_private = is_yes(answer["private"]);
  info.is_disabled = is_yes(answer["disabled"]);
  info.safetensors_total = answer["safetensors"]["total"].as_integer();
  return info;
}

Status read_tree_page(const Json& page, std::vector<HubFile>& files) {
  const auto refuse = [](std::string what, const std::string& name) {
    return fail(ErrorCode::kNetwork, "reading the hub's list of files: " + std::move(what),
                printable(name.substr(0, kShown)), "check HF_ENDPOINT; nothing was written");
  };
  if (!page.is_array()) return refuse("it is not a list", "");
  for (const Json& item : page.items()) {
    if (const std::string type = text_in(item["type"]); type != "file") continue;
    HubFile file;
    file.path = text_in(item["path"]);
    if (!is_safe_name(file.path)) return refuse("a name in it may not be made into a file here", file.path);
    const Json& lfs = item["lfs"];
    const auto size = (lfs.is_object() ? lfs : item)["size"].as_integer();
    if (!size || *size < 0) return refuse("a file has no size", file.path);
    if (*size > kMaxFileBytes)
      return refuse(fmt::format("a file of {} bytes is larger than any model's", *size), file.path);
    file.bytes = *size;
    file.git_oid = digest_in(item["oid"], 40);
    if (lfs.is_object()) {
      file.sha256 = digest_in(lfs["oid"], 64);
      if (file.sha256.empty()) file.sha256 = digest_in(lfs["sha256"], 64);
      if (file.sha256.empty()) return refuse("a large file has no sha256", file.path);
    }
    if (file.etag().empty()) return refuse("a file has no digest", file.path);
    file.xet_hash = digest_in(item["xetHash"], 64);
    if (files.size() >= kMaxFiles) return refuse(fmt::format("it has more than {} files", kMaxFiles), "");
    files.push_back(std::move(file));
  }
  return {};
}

Status check_tree(const std::vector<HubFile>& files) {
  std::unordered_set<std::string_view> names;
  const auto refuse = [](const char* what, const std::string& name) {
    return fail(ErrorCode::kNetwork, std::string("reading the hub's list of files: ") + what,
                printable(name.substr(0, kShown)), "check HF_ENDPOINT; nothing was written");
  };
  for (const HubFile& file : files)
    if (!names.insert(file.path).second) return refuse("a name stands in it twice", file.path);
  for (const HubFile& file : files)
    for (std::size_t at = file.path.find('/'); at != std::string::npos; at = file.path.find('/', at + 1))
      if (names.contains(std::string_view(file.path).substr(0, at)))
        return refuse("a name is both a file and a folder", file.path);
  return {};
}

std::optional<std::vector<HubFile>> read_cached_tree(const Json& text) {
  if (text["format_version"].as_integer() != 1) return std::nullopt;
  std::vector<HubFile> files;
  for (const auto& [path, entry] : text["files"].members()) {
    HubFile file;
    file.path = path;
    const Json& lfs_size = entry["lfs_size"];
    const auto size = (lfs_size.is_null() ? entry["size"] : lfs_size).as_integer();
    file.git_oid = digest_in(entry["blob_id"], 40);
    file.sha256 = digest_in(entry["lfs_sha256"], 64);
    file.xet_hash = digest_in(entry["xet_hash"], 64);
    if (!is_safe_name(path) || !size || *size < 0 || *size > kMaxFileBytes || file.etag().empty() ||
        files.size() >= kMaxFiles)
      return std::nullopt;
    file.bytes = *size;
    files.push_back(std::move(file));
  }
  if (files.empty() || !check_tree(files)) return std::nullopt;
  return files;
}

Json cached_tree(const std::vector<HubFile>& files) {
  Json entries = Json::object();
  for (const HubFile& file : files) {
    Json entry = Json::object({{"size", file.bytes}, {"blob_id", file.git_oid}});
    if (!file.sha256.empty()) {
      entry.set("lfs_sha256", file.sha256);
      entry.set("lfs_size", file.bytes);
    }
    if (!file.xet_hash.empty()) entry.set("xet_hash", file.xet_hash);
    entries.mutable_members().emplace_back(file.path, std::move(entry));
  }
  return Json::object({{"format_version", 1}, {"files", std::move(entries)}});
}

}  // namespace plimsoll::artifact
