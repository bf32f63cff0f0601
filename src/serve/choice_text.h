// SPDX-License-Identifier: Apache-2.0
// What text does a sequence of ids become, and where does a stop string end it? Holds back bytes that are no
// whole character yet and text that may turn out to be the start of a stop string. One sequence, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/model_context.h"

namespace plimsoll::serve {

/// Finds the first of several strings that is complete in a text that arrives in pieces; of those complete at
/// once, the one listed first. How the text is cut into pieces makes no difference. Source: vLLM 0.33.0,
/// v1/engine/detokenizer.py, check_stop_strings.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  struct Found {
    std::string text;                 // safe to send: before the match, or what can no longer be a match
    std::optional<std::string> stop;  // the string that matched
  };
  /// `may_end`: false for text in which no stop string may be complete, only begin.
  Found push(std::string_view text, bool may_end = true);
  /// What is still held back; it is no stop string.
  std::string flush();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::size_t num_barred_ = 0;  // bytes at the front of held_ in which none may be complete
};

struct ChoiceTextOptions {
  std::vector<std::string> stop = {};
  bool skip_special_tokens = true;
  bool include_stop = false;    // keep the stop string or stop token in the text
  std::int64_t min_tokens = 0;  // stop strings are complete only after so many tokens
  std::vector<TokenId> asked_stop_ids =
      {};  // of the request: they become the stop_reason, the model's own do not
};

class ChoiceText {
 public:
  /// Without a tokenizer every text is empty.
  ChoiceText(std::shared_ptr<const text::Tokenizer> tokenizer, ChoiceTextOptions options);

  /// What one token brought.
  struct Taken {
    std::string text;                   // may belong to earlier tokens; held back text comes with a later one
    std::optional<std::string> finish;  // stop length abort error: nothing more is to be taken
    Json stop_reason;                   // stop string, asked stop id, or null
  };
  /// Takes token number `token` of an output. A finish without the output's own finish means that a stop
  /// string was found: the engine is to be told.
  Taken take(const engine::Output& output, std::size_t token);
  /// Takes the end of a sequence whose output brought no token.
  Taken take_end(const engine::Output& output);

 private:
  std::string match(std::string_view text);
  std::string push(TokenId id);
  std::string flush();
  Taken finished(std::string text, const engine::Output& output) const;

  std::optional<text::StreamDecoder> decoder_;
  StopMatcher matcher_;
  ChoiceTextOptions options_;
  std::int64_t num_tokens_ = 0;
  std::optional<std::string> stop_;
};

}  // namespace plimsoll::serve
