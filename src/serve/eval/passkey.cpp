// SPDX-License-Identifier: Apache-2.0
// Does the model find five digits again that stand at some depth of a long filler? Each length has an engine
// whose context is that length, as it would be served.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "serve/eval/passkey_prompts.h"
#include "serve/eval/subject.h"

namespace plimsoll::serve {
namespace {

using engine::TokenId;
using Ids = std::vector<TokenId>;

Result<std::string> answer_to(engine::Engine& engine, const text::Tokenizer& tokenizer, Ids prompt) {
  engine::Submission submission;
  submission.prompt = std::move(prompt);
  submission.choices.resize(1);
  submission.choices.front().temperature = 0;
  submission.choices.front().max_tokens = kPasskeyAnswerTokens;
  PLIMSOLL_TRY_VOID(engine.add(std::move(submission)));
  Ids answer;
  while (engine.has_work())
    for (const auto& output : engine.step())
      answer.insert(answer.end(), output.tokens.begin(), output.tokens.end());
  return tokenizer.decode(answer, true);
}

class PasskeyRun {
 public:
  PasskeyRun(const Subject& subject, const EvalOptions& options, PasskeyReport& report, Findings& findings)
      : subject_(subject),
        options_(options),
        report_(report),
        findings_(findings),
        prompts_(*subject.tokenizer, subject.leading_token()) {}

  Status run(const Variant& variant, std::int64_t length) {
    const auto questions = make_questions(length);
    if (!questions)
      return leave_empty(variant, length, "EVAL_PASSKEY_SHORT",
                         fmt::format("question and pass key do not fit {} tokens", length),
                         "choose a greater length");
    const std::int64_t context = subject_.spec.context_tokens();
    if (context > 0 && length > context)
      return leave_empty(variant, length, "EVAL_BEYOND_CONTEXT",
                         fmt::format("{} tokens are more than the model's context of {}", length, context),
                         "choose a smaller length");
    options_.on_progress(fmt::format("pass key, {}, {} tokens", variant.name(), length));
    engine::EngineOptions engine = variant.engine;
    engine.max_num_seqs = 1;
    auto loaded = subject_.load(engine, length);
    if (!loaded && loaded.error().code == ErrorCode::kNo)
      return leave_empty(variant, length, "EVAL_NO_ROOM", loaded.error().message, loaded.error().fix);
    if (!loaded) return fail(loaded.error());
    for (std::size_t i = 0; i < report_.depths.size(); ++i) {
      int recalled = 0;
      for (const Question& question : (*questions)[i]) {
        PLIMSOLL_TRY(const std::string answer, answer_to(**loaded, *subject_.tokenizer, question.prompt));
        recalled += first_number(answer) == question.key ? 1 : 0;
      }
      report_.cells.push_back({variant.name(), length, report_.depths[i], recalled});
    }
    return {};
  }

 private:
  struct Question {
    std::string key;
    Ids prompt;
  };

  /// Those of each depth; nothing when one does not fit. Keys depend on seed, depth and trial alone: every
  /// row and length is asked for the same ones.
  std::optional<std::vector<std::vector<Question>>> make_questions(std::int64_t length) const {
    std::vector<std::vector<Question>> questions;
    for (const int depth : report_.depths) {
      std::mt19937_64 random(options_.passkey->seed * 1000 + static_cast<std::uint64_t>(depth));
      auto& row = questions.emplace_back();
      for (int trial = 0; trial < report_.trials; ++trial) {
        const std::string key = std::to_string(10000 + random() % 90000);
        auto prompt = prompts_.make(length, depth, key);
        if (!prompt) return std::nullopt;
        row.push_back({key, std::move(*prompt)});
      }
    }
    return questions;
  }

  Status leave_empty(const Variant& variant, std::int64_t length, std::string id, std::string message,
                     std::string fix) {
    for (const int depth : report_.depths)
      report_.cells.push_back({variant.name(), length, depth, std::nullopt});
    findings_.push_back(eval_finding(std::move(id), FindingLevel::kWarning,
                                     fmt::format("pass key, {}, {} tokens", variant.name(), length),
                                     std::move(message), std::move(fix)));
    return {};
  }

  const Subject& subject_;
  const EvalOptions& options_;
  PasskeyReport& report_;
  Findings& findings_;
  PasskeyPrompts prompts_;
};

}  // namespace

Result<PasskeyReport> evaluate_passkey(const Subject& subject, const EvalOptions& options,
                                       Findings& findings) {
  const PasskeyTask& task = *options.passkey;
  if (!subject.tokenizer)
    return fail(ErrorCode::kUsage, "the model has no tokenizer; a pass key is text", "--passkey",
                "give a model with its tokenizer");
  PasskeyReport report{.native_tokens = subject.spec.native_context_tokens,
                       .extended_tokens = subject.spec.extended_context_tokens,
                       .trials = task.trials,
                       .lengths = task.lengths,
                       .depths = task.depths,
                       .cells = {}};
  if (report.lengths.empty() && report.native_tokens > 0) report.lengths.push_back(report.native_tokens);
  if (task.lengths.empty() && report.extended_tokens > report.native_tokens)
    report.lengths.push_back(report.extended_tokens);
  if (report.lengths.empty())
    return fail(ErrorCode::kUsage, "the model states no length of its context", "--passkey-lengths",
                "say which lengths to try");
  PasskeyRun run(subject, options, report, findings);
  for (const Variant& variant : options.variants)
    for (const std::int64_t length : report.lengths) PLIMSOLL_TRY_VOID(run.run(variant, length));
  return report;
}

}  // namespace plimsoll::serve
