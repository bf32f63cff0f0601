// SPDX-License-Identifier: Apache-2.0
#include "artifact/ollama.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "artifact/folder.h"
#include "artifact/gguf.h"
#include "artifact/gguf_set.h"
#include "artifact/store.h"
#include "base/home_folder.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "base/units.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxManifestBytes = kMiB;
constexpr std::size_t kMaxLayers = 4096;
constexpr std::string_view kDigestStart = "sha256:";
constexpr std::size_t kDigestDigits = 64;
constexpr std::string_view kImage = "application/vnd.ollama.image.";

struct LayerKind {
  std::string_view media_type;  // behind kImage
  FileRole role;
};
constexpr std::array<LayerKind, 8> kLayerKinds{{
    {"model", FileRole::kWeights},
    {"adapter", FileRole::kWeights},
    {"projector", FileRole::kWeights},
    {"template", FileRole::kTemplate},
    {"params", FileRole::kGenerationConfig},
    {"license", FileRole::kLicense},
    {"system", FileRole::kOther},
    {"messages", FileRole::kOther},
}};

bool is_name_part(std::string_view part) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  return !part.empty() && part.size() <= 350 && part.front() != '.' &&
         std::all_of(part.begin(), part.end(), is_plain);
}

fs::path store_folder() {
  if (const char* set = std::getenv("OLLAMA_MODELS"); set && *set) return set;
  return fs::path(home_folder()) / ".ollama" / "models";
}

class StoreReader {
 public:
  StoreReader(std::string model, std::string manifest) : manifest_(std::move(manifest)) {
    parts_.root = std::move(model);
    parts_.folder = store_folder().string();
    parts_.form = Form::kGguf;
  }

  Result<std::shared_ptr<const Artifact>> read() {
    const std::string path = parts_.folder + "/" + manifest_;
    std::error_code error;
    if (!fs::is_directory(parts_.folder, error))
      return fail(ErrorCode::kMalformed, "opening a model of Ollama: there is no store", parts_.folder,
                  "set OLLAMA_MODELS to the folder that holds manifests/ and blobs/");
    const auto size = fs::file_size(path, error);
    if (error)
      return fail(ErrorCode::kMalformed, "opening a model of Ollama: the store has no manifest of this name",
                  path, "`ollama list` names what is there, `ollama pull` fetches a model");
    parts_.files.push_back({manifest_, Bytes(static_cast<std::int64_t>(size)), FileRole::kIndex});
    auto manifest = read_json_with_bom(path, kMaxManifestBytes);
    if (!manifest || !manifest->value["layers"].is_array() || manifest->value["layers"].size() > kMaxLayers)
      add("OLLAMA_MANIFEST", manifest_,
          manifest ? std::string("the manifest has no list \"layers\"") : manifest.error().message);
    else
      read_layers(manifest->value);
    return std::make_shared<StoredArtifact>(std::move(parts_));
  }

 private:
  void add(std::string id, std::string where, std::string message, FindingLevel level = FindingLevel::kError,
           FindingKind kind = FindingKind::kMalformed) {
    parts_.findings.push_back({std::move(id), level, kind, std::move(where), std::move(message),
                               level == FindingLevel::kError
                                   ? "pull the model again"
                                   : "use an engine that reads it where it is needed"});
  }

