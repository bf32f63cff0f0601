// SPDX-License-Identifier: Apache-2.0
// How do SentencePiece-like vocabularies spell the blank between words? One constant; any thread may read it.
#pragma once

#include <string_view>

namespace plimsoll::text {

/// U+2581, which stands for a blank in pieces.
constexpr std::string_view kWordMark = "▁";

}  // namespace plimsoll::text
