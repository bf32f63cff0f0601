// SPDX-License-Identifier: Apache-2.0
#include "text/prompt_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <optional>

#include "base/utf8.h"

namespace plimsoll::text {
namespace {

// Unicode's noncharacters are for a program's own use and never in text that is meant to be read. A mark is
// one of them, or two different ones in a row where a text holds them all.
constexpr char32_t kFirst = 0xFDD0;
constexpr std::size_t kNumMarks = 32;

// The noncharacter that the text begins with, as itself or as "\ufdd0"; its size in bytes goes to `size`.
std::optional<std::size_t> mark_at(std::string_view text, std::size_t& size) {
  char32_t c = 0;
  if (text.starts_with("\xEF\xB7")) {
    const DecodedChar next = decode_utf8(text);
    c = next.code_point;
    size = static_cast<std::size_t>(next.bytes);
  } else if (text.size() >= 6 && (text.starts_with("\\ufd") || text.starts_with("\\uFD"))) {
    for (const char digit : text.substr(2, 4))
      c = c * 16 + static_cast<char32_t>(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    size = 6;
  }
  if (c < kFirst || c >= kFirst + kNumMarks) return std::nullopt;
  return c - kFirst;
}

struct Mark {
  std::string text, escaped;
  void add(std::size_t which) {
    const auto c = static_cast<char32_t>(kFirst + which);
    append_utf8(text, c);
    escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
};

Mark free_mark(std::string_view text) {
  std::bitset<kNumMarks> singles;
  std::bitset<kNumMarks * kNumMarks> pairs;
  std::optional<std::size_t> before;
  for (std::size_t at = 0, size = 1; at < text.size(); at += size) {
    size = 1;
    const auto found = mark_at(text.substr(at), size);
    if (found) singles.set(*found);
    if (found && before) pairs.set(*before * kNumMarks + *found);
    before = found;
  }
  Mark mark;
  for (std::size_t i = 0; i < kNumMarks && mark.text.empty(); ++i)
    if (!singles[i]) mark.add(i);
  for (std::size_t i = 0; i < pairs.size() && mark.text.empty(); ++i) {
    if (pairs[i] || i / kNumMarks == i % kNumMarks) continue;
    mark.add(i / kNumMarks);
    mark.add(i % kNumMarks);
  }
  return mark;
}

}  // namespace

PromptGuard::PromptGuard(const Tokenizer& tokenizer, const Json& variables) : tokenizer_(tokenizer) {
  Mark mark = free_mark(dump(variables));
  mark_ = std::move(mark.text);
  escaped_ = std::move(mark.escaped);
}

std::string PromptGuard::broken(const std::string& text) const {
  std::string out;
  std::size_t at = 0;
  for (const std::size_t place : tokenizer_.special_breaks(text)) {
    out.append(text, at, place - at).append(mark_);
    at = place;
  }
  return out.append(text, at);
}

Json PromptGuard::guarded(const Json& value) const {
  if (mark_.empty()) return value;
  if (const std::string* text = value.as_string()) return broken(*text);
  Json out = value;
  if (value.is_array())
    for (Json& item : out.mutable_items()) item = guarded(item);
  if (value.is_object())
    for (auto& [key, member] : out.mutable_members()) member = guarded(member);
  return out;
}

Json PromptGuard::guarded_messages(const Json& messages) const {
  if (!messages.is_array()) return messages;
  Json out = messages;
  for (Json& message : out.mutable_items()) {
    const std::string* role = message["role"].as_string();
    if (!role || *role != "assistant") message = guarded(message);
  }
  return out;
}

PromptGuard::Prompt PromptGuard::prompt_of(std::string_view rendered) const {
  if (mark_.empty()) return {std::string(rendered), {}, false};
  Prompt prompt;
  const auto next = [&](const std::string& what, std::size_t from) {
    return std::min(rendered.find(what, from), rendered.size());
  };
  std::size_t at = 0, mark = next(mark_, 0), escaped = next(escaped_, 0);
  while (true) {
    const std::size_t found = std::min(mark, escaped);
    prompt.text += rendered.substr(at, found - at);
    if (found == rendered.size()) break;
    prompt.barriers.push_back(prompt.text.size());
    at = found + (found == mark ? mark_.size() : escaped_.size());
    if (mark < at) mark = next(mark_, at);
    if (escaped < at) escaped = next(escaped_, at);
  }
  return prompt;
}

}  // namespace plimsoll::text