  void read_layers(const Json& manifest) {
    std::vector<std::string> models, others;
    if (manifest.contains("config")) take_blob(manifest["config"], "/config", FileRole::kOther);
    const auto& layers = manifest["layers"].items();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::string place = fmt::format("/layers/{}", i);
      const std::string* stated = layers[i]["mediaType"].as_string();
      std::string_view kind = stated ? std::string_view(*stated) : std::string_view();
      if (kind.starts_with(kImage)) kind.remove_prefix(kImage.size());
      const auto known = std::find_if(kLayerKinds.begin(), kLayerKinds.end(),
                                      [&](const LayerKind& row) { return row.media_type == kind; });
      if (known == kLayerKinds.end())
        add("OLLAMA_LAYER", fmt::format("{}: {}", manifest_, place),
            fmt::format("a layer of the kind {} is not known here; it is not read",
                        dump(layers[i]["mediaType"]).substr(0, 100)),
            FindingLevel::kInfo, FindingKind::kUnsupported);
      const auto blob =
          take_blob(layers[i], place, known == kLayerKinds.end() ? FileRole::kOther : known->role);
      if (!blob || known == kLayerKinds.end()) continue;
      check_text(*blob, known->role);
      if (known->role != FileRole::kWeights) continue;
      if (const auto is_blob = [&](const std::string& other) { return other == *blob; };
          std::any_of(models.begin(), models.end(), is_blob) ||
          std::any_of(others.begin(), others.end(), is_blob)) {
        add("OLLAMA_LAYER", fmt::format("{}: {}", manifest_, place),
            fmt::format("{} stands in the manifest twice; it is read once", *blob), FindingLevel::kWarning);
        continue;
      }
      (kind == "model" ? models : others).push_back(*blob);
      if (kind != "model") note_companion(*blob, kind);
    }
    if (!models.empty())
      read_gguf_files(models, parts_);
    else if (std::none_of(parts_.findings.begin(), parts_.findings.end(),
                          [](const Finding& finding) { return finding.level == FindingLevel::kError; }))
      add("OLLAMA_NO_MODEL", manifest_, "the manifest has no layer with a model");
  }

  // The blob's path below the store, when it is there. Lists it among the files.
  std::optional<std::string> take_blob(const Json& layer, const std::string& place, FileRole role) {
    const std::string where = fmt::format("{}: {}", manifest_, place);
    const std::string* digest = layer["digest"].as_string();
    const std::string_view hex = digest && digest->starts_with(kDigestStart)
                                     ? std::string_view(*digest).substr(kDigestStart.size())
                                     : "";
    if (!is_hex(hex, kDigestDigits)) {  // also what keeps a manifest from naming files elsewhere
      add("OLLAMA_MANIFEST", where,
          fmt::format("the digest {} is not sha256: and 64 hex digits",
                      dump(layer["digest"]).substr(0, 120)));
      return std::nullopt;
    }
    std::error_code error;
    std::string path = fmt::format("blobs/sha256-{}", hex);
    auto size = fs::file_size(parts_.folder + "/" + path, error);
    if (error) {  // stores from before 2024 have a colon there
      const std::string old = fmt::format("blobs/sha256:{}", hex);
      size = fs::file_size(parts_.folder + "/" + old, error);
      if (!error) path = old;
    }
    if (error) {
      add("OLLAMA_BLOB_MISSING", where, fmt::format("{} is not in the store", path));
      return std::nullopt;
    }
    const auto stated = layer["size"].as_integer();
    if (stated != static_cast<std::int64_t>(size))
      add("OLLAMA_BLOB_SIZE", path,
          fmt::format("the blob has {} bytes, the manifest states {}", size,
                      dump(layer["size"]).substr(0, 40)));
    if (std::none_of(parts_.files.begin(), parts_.files.end(),
                     [&](const File& file) { return file.path == path; }))
      parts_.files.push_back({path, Bytes(static_cast<std::int64_t>(size)), role, std::string(hex)});
    return path;
  }

  // What is read by nobody here, but by the store's own engine.
  void check_text(const std::string& blob, FileRole role) {
    const std::string path = parts_.folder + "/" + blob;
    if (role == FileRole::kGenerationConfig) {
      const auto params = read_json_with_bom(path, kMaxManifestBytes);
      if (!params || !params->value.is_object())
        add("OLLAMA_PARAMS", blob,
            params ? std::string("the parameters are not a JSON object") : params.error().message);
    }
    if (role != FileRole::kTemplate) return;
    const auto text = read_file(path, kMaxManifestBytes);
    if (!text) return add("OLLAMA_TEMPLATE", blob, text.error().message);
    const std::size_t open = text->rfind("{{");
    if (open != std::string::npos && text->find("}}", open) == std::string::npos)
      add("OLLAMA_TEMPLATE", blob,
          fmt::format("the template opens {{{{ at byte {} and never closes it", open));
  }

  // Weights that come beside the model's own: read and told, not counted among its tensors.
  void note_companion(const std::string& blob, std::string_view kind) {
    auto mapped = MappedFile::open(parts_.folder + "/" + blob);
    if (!mapped) return add("FILE_UNREADABLE", blob, mapped.error().message);
    const GgufHeader header = read_gguf({mapped->bytes(), blob, {}, &*mapped}, parts_.findings);
    if (!header.is_readable) return;
    std::int64_t bytes = 0;
    for (const Tensor& tensor : header.tensors) bytes = checked_sum(bytes, tensor.bytes).value_or(bytes);
    add(kind == "adapter" ? "OLLAMA_ADAPTER" : "OLLAMA_PROJECTOR", blob,
        fmt::format(
            "an {} of {} tensors with {} bytes comes with the model; it is not counted among its tensors",
            kind == "adapter" ? "adapter" : "image projector", header.tensors.size(), bytes),
        FindingLevel::kInfo, FindingKind::kCheckFailed);
  }

  std::string manifest_;  // below the store
  ArtifactParts parts_;
};

}  // namespace

std::optional<std::string> ollama_manifest_path(std::string_view name) {
  std::string_view tag = "latest";
  const std::size_t slash = name.rfind('/'), colon = name.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    tag = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  if (parts.size() > 3) return std::nullopt;
  if (parts.size() < 2) parts.insert(parts.begin(), "library");
  if (parts.size() < 3) parts.insert(parts.begin(), "registry.ollama.ai");
  // A host may have a port, which the store writes as it is.
  std::string host(parts.front());
  std::replace(host.begin(), host.end(), ':', '_');
  if (!is_name_part(host) || !is_name_part(parts[1]) || !is_name_part(parts[2]) || !is_name_part(tag))
    return std::nullopt;
  return fmt::format("manifests/{}/{}/{}/{}", parts[0], parts[1], parts[2], tag);
}

Result<std::shared_ptr<const Artifact>> open_ollama(const std::string& model, std::string_view name) {
  auto manifest = ollama_manifest_path(name);
  if (!manifest)
    return fail(ErrorCode::kMalformed,
                "opening a model of Ollama: this is not NAME, NAME:TAG or HOST/NAMESPACE/NAME:TAG", model,
                "give for example ollama:llama3.2:1b");
  return StoreReader(model, std::move(*manifest)).read();
}

}  // namespace plimsoll::artifact
