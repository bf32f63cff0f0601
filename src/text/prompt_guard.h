// SPDX-License-Identifier: Apache-2.0
// Keeps what a user writes from becoming what only the template may write: a special token. Before rendering,
// the user's texts are broken by a mark wherever a special token could be found in them, or across their
// ends; in the rendered prompt the marks are taken out again, and no special token is found across the places
// where they stood. Immutable; any thread.
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

  /// The messages with every text broken, but for the assistant's, whose words the model itself wrote.
  Json guarded_messages(const Json& messages) const;
  /// Any value with all its texts broken: documents, tools.
  Json guarded(const Json& value) const;

  struct Prompt {
    std::string text;
    std::vector<std::size_t> barriers;  // for EncodeOptions
    bool parse_special = true;          // false when the user's words held every mark there is
  };
  /// A rendered text (or an error's) without marks.
  Prompt prompt_of(std::string_view rendered) const;

 private:
  std::string broken(const std::string& text) const;

  const Tokenizer& tokenizer_;
  std::string mark_;     // empty when none is free
  std::string escaped_;  // as tojson writes it when it keeps to ASCII
};

}  // namespace plimsoll::text
