// SPDX-License-Identifier: Apache-2.0
// Decides what a path is, gathers the parts, and gives out the finished Artifact.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "artifact/artifact.h"
#include "artifact/content.h"
#include "artifact/folder.h"
#include "artifact/gguf_set.h"
#include "artifact/json_place.h"
#include "artifact/ollama.h"
#include "artifact/open_folder.h"
#include "artifact/store.h"
#include "artifact/weights_files.h"
#include "base/mapped_file.h"
#include "base/text.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxConfigBytes = 2 * kMiB;  // the longest published ones have some 300 KB
constexpr std::int64_t kMaxConfigValues = 200'000;
constexpr std::int64_t kMaxTokenizerBytes = 128 * kMiB;  // the longest published ones have some 35 MB
constexpr std::int64_t kMaxPointerBytes = 1024;          // pointers have about 130
constexpr std::string_view kOllama = "ollama:";
constexpr const char* kTaken =
    "give a model folder, a .gguf file, a config.json, a tokenizer file, a lock record, ollama:NAME, or "
    "org/name[@revision] of a hub";

void add(ArtifactParts& parts, std::string id, FindingLevel level, FindingKind kind, std::string where,
         std::string message, std::string fix = {}) {
  parts.findings.push_back(
      {std::move(id), level, kind, std::move(where), std::move(message), std::move(fix)});
}

// What can be said about the text of a config whatever the model is.
void take_config(JsonFile file, const std::string& name, ArtifactParts& parts) {
  using enum FindingLevel;
  if (file.has_bom)
    add(parts, "CFG_BOM", kWarning, FindingKind::kCheckFailed, name + ": byte 0",
        "the file begins with a UTF-8 byte order mark; some loaders refuse it", "save it without the mark");
  const auto duplicates = duplicate_keys(file.value);
  for (const std::string& pointer : duplicates)
    add(parts, "CFG_DUP_KEY", kWarning, FindingKind::kCheckFailed, name + ": " + pointer,
        fmt::format("the key {} is given more than once; Python takes the last, {}", pointer,
                    dump(file.value.at_pointer(pointer)).substr(0, 100)),
        "keep one of them");
  if (duplicates.size() == kMaxDuplicates)
    parts.findings.back().message += "; keys behind this one were not looked at";
  parts.config = std::move(file.value);
}

// Files other than weights that were cloned without Git LFS; the readers of weights look themselves.
void note_pointers(ArtifactParts& parts) {
  for (const File& file : parts.files) {
    if (file.bytes.value > kMaxPointerBytes || file.role == FileRole::kWeights ||
        file.role == FileRole::kIndex || file.role == FileRole::kOther || file.role == FileRole::kCode)
      continue;
    const auto text = read_file(parts.folder + "/" + file.path, kMaxPointerBytes);
    if (!text || !is_lfs_pointer(std::as_bytes(std::span(*text)))) continue;
    if (auto finding = foreign_content(std::as_bytes(std::span(*text)), file.path))
      parts.findings.push_back(std::move(*finding));
  }
}

bool has_pointer_finding(const ArtifactParts& parts, const std::string& name) {
  return std::any_of(parts.findings.begin(), parts.findings.end(), [&](const Finding& finding) {
    return finding.id == "LFS_POINTER" && finding.where.starts_with(name + ":");
  });
}

void read_folder_config(ArtifactParts& parts) {
  const std::string name = "config.json";
  if (find_file(parts.files, name) < 0) return;
  auto file = read_json_with_bom(parts.folder + "/" + name, kMaxConfigBytes, kMaxConfigValues);
  if (has_pointer_finding(parts, name)) return;
  if (!file || !file->value.is_object()) {
    const std::string where = file ? name : file.error().where;
    const std::size_t at = where.find(name);
    add(parts, "CFG_JSON", FindingLevel::kError, FindingKind::kMalformed,
        at == std::string::npos ? name : where.substr(at),
        file ? std::string("config.json is not a JSON object") : file.error().message,
        "save it as plain JSON: without comments, and without commas before a closing bracket");
    return;
  }
  take_config(std::move(*file), name, parts);
}

