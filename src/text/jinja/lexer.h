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
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
  int column = 1;  // in bytes from 1
};

/// Errors: TemplateSyntaxError (unknown character, unbalanced bracket, comment or raw block without end).
tl::expected<std::vector<Token>, TemplateError> tokenize(std::string_view source);

}  // namespace plimsoll::text::jinja
