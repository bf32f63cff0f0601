// SPDX-License-Identifier: Apache-2.0
#include "artifact/lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "artifact/hub/listing.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

constexpr std::string_view kSchema = "plimsoll.lock/1";
constexpr std::int64_t kMaxLockBytes = 64 * kMiB;
constexpr std::size_t kMaxLockedFiles = 100'000;
constexpr std::size_t kLooked = 4096;  // bytes in which a lock record names its schema

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

std::string text_in(const Json& value) {
  const std::string* text = value.as_string();
  return text ? *text : std::string();
}

tl::unexpected<Error> refuse(std::string what, std::string_view source, std::string_view pointer) {
  return fail(ErrorCode::kMalformed, "reading a lock record: " + std::move(what),
              fmt::format("{}: {}", source, pointer), "write it again with `plimsoll pull ... -o FILE`");
}

Result<LockedFile> read_file_entry(const Json& entry, std::string_view source, std::size_t index) {
  const std::string pointer = fmt::format("/files/{}", index);
  LockedFile file;
  file.path = text_in(entry["path"]);
  if (!is_safe_name(file.path))
    return refuse("the path leads out of the model's folder", source, pointer + "/path");
  const auto bytes = entry["bytes"].as_integer();
  if (!bytes || *bytes < 0) return refuse("the size is not a number of bytes", source, pointer + "/bytes");
  file.bytes = *bytes;
  file.sha256 = text_in(entry["sha256"]);
  if (!entry["sha256"].is_null() && !is_hex(file.sha256, 64))
    return refuse("the digest is not 64 hex digits", source, pointer + "/sha256");
  return file;
}

Finding mismatch(const LockRecord& record, const std::string& path, std::string message) {
  return {"LOCK_MISMATCH",
          FindingLevel::kError,
          FindingKind::kCheckFailed,
          path,
          std::move(message),
          fmt::format("`plimsoll pull {}@{}` brings back the locked files", record.repo, record.commit)};
}

// What decides how a model behaves, config and tokenizer and template, is read in a moment.
bool is_small(const File& file) {
  constexpr std::int64_t kSmall = 64 * kMiB;
  return file.role != FileRole::kWeights && file.bytes.value <= kSmall;
}

std::string digest_of(const std::optional<StoredTemplate>& stored) {
  return stored && !stored->text.empty() ? sha256_hex(std::as_bytes(std::span(stored->text))) : std::string();
}

bool is_told(const Findings& findings, const std::string& path) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.where == path; });
}

// What the record says of the files' meaning, where the files themselves are not told already: another file
// than the locked one may have come before it.
void check_meaning(const LockRecord& record, const Artifact& artifact, Findings& findings) {
  if (!record.chat_template_sha256.empty()) {
    const auto stored = stored_chat_template(artifact);
    const std::string where = stored ? stored->file : "chat_template", found = digest_of(stored);
    if (found != record.chat_template_sha256 && !is_told(findings, where))
      findings.push_back(mismatch(
          record, where,
          fmt::format("the lock record gives the chat template sha256 {}, {}", record.chat_template_sha256,
                      found.empty() ? "and there is none" : "it has " + found)));
  }
  const std::string generation = "generation_config.json";
  if (!record.generation_config.is_null() && !is_told(findings, generation) &&
      dump(record.generation_config) != dump(artifact.json_file(generation)))
    findings.push_back(mismatch(record, generation,
                                "the file says something else than the lock record's generation_config"));
}

// Whether loaders look for a file of this role by its name or ending, so that one more of them may be loaded.
bool is_read_by_loaders(const File& file) {
  if (file.path.find('/') != std::string::npos) return false;
  switch (file.role) {
    case FileRole::kConfig:
    case FileRole::kGenerationConfig:
    case FileRole::kTokenizer:
    case FileRole::kTemplate:
    case FileRole::kProcessor:
    case FileRole::kCode:
      return true;
    default:
      return false;
  }
}

// What is loaded beside or instead of the locked files. Weights that the record does not name are other
// weights; what else it does not name may change what the model says, and is told as a warning.
void check_unlocked(const LockRecord& record, const Artifact& artifact, Findings& findings) {
  std::unordered_set<std::string_view> locked;
  for (const LockedFile& file : record.files) locked.insert(file.path);
  const std::vector<File>& files = artifact.files();
  constexpr std::size_t kMostTold = 20;
  std::size_t num_told = 0;
  const auto tell = [&](const File& file, FindingLevel level, const char* what) {
    if (locked.contains(file.path) || num_told >= kMostTold || is_told(findings, file.path)) return;
    ++num_told;
    findings.push_back(mismatch(
        record, file.path,
        fmt::format("{}, and the lock record does not name this file of {} bytes", what, file.bytes.value)));
    findings.back().level = level;
    if (num_told == kMostTold) findings.back().message += "; further files like it are not told";
  };
  for (const int place : artifact.weights_files())
    tell(files[static_cast<std::size_t>(place)], FindingLevel::kError, "weights are read from it");
  for (const File& file : files) {
    const bool is_index = file.role == FileRole::kIndex && file.path == "model.safetensors.index.json";
    // The record tells of these two by themselves: the digest of the template, the values of the other.
    const bool is_told_otherwise =
        (file.role == FileRole::kTemplate && !record.chat_template_sha256.empty()) ||
        (file.role == FileRole::kGenerationConfig && !record.generation_config.is_null());
    if (is_index)
      tell(file, FindingLevel::kError, "loaders go by an index");
    else if (is_read_by_loaders(file) && !is_told_otherwise)
      tell(file, FindingLevel::kWarning, "loaders read files of this name");
  }
}