bool is_told_unreadable(const ArtifactParts& parts, std::string_view name) {
  return std::any_of(parts.findings.begin(), parts.findings.end(), [&](const Finding& finding) {
    return finding.id == "FILE_UNREADABLE" && finding.where == name;
  });
}

// A header that lists nothing, or an index: the files read, and there is no model in them.
void note_empty(ArtifactParts& parts) {
  const bool is_faulty =
      std::any_of(parts.findings.begin(), parts.findings.end(),
                  [](const Finding& finding) { return finding.level == FindingLevel::kError; });
  const bool has_weights = parts.form == Form::kSafetensors || parts.form == Form::kGguf;
  if (!has_weights || !parts.tensors.empty() || is_faulty) return;
  const auto file = std::find_if(parts.files.begin(), parts.files.end(), [](const File& f) {
    return f.role == FileRole::kWeights || f.role == FileRole::kIndex;
  });
  add(parts, "WEIGHTS_EMPTY", FindingLevel::kError, FindingKind::kMalformed,
      file == parts.files.end() ? "" : file->path, "the weights files hold no tensor; the model has none",
      "download the weights again");
}

// Loaders look for names as they are written: MODEL.SAFETENSORS is none to them.
void note_capitals(ArtifactParts& parts) {
  const auto is_in_capitals = [](const File& file) {
    const std::string name = lower_ascii(file.path);
    return name != file.path && name.find('/') == std::string::npos &&
           ((name.ends_with(".safetensors") && !file.path.ends_with(".safetensors")) ||
            (name.ends_with(".gguf") && !file.path.ends_with(".gguf")));
  };
  const auto file = std::find_if(parts.files.begin(), parts.files.end(), is_in_capitals);
  if (file != parts.files.end())
    add(parts, "WEIGHTS_NAME", FindingLevel::kWarning, FindingKind::kCheckFailed, file->path,
        "the ending of this file's name is written in capitals: loaders do not see it, and it is not read",
        "write the ending in small letters");
}

void note_missing(ArtifactParts& parts) {
  using enum FindingLevel;
  if (parts.form == Form::kConfigOnly || parts.form == Form::kTokenizerOnly) note_capitals(parts);
  const bool has_config = find_file(parts.files, "config.json") >= 0;
  if (parts.form == Form::kSafetensors && !has_config && !is_told_unreadable(parts, "config.json"))
    add(parts, "CFG_MISSING", kError, FindingKind::kCheckFailed, "config.json",
        "the folder has weights but no config.json: nothing says what model they are",
        "download config.json");
  const bool has_weights_finding =
      std::any_of(parts.findings.begin(), parts.findings.end(), [](const Finding& f) {
        return f.id.starts_with("PICKLE_") || f.id == "ADAPTER_ONLY" || f.id == "LINK_DANGLING" ||
               (f.id == "FILE_UNREADABLE" && role_of(f.where) == FileRole::kWeights);
      });
  if (parts.form == Form::kConfigOnly && !has_weights_finding)
    add(parts, "WEIGHTS_ABSENT", kInfo, FindingKind::kCheckFailed, "config.json",
        "there are no weights here; sizes are computed from the config",
        "download the weights, or give org/name, to have the stored sizes");
}

}  // namespace

