// SPDX-License-Identifier: Apache-2.0
#include "text/prompt_guard.h"

#include "base/utf8.h"

namespace plimsoll::text {
namespace {

// Unicode's noncharacters are for a program's own use and never in text that is meant to be read.
constexpr char32_t kFirstMark = 0xFDD0, kLastMark = 0xFDEF;

std::string free_mark(const std::string& text) {
  for (char32_t c = kFirstMark; c <= kLastMark; ++c) {
    std::string mark;
    append_utf8(mark, c);
    if (text.find(mark) == std::string::npos) return mark;
  }
  return {};
}

}  // namespace

PromptGuard::PromptGuard(const Tokenizer& tokenizer, const Json& messages)
    : tokenizer_(tokenizer), mark_(free_mark(dump(messages))) {}

std::string PromptGuard::broken(const std::string& text) const {
  std::string out;
  std::size_t at = 0;
  for (const Span special : tokenizer_.find_special(text)) {
    // Behind the first character: in between no token can begin or end.
    const auto first =
        static_cast<std::size_t>(decode_utf8(std::string_view(text).substr(special.begin)).bytes);
    out.append(text, at, special.begin + first - at).append(mark_);
    at = special.begin + first;
  }
  return out.append(text, at);
}

Json PromptGuard::guarded(const Json& messages) const {
  Json out = messages;
  if (mark_.empty()) return out;
  for (Json& message : out.mutable_items()) {
    const std::string* role = message["role"].as_string();
    if (!message.is_object() || (role && *role == "assistant")) continue;
    for (const char* key : {"content", "name"})
      if (const std::string* text = message[key].as_string()) message.set(key, broken(*text));
    if (!message["content"].is_array()) continue;
    Json parts = message["content"];
    for (Json& part : parts.mutable_items())
      if (const std::string* text = part["text"].as_string()) part.set("text", broken(*text));
    message.set("content", std::move(parts));
  }
  return out;
}

PromptGuard::Prompt PromptGuard::prompt_of(std::string_view rendered) const {
  if (mark_.empty()) return {std::string(rendered), {}, false};
  Prompt prompt;
  std::size_t at = 0;
  for (std::size_t found; (found = rendered.find(mark_, at)) != std::string_view::npos;
       at = found + mark_.size()) {
    prompt.text += rendered.substr(at, found - at);
    prompt.barriers.push_back(prompt.text.size());
  }
  prompt.text += rendered.substr(at);
  return prompt;
}

}  // namespace plimsoll::text