void check_digests_known(const LockRecord& record, Findings& findings) {
  const auto without = std::count_if(record.files.begin(), record.files.end(),
                                     [](const LockedFile& file) { return file.sha256.empty(); });
  if (without == 0) return;
  findings.push_back(
      {"LOCK_NO_DIGEST", FindingLevel::kWarning, FindingKind::kCheckFailed, "files",
       fmt::format("the lock record has no digest for {} of {} files: of them only the size is "
                   "held against it, any content of that size passes",
                   without, record.files.size()),
       "write the record again with `plimsoll pull ... -o FILE`"});
}

}  // namespace

Json to_json(const LockRecord& record) {
  Json files = Json::array();
  for (const LockedFile& file : record.files)
    files.push_back(
        Json::object({{"path", file.path}, {"bytes", file.bytes}, {"sha256", text_or_null(file.sha256)}}));
  return Json::object({{"schema", kSchema},
                       {"repo", record.repo},
                       {"revision", text_or_null(record.revision)},
                       {"commit", record.commit},
                       {"files", std::move(files)},
                       {"license", text_or_null(record.license)},
                       {"engine", Json::object({{"name", text_or_null(record.engine_name)},
                                                {"version", text_or_null(record.engine_version)},
                                                {"image_digest", text_or_null(record.engine_image_digest)}})},
                       {"chat_template_sha256", text_or_null(record.chat_template_sha256)},
                       {"generation_config", record.generation_config},
                       {"max_model_len", Json(record.max_model_len)}});
}

Result<LockRecord> read_lock(const Json& document, std::string_view source) {
  if (text_in(document["schema"]) != kSchema)
    return refuse(fmt::format("its schema is not {}", kSchema), source, "/schema");
  LockRecord record;
  record.repo = text_in(document["repo"]);
  if (const auto id = parse_hub_id(record.repo); !id || id->repo != record.repo)
    return refuse("the repository is not written org/name", source, "/repo");
  record.commit = text_in(document["commit"]);
  if (!is_commit(record.commit)) return refuse("the commit is not 40 hex digits", source, "/commit");
  record.revision = text_in(document["revision"]);
  const auto& files = document["files"].items();
  if (!document["files"].is_array() || files.size() > kMaxLockedFiles)
    return refuse("it has no list of files", source, "/files");
  for (std::size_t i = 0; i < files.size(); ++i) {
    PLIMSOLL_TRY(LockedFile file, read_file_entry(files[i], source, i));
    record.files.push_back(std::move(file));
  }
  record.license = text_in(document["license"]);
  record.engine_name = text_in(document["engine"]["name"]);
  record.engine_version = text_in(document["engine"]["version"]);
  record.engine_image_digest = text_in(document["engine"]["image_digest"]);
  record.chat_template_sha256 = text_in(document["chat_template_sha256"]);
  record.generation_config = document["generation_config"];
  const Json& length = document["max_model_len"];
  record.max_model_len = length.as_integer();
  if (!length.is_null() && record.max_model_len.value_or(0) < 1)
    return refuse("the length is not a number of tokens", source, "/max_model_len");
  return record;
}

Result<LockRecord> read_lock_file(const std::string& path) {
  PLIMSOLL_TRY(const Json document, read_json_file(path, kMaxLockBytes));
  return read_lock(document, path);
}

bool is_lock_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string begin(kLooked, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  const std::size_t at = begin.find("\"schema\"");
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  return first != std::string::npos && begin[first] == '{' && at != std::string::npos &&
         begin.substr(at, 40).find("\"plimsoll.lock/") != std::string::npos;
}

Findings check_lock(const LockRecord& record, const Artifact& artifact, bool reads_files) {
  std::unordered_map<std::string_view, const File*> here;
  for (const File& file : artifact.files()) here.emplace(file.path, &file);
  Findings findings;
  for (const LockedFile& locked : record.files) {
    const auto found = here.find(locked.path);
    if (found == here.end()) {
      findings.push_back(mismatch(
          record, locked.path,
          fmt::format("the lock record names this file of {} bytes, and it is absent", locked.bytes)));
      continue;
    }
    const File& file = *found->second;
    if (file.bytes.value != locked.bytes) {
      findings.push_back(mismatch(
          record, locked.path,
          fmt::format("the lock record gives {} bytes, the file has {}", locked.bytes, file.bytes.value)));
      continue;
    }
    if (locked.sha256.empty()) continue;
    std::string digest = file.sha256;
    if (const std::string path = artifact.path_of(file); !path.empty() && (reads_files || is_small(file))) {
      auto computed = digest_of_file(path, DigestKind::kSha256);
      digest = computed ? std::move(*computed) : "none: " + computed.error().message;
    }
    if (!digest.empty() && digest != locked.sha256)
      findings.push_back(
          mismatch(record, locked.path,
                   fmt::format("the lock record gives sha256 {}, the file has {}", locked.sha256, digest)));
  }
  check_meaning(record, artifact, findings);
  check_unlocked(record, artifact, findings);
  check_digests_known(record, findings);
  return findings;
}

std::string chat_template_digest(const Artifact& artifact) {
  return digest_of(stored_chat_template(artifact));
}

}  // namespace plimsoll::artifact
