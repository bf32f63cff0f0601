// SPDX-License-Identifier: Apache-2.0
#include "inspect/templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/text.h"

namespace plimsoll::inspect {
namespace {

constexpr std::string_view kJinja = "chat_template.jinja";
constexpr std::string_view kExtra = "additional_chat_templates/";

struct NamedTemplate {
  std::string name, text;
};

struct Source {
  std::string file;
  std::vector<NamedTemplate> templates;
};

// A template is text, or a list of {"name", "template"}.
std::vector<NamedTemplate> templates_in(const Json& value) {
  std::vector<NamedTemplate> found;
  if (const auto* text = value.as_string()) found.push_back({"default", *text});
  for (const Json& item : value.items()) {
    const auto *name = item["name"].as_string(), *text = item["template"].as_string();
    if (name && text) found.push_back({*name, *text});
  }
  return found;
}

// In the order in which they win: the .jinja files, chat_template.json, tokenizer_config.json.
std::vector<Source> find_sources(const Subject& subject) {
  std::vector<Source> sources;
  const auto& artifact = subject.artifact;
  const auto add = [&](std::string file, std::vector<NamedTemplate> templates) {
    if (!templates.empty()) sources.push_back({std::move(file), std::move(templates)});
  };
  if (subject.is_gguf()) {
    std::vector<NamedTemplate> templates = templates_in(subject.figures["tokenizer.chat_template"]);
    for (const auto& [key, value] : subject.figures.members())
      if (key.starts_with("tokenizer.chat_template.") && value.is_string())
        templates.push_back(
            {key.substr(std::string_view("tokenizer.chat_template.").size()), *value.as_string()});
    add(subject.config_file, std::move(templates));
    return sources;
  }
  for (const auto& file : artifact.files()) {
    const bool is_extra = file.path.starts_with(kExtra) && file.path.ends_with(".jinja");
    if (file.path != kJinja && !is_extra) continue;
    const auto text = artifact.text_file(file.path);
    if (!text) continue;
    const std::string name = is_extra ? file.path.substr(kExtra.size(), file.path.size() - kExtra.size() - 6)
                                      : std::string("default");
    add(file.path, {{name, *text}});
  }
  // The main template before the named ones, whatever their files' order.
  std::stable_partition(sources.begin(), sources.end(),
                        [](const Source& source) { return source.file == kJinja; });
  add("chat_template.json", templates_in(artifact.json_file("chat_template.json")["chat_template"]));
  add("tokenizer_config.json", templates_in(artifact.json_file("tokenizer_config.json")["chat_template"]));
  return sources;
}

const std::string* default_of(const Source& source) {
  for (const NamedTemplate& named : source.templates)
    if (named.name == "default") return &named.text;
  return nullptr;
}

Json message(const char* role, const char* content) {
  return Json::object({{"role", role}, {"content", content}});
}

// Renders a conversation as the chat endpoint would; the text room bounds steps and output.
tl::expected<std::string, text::TemplateError> render(const text::ChatTemplate& chat, Json::Array messages) {
  return chat.render(Json::object({{"messages", Json(std::move(messages))},
                                   {"tools", nullptr},
                                   {"documents", nullptr},
                                   {"add_generation_prompt", true},
                                   {"bos_token", ""},
                                   {"eos_token", ""}}),
                     "2026-01-15T09:30:00");
}

// What a template does when it is used: reaches for too much, for what it must not, or refuses a role.
void try_template(const Source& source, const std::string& text, Findings& findings) {
  const auto add = [&](const char* id, FindingLevel level, const std::string& what, const std::string& fix) {
    add_check(findings, id, level, source.file + ": /chat_template", what, fix);
  };
  const auto chat = text::ChatTemplate::parse(text);
  if (!chat) {
    add("TMPL_SYNTAX", FindingLevel::kWarning,
        fmt::format("the chat template cannot be parsed: {} (line {})", chat.error().message,
                    chat.error().line),
        "give another one with --chat-template");
    return;
  }
  const auto plain = render(**chat, {message("user", "Hello")});
  if (!plain) {
    const auto& error = plain.error();
    const std::string what =
        fmt::format("rendering one user message ends with {}: {}", error.type, error.message);
    if (error.type == "LimitError" || error.type == "OverflowError" || error.type == "MemoryError")
      add("TMPL_LIMIT", FindingLevel::kWarning, "a limit stops the template; " + what,
          "use another template");
    else if (error.type == "SecurityError")
      add("TMPL_UNSAFE", FindingLevel::kWarning, "the template reaches for internals; nothing runs; " + what,
          "do not trust this template");
    else
      add("TMPL_RENDER", FindingLevel::kInfo, what, "the template may need variables of its own");
    return;
  }
  const auto with_system = render(**chat, {message("system", "Be brief"), message("user", "Hello")});
  if (!with_system && with_system.error().type == "TemplateError")
    add("TMPL_NO_SYSTEM", FindingLevel::kInfo,
        fmt::format("the template itself refuses system messages: {}", with_system.error().message),
        "put instructions into the first user message");
}

}  // namespace

Json check_templates(const Subject& subject, Findings& findings) {
  const std::vector<Source> sources = find_sources(subject);
  Json list = Json::array();
  const Source* used = nullptr;
  for (const Source& source : sources) {
    if (!used && default_of(source)) used = &source;
    Json names = Json::array();
    for (const NamedTemplate& named : source.templates) names.push_back(named.name);
    const bool is_used = &source == used || source.file.starts_with(kExtra);
    list.push_back(Json::object({{"file", source.file}, {"names", std::move(names)}, {"used", is_used}}));
    if (const auto* text = default_of(source); used && &source != used && text && *text != *default_of(*used))
      add_check(
          findings, "TMPL_CONFLICT", FindingLevel::kWarning, source.file + ": /chat_template",
          fmt::format("the chat template differs from the one in {}, which wins in transformers", used->file),
          "keep one of them");
  }
  if (used) try_template(*used, *default_of(*used), findings);
  const auto& files = subject.artifact.files();
  const bool has_tokenizer = std::any_of(
      files.begin(), files.end(), [](const auto& file) { return file.path == "tokenizer_config.json"; });
  if (sources.empty() && has_tokenizer)
    add_check(findings, "TMPL_MISSING", FindingLevel::kWarning, "tokenizer_config.json: /chat_template",
              "there is no chat template: /v1/completions can be served, /v1/chat/completions can not",
              "give one with --chat-template");
  return Json::object({{"sources", std::move(list)}});
}

bool template_mentions(const Subject& subject, std::string_view text) {
  for (const Source& source : find_sources(subject))
    for (const NamedTemplate& named : source.templates)
      if (named.text.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace plimsoll::inspect
