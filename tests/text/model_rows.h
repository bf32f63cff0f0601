// SPDX-License-Identifier: Apache-2.0
// What the tests of single models share: pieces encoded with spans, spans and vocabularies out of JSON rows.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

/// Ids and spans of a piece.
using Encoded = std::pair<std::vector<TokenId>, std::vector<Span>>;
Encoded encode(const PieceModel& model, std::string_view piece);

/// [[begin, end], ...]
std::vector<Span> to_spans(const Json& json);
/// ["token of id 0", "token of id 1", ...]
Vocabulary to_vocabulary(const Json& tokens, Spelling spelling = Spelling::kPlain);
/// "0aff" -> two bytes.
std::string from_hex(const std::string& hex);

/// Prints spans where a test fails.
void PrintTo(const Span& span, std::ostream* out);

}  // namespace plimsoll::text
