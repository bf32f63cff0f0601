// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

struct StreamDecoder::State {
  std::shared_ptr<const Tokenizer> tokenizer;
  bool skip_special_tokens = false;
  std::string held;  // bytes not given out yet
};

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens)
    : state_(std::make_unique<State>(State{std::move(tokenizer), skip_special_tokens, {}})) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::optional<std::string> StreamDecoder::push(TokenId id) {
  if (!state_->skip_special_tokens || !state_->tokenizer->is_special(id))
    state_->held += state_->tokenizer->token_bytes(id);
  if (state_->held.empty() || ends_with_replacement(state_->held)) return std::nullopt;
  return flush();
}

std::string StreamDecoder::flush() {
  std::string text = is_valid_utf8(state_->held) ? state_->held : replace_invalid_utf8(state_->held);
  state_->held.clear();
  return text;
}

}  // namespace plimsoll::text
