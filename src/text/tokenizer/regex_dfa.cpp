// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex_dfa.h"

#include <algorithm>

namespace plimsoll::text {
namespace {

// How many bytes of a text may be looked at again because a match that was hoped for did not come about. Only
// expressions made for it, such as a*b on many letters a, come near.
std::size_t max_retried(std::string_view text) {
  return 20'000'000 + 16 * text.size();
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::size_t RegexDfa::symbol_at(std::string_view utf8, std::size_t at, std::size_t& bytes) const {
  const unsigned char* head = bytes_of(utf8) + at;
  bytes = 1;
  if (*head < 0x80) return classes_.class_of(*head);
  const WideChar wide = decode_wide(head, bytes_of(utf8) + utf8.size());
  bytes = wide.bytes;
  return classes_.class_of(wide.code_point);
}

std::uint16_t RegexDfa::start_at(std::string_view utf8, std::size_t at) const {
  if (starts_alike_ || at == 0) return start_behind_[classes_.num_classes];
  std::size_t before = at - 1;
  while (before > 0 && at - before < 4 && (bytes_of(utf8)[before] & 0xC0u) == 0x80u) --before;
  std::size_t bytes = 0;
  return start_behind_[symbol_at(utf8, before, bytes)];
}

// Where the match that starts at `begin` ends, if there is one.
std::optional<std::size_t> RegexDfa::match_at(std::string_view utf8, std::size_t begin,
                                              std::size_t& num_retried) const {
  std::uint16_t state = start_at(utf8, begin);
  std::size_t at = begin;
  std::optional<std::size_t> end;
  while (state != 0) {
    std::size_t bytes = 0;
    const bool at_edge = at >= utf8.size();
    const std::size_t symbol = at_edge ? classes_.num_classes : symbol_at(utf8, at, bytes);
    const Step step = column(steps_, symbol)[state];
    if (step.flags & kEnds) end = at;
    if (at_edge) break;
    state = step.state;
    at += bytes;
  }
  num_retried += at - end.value_or(begin);
  return end;
}

std::optional<Span> RegexDfa::find(std::string_view utf8, std::size_t from, bool keep_empty) const {
  std::size_t num_retried = 0;
  while (from < utf8.size() + (keep_empty ? 1 : 0) && num_retried <= max_retried(utf8)) {
    const auto end = match_at(utf8, from, num_retried);
    if (end && (keep_empty || *end > from)) return Span{from, *end};
    std::size_t bytes = 1;
    if (from < utf8.size()) symbol_at(utf8, from, bytes);
    from += bytes;
  }
  return std::nullopt;
}

// Gives a match that has begun its end, or makes it empty when there is none; returns where to go on.
std::size_t RegexDfa::close(std::string_view utf8, Span& open, Regex::Cursor& cursor) const {
  open.end = match_at(utf8, open.begin, cursor.num_retried).value_or(open.begin);
  if (open.end > open.begin) return open.end;
  std::size_t bytes = 0;
  symbol_at(utf8, open.begin, bytes);
  return open.begin + bytes;
}

// The loop has no branch but for characters that are not ASCII: both ends of a span are written at every
// character, and count only where the table says so.
std::size_t RegexDfa::find_some(std::string_view utf8, Regex::Cursor& cursor, std::span<Span> out) const {
  const unsigned char* text = bytes_of(utf8);
  const std::size_t size = utf8.size();
  const Step* tiling = tiling_.data();
  std::size_t at = cursor.at, num_begun = 0, num_ended = 0;
  std::uint16_t state = at < size ? start_at(utf8, at) : std::uint16_t{0};
  while (at < size && num_begun + 2 < out.size()) {
    // A character begins and ends at most one match each: so far there is room for sure.
    const std::size_t safe = at + std::min(size - at, out.size() - 2 - num_begun);
    std::uint16_t flags = 0;
    std::size_t here = at;
    while (at < safe) {
      here = at;
      const Step* row;
      if (text[at] < 0x80) {
        row = tiling + ascii_[text[at]];
        ++at;
      } else {
        const WideChar wide = decode_wide(text + at, text + size);
        row = tiling + classes_.class_of(wide.code_point) * num_states_;
        at += wide.bytes;
      }
      flags = row[state].flags;
      state = row[state].state;
      out[num_ended].end = here;
      num_ended += flags & kEnds;
      out[num_begun].begin = here;
      num_begun += (flags & kBegins) / kBegins;
      if (flags & kRetry) [[unlikely]]
        break;
    }
    if (at < size && !(flags & kRetry)) continue;
    if (!(flags & kRetry)) {
      flags = column(tiling_, classes_.num_classes)[state].flags;
      out[num_ended].end = size;
      num_ended += flags & kEnds;
      if (!(flags & kRetry)) break;
    }
    at = close(utf8, out[num_ended], cursor);
    num_ended += out[num_ended].end > out[num_ended].begin ? 1 : 0;
    num_begun = num_ended;
    if (cursor.num_retried > max_retried(utf8)) at = size;  // beyond all measure: no more matches
    state = at < size ? start_at(utf8, at) : std::uint16_t{0};
  }
  cursor.at = at;
  if (at < size && num_begun > num_ended) {  // no room for another: the open match is brought to its end
    cursor.at = close(utf8, out[num_ended], cursor);
    num_ended += out[num_ended].end > out[num_ended].begin ? 1 : 0;
  }
  return num_ended;
}

}  // namespace plimsoll::text
