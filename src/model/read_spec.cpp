// SPDX-License-Identifier: Apache-2.0
// Finds the family of a config or a GGUF file and lets it read the spec.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "model/families/families.h"
#include "model/model.h"

namespace plimsoll::model {
namespace {

std::string known_list() {
  std::string list;
  for (const Family& family : families())
    list += (list.empty() ? "" : ", ") + std::string(family.architecture);
  return list;
}

// The name a config gives its architecture: the first of architectures[], else its model_type.
const Family* family_of(const Json& config, std::string& shown) {
  for (const Json& item : config["architectures"].items()) {
    const std::string* name = item.as_string();
    if (!name) continue;
    if (shown.empty()) shown = *name;
    for (const Family& family : families())
      if (family.architecture == *name) return &family;
  }
  const std::string* type = config["model_type"].as_string();
  if (!type) return nullptr;
  if (!shown.empty()) return nullptr;  // an architecture of another head is another model
  shown = *type;
  for (const Family& family : families())
    if (family.model_type == *type) return &family;
  return nullptr;
}

tl::unexpected<Error> unknown(std::string_view shown, std::string where) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("reading the model: architecture \"{}\" is not known here; known are {}", shown,
                          known_list()),
              std::move(where), "serve it with another engine");
}

Result<ModelSpec> read_gguf_spec(const artifact::Artifact& artifact) {
  const auto& files = artifact.files();
  const auto file =
      std::find_if(files.begin(), files.end(), [](const auto& f) { return f.path.ends_with(".gguf"); });
  const std::string source = file == files.end() ? artifact.root() : file->path;
  const std::string* architecture = artifact.config()["general.architecture"].as_string();
  if (!architecture)
    return fail(ErrorCode::kMalformed, "reading the model: the key general.architecture is absent",
                source + ": general.architecture");
  for (const Family& family : families()) {
    if (family.gguf_architecture.empty() || family.gguf_architecture != *architecture) continue;
    KeyReader keys = KeyReader::of_gguf(artifact.config(), source, *architecture);
    ModelSpec spec = family.from_gguf(keys, artifact);
    PLIMSOLL_TRY_VOID(keys.status());
    spec.architecture = family.architecture;
    spec.model_type = family.model_type;
    return spec;
  }
  return unknown(*architecture, source + ": general.architecture");
}

}  // namespace

const Json& language_config(const Json& config, std::string& pointer) {
  pointer.clear();
  if (!config["hidden_size"].is_null()) return config;
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (!config[key].is_object()) continue;
    pointer = std::string("/") + key;
    return config[key];
  }
  return config;
}

Result<ModelSpec> read_spec(const Json& config, std::string_view source) {
  if (!config.is_object())
    return fail(ErrorCode::kMalformed, "reading the model: the config is not a JSON object",
                std::string(source));
  std::string pointer, shown;
  const Json& object = language_config(config, pointer);
  const Family* family = family_of(object, shown);
  if (!family) return unknown(shown, fmt::format("{}: {}/architectures", source, pointer));
  KeyReader keys = KeyReader::of_config(object, source, pointer);
  ModelSpec spec = family->from_config(keys);
  PLIMSOLL_TRY_VOID(keys.status());
  const std::string* outer =
      config["architectures"].items().empty() ? nullptr : config["architectures"].items()[0].as_string();
  spec.architecture = outer ? *outer : std::string(family->architecture);
  const std::string* type = config["model_type"].as_string();
  spec.model_type = type ? *type : std::string(family->model_type);
  for (const Json* holder : {&config, &object})
    if (const Json& quantization = (*holder)["quantization_config"];
        quantization.is_object() && spec.quantization.empty()) {
      const std::string* method = quantization["quant_method"].as_string();
      spec.quantization = method ? *method : "an unnamed method";
    }
  for (const char* key : {"vision_config", "audio_config"})
    if (config[key].is_object()) spec.encoders.emplace_back(key);
  if (!spec.declared_dtype)
    for (const char* key : {"dtype", "torch_dtype"})
      if (const auto* text = config[key].as_string(); text && !spec.declared_dtype)
        spec.declared_dtype = dtype_from_config(*text);
  return spec;
}

Result<ModelSpec> read_spec(const artifact::Artifact& artifact) {
  if (artifact.form() == artifact::Form::kGguf) return read_gguf_spec(artifact);
  const std::filesystem::path root(artifact.root());
  const bool is_lone = artifact.files().size() == 1 && root.filename() == artifact.files().front().path;
  if (artifact.config().is_null())
    return fail(ErrorCode::kMalformed, "reading the model: there is no config that can be read",
                artifact.root(), "give a folder with a config.json");
  PLIMSOLL_TRY(ModelSpec spec,
               read_spec(artifact.config(), is_lone ? root.filename().string() : "config.json"));
  if (!is_lone)
    spec.name = root.filename().empty() ? root.parent_path().filename().string() : root.filename().string();
  return spec;
}

}  // namespace plimsoll::model
