// SPDX-License-Identifier: Apache-2.0
// Any bytes as a SentencePiece `.model`: an error, or a model that encodes and decodes without harm. The text
// to encode is the input itself; with and without spans must give the same ids.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/tokenizer/sentencepiece_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::text;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  looks_like_sentencepiece(bytes);
  const auto file = read_sentencepiece(bytes, "fuzz");
  if (!file) return 0;
  const auto model = SentencePieceModel::build(*file);
  if (!model) return 0;
  const std::string_view text = bytes.substr(0, 500);
  std::vector<TokenId> ids, again;
  std::vector<Span> spans;
  (*model)->encode(text, {ids, &spans});
  (*model)->encode(text, {again});
  if (ids != again || spans.size() != ids.size()) std::abort();
  for (const Span& span : spans)
    if (span.begin > span.end || span.end > text.size()) std::abort();
  (*model)->decode(ids);
  return 0;
}
