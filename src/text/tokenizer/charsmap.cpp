// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/charsmap.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/tokenizer/utf8_steps.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kLargestCluster = 5;  // bytes of a grapheme cluster that is looked up as a whole
// No rule may blow text up without bound; the longest one that Unicode has (U+FDFA) makes 33 bytes.
constexpr std::size_t kLongestReplacement = 256;
// Bytes of text that a rule may ask for: every place of a text is looked at this far. The longest sequence
// that Unicode's normal forms know has 18 characters.
constexpr std::size_t kLongestRule = 1024;

// A unit of the trie, as the darts-clone library packs it.
std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
std::uint32_t label_of(std::uint32_t unit) {
  return unit & (1u << 31 | 0xFF);
}
std::uint32_t value_of(std::uint32_t leaf) {
  return leaf & 0x7FFFFFFF;
}

std::uint32_t read_32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Characters of the replacement stand for the replaced ones in their order, surplus ones for the last.
void put(Rewriter& out, std::string_view replacement, std::size_t begin, std::size_t end) {
  std::size_t from = begin, to = begin + character_bytes(out.source(), begin);
  for (std::size_t at = 0; at < replacement.size();) {
    const std::size_t bytes = character_bytes(replacement, at);
    out.put(replacement.substr(at, bytes), from, to);
    at += bytes;
    if (to >= end) continue;
    from = to;
    to += character_bytes(out.source(), to);
  }
}

// Marks that joined Unicode after version 15, which utf8proc 2.8 takes for unassigned. Only marks below four
// bytes can fall into a cluster that is looked up as a whole.
bool is_newer_mark(char32_t c) {
  return c == 0x897 || (c >= 0x1ACF && c <= 0x1ADD) || (c >= 0x1AE0 && c <= 0x1AEB);
}
constexpr char32_t kGraveAccent = 0x300;  // breaks clusters as every other mark does

std::size_t cluster_end(std::string_view text, std::size_t begin) {
  DecodedChar last = decode_utf8(text.substr(begin));
  if (is_newer_mark(last.code_point)) last.code_point = kGraveAccent;
  std::size_t at = begin + static_cast<std::size_t>(last.bytes);
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    DecodedChar next = decode_utf8(text.substr(at));
    if (is_newer_mark(next.code_point)) next.code_point = kGraveAccent;
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state))
      break;
    at += static_cast<std::size_t>(next.bytes);
    last = next;
  }
  return at;
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view blob) {
  if (blob.size() < 4) return fail(ErrorCode::kMalformed, "the compiled charsmap is cut off");
  const std::size_t trie_bytes = read_32(blob);
  if (trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes > blob.size() - 4)
    return fail(ErrorCode::kMalformed, "the compiled charsmap has " + std::to_string(blob.size()) +
                                           " bytes and claims a trie of " + std::to_string(trie_bytes));
  Charsmap made;
  made.units_.reserve(trie_bytes / 4);
  for (std::size_t at = 4; at < 4 + trie_bytes; at += 4) made.units_.push_back(read_32(blob.substr(at, 4)));
  made.replacements_ = blob.substr(4 + trie_bytes);
  for (std::size_t begin = 0; begin < made.replacements_.size();) {
    const std::size_t end = std::min(made.replacements_.find('\0', begin), made.replacements_.size());
    if (end - begin > kLongestReplacement)
      return fail(ErrorCode::kMalformed, "a replacement of the compiled charsmap has " +
                                             std::to_string(end - begin) +
                                             " bytes, more than any rule needs");
    begin = end + 1;
  }
  for (unsigned byte = 1; byte < 128; ++byte) {
    const std::uint64_t child = offset_of(made.units_[0]) ^ byte;
    made.is_plain_[byte] = child >= made.units_.size() || label_of(made.units_[child]) != byte;
  }
  made.is_plain_[0] = true;  // NUL ends a rule's key
  return made;
}

std::optional<std::string_view> Charsmap::replacement_at(std::uint32_t offset) const {
  if (offset >= replacements_.size()) return std::nullopt;
  const std::string_view rest = std::string_view(replacements_).substr(offset);
  return rest.substr(0, rest.find('\0'));
}

// Calls found(bytes, offset of the replacement) for each rule that `text` starts with until it says false.
template <class Found>
void Charsmap::each_rule(std::string_view text, Found&& found) const {
  std::uint64_t node = offset_of(units_[0]);
  for (std::size_t at = 0; at < std::min(text.size(), kLongestRule); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) return;
    const std::uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (node >= units_.size()) return;
    if (has_leaf(unit) && !found(at + 1, value_of(units_[node]))) return;
  }
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  std::optional<Match> best;
  each_rule(text, [&](std::size_t bytes, std::uint32_t offset) {
    if (const auto replacement = replacement_at(offset)) best = Match{bytes, *replacement};
    return true;
  });
  return best;
}

std::optional<std::string_view> Charsmap::shortest(std::string_view text) const {
  std::optional<std::string_view> first;
  each_rule(text, [&](std::size_t, std::uint32_t offset) {
    first = replacement_at(offset);
    return false;
  });
  return first;
}

void Charsmap::apply(Rewriter& out) const {
  const std::string_view text = out.source();
  const auto is_ascii = [&](std::size_t at) {
    return at >= text.size() || static_cast<unsigned char>(text[at]) < 0x80;
  };
  for (std::size_t at = 0; at < text.size();) {
    // Two ASCII characters in a row never share a cluster (CR LF do, but CR is not at stake when plain).
    std::size_t plain_end = at;
    while (plain_end < text.size() && is_ascii(plain_end) && is_ascii(plain_end + 1) &&
           text[plain_end] != '\r' && is_plain_[static_cast<unsigned char>(text[plain_end])])
      ++plain_end;
    out.keep(at, plain_end);
    at = plain_end;
    if (at == text.size()) break;
    const std::size_t end = cluster_end(text, at);
    if (end - at <= kLargestCluster) {
      if (const auto whole = shortest(text.substr(at, end - at))) {
        put(out, *whole, at, end);
        at = end;
        continue;
      }
    }
    while (at < end) {
      const std::size_t next = std::min(end, at + character_bytes(text, at));
      if (const auto replacement = shortest(text.substr(at, next - at)))
        put(out, *replacement, at, next);
      else
        out.keep(at, next);
      at = next;
    }
  }
}

}  // namespace plimsoll::text
