// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/sentencepiece_text.h"

#include "base/utf8.h"
#include "text/tokenizer/word_mark.h"

namespace plimsoll::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

// The normalised text under construction and where each byte of it comes from.
class SentencePieceText::Output {
 public:
  Output(std::string& text, std::vector<std::size_t>* origin, bool escapes)
      : text_(text), origin_(origin), blank_(escapes ? kWordMark : " ") {
    text_.clear();
    if (origin_) origin_->clear();
  }

  void add(std::string_view part, std::size_t from) {
    for (std::size_t at = 0; at < part.size();) {
      const std::size_t blank = std::min(part.find(' ', at), part.size());
      put(part.substr(at, blank - at), from);
      at = blank;
      for (; at < part.size() && part[at] == ' '; ++at) add_blank(from);
    }
  }
  void add_blank(std::size_t from) { put(blank_, from); }
  /// Gives back where the dropped blanks came from, or `end`.
  std::size_t drop_trailing_blanks(std::size_t end) {
    while (text_.ends_with(blank_)) {
      text_.resize(text_.size() - blank_.size());
      if (!origin_) continue;
      end = (*origin_)[text_.size()];
      origin_->resize(text_.size());
    }
    return end;
  }
  void finish(std::size_t end) {
    if (origin_) origin_->push_back(end);
  }

 private:
  void put(std::string_view part, std::size_t from) {
    text_ += part;
    if (origin_) origin_->insert(origin_->end(), part.size(), from);
  }

  std::string& text_;
  std::vector<std::size_t>* origin_;
  std::string_view blank_;
};

Result<SentencePieceText> SentencePieceText::build(const SentencePieceFile& file) {
  SentencePieceText made;
  if (!file.precompiled_charsmap.empty()) {
    PLIMSOLL_TRY(made.charsmap_, Charsmap::parse(file.precompiled_charsmap));
  }
  std::vector<PrefixTrie::Key> symbols;
  for (const auto& piece : file.pieces)
    if (piece.type == SentencePieceFile::PieceType::kUserDefined) symbols.push_back({piece.text, 0});
  made.has_user_symbols_ = !symbols.empty();
  made.user_symbols_ = PrefixTrie(std::move(symbols));
  made.add_dummy_prefix_ = file.add_dummy_prefix;
  made.remove_extra_whitespaces_ = file.remove_extra_whitespaces;
  made.escape_whitespaces_ = file.escape_whitespaces;
  made.treat_whitespace_as_suffix_ = file.treat_whitespace_as_suffix;
  return made;
}

std::size_t SentencePieceText::user_symbol(std::string_view text) const {
  std::size_t longest = 0;
  if (has_user_symbols_)
    user_symbols_.each_prefix(text, [&](std::size_t bytes, std::int32_t) { longest = bytes; });
  return longest;
}

SentencePieceText::Prefix SentencePieceText::normalize_prefix(std::string_view text) const {
  if (const std::size_t symbol = user_symbol(text)) return {text.substr(0, symbol), symbol};
  if (charsmap_)
    if (const auto rule = charsmap_->longest(text)) return {rule->replacement, rule->bytes};
  const DecodedChar first = decode_utf8(text);
  if (!first.valid) return {kReplacement, 1};
  return {text.substr(0, static_cast<std::size_t>(first.bytes)), static_cast<std::size_t>(first.bytes)};
}

void SentencePieceText::normalize(std::string_view text, std::string& normalized,
                                  std::vector<std::size_t>* origin) const {
  Output out(normalized, origin, escape_whitespaces_);
  std::size_t at = 0;
  const auto skip_blanks = [&] {
    while (at < text.size()) {
      const Prefix prefix = normalize_prefix(text.substr(at));
      if (prefix.text != " ") return;
      at += prefix.bytes;
    }
  };
  if (remove_extra_whitespaces_) skip_blanks();
  if (at == text.size()) return out.finish(at);
  if (add_dummy_prefix_ && !treat_whitespace_as_suffix_) out.add_blank(at);
  bool is_after_blank = remove_extra_whitespaces_;
  while (at < text.size()) {
    const Prefix prefix = normalize_prefix(text.substr(at));
    std::string_view part = prefix.text;
    while (is_after_blank && part.starts_with(' ')) part.remove_prefix(1);
    out.add(part, at);
    if (!part.empty()) is_after_blank = remove_extra_whitespaces_ && part.ends_with(' ');
    at += prefix.bytes;
  }
  if (remove_extra_whitespaces_) at = out.drop_trailing_blanks(at);
  if (add_dummy_prefix_ && treat_whitespace_as_suffix_) out.add_blank(at);
  out.finish(at);
}

}  // namespace plimsoll::text
