// SPDX-License-Identifier: Apache-2.0
// Keeps what a user writes from becoming what only the template may write: a special token. Before rendering,
// special strings in the user's words are broken by a mark that no token holds; in the rendered prompt the
// marks are taken out again, and no special token is found across the places where they stood. The prompt's
// text is what the template made; only its ids differ from a careless encoding. Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/text.h"

namespace plimsoll::text {

class PromptGuard {
 public:
  /// Chooses a mark that occurs nowhere in `variables`: all that the template is going to see.
  PromptGuard(const Tokenizer& tokenizer, const Json& variables);

  /// The messages with special strings broken: in every text of every role but the assistant's, whose words
  /// the model itself wrote. Parts of a content are also looked at as one text, since a template may join
  /// them.
  Json guarded(const Json& messages) const;

  struct Prompt {
    std::string text;
    std::vector<std::size_t> barriers;  // for EncodeOptions
    bool parse_special = true;          // false when the user's words held every mark there is
  };
  /// The rendered prompt without marks.
  Prompt prompt_of(std::string_view rendered) const;

 private:
  std::string broken(const std::string& text) const;
  Json broken_parts(const Json& parts) const;

  const Tokenizer& tokenizer_;
  std::string mark_;     // empty when none is free
  std::string escaped_;  // as tojson writes it when it keeps to ASCII
};

}  // namespace plimsoll::text
