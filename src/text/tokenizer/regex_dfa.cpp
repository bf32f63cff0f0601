// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex_dfa.h"

#include <algorithm>

namespace plimsoll::text {
namespace {

// How many bytes one search may look at again because a match that it hoped for did not come about. Only
// expressions made for it, such as a*b on many letters a, come near.
constexpr std::size_t kMaxRetriedBytes = 100'000'000;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

struct RegexDfa::Work {
  std::size_t left = kMaxRetriedBytes;
  bool spend(std::size_t bytes) {
    const bool enough = bytes <= left;
    left = enough ? left - bytes : 0;
    return enough;
  }
};

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

// Where the match that starts at `begin` ends; `begin` when there is none or it is empty.
std::size_t RegexDfa::match_at(std::string_view utf8, std::size_t begin, Work& work) const {
  std::uint16_t state = start_at(utf8, begin);
  std::size_t at = begin;
  std::size_t end = begin;
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
  return work.spend(at - end) ? end : begin;
}

std::optional<Span> RegexDfa::find(std::string_view utf8, std::size_t from) const {
  Work work;
  while (from < utf8.size() && work.left > 0) {
    const std::size_t end = match_at(utf8, from, work);
    if (end > from) return Span{from, end};
    std::size_t bytes = 0;
    symbol_at(utf8, from, bytes);
    from += bytes;
  }
  return std::nullopt;
}

// The loop has no branch but for characters that are not ASCII: both ends of a span are written at every
// character, and count only where the table says so.
std::size_t RegexDfa::find_some(std::string_view utf8, std::size_t& from, std::span<Span> out) const {
  const unsigned char* text = bytes_of(utf8);
  const std::size_t size = utf8.size();
  const Step* tiling = tiling_.data();
  Work work;
  std::size_t at = from, num_begun = 0, num_ended = 0;
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
    const std::size_t begin = out[num_begun - 1].begin;
    const std::size_t end = match_at(utf8, begin, work);
    std::size_t bytes = 0;
    symbol_at(utf8, begin, bytes);
    out[num_ended].end = end;
    num_ended += end > begin ? 1 : 0;
    num_begun = num_ended;
    at = end > begin ? end : begin + bytes;
    if (work.left == 0) at = size;  // beyond all measure: no more matches
    state = at < size ? start_at(utf8, at) : std::uint16_t{0};
  }
  // A match that is still open is found again by the next call.
  from = at >= size || num_begun == num_ended ? std::max(at, from) : out[num_ended].begin;
  return num_ended;
}

}  // namespace plimsoll::text
