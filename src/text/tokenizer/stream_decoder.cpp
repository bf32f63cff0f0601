// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/utf8.h"
#include "text/text.h"

namespace plimsoll::text {
namespace {

// Would decoding these bytes end with U+FFFD: because the last character is incomplete, ill-formed, or is
// one? Then the reference holds the text back, since more bytes may still complete it.
bool ends_with_replacement(std::string_view bytes) {
  std::size_t start = bytes.size();
  for (std::size_t back = 1; back <= 4 && back <= bytes.size(); ++back) {
    start = bytes.size() - back;
    if ((static_cast<unsigned char>(bytes[start]) & 0xC0u) != 0x80u) break;
  }
  const DecodedChar last = decode_utf8(bytes.substr(start));
  return !last.valid || last.code_point == kReplacementCharacter ||
         static_cast<std::size_t>(last.bytes) != bytes.size() - start;
}

std::string repaired(std::string bytes) {
  return is_valid_utf8(bytes) ? std::move(bytes) : replace_invalid_utf8(bytes);
}

// Ids whose text the neighbours may still change are few; so many that stay unclear are given out as they
// are.
constexpr std::size_t kMaxWindow = 256;

}  // namespace

// Two ways to the same answer. Where a text is the joined bytes of its ids, bytes are enough. Elsewhere what
// an id adds depends on those before it (a leading blank that is stripped, a run of byte tokens), so a window
// of the last ids is decoded as a whole, and the text is what it has more than before.
struct StreamDecoder::State {
  std::shared_ptr<const Tokenizer> tokenizer;
  bool skip_special_tokens = false;

  std::string held;  // bytes not given out yet

  std::vector<TokenId> window;
  std::size_t num_given = 0;  // of the window's ids
  std::string given;          // their text

  std::optional<std::string> push_bytes(TokenId id) {
    held += tokenizer->token_bytes(id);
    if (held.empty() || ends_with_replacement(held)) return std::nullopt;
    return take_bytes();
  }

  std::string take_bytes() { return repaired(std::exchange(held, {})); }

  std::optional<std::string> push_window(TokenId id) {
    window.push_back(id);
    const std::string text = tokenizer->decode(window, skip_special_tokens);
    const bool is_open = text.size() <= given.size() || ends_with_replacement(text);
    if (is_open && window.size() < kMaxWindow) return std::nullopt;
    std::string news = news_of(text);
    window.erase(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(num_given));
    num_given = window.size();
    given = tokenizer->decode(window, skip_special_tokens);
    return news;
  }

  // What `text` of the window adds to what was given out. Later ids can change earlier text (a byte that
  // spoils a run of byte tokens); what was given out stays, and the other ids count alone, by their bytes.
  std::string news_of(const std::string& text) const {
    if (text.starts_with(given)) return text.substr(given.size());
    std::string bytes;
    for (std::size_t i = num_given; i < window.size(); ++i) bytes += tokenizer->token_bytes(window[i]);
    return repaired(std::move(bytes));
  }
};

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens)
    : state_(std::make_unique<State>()) {
  state_->tokenizer = std::move(tokenizer);
  state_->skip_special_tokens = skip_special_tokens;
}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::optional<std::string> StreamDecoder::push(TokenId id) {
  const bool is_silent = (state_->skip_special_tokens && state_->tokenizer->is_special(id)) ||
                         !state_->tokenizer->token_text(id);
  if (is_silent) return std::nullopt;
  return state_->tokenizer->decodes_by_bytes() ? state_->push_bytes(id) : state_->push_window(id);
}

std::string StreamDecoder::flush() {
  if (state_->tokenizer->decodes_by_bytes()) return state_->take_bytes();
  std::string news = state_->news_of(state_->tokenizer->decode(state_->window, state_->skip_special_tokens));
  state_->window.clear();
  state_->num_given = 0;
  state_->given.clear();
  return news;
}

}  // namespace plimsoll::text
