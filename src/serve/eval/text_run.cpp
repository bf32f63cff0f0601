// SPDX-License-Identifier: Apache-2.0
// Perplexity and distances over the windows of a text. All engines go through a window side by side, a step
// at a time: no more logits than those of one step are held of any of them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "serve/eval/subject.h"

namespace plimsoll::serve {
namespace {

using engine::TokenId;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kDefaultCtxSize = 512;
constexpr std::int64_t kStepBytes = std::int64_t{128} << 20;  // of logits that an engine may leave per step
constexpr int kFewestStepTokens = 16;
constexpr std::int64_t kSpeedPrompt = 64, kSpeedOutput = 33;  // tokens of the measurement of decoding

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// An engine, and the rows of logits that its last step left.
class Runner {
 public:
  explicit Runner(std::unique_ptr<engine::Engine> engine)
      : engine_(std::move(engine)), vocab_(static_cast<std::size_t>(engine_->vocab_size())) {}

  /// Queues ids; rows from `first_heard` on are wanted.
  Status begin(std::span<const TokenId> ids, std::int64_t first_heard) {
    engine::Submission submission;
    submission.prompt.assign(ids.begin(), ids.end());
    submission.choices = {greedy(1)};
    submission.first_heard = first_heard;
    submission.on_prompt_logits = [this](std::int64_t position, std::span<const float> row) {
      if (positions_.empty()) rows_.clear();
      positions_.push_back(position);
      rows_.insert(rows_.end(), row.begin(), row.end());
    };
    num_tokens_ += std::ssize(ids);
    PLIMSOLL_TRY_VOID(engine_->add(std::move(submission)));
    return {};
  }
  bool has_work() const { return engine_->has_work(); }
  void step() {
    positions_.clear();
    const auto begin = Clock::now();
    engine_->step();
    seconds_ += seconds_since(begin);
  }
  const std::vector<std::int64_t>& positions() const { return positions_; }
  std::span<const float> row(std::size_t i) const { return std::span(rows_).subspan(i * vocab_, vocab_); }

  double prompt_tokens_per_s() const { return static_cast<double>(num_tokens_) / seconds_; }
  Bytes weights() const { return engine_->memory().weights; }

  /// Tokens a second of one sequence that goes on behind `ids`; nothing when there is no room for it.
  Result<std::optional<double>> decode_speed(std::span<const TokenId> ids) {
    engine::Submission submission;
    submission.prompt.assign(ids.begin(), ids.end());
    submission.choices = {greedy(kSpeedOutput)};
    PLIMSOLL_TRY_VOID(engine_->add(std::move(submission)));
    std::int64_t tokens = 0;
    Clock::time_point first;
    while (engine_->has_work()) {
      for (const auto& output : engine_->step()) tokens += std::ssize(output.tokens);
      if (tokens == 1) first = Clock::now();
    }
    if (tokens < 2) return std::optional<double>();
    return static_cast<double>(tokens - 1) / seconds_since(first);
  }

 private:
  static engine::SamplingParams greedy(std::int64_t max_tokens) {
    engine::SamplingParams params;
    params.temperature = 0;
    params.max_tokens = max_tokens;
    return params;
  }

