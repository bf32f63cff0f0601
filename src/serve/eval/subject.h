// SPDX-License-Identifier: Apache-2.0
// The model under evaluation, opened once for all engines that compute it. Private to evaluation; plain
// values.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "serve/eval/eval.h"
#include "text/text.h"

namespace plimsoll::serve {

struct Subject {
  std::shared_ptr<const artifact::Artifact> artifact;
  model::ModelSpec spec;
  std::shared_ptr<const text::Tokenizer> tokenizer;  // null: token ids only
  std::function<void(std::string_view)> on_progress = {};

  /// The token that the tokenizer puts before every text, if it does.
  std::optional<engine::TokenId> leading_token() const;
  /// Loads an engine whose sequences have up to `max_model_len` tokens. Errors: those of Engine::load.
  Result<std::unique_ptr<engine::Engine>> load(engine::EngineOptions options,
                                               std::int64_t max_model_len) const;
};

/// Findings of evaluation are told of a figure that is missing, or of how a figure came about.
Finding eval_finding(std::string id, FindingLevel level, std::string where, std::string message,
                     std::string fix);

/// Errors: kUsage as evaluate() says; else those of Subject::load.
Result<TextReport> evaluate_text(const Subject& subject, const EvalOptions& options, Findings& findings);
/// A length for which no engine can be loaded, for want of memory, has empty cells and a finding.
Result<PasskeyReport> evaluate_passkey(const Subject& subject, const EvalOptions& options,
                                       Findings& findings);

}  // namespace plimsoll::serve
