// SPDX-License-Identifier: Apache-2.0
// Any ids, known or not, through the decoders of four kinds of tokenizer: whole and as a stream, which must
// be valid UTF-8, and the same text wherever text is the joined bytes of ids.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/tokenizer_json.h"

namespace {

using plimsoll::text::TokenId;
using TokenizerPtr = std::shared_ptr<const plimsoll::text::Tokenizer>;

// A vocabulary of words, marks, and the 256 byte tokens, or the 256 byte characters.
TokenizerPtr make(const char* pipeline, bool byte_level) {
  plimsoll::Json vocab = plimsoll::Json::object();
  std::int64_t id = 0;
  for (const char* word : {"a", "▁a", "▁", "##ing", "n't", ".", "▁▁", "é", "</w>", "b</w>"})
    if (!byte_level) vocab.set(word, id++);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    const std::string spelled = std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">";
    vocab.set(
        byte_level ? plimsoll::text::bytes_to_characters(std::string(1, static_cast<char>(byte))) : spelled,
        id++);
  }
  plimsoll::Json json = *plimsoll::parse_json(pipeline, "pipeline");
  json.set("model", plimsoll::Json::object(
                        {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", plimsoll::Json::array()}}));
  json.set(
      "added_tokens",
      *plimsoll::parse_json(
          R"([{"id":300,"content":"<s>","special":true},{"id":301,"content":"▁ x","special":false,"normalized":false}])",
          "added"));
  auto parts = plimsoll::text::read_tokenizer_json(dump(json));
  if (!parts) __builtin_trap();
  return plimsoll::text::make_tokenizer(std::move(*parts));
}

const std::vector<TokenizerPtr>& tokenizers() {
  static const std::vector<TokenizerPtr> all = {
      make(R"({"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"}})", true),
      make(
          R"({"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
               {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}})",
          false),
      make(R"({"decoder":{"type":"WordPiece","prefix":"##","cleanup":true}})", false),
      make(R"({"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}})", false),
      make(R"({"decoder":{"type":"BPEDecoder","suffix":"</w>"}})", false),
      make("{}", false)};
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const TokenizerPtr& tokenizer = tokenizers()[data[0] % tokenizers().size()];
  const bool skip_special = data[1] & 1;
  std::vector<TokenId> ids;
  for (std::size_t i = 2; i < size && ids.size() < 4000; ++i)
    ids.push_back(data[i] == 0xFF && i + 1 < size ? 256 + data[++i] - 8 * (data[1] & 2) : data[i]);
  const std::string whole = tokenizer->decode(ids, skip_special);
  plimsoll::text::StreamDecoder decoder(tokenizer, skip_special);
  std::string streamed;
  for (const TokenId id : ids)
    if (const auto chunk = decoder.push(id)) streamed += *chunk;
  streamed += decoder.flush();
  if (!plimsoll::is_valid_utf8(whole) || !plimsoll::is_valid_utf8(streamed)) __builtin_trap();
  if (tokenizer->decodes_by_bytes() && streamed != whole) __builtin_trap();
  return 0;
}
