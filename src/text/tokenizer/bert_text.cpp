// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/bert_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/tokenizer/reference_unicode.h"

namespace plimsoll::text {
namespace {

// Longest decomposition of one character (Unicode's stability policy keeps it far below).
constexpr int kMaxDecomposed = 32;

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

bool is_ascii_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Calls each(character, begin, end) for every character of the rewriter's source; ASCII that stays as it is
// takes the short way.
template <class IsPlain, class Each>
void rewrite(Rewriter& out, IsPlain&& is_plain, Each&& each) {
  const std::string_view text = out.source();
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_ascii(text[end]) && is_plain(text[end])) ++end;
    out.keep(at, end);
    if (end == text.size()) return;
    const DecodedChar next = decode_utf8(text.substr(end));
    at = end + static_cast<std::size_t>(next.bytes);
    each(next.code_point, end, at);
  }
}

// Decomposes, drops accents and lowers case. Marks wait until their letter's last one has come, because
// decomposition puts them in order.
class AccentStripper {
 public:
  AccentStripper(Rewriter& out, bool strips, bool lowers) : out_(out), strips_(strips), lowers_(lowers) {}
  ~AccentStripper() { flush(); }
  AccentStripper(const AccentStripper&) = delete;
  AccentStripper& operator=(const AccentStripper&) = delete;

  void add(char32_t c, Span origin) {
    if (!strips_ || c < 0x80 || has_no_normal_form(c, false)) return add_decomposed(c, 0, origin);
    utf8proc_int32_t parts[kMaxDecomposed];
    int boundary = 0;
    const auto num_parts = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, kMaxDecomposed,
                                                   UTF8PROC_DECOMPOSE, &boundary);
    if (num_parts <= 0 || num_parts > kMaxDecomposed) return add_decomposed(c, 0, origin);
    for (utf8proc_ssize_t i = 0; i < num_parts; ++i)
      add_decomposed(static_cast<char32_t>(parts[i]), utf8proc_get_property(parts[i])->combining_class,
                     origin);
  }

  void flush() {
    std::sort(waiting_.begin(), waiting_.end(), [](const Mark& a, const Mark& b) {
      return a.order != b.order ? a.order < b.order : a.place < b.place;
    });
    for (const Mark& mark : waiting_) put(mark.character, mark.origin);
    waiting_.clear();
  }

 private:
  struct Mark {
    char32_t character;
    int order;
    std::size_t place;  // as it came: keeps those of one order in theirs
    Span origin;
  };

  void add_decomposed(char32_t c, int order, Span origin) {
    if (order == 0) flush();  // also when the character goes: it kept the marks on its sides apart
    if (strips_ && is_bert_accent(c)) return;
    if (order == 0)
      put(c, origin);
    else
      waiting_.push_back({c, order, waiting_.size(), origin});
  }

  void put(char32_t c, Span origin) {
    spelled_.clear();
    if (lowers_)
      append_lower_case(spelled_, c);
    else
      append_utf8(spelled_, c);
    out_.put(spelled_, origin.begin, origin.end);
  }

  Rewriter& out_;
  bool strips_, lowers_;
  std::vector<Mark> waiting_;
  std::string spelled_;
};

}  // namespace

void bert_normalize(const BertTextOptions& options, Rewriter& out) {
  AccentStripper stripper(out, options.strip_accents.value_or(options.lowercase), options.lowercase);
  const auto is_plain = [&](char c) {
    return c >= ' ' && c != 0x7F && !(options.lowercase && c >= 'A' && c <= 'Z');
  };
  rewrite(
      out,
      [&](char c) {
        if (!is_plain(c)) return false;
        stripper.flush();
        return true;
      },
      [&](char32_t c, std::size_t begin, std::size_t end) {
        const Span origin{begin, end};
        if (options.clean_text) {
          if (is_bert_removed(c)) return;
          if (is_bert_space(c)) c = ' ';
        }
        const bool is_chinese = options.handle_chinese_chars && is_bert_chinese(c);
        if (is_chinese) stripper.add(' ', origin);
        stripper.add(c, origin);
        if (is_chinese) stripper.add(' ', origin);
      });
}

void bert_split(std::string_view text, std::vector<Span>& pieces) {
  std::size_t begin = 0;
  const auto close = [&](std::size_t end) {
    if (end > begin) pieces.push_back({begin, end});
  };
  for (std::size_t at = 0; at < text.size();) {
    if (is_ascii(text[at]) && is_ascii_word(text[at])) {
      ++at;
      continue;
    }
    const DecodedChar next = decode_utf8(text.substr(at));
    const std::size_t end = at + static_cast<std::size_t>(next.bytes);
    const bool is_space = is_rust_space(next.code_point);
    if (is_space || is_bert_punctuation(next.code_point)) {
      close(at);
      if (!is_space) pieces.push_back({at, end});
      begin = end;
    }
    at = end;
  }
  close(text.size());
}

void lowercase(Rewriter& out) {
  std::string lower;
  rewrite(
      out, [](char c) { return c < 'A' || c > 'Z'; },
      [&](char32_t c, std::size_t begin, std::size_t end) {
        lower.clear();
        append_lower_case(lower, c);
        out.put(lower, begin, end);
      });
}

void strip_accents(Rewriter& out) {
  rewrite(
      out, [](char) { return true; },
      [&](char32_t c, std::size_t begin, std::size_t end) {
        if (!is_combining_mark(c)) out.keep(begin, end);
      });
}

void nmt(Rewriter& out) {
  rewrite(
      out, [](char c) { return c >= ' ' && c != 0x7F; },
      [&](char32_t c, std::size_t begin, std::size_t end) {
        const bool is_removed = (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
                                c == 0x8F || c == 0x9F;
        const bool is_blank = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                              (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                              c == 0xFEFF || c == 0xFFFD;
        if (is_removed) return;
        if (is_blank)
          out.put(" ", begin, end);
        else
          out.keep(begin, end);
      });
}

}  // namespace plimsoll::text
