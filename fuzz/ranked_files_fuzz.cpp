// SPDX-License-Identifier: Apache-2.0
// Any bytes as tekken.json and as a tiktoken file: an error, or tokens that byte-pair encoding by rank works
// with. The text to encode is the input itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/tokenizer/rank_model.h"
#include "text/tokenizer/tekken.h"
#include "text/tokenizer/tiktoken_file.h"

namespace {

void encode(const plimsoll::text::RankedVocabulary& read, std::string_view text) {
  using namespace plimsoll::text;
  const auto vocabulary = Vocabulary::build(read.entries, Spelling::kBytes);
  if (!vocabulary) return;
  const RankModel model(*vocabulary);
  for (const std::size_t length : {std::size_t{40}, std::size_t{400}}) {  // both ways of merging
    std::vector<TokenId> ids;
    std::vector<Span> spans;
    model.encode(text.substr(0, length), {ids, &spans});
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (vocabulary->bytes_of(ids[i]) != text.substr(spans[i].begin, spans[i].end - spans[i].begin))
        std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  plimsoll::text::looks_like_tiktoken(bytes);
  if (const auto read = plimsoll::text::read_tiktoken(bytes, "fuzz")) encode(*read, bytes);
  const auto json = plimsoll::parse_json(bytes, "fuzz");
  if (!json) return 0;
  if (const auto read = plimsoll::text::read_tekken(*json)) encode(*read, bytes);
  return 0;
}