  std::unique_ptr<engine::Engine> engine_;
  std::size_t vocab_;
  std::vector<std::int64_t> positions_;  // of the rows
  std::vector<float> rows_;              // [positions, vocab]
  std::int64_t num_tokens_ = 0;
  double seconds_ = 0;
};

/// The text as the run reads it.
struct Tokens {
  std::vector<TokenId> ids;
  std::vector<std::int64_t> bytes;  // of the text, that each id adds; empty when that is not known
};

Status check_ids(std::span<const TokenId> ids, const Subject& subject, const std::string& where) {
  for (const TokenId id : ids)
    if (id < 0 || id >= subject.spec.vocab_size)
      return fail(ErrorCode::kUsage,
                  fmt::format("token id {} is outside the vocabulary of {}", id, subject.spec.vocab_size),
                  where, "check the tokenizer that the ids come from");
  return {};
}

Result<Tokens> read_tokens(const Subject& subject, const TextTask& task) {
  Tokens tokens;
  if (task.ids) {
    tokens.ids = *task.ids;
    PLIMSOLL_TRY_VOID(check_ids(tokens.ids, subject, task.path));
    return tokens;
  }
  if (!subject.tokenizer)
    return fail(ErrorCode::kUsage, "the model has no tokenizer", task.path,
                "give the text as token ids: --token-ids FILE");
  text::Encoding encoding = subject.tokenizer->encode_with_spans(task.text);
  std::size_t covered = 0;  // several ids may stand for one character
  for (const text::Span& span : encoding.spans) {
    const std::size_t end = std::max(covered, span.end);
    tokens.bytes.push_back(static_cast<std::int64_t>(end - covered));
    covered = end;
  }
  tokens.ids = std::move(encoding.ids);
  PLIMSOLL_TRY_VOID(check_ids(tokens.ids, subject, task.path));
  return tokens;
}

Status settle_sizes(const Subject& subject, const TextTask& task, TextReport& report) {
  const std::int64_t context = subject.spec.context_tokens();
  report.ctx_size =
      task.ctx_size.value_or(context > 0 ? std::min(kDefaultCtxSize, context) : kDefaultCtxSize);
  report.stride = task.stride.value_or(std::max<std::int64_t>(report.ctx_size / 2, 1));
  const std::int64_t least = task.rule == WindowRule::kLlamaCpp ? 3 : 2;  // of which the last is scored
  if (report.ctx_size < least)
    return fail(ErrorCode::kUsage,
                fmt::format("in windows of fewer than {} tokens nothing is predicted", least),
                "--max-model-len", fmt::format("choose {} or more", least));
  if (report.stride < 1 || report.stride > report.ctx_size)
    return fail(
        ErrorCode::kUsage,
        fmt::format("a stride of {} tokens does not suit windows of {}", report.stride, report.ctx_size),
        "--stride", "choose 1 to the length of a window");
  return {};
}

/// Runners of all rows and of the reference.
struct Field {
  std::vector<Runner> runners;
  std::vector<std::size_t> of_row;       // runner of each row
  std::optional<std::size_t> reference;  // runner that the others are measured from
};

Result<Field> load_field(const Subject& subject, const EvalOptions& options, std::int64_t ctx_size) {
  Field field;
  std::vector<Variant> loaded;
  // The same for all, so that they stay side by side.
  const std::int64_t row_bytes =
      std::max<std::int64_t>(subject.spec.vocab_size, 1) * static_cast<std::int64_t>(sizeof(float));
  const auto step_tokens = static_cast<int>(std::clamp<std::int64_t>(
      kStepBytes / row_bytes, kFewestStepTokens,
      std::max(options.variants.front().engine.max_num_batched_tokens, kFewestStepTokens)));
  const auto runner_of = [&](const Variant& variant) -> Result<std::size_t> {
    const auto known = std::ranges::find(loaded, variant.name(), &Variant::name);
    if (known != loaded.end()) return static_cast<std::size_t>(known - loaded.begin());
    options.on_progress("loading " + variant.name());
    engine::EngineOptions engine = variant.engine;
    engine.max_num_batched_tokens = step_tokens;
    PLIMSOLL_TRY(auto made, subject.load(engine, ctx_size));
    field.runners.emplace_back(std::move(made));
    loaded.push_back(variant);
    return loaded.size() - 1;
  };
  if (options.text->reference) {
    PLIMSOLL_TRY(field.reference, runner_of(*options.text->reference));
  }
  for (const Variant& variant : options.variants) {
    PLIMSOLL_TRY(const std::size_t runner, runner_of(variant));
    field.of_row.push_back(runner);
  }
  return field;
}

/// Takes every engine through one window, and scores what each step brought.
class WindowRun {
 public:
  WindowRun(Field& field, std::vector<TextRow>& rows, int threads)
      : field_(field), rows_(rows), team_(threads) {}

  Status run(std::span<const TokenId> ids, std::int64_t first_scored) {
    for (Runner& runner : field_.runners)
      // The last token is predicted, never read.
      PLIMSOLL_TRY_VOID(runner.begin(ids.first(ids.size() - 1), first_scored - 1));
    while (field_.runners.front().has_work()) {
      for (Runner& runner : field_.runners) {
        runner.step();
        PLIMSOLL_CHECK(runner.positions() == field_.runners.front().positions(), "engines out of step");
      }
      for (std::size_t row = 0; row < rows_.size(); ++row) score(ids, row);
    }
    return {};
  }

 private:
  void score(std::span<const TokenId> ids, std::size_t row) {
    const Runner& runner = field_.runners[field_.of_row[row]];
    const auto& positions = runner.positions();
    found_.resize(positions.size());
    team_.run(std::ssize(positions), [&](std::int64_t chunk, int) {
      const auto i = static_cast<std::size_t>(chunk);
      const auto reference =
          field_.reference ? field_.runners[*field_.reference].row(i) : std::span<const float>();
      found_[i] = score_row(runner.row(i), reference, ids[static_cast<std::size_t>(positions[i] + 1)]);
    });
    for (const RowScore& score : found_) rows_[row].scores.add(score);
  }

