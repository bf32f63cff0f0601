// SPDX-License-Identifier: Apache-2.0
// A tokenizer small enough to count by hand: words with their leading blank from a list, else single bytes.
#pragma once

#include <string>
#include <vector>

#include "text/text.h"

namespace plimsoll::bench {

class ToyTokenizer final : public text::Tokenizer {
 public:
  explicit ToyTokenizer(std::vector<std::string> words, bool adds_bos = false)
      : words_(std::move(words)), adds_bos_(adds_bos) {}

  std::vector<text::TokenId> encode(std::string_view text,
                                    const text::EncodeOptions& options) const override {
    std::vector<text::TokenId> ids;
    if (adds_bos_ && options.add_special_tokens) ids.push_back(0);
    while (!text.empty()) {
      std::size_t longest = 0;
      for (std::size_t w = 1; w < words_.size(); ++w)
        if (text.starts_with(words_[w]) && (longest == 0 || words_[w].size() > words_[longest].size()))
          longest = w;
      const std::size_t taken = longest ? words_[longest].size() : 1;
      ids.push_back(longest
                        ? static_cast<text::TokenId>(longest)
                        : static_cast<text::TokenId>(words_.size() + static_cast<unsigned char>(text[0])));
      text.remove_prefix(taken);
    }
    return ids;
  }
  text::Encoding encode_with_spans(std::string_view text, const text::EncodeOptions& options) const override {
    text::Encoding made{encode(text, options), {}};
    made.spans.resize(made.ids.size());
    return made;
  }
  bool decodes_by_bytes() const override { return true; }
  std::vector<std::size_t> special_breaks(std::string_view) const override { return {}; }
  std::string decode(std::span<const text::TokenId> ids, bool) const override {
    std::string out;
    for (text::TokenId id : ids) out += token_bytes(id);
    return out;
  }
  std::string token_bytes(text::TokenId id) const override {
    const auto at = static_cast<std::size_t>(id);
    if (at < words_.size()) return words_[at];
    return std::string(1, static_cast<char>(at - words_.size()));
  }
  std::optional<std::string> token_text(text::TokenId id) const override { return token_bytes(id); }
  std::optional<text::TokenId> id_of(std::string_view) const override { return std::nullopt; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(words_.size()) + 256; }
  bool is_special(text::TokenId id) const override { return id == 0; }
  std::optional<text::TokenId> bos() const override { return std::nullopt; }
  std::optional<text::TokenId> eos() const override { return std::nullopt; }
  const std::vector<text::TokenId>& stop_ids() const override { return none_; }

 private:
  std::vector<std::string> words_;  // [0] stands for the special token
  bool adds_bos_;
  std::vector<text::TokenId> none_;
};

}  // namespace plimsoll::bench
