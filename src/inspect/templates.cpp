// SPDX-License-Identifier: Apache-2.0
#include "inspect/templates.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "inspect/conversation.h"
#include "text/chat.h"
#include "text/text.h"

namespace plimsoll::inspect {
namespace {

// What of a template is evaluated: between {{ and }}, {% and %}; neither its text nor its comments.
std::string code_of(std::string_view text) {
  std::string code;
  for (std::size_t at = text.find('{'); at != std::string_view::npos && at + 1 < text.size();
       at = text.find('{', at)) {
    const char kind = text[at + 1];
    const std::string_view close = kind == '{' ? "}}" : kind == '%' ? "%}" : kind == '#' ? "#}" : "";
    if (close.empty()) {
      ++at;
      continue;
    }
    const std::size_t end = std::min(text.find(close, at + 2), text.size());
    if (kind != '#') code.append(text.substr(at, end - at)).append(" ");
    at = end;
  }
  return code;
}

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

using Rendered = tl::expected<std::string, text::TemplateError>;

// One function, as the chat endpoint hands it to templates.
Json tools_example() {
  const Json parameters =
      Json::object({{"type", "object"},
                    {"properties", Json::object({{"city", Json::object({{"type", "string"}})}})},
                    {"required", Json(Json::Array{Json("city")})}});
  return Json(Json::Array{Json::object({{"type", "function"},
                                        {"function", Json::object({{"name", "plimsoll_weather"},
                                                                   {"description", "The weather of a city"},
                                                                   {"parameters", parameters}})}})});
}

// Renders a conversation as the chat endpoint would; the text room bounds steps and output.
Rendered render(const artifact::Artifact& artifact, const text::ChatTemplate& chat, Json::Array messages,
                const Json& tools = {}, bool add_generation_prompt = true) {
  return chat.render(Json::object({{"messages", Json(std::move(messages))},
                                   {"tools", tools},
                                   {"documents", nullptr},
                                   {"add_generation_prompt", add_generation_prompt},
                                   {"bos_token", text::special_token_text(artifact, "bos_token")},
                                   {"eos_token", text::special_token_text(artifact, "eos_token")}}),
                     "2026-01-15T09:30:00");
}

// What a template does with something beyond one user message.
enum class Treatment { kUnknown, kTaken, kIgnored, kRefused };
Json treatment_json(Treatment treatment) {
  switch (treatment) {
    case Treatment::kUnknown:
      return {};
    case Treatment::kTaken:
      return "taken";
    case Treatment::kIgnored:
      return "ignored";
    case Treatment::kRefused:
      return "refused";
  }
  return {};
}

struct Trial {
  Treatment system = Treatment::kUnknown, tools = Treatment::kUnknown;
};

// A text that no template holds of itself, to be looked for in what it renders.
constexpr const char* kMark = "plimsoll-mark";

// A template of its own is its whole file; in a tokenizer_config.json it is one key.
std::string place_of(const std::string& file) {
  return file.ends_with(".json") ? file + ": /chat_template" : file;
}

// What a template does when it is used: reaches for too much, for what it must not, or refuses a role.
class TemplateTrial {
 public:
  TemplateTrial(const artifact::Artifact& artifact, const Source& source, Findings& findings)
      : artifact_(artifact), file_(source.file), findings_(findings) {}

  Trial run(const std::string& text, const std::string& text_for_tools) {
    Trial trial;
    const auto chat = parse(text);
    if (!chat) return trial;
    add_internals(text);
    const auto plain = render(artifact_, *chat, {message("user", "Hello")});
    if (!plain) {
      add_failure(plain.error());
      return trial;
    }
    trial.system = with_system(*chat);
    if (text_for_tools == text) {
      trial.tools = with_tools(*chat);
    } else if (const auto other = parse(text_for_tools)) {
      trial.tools = with_tools(*other);
    }
    return trial;
  }

 private:
  void add(const char* id, FindingLevel level, const std::string& what, const std::string& fix) {
    add_check(findings_, id, level, place_of(file_), what, fix);
  }

  std::shared_ptr<const text::ChatTemplate> parse(const std::string& text) {
    auto chat = text::ChatTemplate::parse(text);
    if (chat) return *chat;
    add("TMPL_SYNTAX", FindingLevel::kWarning,
        fmt::format("the chat template cannot be parsed: {} (line {})", chat.error().message,
                    chat.error().line),
        "give another one with --chat-template");
    return nullptr;
  }

  // Where a sandbox gives nothing for them the template renders all the same, elsewhere it runs code.
  void add_internals(std::string_view whole) {
    const std::string text = code_of(whole);
    for (const char* word : {"__class__", "__globals__", "__subclasses__", "__mro__", "__base__", "__bases__",
                             "__init__", "__builtins__", "__import__", "__dict__", "__getattribute__",
                             "__code__", "__self__", "__func__", "__reduce__"})
      if (text.find(word) != std::string::npos && !is_unsafe_told_) {
        is_unsafe_told_ = true;
        add("TMPL_UNSAFE", FindingLevel::kWarning,
            fmt::format("the template names {}, an internal of Python; nothing runs here", word),
            "do not trust this template");
      }
  }

