// SPDX-License-Identifier: Apache-2.0
// GPT-2's spelling of bytes as printable characters ("Ġ" is a space), which byte-level vocabularies are
// written in. Says nothing about tokens: vocabulary.h. Plain functions over the caller's memory; safe from
// any thread.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer/rewriter.h"

namespace plimsoll::text {

/// Bytes -> their characters, as UTF-8.
std::string bytes_to_characters(std::string_view bytes);
/// The source (any bytes) in their characters.
void write_byte_characters(Rewriter& rewriter);
/// Appends the bytes a token spells; false when one of its characters stands for no byte (`bytes` then holds
/// those before it).
bool append_bytes(std::string_view utf8, std::string& bytes);
/// Replaces `bytes` by what a token spells; false when one of its characters stands for no byte.
bool characters_to_bytes(std::string_view utf8, std::string& bytes);
/// As above, but such a token (an added one, with a space in it, say) stands for its own UTF-8.
std::string token_to_bytes(std::string_view utf8);

}  // namespace plimsoll::text
