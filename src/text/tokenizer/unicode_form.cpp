// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "base/utf8.h"
#include "text/tokenizer/reference_unicode.h"
#include "text/tokenizer/symbol_classes.h"

namespace plimsoll::text {
namespace {

constexpr std::size_t kNumCodePoints = 0x110000;

bool is_compatible(UnicodeForm form) {
  return form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
}

bool composes(UnicodeForm form) {
  return form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
}

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

// Marks behind a letter in the order of their classes. The library's own way is quadratic in their number.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  for (auto begin = points.begin(); begin != points.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, points.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

// The text in the form.
std::string mapped(std::string_view text, UnicodeForm form) {
  const auto compatible = is_compatible(form) ? UTF8PROC_COMPAT : utf8proc_option_t{};
  const auto decompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | compatible);
  std::vector<utf8proc_int32_t> points;
  int boundary = 0;
  while (!text.empty()) {
    constexpr utf8proc_ssize_t kLongest = 64;  // the longest decomposition has 18 characters
    utf8proc_int32_t parts[kLongest];
    const DecodedChar next = decode_utf8(text);
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(next.code_point), parts,
                                               kLongest, decompose, &boundary);
    if (count > 0 && count <= kLongest)
      points.insert(points.end(), parts, parts + count);
    else
      points.push_back(static_cast<utf8proc_int32_t>(next.code_point));
    text.remove_prefix(static_cast<std::size_t>(next.bytes));
  }
  order_marks(points);
  if (composes(form)) {
    const auto compose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const auto size =
        utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), compose);
    if (size >= 0) points.resize(static_cast<std::size_t>(size));
  }
  std::string out;
  for (const auto c : points) append_utf8(out, static_cast<char32_t>(c));
  return out;
}

// May this character, or the one before it because of it, look different in the form? A character is inert
// when it stays as it is alone and composes with no neighbour before it.
bool is_inert(char32_t c, UnicodeForm form) {
  if (has_no_normal_form(c, is_compatible(form))) return true;
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  if (property->combining_class != 0) return false;
  constexpr std::uint16_t kNone = 0xFFFF, kSecond = 0x8000;  // utf8proc's marks in comb_index
  if (composes(form) && property->comb_index != kNone && property->comb_index >= kSecond) return false;
  const bool is_hangul_tail = (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
  if (composes(form) && is_hangul_tail) return false;
  if (c >= 0xAC00 && c <= 0xD7A3) return composes(form);  // Hangul syllables
  if (property->decomp_seqindex == kNone) return true;
  std::string alone;
  append_utf8(alone, c);
  return mapped(alone, form) == alone;
}

// One bit per code point, made at the first use of a form: some milliseconds.
class InertSet {
 public:
  explicit InertSet(UnicodeForm form) : bits_(kNumCodePoints / 64) {
    for (char32_t c = 0; c < kNumCodePoints; ++c)
      if (c < 0x80 || (!(c >= 0xD800 && c <= 0xDFFF) && is_inert(c, form)))
        bits_[c / 64] |= std::uint64_t{1} << (c % 64);
  }
  bool holds(char32_t c) const { return (bits_[c / 64] >> (c % 64) & 1) != 0; }

  static const InertSet& of(UnicodeForm form) {
    static std::array<std::unique_ptr<const InertSet>, 4> sets;
    static std::array<std::once_flag, 4> flags;
    const auto index = static_cast<std::size_t>(form);
    std::call_once(flags[index], [&] { sets[index] = std::make_unique<const InertSet>(form); });
    return *sets[index];
  }

 private:
  std::vector<std::uint64_t> bits_;
};

std::size_t ascii_end(std::string_view text, std::size_t at) {
  for (std::uint64_t word; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080ull) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

WideChar wide_at(std::string_view text, std::size_t at) {
  const auto* head = reinterpret_cast<const unsigned char*>(text.data());
  return decode_wide(head + at, head + text.size());
}

// Where the next character that is not inert begins; `segment` is the last inert one before it.
std::size_t next_active(std::string_view text, std::size_t at, const InertSet& inert, std::size_t& segment) {
  while (at < text.size()) {
    if (const std::size_t end = ascii_end(text, at); end > at) {
      segment = end - 1;
      at = end;
      continue;
    }
    const WideChar next = wide_at(text, at);
    if (!inert.holds(next.code_point)) return at;
    segment = at;
    at += next.bytes;
  }
  return text.size();
}

}  // namespace

bool surely_has_form(std::string_view utf8, UnicodeForm form) {
  const std::size_t wide = ascii_end(utf8, 0);
  std::size_t segment = 0;
  return wide == utf8.size() || next_active(utf8, wide, InertSet::of(form), segment) == utf8.size();
}

// An inert character starts afresh: what stands before it never depends on it. So the text falls into
// segments of one inert character and those behind it that are not, each mapped alone.
void write_form(Rewriter& rewriter, UnicodeForm form) {
  const std::string_view text = rewriter.source();
  const InertSet& inert = InertSet::of(form);
  std::size_t kept = 0;     // written so far
  std::size_t segment = 0;  // where the last inert character began
  while (true) {
    std::size_t end = next_active(text, kept, inert, segment);
    if (end == text.size()) break;
    while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80) {
      const WideChar next = wide_at(text, end);
      if (inert.holds(next.code_point)) break;
      end += next.bytes;
    }
    // What the reference's Unicode does not know yet stays as it is.
    if (const DecodedChar first = decode_utf8(text.substr(segment));
        has_no_normal_form(first.code_point, is_compatible(form)))
      segment += static_cast<std::size_t>(first.bytes);
    rewriter.keep(kept, segment);
    const std::string_view before = text.substr(segment, end - segment);
    const std::string after = mapped(before, form);
    if (after == before)
      rewriter.keep(segment, end);
    else
      rewriter.put(after, segment, end);
    kept = segment = end;
  }
  rewriter.keep(kept, text.size());
}

}  // namespace plimsoll::text