  void add_failure(const text::TemplateError& error) {
    const std::string what =
        fmt::format("rendering one user message ends with {}: {}", error.type, error.message);
    if (error.type == "LimitError" || error.type == "OverflowError" || error.type == "MemoryError")
      add("TMPL_LIMIT", FindingLevel::kWarning, "a limit stops the template; " + what,
          "use another template");
    else if (error.type == "SecurityError" && is_unsafe_told_)
      return;
    else if (error.type == "SecurityError")
      add("TMPL_UNSAFE", FindingLevel::kWarning, "the template reaches for internals; nothing runs; " + what,
          "do not trust this template");
    else
      // What the template raises itself, it raises for every such conversation.
      add("TMPL_RENDER", error.type == "TemplateError" ? FindingLevel::kWarning : FindingLevel::kInfo, what,
          "the template may need variables of its own");
  }

  Treatment with_system(const text::ChatTemplate& chat) {
    const auto result = render(artifact_, chat, {message("system", kMark), message("user", "Hello")});
    if (result) return result->find(kMark) == std::string::npos ? Treatment::kIgnored : Treatment::kTaken;
    if (result.error().type != "TemplateError") return Treatment::kUnknown;
    add("TMPL_NO_SYSTEM", FindingLevel::kInfo,
        fmt::format("the template itself refuses system messages: {}", result.error().message),
        "put instructions into the first user message");
    return Treatment::kRefused;
  }

  Treatment with_tools(const text::ChatTemplate& chat) {
    const auto result = render(artifact_, chat, {message("user", "Hello")}, tools_example());
    if (result)
      return result->find("plimsoll_weather") == std::string::npos ? Treatment::kIgnored : Treatment::kTaken;
    if (result.error().type != "TemplateError") return Treatment::kUnknown;
    add("TMPL_NO_TOOLS", FindingLevel::kInfo,
        fmt::format("the template itself refuses tools: {}", result.error().message),
        "send requests without tools, or give another template with --chat-template");
    return Treatment::kRefused;
  }

  const artifact::Artifact& artifact_;
  const std::string& file_;
  Findings& findings_;
  bool is_unsafe_told_ = false;
};

const std::string* named(const std::vector<Source>& sources, std::string_view name) {
  for (const Source& source : sources)
    for (const NamedTemplate& entry : source.templates)
      if (entry.name == name) return &entry.text;
  return nullptr;
}

// llama.cpp has a general template for files without one: only folders are asked.
void check_absence(const Subject& subject, const Report& report, Findings& findings) {
  if (subject.is_gguf() || !subject.has_file("tokenizer_config.json")) return;
  // A file that cannot be read may have held one: that is told as a fault of the file.
  const bool is_readable = subject.artifact.json_file("tokenizer_config.json").is_object();
  const Conversation conversation = conversation_of(subject, report);
  if (!is_readable || conversation == Conversation::kNone) return;
  const bool is_base = conversation == Conversation::kBase;
  std::string message =
      "there is no chat template: /v1/completions can be served, /v1/chat/completions can not";
  if (is_base) message += "; name or card say that this is a base model, which needs none";
  add_check(findings, "TMPL_MISSING", is_base ? FindingLevel::kInfo : FindingLevel::kWarning,
            "tokenizer_config.json: /chat_template", message, "give one with --chat-template");
}

}  // namespace

Json check_templates(const Subject& subject, const Report& report, Findings& findings) {
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
          findings, "TMPL_CONFLICT", FindingLevel::kWarning, place_of(source.file),
          fmt::format("the chat template differs from the one in {}, which wins in transformers", used->file),
          "keep one of them");
  }
  Trial trial;
  if (used) {
    const std::string& text = *default_of(*used);
    const std::string* for_tools = named(sources, "tool_use");
    trial = TemplateTrial(subject.artifact, *used, findings).run(text, for_tools ? *for_tools : text);
  }
  if (!sources.empty() && (!used || default_of(*used)->empty()))
    add_check(findings, "TMPL_NO_DEFAULT", FindingLevel::kWarning, place_of(sources.front().file),
              used ? "the chat template is empty: no word of a conversation reaches the model"
                   : "no chat template is the default one: conversations without tools cannot be served",
              "give one with --chat-template");
  if (sources.empty()) check_absence(subject, report, findings);
  return Json::object({{"sources", std::move(list)},
                       {"system", treatment_json(trial.system)},
                       {"tools", treatment_json(trial.tools)}});
}

std::optional<std::string> after_answer(const Subject& subject) {
  const std::vector<Source> sources = find_sources(subject);
  const std::string* text = named(sources, "default");
  if (!text) return std::nullopt;
  const auto chat = text::ChatTemplate::parse(*text);
  if (!chat) return std::nullopt;
  const auto rendered =
      render(subject.artifact, **chat, {message("user", "Hello"), message("assistant", kMark)}, {}, false);
  if (!rendered) return std::nullopt;
  const std::size_t at = rendered->rfind(kMark);
  if (at == std::string::npos) return std::nullopt;
  return rendered->substr(at + std::string_view(kMark).size());
}

}  // namespace plimsoll::inspect