Result<std::shared_ptr<const Artifact>> open_folder(const std::string& model) {
  ArtifactParts parts;
  parts.root = model;
  HubPlace place = resolve_hub_cache(model);
  parts.folder = std::move(place.folder);
  parts.commit = std::move(place.commit);
  FolderListing listing = list_folder(parts.folder);
  parts.files = std::move(listing.files);
  for (const std::string& link : listing.dangling)
    add(parts, "LINK_DANGLING", FindingLevel::kError, FindingKind::kMalformed, link,
        "the target of this link is missing (a hub cache that was pruned in half?)",
        "download the file again");
  for (const std::string& link : listing.outside)
    add(parts, "LINK_OUTSIDE", FindingLevel::kInfo, FindingKind::kCheckFailed, link,
        "this link leads out of the model folder", "copy the file itself when the folder is to be moved");
  for (const auto& [path, kind] : listing.no_files)
    add(parts, "FILE_UNREADABLE", FindingLevel::kError, FindingKind::kMalformed, path,
        fmt::format("this is {} under the name of a file that loaders read", kind),
        "put the file itself in its place");
  for (const auto& [path, reason, is_folder] : listing.unreadable) {
    if (path.empty())
      return fail(ErrorCode::kMalformed, "opening a model: the folder cannot be read: " + reason, model,
                  "see to it that this user may read the folder and enter it");
    add(parts, "FILE_UNREADABLE", is_folder ? FindingLevel::kInfo : FindingLevel::kError,
        FindingKind::kMalformed, path,
        (is_folder ? "this folder cannot be read, what is in it is not listed: "
                   : "this file cannot be looked at: ") +
            reason,
        "see to it that this user may read it");
  }
  if (listing.num_left_out > 0)
    add(parts, "FOLDER_TOO_LARGE", FindingLevel::kWarning, FindingKind::kCheckFailed, "",
        fmt::format(
            "the folder has too many files to be listed whole: {} without a name that loaders look for "
            "are left out",
            listing.num_left_out),
        "keep the model in a folder of its own");
  const bool has_config = find_file(parts.files, "config.json") >= 0;
  const bool has_tokenizer = std::any_of(parts.files.begin(), parts.files.end(),
                                         [](const File& f) { return f.role == FileRole::kTokenizer; });
  parts.form = !has_config && has_tokenizer ? Form::kTokenizerOnly : Form::kConfigOnly;
  note_pointers(parts);
  read_folder_weights(parts);
  if (parts.form != Form::kGguf) read_folder_config(parts);
  note_empty(parts);
  note_missing(parts);
  const bool has_anything = has_config || has_tokenizer || !parts.findings.empty() || !parts.mappings.empty();
  if (!has_anything || (parts.form == Form::kConfigOnly && !has_config && parts.findings.size() == 1 &&
                        parts.findings.front().id == "WEIGHTS_ABSENT"))
    return fail(ErrorCode::kMalformed,
                fmt::format("opening a model: no config.json, weights or tokenizer is among its {} files",
                            parts.files.size()),
                model, kTaken);
  return std::make_shared<StoredArtifact>(std::move(parts));
}

