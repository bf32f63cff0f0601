// SPDX-License-Identifier: Apache-2.0
// The tokens "<0x00>" to "<0xFF>" with which SentencePiece-like vocabularies spell what has no token.
// Plain functions; safe from any thread.
#pragma once

#include <array>
#include <string_view>

#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

/// Id of each byte's token; -1 when the vocabulary has none.
std::array<TokenId, 256> byte_token_ids(const Vocabulary& vocabulary);
/// Every byte of `text` has one.
bool has_byte_tokens(const std::array<TokenId, 256>& ids, std::string_view text);
/// The byte that a token spelled "<0xE5>" stands for, else -1.
int byte_of_token(std::string_view token);

}  // namespace plimsoll::text
