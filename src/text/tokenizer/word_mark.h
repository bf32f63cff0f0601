// SPDX-License-Identifier: Apache-2.0
// How do SentencePiece-like vocabularies spell the blank between words? Constants; any thread may read them.
#pragma once

#include <string_view>

namespace plimsoll::text {

/// U+2581, which stands for a blank in pieces.
constexpr std::string_view kWordMark = "▁";
constexpr char32_t kWordMarkCharacter = U'▁';

}  // namespace plimsoll::text
