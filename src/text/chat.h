// SPDX-License-Identifier: Apache-2.0
// What surrounds a template when it renders a conversation: which of several named templates is taken, how a
// request's content is normalised, and how the last message is left open. Pure functions over JSON whose
// results own their memory; safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/json.h"
#include "text/text.h"

namespace plimsoll::text {

struct ChatOptions {
  /// Normalise message content as an OpenAI-style server does (see normalized_messages); off: the template
  /// gets the messages unchanged, as transformers passes them.
  bool normalize_content = false;
  /// The last message is not closed: the text ends where its content ends, as transformers'
  /// continue_final_message.
  bool continue_final_message = false;
  /// What strftime_now sees (ISO 8601); the clock when empty.
  std::string now;
};

/// What of a request's messages no template could take.
struct MessageError {
  std::string message;
  std::string place;  // "messages[0].content[1].image_url"
};

/// Renders `context` (messages, tools, add_generation_prompt, bos_token, eos_token and any further template
/// variables).
/// Errors: the template's; ValueError when the final message cannot be continued; TypeError for messages that
/// cannot be normalised.
tl::expected<std::string, TemplateError> render_chat(const ChatTemplate& chat_template, const Json& context,
                                                     const ChatOptions& options = {});

/// Messages of a request as the template wants them, with vLLM's rules. Parts of text, refusal or thinking
/// are joined with "\n", or with `takes_content_parts` kept as a list of {"type": "text", "text"}; absent or
/// null content becomes ""; arguments of tool calls, which arrive as JSON text, become objects. A message
/// keeps role, content, name, tool_call_id, and the assistant's tool_calls and reasoning (under both its
/// names). Whether roles and contents are there at all is left to who takes the request. Errors: the messages
/// are no list of objects, content or tool calls have another form, a part is no text, arguments are not
/// JSON.
tl::expected<Json, MessageError> normalized_messages(const Json& messages, bool takes_content_parts);

/// Source of the template as transformers chooses it: the named one; without a name "tool_use" when there are
/// tools and such a template, else the default. Nothing when there is none.
std::optional<std::string> choose_chat_template(const artifact::Artifact& artifact, std::string_view name,
                                                bool has_tools);

/// Text of a special token ("bos_token", "eos_token"), as transformers gives it to templates: as
/// tokenizer_config.json, special_tokens_map.json or the GGUF keys name it; "" when none does. Needs no
/// tokenizer, so templates render for models whose tokenizer kind is not supported.
std::string special_token_text(const artifact::Artifact& artifact, std::string_view name);

/// "line 3, column 5", as far as it is known; "" when it is not.
std::string place_in_template(const TemplateError& error);

/// The same failure as an Error for verbs that print one: kUnsupported for limits, else kMalformed.
Error to_error(const TemplateError& error);

}  // namespace plimsoll::text
