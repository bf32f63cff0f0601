// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "bench/dataset.h"
#include "bench/prompt_maker.h"

namespace plimsoll::bench {
namespace {

using Place = PromptMaker::Place;
using workload::Distribution;
using workload::LengthPairs;

constexpr std::int64_t kMostTokens = 20'000'000;  // of one prompt or reply

/// Uniform in [n(1-r), n(1+r)], outer bounds as vLLM rounds them.
Distribution around(std::int64_t n, double ratio, std::int64_t least) {
  const auto mean = static_cast<double>(n);
  const auto low = std::max(least, static_cast<std::int64_t>(std::floor(mean * (1 - ratio))));
  const auto high = std::max(low, static_cast<std::int64_t>(std::ceil(mean * (1 + ratio))));
  return Distribution::whole(low, high);
}

/// `least`: tokens that a prompt needs at least behind the prefix.
Result<LengthPairs> lengths_of(const Options& options, std::int64_t least) {
  const auto too_short = [&](std::int64_t tokens, const char* flag) {
    return fail(ErrorCode::kUsage,
                "prompts of " + std::to_string(tokens) + " tokens are too short: special tokens take " +
                    std::to_string(least - 1),
                flag);
  };
  if (options.lengths) {
    const auto shortest = static_cast<std::int64_t>(options.lengths->input().min());
    if (shortest < least) return too_short(shortest, "--input-len");
    return *options.lengths;
  }
  if (options.input_tokens < 1 || options.output_tokens < 1 || options.input_tokens > kMostTokens ||
      options.output_tokens > kMostTokens || !(options.range_ratio >= 0 && options.range_ratio < 1))
    return fail(
        ErrorCode::kUsage,
        "random prompts need lengths from 1 to 1,000,000,000 tokens and a range ratio from 0 to below 1",
        "--random-input-len, --random-output-len, --random-range-ratio");
  if (options.input_tokens < least) return too_short(options.input_tokens, "--random-input-len");
  return LengthPairs(around(options.input_tokens, options.range_ratio, least),
                     around(options.output_tokens, options.range_ratio, 1));
}

/// The lengths and sessions of all turns, drawn before any text: what is too large is refused at once.
Result<std::vector<Prompt>> planned(const Options& options, const LengthPairs& lengths, std::int64_t count,
                                    workload::Random& random) {
  const auto shortest = static_cast<std::int64_t>(lengths.input().min());
  const auto least = checked_product(count, std::max<std::int64_t>(shortest, 1));
  PLIMSOLL_TRY_VOID(check_total(least));
  std::vector<Prompt> prompts;
  std::int64_t total = 0;
  std::int64_t turns_left = 0;
  while (std::ssize(prompts) < count) {
    Prompt prompt;
    if (turns_left > 0) {
      prompt.follows = std::ssize(prompts) - 1;
      if (options.turn_delay_s) prompt.delay_s = options.turn_delay_s->draw(random);
    } else {
      turns_left = options.num_turns ? options.num_turns->draw_count(random) : 1;
    }
    --turns_left;
    const workload::Lengths drawn = lengths.draw(random);
    prompt.prompt_tokens = drawn.input_tokens + (prompt.follows < 0 ? options.prefix_tokens : 0);
    prompt.max_output_tokens = drawn.output_tokens;
    total += prompt.prompt_tokens;
    PLIMSOLL_TRY_VOID(check_total(total));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

/// Writes texts that differ from each other; texts that came out alike are made again.
class DistinctTexts {
 public:
  explicit DistinctTexts(PromptMaker& maker, std::int64_t count)
      : maker_(&maker), misses_left_(100 + 10 * count) {}

  Status write(const std::string& head, Prompt& prompt) {
    const Place place = prompt.follows < 0 ? Place::kFirst : Place::kFollowUp;
    for (; misses_left_ > 0; --misses_left_) {
      prompt.text = maker_->complete(head, prompt.prompt_tokens, place);
      if (!prompt.text.empty() && seen_.insert(std::hash<std::string>()(prompt.text)).second) return {};
    }
    return fail(ErrorCode::kUnsupported,
                "only " + std::to_string(seen_.size()) +
                    " different prompts could be made; the next one was to have " +
                    std::to_string(prompt.prompt_tokens) + " tokens",
                "--random-input-len", "ask for longer or fewer prompts");
  }

 private:
  PromptMaker* maker_;
  std::int64_t misses_left_;  // short prompts of few words run out of different ones
  std::unordered_set<std::size_t> seen_;
};

Result<std::string> prefix_of(PromptMaker& maker, std::int64_t tokens, const char* flag) {
  if (tokens == 0) return std::string();
  if (tokens <= maker.num_special() || tokens > kMostTokens)
    return fail(ErrorCode::kUsage,
                "a prefix of " + std::to_string(tokens) + " tokens cannot be made: special tokens take " +
                    std::to_string(maker.num_special()),
                flag);
  std::string prefix = maker.complete({}, tokens, Place::kFirst);
  if (prefix.empty())
    return fail(ErrorCode::kUnsupported,
                "the vocabulary has no words that make a prefix of " + std::to_string(tokens) + " tokens",
                flag);
  return prefix;
}

}  // namespace

Result<std::vector<Prompt>> random_prompts(const Options& options, std::int64_t count) {
  PLIMSOLL_TRY(PromptMaker maker,
               PromptMaker::make(options.tokenizer.get(), options.tokenizer_name, options.seed));
  const std::int64_t least = options.prefix_tokens > 0 ? 1 : maker.num_special() + 1;
  PLIMSOLL_TRY(const LengthPairs lengths, lengths_of(options, least));
  PLIMSOLL_TRY(std::vector<Prompt> prompts, planned(options, lengths, count, maker.random()));
  PLIMSOLL_TRY(const std::string prefix, prefix_of(maker, options.prefix_tokens, "--random-prefix-len"));
  DistinctTexts texts(maker, count);
  for (Prompt& prompt : prompts)
    PLIMSOLL_TRY_VOID(texts.write(prompt.follows < 0 ? prefix : std::string(), prompt));
  return prompts;
}

Result<std::vector<Prompt>> prefix_repetition_prompts(const Options& options, std::int64_t count) {
  const PrefixRepetition& asked = options.prefix_repetition;
  if (asked.prefix_tokens < 1 || asked.suffix_tokens < 1 || asked.output_tokens < 1 ||
      asked.output_tokens > kMostTokens || asked.num_prefixes < 1 || asked.num_prefixes > count)
    return fail(
        ErrorCode::kUsage,
        "prefixes, suffixes and replies have at least 1 token, and there are at most as many prefixes as "
        "prompts",
        "--prefix-repetition-prefix-len, -suffix-len, -num-prefixes, -output-len");
  const auto length = checked_sum(asked.prefix_tokens, asked.suffix_tokens);
  const auto total = length ? checked_product(count, *length) : length;
  PLIMSOLL_TRY_VOID(check_total(total));
  PLIMSOLL_TRY(PromptMaker maker,
               PromptMaker::make(options.tokenizer.get(), options.tokenizer_name, options.seed));
  std::vector<std::string> prefixes;
  for (std::int64_t i = 0; i < asked.num_prefixes; ++i) {
    PLIMSOLL_TRY(prefixes.emplace_back(),
                 prefix_of(maker, asked.prefix_tokens, "--prefix-repetition-prefix-len"));
  }
  DistinctTexts texts(maker, count);
  std::vector<Prompt> prompts(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    prompts[i].prompt_tokens = *length;
    prompts[i].max_output_tokens = asked.output_tokens;
    PLIMSOLL_TRY_VOID(texts.write(prefixes[i % prefixes.size()], prompts[i]));
  }
  std::shuffle(prompts.begin(), prompts.end(), maker.random());
  return prompts;
}

Result<std::vector<Prompt>> trace_prompts(const Options& options, const workload::Trace& trace,
                                          std::optional<std::int64_t> count) {
  const std::int64_t num_rows = std::ssize(trace.requests);
  if (count.value_or(0) > num_rows)
    return fail(ErrorCode::kUsage,
                "the trace has " + std::to_string(num_rows) + " usable rows, " + std::to_string(*count) +
                    " were asked for",
                "--num-prompts", "leave it out to replay the whole trace");
  PLIMSOLL_TRY(PromptMaker maker,
               PromptMaker::make(options.tokenizer.get(), options.tokenizer_name, options.seed));
  const bool keeps_times = trace.has_times && !options.ramp && std::isinf(options.request_rate);
  const std::span<const std::int64_t> ids(trace.block_ids);
  std::vector<Prompt> prompts;
  std::int64_t total = 0;
  for (const workload::TraceRequest& row :
       std::span(trace.requests).first(static_cast<std::size_t>(count.value_or(num_rows)))) {
    total += row.input_tokens;
    PLIMSOLL_TRY_VOID(check_total(total));
    Prompt prompt;
    prompt.prompt_tokens = std::max(row.input_tokens, maker.num_special() + 1);
    prompt.max_output_tokens = row.output_tokens;
    if (keeps_times) prompt.at_s = row.at_s / options.trace_speed;
    prompts.push_back(std::move(prompt));
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const workload::TraceRequest& row = trace.requests[i];
    prompts[i].text = maker.of_blocks(
        ids.subspan(static_cast<std::size_t>(row.first_block), static_cast<std::size_t>(row.num_blocks)),
        trace.block_tokens, prompts[i].prompt_tokens);
    if (prompts[i].text.empty())
      return fail(ErrorCode::kUnsupported,
                  "the vocabulary has no words that make a prompt of " +
                      std::to_string(prompts[i].prompt_tokens) + " tokens",
                  "--tokenizer");
  }
  return prompts;
}

Result<std::vector<Prompt>> warm_up_prompts(const Options& options, const std::vector<Prompt>& measured) {
  std::vector<Prompt> prompts;
  if (options.num_warmups == 0 || measured.empty()) return prompts;
  // Plain words, which any vocabulary can spell, from a seed that nothing measured is made of.
  constexpr std::uint64_t kOtherSeed = 0x9e3779b97f4a7c15ULL;
  PLIMSOLL_TRY(PromptMaker maker, PromptMaker::make(nullptr, {}, options.seed ^ kOtherSeed));
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < options.num_warmups; ++i) {
    const Prompt& like = measured[static_cast<std::size_t>(i) % measured.size()];
    PLIMSOLL_TRY_VOID(check_total(total += std::max<std::int64_t>(like.prompt_tokens, 1)));
    Prompt prompt;
    prompt.prompt_tokens = like.prompt_tokens;
    prompt.max_output_tokens = like.max_output_tokens;
    prompt.text = maker.complete({}, std::max<std::int64_t>(like.prompt_tokens, 1), Place::kFirst);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace plimsoll::bench
