// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/tokenizer/blanks.h"
#include "text/unicode_sets.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kMaxContentBytes = 1024;
constexpr std::size_t kMaxNormalizedBytes = 16 * 1024;

bool is_word(char32_t c) {
  static const CodePointSet words = *set_named("rust_word");
  return words.contains(c);
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::size_t start = text.size() - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0u) == 0x80u) --start;
  return is_word(decode_utf8(text.substr(start)).code_point);
}

bool is_crossed(Span span, std::span<const std::size_t> barriers) {
  const auto first = std::upper_bound(barriers.begin(), barriers.end(), span.begin);
  return first != barriers.end() && *first < span.end;
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word(decode_utf8(text).code_point);
}

}  // namespace

void AddedTokens::Trie::insert(std::string_view content, std::int32_t token) {
  if (nodes.empty()) {
    nodes.emplace_back();
    first.fill(-1);
  }
  std::int32_t at = 0;
  for (const char c : content) {
    const auto byte = static_cast<unsigned char>(c);
    std::int32_t next = child(at, byte);
    if (next < 0) {
      next = static_cast<std::int32_t>(nodes.size());
      nodes.emplace_back();
      auto& children = nodes[static_cast<std::size_t>(at)].children;
      children.insert(std::lower_bound(children.begin(), children.end(), std::pair(byte, std::int32_t{0})),
                      {byte, next});
      if (at == 0) {
        first[byte] = next;
        only_first = c;
        ++num_first;
      }
    }
    at = next;
  }
  if (std::int32_t& first_token = nodes[static_cast<std::size_t>(at)].token; first_token < 0)
    first_token = token;
}

std::size_t AddedTokens::Trie::next_start(std::string_view text, std::size_t from) const {
  if (num_first == 1) return std::min(text.find(only_first, from), text.size());
  while (from < text.size() && first[static_cast<unsigned char>(text[from])] < 0) ++from;
  return from;
}

std::int32_t AddedTokens::Trie::child(std::int32_t node, unsigned char byte) const {
  if (node == 0) return first[byte];
  const auto& children = nodes[static_cast<std::size_t>(node)].children;
  const auto found = std::lower_bound(children.begin(), children.end(), std::pair(byte, std::int32_t{0}));
  return found != children.end() && found->first == byte ? found->second : -1;
}

