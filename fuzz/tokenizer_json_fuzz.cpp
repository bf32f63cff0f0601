// SPDX-License-Identifier: Apache-2.0
// Any bytes as tokenizer.json: an error or a tokenizer that encodes and decodes without harm. The text to
// encode is the input itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/tokenizer/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parts = plimsoll::text::read_tokenizer_json(std::string(text));
  if (!parts) return 0;
  const auto tokenizer = plimsoll::text::make_tokenizer(std::move(*parts));
  const auto ids = tokenizer->encode(text.substr(0, 1000));
  const auto placed = tokenizer->encode_with_spans(text.substr(0, 1000));
  if (placed.ids != ids || placed.spans.size() != ids.size()) __builtin_trap();
  tokenizer->decode(ids, false);
  plimsoll::text::StreamDecoder decoder(tokenizer, true);
  for (const auto id : ids) decoder.push(id);
  decoder.flush();
  return 0;
}
