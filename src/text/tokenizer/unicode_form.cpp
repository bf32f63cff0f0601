// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/unicode_form.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
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

utf8proc_option_t options_of(UnicodeForm form) {
  switch (form) {
    case UnicodeForm::kNfc:
      return UTF8PROC_COMPOSE;
    case UnicodeForm::kNfd:
      return UTF8PROC_DECOMPOSE;
    case UnicodeForm::kNfkc:
      return static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case UnicodeForm::kNfkd:
      return static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
  return UTF8PROC_COMPOSE;
}

// The text in the form, or nothing when it could not be made (out of memory).
std::string mapped(std::string_view text, UnicodeForm form) {
  utf8proc_uint8_t* bytes = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &bytes,
                                 static_cast<utf8proc_option_t>(options_of(form) | UTF8PROC_STABLE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (size < 0) return std::string(text);
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

// May this character, or the one before it because of it, look different in the form? A character is inert
// when it stays as it is alone and composes with no neighbour before it.
bool is_inert(char32_t c, UnicodeForm form) {
  if (has_no_normal_form(c, is_compatible(form))) return true;
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  if (property->combining_class != 0) return false;
  const bool composes = form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
  constexpr std::uint16_t kNone = 0xFFFF, kSecond = 0x8000;  // utf8proc's marks in comb_index
  if (composes && property->comb_index != kNone && property->comb_index >= kSecond) return false;
  const bool is_hangul_tail = (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
  if (composes && is_hangul_tail) return false;
  if (c >= 0xAC00 && c <= 0xD7A3) return composes;  // Hangul syllables
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