Result<AddedTokens> AddedTokens::build(std::vector<AddedToken> tokens, const Normalizer& normalizer) {
  AddedTokens made;
  std::erase_if(tokens, [](const AddedToken& token) { return token.content.empty(); });
  made.tokens_ = std::move(tokens);
  for (std::size_t i = 0; i < made.tokens_.size(); ++i) {
    AddedToken& token = made.tokens_[i];
    if (token.content.size() > kMaxContentBytes)
      return fail(ErrorCode::kMalformed, "an added token is longer than 1,024 bytes",
                  "tokenizer.json: /added_tokens/" + std::to_string(i));
    made.by_id_[token.id] = i;
    made.by_content_[token.content] = i;
    made.highest_ = std::max(made.highest_, token.id);
    if (token.is_special) made.longest_special_ = std::max(made.longest_special_, token.content.size());
    const std::string spelled = token.content;
    // The reference also gives such a token back in its normalised spelling.
    if (token.is_normalized) token.content = normalizer.apply(token.content);
    if (token.content.size() > kMaxNormalizedBytes)
      return fail(ErrorCode::kMalformed, "an added token is too long once it is normalised",
                  "tokenizer.json: /added_tokens/" + std::to_string(i));
    token.keeps_spelling = token.content == spelled;
  }
  // Of tokens that are spelled alike the first counts, special ones before the others.
  for (const bool special : {true, false})
    for (std::size_t i = 0; i < made.tokens_.size(); ++i)
      if (const AddedToken& token = made.tokens_[i]; token.is_special == special)
        made.tries_[token.is_normalized ? 1 : 0].insert(token.content, static_cast<std::int32_t>(i));
  return made;
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

// Is the text's end a proper beginning of a special token?
bool AddedTokens::begins_special(std::string_view text, Stage stage) const {
  const Trie& trie = tries_[static_cast<std::size_t>(stage)];
  for (std::size_t length = 1; length <= std::min(text.size(), longest_special_); ++length) {
    std::int32_t node = trie.nodes.empty() ? -1 : 0;
    for (std::size_t i = text.size() - length; node >= 0 && i < text.size(); ++i)
      node = trie.child(node, static_cast<unsigned char>(text[i]));
    if (node >= 0 && !trie.nodes[static_cast<std::size_t>(node)].children.empty()) return true;
  }
  return false;
}

// Is the text's start a proper end of a special token?
bool AddedTokens::ends_special(std::string_view text, Stage stage) const {
  for (const AddedToken& token : tokens_) {
    if (!token.is_special || token.is_normalized != (stage == Stage::kNormalizedText)) continue;
    const std::string_view content = token.content;
    for (std::size_t at = 1; at < content.size(); ++at)
      if (text.starts_with(content.substr(at))) return true;
  }
  return false;
}

std::vector<std::size_t> AddedTokens::special_breaks(std::string_view text, Stage stage) const {
  const Trie& trie = tries_[static_cast<std::size_t>(stage)];
  std::vector<std::size_t> places;
  if (trie.nodes.empty()) return places;
  const std::size_t start = blanks_at_start(text), end = text.size() - blanks_at_end(text);
  if (start >= end) return places;
  const std::string_view core = text.substr(start, end - start);
  if (ends_special(core, stage)) places.push_back(start);
  for (std::size_t at = 0; (at = trie.next_start(text, at)) < text.size(); ++at) {
    std::int32_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      node = trie.child(node, static_cast<unsigned char>(text[i]));
      if (node < 0) break;
      const std::int32_t token = trie.nodes[static_cast<std::size_t>(node)].token;
      if (token < 0 || !tokens_[static_cast<std::size_t>(token)].is_special) continue;
      places.push_back(at + static_cast<std::size_t>(decode_utf8(text.substr(at)).bytes));
      break;
    }
  }
  if (begins_special(core, stage)) places.push_back(end);
  std::sort(places.begin(), places.end());
  return places;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, Stage stage, bool with_special,
                                                  std::span<const std::size_t> barriers) const {
  const Trie& trie = tries_[static_cast<std::size_t>(stage)];
  std::vector<Part> parts;
  std::size_t done = 0;        // text before it is in `parts`; a token in blanks that another took goes back
  std::size_t blanks_end = 0;  // of the blanks that were looked at last
  std::size_t at = 0;
  while (!trie.nodes.empty() && (at = trie.next_start(text, at)) < text.size()) {
    std::int32_t node = 0, longest = -1;
    std::size_t end = at;
    for (std::size_t i = at; i < text.size(); ++i) {
      node = trie.child(node, static_cast<unsigned char>(text[i]));
      if (node < 0) break;
      if (const std::int32_t token = trie.nodes[static_cast<std::size_t>(node)].token; token >= 0) {
        longest = token;
        end = i + 1;
      }
    }
    if (longest < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(longest)];
    Span span{at, end};
    if (token.is_special && is_crossed(span, barriers)) {
      ++at;
      continue;
    }
    at = end;  // a refused match is passed over whole, as the reference's search does
    if (token.is_special && !with_special) continue;
    if (token.is_single_word &&
        (ends_with_word(text.substr(0, span.begin)) || starts_with_word(text.substr(span.end))))
      continue;
    if (token.strips_left && span.begin > done)
      span.begin -= blanks_at_end(text.substr(done, span.begin - done));
    else if (token.strips_left)
      span.begin = done;
    if (token.strips_right) {
      if (blanks_end < span.end) blanks_end = span.end + blanks_at_start(text.substr(span.end));
      span.end = blanks_end;
    }
    if (span.begin > done) parts.push_back({{done, span.begin}, nullptr});
    parts.push_back({span, &token});
    done = span.end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, nullptr});
  return parts;
}

}  // namespace plimsoll::text