namespace {

// Looked at through a mapping, without a tree: tokenizers are the largest JSON files there are.
Result<bool> is_tokenizer_file(const std::string& path) {
  PLIMSOLL_TRY(const MappedFile mapped, MappedFile::open(path));
  return holds_tokenizer(mapped.bytes());
}

// Blobs of stores have no ending, and some have one in capitals.
bool opens_with_gguf_magic(const std::string& path) {
  const auto mapped = MappedFile::open(path);
  constexpr std::string_view kMagic = "GGUF";
  return mapped && mapped->bytes().size() >= kMagic.size() &&
         std::memcmp(mapped->bytes().data(), kMagic.data(), kMagic.size()) == 0;
}

Result<std::shared_ptr<const Artifact>> open_file(const std::string& model, std::int64_t size) {
  ArtifactParts parts;
  parts.root = model;
  const std::string name = fs::path(model).filename().string();
  if (name.ends_with(".gguf") || opens_with_gguf_magic(model)) {
    read_lone_gguf(model, parts);
    note_empty(parts);
    return std::make_shared<StoredArtifact>(std::move(parts));
  }
  parts.files.push_back({name, Bytes(size), role_of(name)});
  if (size <= kMaxPointerBytes)
    if (const auto text = read_file(model, kMaxPointerBytes);
        text && is_lfs_pointer(std::as_bytes(std::span(*text))))
      return fail(ErrorCode::kMalformed,
                  "LFS_POINTER: " + foreign_content(std::as_bytes(std::span(*text)), name)->message, model,
                  "run `git lfs pull` in the repository, or download the file from the hub");
  if (name.ends_with(".model") || name.ends_with(".tiktoken")) {
    parts.form = Form::kTokenizerOnly;
    return std::make_shared<StoredArtifact>(std::move(parts));
  }
  if (name.ends_with(".safetensors"))
    return fail(ErrorCode::kMalformed,
                "opening a model: a safetensors file holds weights and does not say of what model", model,
                "give the folder that it lies in, with its config.json");
  if (!name.ends_with(".json"))
    return fail(ErrorCode::kMalformed, "opening a model: this file is of no kind that is read as a model",
                model, kTaken);
  if (size > kMaxTokenizerBytes)
    return fail(ErrorCode::kMalformed,
                fmt::format("opening a model: the file has {} bytes, and no config or tokenizer more than {}",
                            size, kMaxTokenizerBytes),
                model, kTaken);
  PLIMSOLL_TRY(const bool is_tokenizer, is_tokenizer_file(model));
  if (is_tokenizer) {
    parts.form = Form::kTokenizerOnly;
    parts.files.front().role = FileRole::kTokenizer;
    return std::make_shared<StoredArtifact>(std::move(parts));
  }
  PLIMSOLL_TRY(JsonFile file, read_json_with_bom(model, kMaxConfigBytes, kMaxConfigValues));
  if (!file.value.is_object())
    return fail(ErrorCode::kMalformed, "opening a model: the file holds JSON, but not an object", model,
                kTaken);
  if (file.value["weight_map"].is_object() && !file.value.contains("architectures"))
    return fail(ErrorCode::kMalformed, "opening a model: this is an index of shards, not a config", model,
                "give the folder that it lies in");
  parts.form = Form::kConfigOnly;
  parts.files.front().role = FileRole::kConfig;
  take_config(std::move(file), name, parts);
  return std::make_shared<StoredArtifact>(std::move(parts));
}

}  // namespace

Result<std::shared_ptr<const Artifact>> open_path(const std::string& model) {
  if (model.starts_with(kOllama)) return open_ollama(model, std::string_view(model).substr(kOllama.size()));
  std::error_code error;
  const fs::file_status status = fs::status(model, error);
  if (fs::is_directory(status)) return open_folder(model);
  if (fs::is_regular_file(status)) {
    const auto size = fs::file_size(model, error);
    return open_file(model, error ? 0 : static_cast<std::int64_t>(size));
  }
  if (!fs::exists(status) && fs::is_symlink(fs::symlink_status(model, error)))
    return fail(ErrorCode::kMalformed,
                "opening a model: this is a link whose target is missing, or the link itself", model,
                "point the link at the model, or give the model's own path");
  if (!fs::exists(status))
    return fail(ErrorCode::kMalformed, "opening a model: there is no such file or folder", model, kTaken);
  return fail(ErrorCode::kMalformed, "opening a model: this is neither a file nor a folder", model, kTaken);
}

std::shared_ptr<const Artifact> from_config(Json config, std::string source) {
  ArtifactParts parts;
  parts.form = Form::kConfigOnly;
  parts.root = std::move(source);
  parts.config = std::move(config);
  return std::make_shared<StoredArtifact>(std::move(parts));
}

std::optional<Error> cut_error(const Artifact& artifact) {
  if (!MappedFile::any_was_cut()) return std::nullopt;
  const std::vector<std::string> files = artifact.cut_files();
  if (files.empty()) return std::nullopt;
  return Error{
      ErrorCode::kMalformed, "reading weights: the file became shorter while it was used, or its disk fails",
      artifact.root() + ": " + files.front(), "start again when nothing writes to the file any more"};
}

std::optional<Error> first_error(const Findings& findings) {
  for (const Finding& finding : findings) {
    if (finding.level != FindingLevel::kError) continue;
    ErrorCode code = ErrorCode::kNo;
    if (finding.kind == FindingKind::kMalformed) code = ErrorCode::kMalformed;
    if (finding.kind == FindingKind::kUnsupported) code = ErrorCode::kUnsupported;
    return Error{code, finding.id + ": " + finding.message, finding.where, finding.fix};
  }
  return std::nullopt;
}

}  // namespace plimsoll::artifact
