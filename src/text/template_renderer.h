// SPDX-License-Identifier: Apache-2.0
// Which template does a line of `tokens render` mean, and what does it make of the conversation? Finds and
// parses the templates of one model or one text and keeps the last parsed one, since lines mostly ask for the
// same. Holds the artifact; one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "artifact/artifact.h"
#include "base/json.h"
#include "text/token_lines.h"

namespace plimsoll::text {

/// Where templates come from. `source`, when given, stands for all of the artifact's.
struct TemplateChoice {
  std::shared_ptr<const artifact::Artifact> artifact;  // also for bos_token and eos_token; may be null
  std::optional<std::string> source;
  std::string name;  // which of several, unless a line names one
};

class TemplateRenderer {
 public:
  explicit TemplateRenderer(TemplateChoice choice) : choice_(std::move(choice)) {}

  /// Answers {"messages", "tools", "template_name", "content_format", "continue_final_message", "now", ...}
  /// with {"text"}; further keys are the template's variables.
  /// Errors: the template's own; ValueError when there is no such template.
  LineAnswer render(const Json& line);

 private:
  using Parsed = tl::expected<std::shared_ptr<const ChatTemplate>, TemplateError>;
  Parsed find(const std::string& name, bool has_tools);

  TemplateChoice choice_;
  std::string last_source_;
  std::shared_ptr<const ChatTemplate> last_;
};

/// Tokens of a conversation as `serve` counts them: special strings in what users wrote stay plain text, and
/// content is normalised unless the context says otherwise. Errors: the template's.
tl::expected<TokenCount, TemplateError> count_conversation(const Tokenizer& tokenizer,
                                                           TemplateRenderer& renderer, Json context);

/// A conversation as transformers hands it to a template. `chat` is an array of messages or an object that
/// holds them; `tools` may be null; the members of `variables` come last and win.
struct Conversation {
  Json chat, tools, variables;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};
Json chat_context(Conversation conversation);

}  // namespace plimsoll::text
