// SPDX-License-Identifier: Apache-2.0
// Template text -> tokens, with jinja2's whitespace rules (trim_blocks and lstrip_blocks on, a final newline
// dropped). Tokens own their text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/text.h"

namespace plimsoll::text::jinja {

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  // text holds the value
  kInteger,
  kFloat,
  kOperator,
  kError,  // text says what is wrong here; the parser complains when it gets so far
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
  int column = 1;  // in bytes from 1
};

/// What cannot be read (unknown character, unbalanced bracket, comment or raw block without end) is the last
/// token but the end, of kind kError: what comes before it may be wrong too, and then is what is complained
/// of.
std::vector<Token> tokenize(std::string_view source);

}  // namespace plimsoll::text::jinja
