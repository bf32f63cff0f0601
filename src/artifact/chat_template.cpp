// SPDX-License-Identifier: Apache-2.0
// Which of an artifact's chat templates is used.
#include <utility>

#include "artifact/artifact.h"

namespace plimsoll::artifact {
namespace {

std::optional<StoredTemplate> template_in(std::string file, const Json& value) {
  const std::string* text = value.as_string();
  if (!text) return std::nullopt;
  return StoredTemplate{std::move(file), *text};
}

}  // namespace

std::optional<StoredTemplate> stored_chat_template(const Artifact& artifact, std::string_view name) {
  const bool wants_default = name.empty() || name == "default";
  if (artifact.form() == Form::kGguf) {
    const std::string key = "tokenizer.chat_template" + (wants_default ? "" : "." + std::string(name));
    return template_in(key, artifact.config()[key]);
  }
  // As transformers: files win over tokenizer_config.json.
  const std::string file =
      wants_default ? "chat_template.jinja" : "additional_chat_templates/" + std::string(name) + ".jinja";
  if (auto text = artifact.text_file(file)) return StoredTemplate{file, std::move(*text)};
  const std::string config = "tokenizer_config.json";
  const Json& templates = artifact.json_file(config)["chat_template"];
  if (templates.is_string()) return wants_default ? template_in(config, templates) : std::nullopt;
  for (const Json& entry : templates.items())
    if (const std::string* known = entry["name"].as_string();
        known && *known == (wants_default ? "default" : name))
      return template_in(config, entry["template"]);
  if (!wants_default) return std::nullopt;
  const std::string processors = "chat_template.json";
  return template_in(processors, artifact.json_file(processors)["chat_template"]);
}

}  // namespace plimsoll::artifact