  Field& field_;
  std::vector<TextRow>& rows_;
  ThreadPool team_;
  std::vector<RowScore> found_;
};

void add_text_findings(const TextReport& report, Findings& findings) {
  if (report.windows == 0)
    findings.push_back(
        eval_finding("EVAL_TEXT_SHORT", FindingLevel::kWarning, report.path,
                     fmt::format("the text has {} tokens; {} windows of {} ask for at least {}",
                                 report.tokens, to_string(report.rule), report.ctx_size,
                                 report.rule == WindowRule::kLlamaCpp ? 2 * report.ctx_size : 2),
                     "give a longer text or a smaller --max-model-len"));
  if (!report.scored_bytes && report.windows > 0)
    findings.push_back(eval_finding("EVAL_BYTES_UNKNOWN", FindingLevel::kInfo, report.path,
                                    "bits per byte are not known of a text given as token ids",
                                    "give the text itself"));
  for (const TextRow& row : report.rows)
    if (report.windows > 0 && !row.has_figures)
      findings.push_back(eval_finding("EVAL_NOT_FINITE", FindingLevel::kError, row.variant,
                                      "some logits are no finite numbers: there is no perplexity",
                                      "inspect the weights: plimsoll inspect MODEL --deep"));
    else if (report.windows > 0 && !row.output_tokens_per_s)
      findings.push_back(eval_finding("EVAL_SPEED_SHORT", FindingLevel::kInfo, row.variant,
                                      "a window leaves no room to measure decoding in",
                                      "choose a larger --max-model-len"));
}

Status measure_speed(Field& field, std::span<const TokenId> ids, TextReport& report) {
  const auto prompt = std::min({kSpeedPrompt, report.ctx_size / 2, std::ssize(ids)});
  for (std::size_t row = 0; row < report.rows.size(); ++row) {
    Runner& runner = field.runners[field.of_row[row]];
    report.rows[row].weights = runner.weights();
    report.rows[row].prompt_tokens_per_s = runner.prompt_tokens_per_s();
    PLIMSOLL_TRY(report.rows[row].output_tokens_per_s,
                 runner.decode_speed(ids.first(static_cast<std::size_t>(prompt))));
  }
  return {};
}

}  // namespace

Result<TextReport> evaluate_text(const Subject& subject, const EvalOptions& options, Findings& findings) {
  const TextTask& task = *options.text;
  TextReport report;
  report.path = task.path;
  report.rule = task.rule;
  if (task.reference) report.reference = task.reference->name();
  PLIMSOLL_TRY_VOID(settle_sizes(subject, task, report));
  PLIMSOLL_TRY(const Tokens tokens, read_tokens(subject, task));
  report.tokens = std::ssize(tokens.ids);
  auto windows = make_windows(task.rule, report.tokens, report.ctx_size, report.stride);
  if (task.max_windows && std::ssize(windows) > *task.max_windows)
    windows.resize(static_cast<std::size_t>(*task.max_windows));
  report.windows = std::ssize(windows);
  for (const Variant& variant : options.variants) report.rows.push_back({.variant = variant.name()});
  if (!tokens.bytes.empty() && !windows.empty()) report.scored_bytes = 0;
  if (!windows.empty()) {
    PLIMSOLL_TRY(Field field, load_field(subject, options, report.ctx_size));
    const int threads = options.variants.front().engine.threads;
    WindowRun run(field, report.rows, threads > 0 ? threads : read_machine().cores.usable);
    const auto leading = task.rule == WindowRule::kLlamaCpp ? subject.leading_token() : std::nullopt;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const Window& window = windows[i];
      options.on_progress(fmt::format("window {} of {}", i + 1, windows.size()));
      std::vector<TokenId> ids(tokens.ids.begin() + window.begin, tokens.ids.begin() + window.end);
      if (leading) ids.front() = *leading;
      PLIMSOLL_TRY_VOID(run.run(ids, window.first_scored - window.begin));
      report.scored_tokens += window.end - window.first_scored;
      if (report.scored_bytes)
        *report.scored_bytes += std::accumulate(tokens.bytes.begin() + window.first_scored,
                                                tokens.bytes.begin() + window.end, std::int64_t{0});
    }
    PLIMSOLL_TRY_VOID(measure_speed(field, tokens.ids, report));
    for (TextRow& row : report.rows) row.has_figures = report.scored_tokens > 0 && row.scores.is_finite();
  }
  add_text_findings(report, findings);
  return report;
}

}  // namespace plimsoll::serve
