// SPDX-License-Identifier: Apache-2.0
#include "text/prompt_guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace plimsoll::text {
namespace {

// Unicode's noncharacters are for a program's own use and never in text that is meant to be read.
constexpr char32_t kFirstMark = 0xFDD0, kLastMark = 0xFDEF;

// Where a special token is broken: behind its first character. In between no token can begin or end.
std::size_t place_in(std::string_view text, Span special) {
  return special.begin + static_cast<std::size_t>(decode_utf8(text.substr(special.begin)).bytes);
}

}  // namespace

PromptGuard::PromptGuard(const Tokenizer& tokenizer, const Json& variables) : tokenizer_(tokenizer) {
  const std::string all = dump(variables);
  for (char32_t c = kFirstMark; c <= kLastMark && mark_.empty(); ++c) {
    std::string mark;
    append_utf8(mark, c);
    const std::string escaped = fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    if (all.find(mark) != std::string::npos || all.find(escaped) != std::string::npos) continue;
    mark_ = mark;
    escaped_ = escaped;
  }
}

std::string PromptGuard::broken(const std::string& text) const {
  std::string out;
  std::size_t at = 0;
  for (const Span special : tokenizer_.find_special(text)) {
    const std::size_t place = place_in(text, special);
    out.append(text, at, place - at).append(mark_);
    at = place;
  }
  return out.append(text, at);
}

Json PromptGuard::broken_parts(const Json& parts) const {
  std::vector<std::string> texts;
  std::string joined;
  for (const Json& part : parts.items()) {
    const std::string* text = part["text"].as_string();
    joined += texts.emplace_back(text ? broken(*text) : "");
  }
  // From the last one on, so that earlier places stay what they are.
  std::vector<Span> specials = tokenizer_.find_special(joined);
  for (auto special = specials.rbegin(); special != specials.rend(); ++special) {
    std::size_t place = place_in(joined, *special);
    std::size_t part = 0;
    while (part + 1 < texts.size() && place > texts[part].size()) place -= texts[part++].size();
    texts[part].insert(std::min(place, texts[part].size()), mark_);
  }
  Json out = parts;
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (parts.items()[i]["text"].is_string()) out.mutable_items()[i].set("text", texts[i]);
  return out;
}

Json PromptGuard::guarded(const Json& messages) const {
  Json out = messages;
  if (mark_.empty()) return out;
  for (Json& message : out.mutable_items()) {
    const std::string* role = message["role"].as_string();
    if (!message.is_object() || (role && *role == "assistant")) continue;
    for (auto& [key, value] : message.mutable_members()) {
      if (const std::string* text = value.as_string())
        value = broken(*text);
      else if (value.is_array())
        value = broken_parts(value);
    }
  }
  return out;
}

PromptGuard::Prompt PromptGuard::prompt_of(std::string_view rendered) const {
  if (mark_.empty()) return {std::string(rendered), {}, false};
  Prompt prompt;
  for (std::size_t at = 0; at < rendered.size();) {
    const std::size_t mark = rendered.find(mark_, at), escaped = rendered.find(escaped_, at);
    const std::size_t found = std::min({mark, escaped, rendered.size()});
    prompt.text += rendered.substr(at, found - at);
    if (found == rendered.size()) break;
    prompt.barriers.push_back(prompt.text.size());
    at = found + (found == mark ? mark_.size() : escaped_.size());
  }
  return prompt;
}

}  // namespace plimsoll::text
