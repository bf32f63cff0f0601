// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <unordered_set>

#include "bench/dataset.h"

namespace plimsoll::bench {
namespace {

using Random = std::mt19937_64;

// Common short English words: one token each in nearly every vocabulary.
constexpr std::array<std::string_view, 64> kWords = {
    "time",     "year",    "people",   "way",    "day",        "man",    "thing",   "woman",
    "life",     "child",   "world",    "school", "state",      "family", "student", "group",
    "country",  "problem", "hand",     "part",   "place",      "case",   "week",    "company",
    "system",   "program", "question", "work",   "government", "number", "night",   "point",
    "home",     "water",   "room",     "mother", "area",       "money",  "story",   "fact",
    "month",    "lot",     "right",    "study",  "book",       "eye",    "job",     "word",
    "business", "issue",   "side",     "kind",   "head",       "house",  "service", "friend",
    "father",   "power",   "hour",     "game",   "line",       "end",    "member",  "law"};

std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

/// Uniform in [n(1-r), n(1+r)], outer bounds as vLLM rounds them.
std::int64_t pick_length(Random& random, std::int64_t n, double ratio, std::int64_t least) {
  const auto mean = static_cast<double>(n);
  const auto low = std::max(least, static_cast<std::int64_t>(std::floor(mean * (1 - ratio))));
  const auto high = std::max(low, static_cast<std::int64_t>(std::ceil(mean * (1 + ratio))));
  return pick(random, low, high);
}

std::int64_t count_tokens(const text::Tokenizer& tokenizer, std::string_view prompt) {
  return static_cast<std::int64_t>(tokenizer.encode(prompt).size());
}

/// Tokens that are a blank and letters and that the tokenizer gives back when they stand alone: joined, each
/// stays one token in nearly every vocabulary.
std::vector<std::string> joinable_words(const text::Tokenizer& tokenizer, Random& random) {
  constexpr std::size_t kEnough = 4096;
  constexpr int kTries = 60'000;
  const text::EncodeOptions plain{.add_special_tokens = false, .parse_special = false};
  std::vector<std::string> words;
  std::unordered_set<text::TokenId> tried;
  const std::int64_t vocab = tokenizer.vocab_size();
  for (int i = 0; i < kTries && words.size() < kEnough && vocab > 0; ++i) {
    const auto id = static_cast<text::TokenId>(pick(random, 0, vocab - 1));
    if (!tried.insert(id).second || tokenizer.is_special(id)) continue;
    const std::string bytes = tokenizer.token_bytes(id);
    if (bytes.size() < 3 || bytes[0] != ' ') continue;
    const bool is_word =
        std::all_of(bytes.begin() + 1, bytes.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    if (!is_word) continue;
    // Twice, since some tokenizers put a blank of their own before the first word.
    if (tokenizer.encode(bytes + bytes, plain).size() <= 3) words.push_back(bytes);
  }
  return words;
}

std::string join(const std::vector<std::string_view>& words) {
  std::string out;
  for (std::string_view word : words) out += word;
  if (out.starts_with(' ')) out.erase(0, 1);
  return out;
}

/// Words whose joined text encodes to exactly `length` tokens; empty when no luck.
std::string exact_prompt(const text::Tokenizer& tokenizer, const std::vector<std::string>& pool,
                         std::int64_t length, Random& random) {
  const auto word = [&]() -> std::string_view {
    return pool[static_cast<std::size_t>(pick(random, 0, std::ssize(pool) - 1))];
  };
  std::vector<std::string_view> words;
  for (std::int64_t i = 0; i < length; ++i) words.push_back(word());
  constexpr int kRepairs = 200;
  for (int repair = 0; repair < kRepairs; ++repair) {
    std::string prompt = join(words);
    const std::int64_t excess = count_tokens(tokenizer, prompt) - length;
    if (excess == 0) return prompt;
    if (excess > 0) {
      if (words.empty()) return {};
      // Fewer words by the excess; each is at least one token, so this never drops too many for long.
      words.resize(words.size() - std::min(words.size(), static_cast<std::size_t>(excess)));
    } else {
      for (std::int64_t i = 0; i < -excess; ++i) words.push_back(word());
    }
    // A pair of words that merge would otherwise come back for ever.
    if (!words.empty() && repair > 4) words[static_cast<std::size_t>(random() % words.size())] = word();
  }
  return {};
}

std::string plain_prompt(std::int64_t length, Random& random) {
  std::string out;
  for (std::int64_t i = 0; i < length; ++i) {
    if (i > 0) out += ' ';
    out += kWords[random() % kWords.size()];
  }
  return out;
}

}  // namespace

Result<std::vector<Prompt>> random_prompts(const Options& options, std::int64_t count) {
  if (options.input_tokens < 1 || options.output_tokens < 1 || options.range_ratio < 0 ||
      options.range_ratio >= 1)
    return fail(ErrorCode::kUsage,
                "random prompts need lengths of at least 1 token and a range ratio from 0 to below 1",
                "--random-input-len, --random-output-len, --random-range-ratio");
  Random random(options.seed);
  const text::Tokenizer* tokenizer = options.tokenizer.get();
  std::vector<std::string> pool;
  std::int64_t least = 1;
  if (tokenizer) {
    pool = joinable_words(*tokenizer, random);
    if (pool.size() < 2)
      return fail(ErrorCode::kUnsupported,
                  "the vocabulary of " + options.tokenizer_name + " holds no words to make random prompts of",
                  "--tokenizer", "use --dataset-name custom, or leave --tokenizer out");
    least = count_tokens(*tokenizer, "") + 1;
    if (options.input_tokens < least)
      return fail(ErrorCode::kUsage,
                  "prompts of " + std::to_string(options.input_tokens) +
                      " tokens are too short: special tokens take " + std::to_string(least - 1),
                  "--random-input-len");
  }
  std::vector<Prompt> prompts;
  std::unordered_set<std::string> seen;
  // Short prompts of few words run out of different ones; after this many misses repeats are let through only
  // without a tokenizer, where a unique number can always be told apart.
  std::int64_t misses = 0;
  while (std::ssize(prompts) < count) {
    Prompt prompt;
    prompt.prompt_tokens = pick_length(random, options.input_tokens, options.range_ratio, least);
    prompt.text = tokenizer ? exact_prompt(*tokenizer, pool, prompt.prompt_tokens, random)
                            : plain_prompt(prompt.prompt_tokens, random);
    if (prompt.text.empty() || !seen.insert(prompt.text).second) {
      if (++misses > 100 + 10 * count)
        return fail(ErrorCode::kUnsupported,
                    "only " + std::to_string(prompts.size()) + " different prompts of " +
                        std::to_string(options.input_tokens) + " tokens could be made, of " +
                        std::to_string(count) + " asked for",
                    "--random-input-len", "ask for longer or fewer prompts");
      continue;
    }
    prompt.max_output_tokens = pick_length(random, options.output_tokens, options.range_ratio, 1);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace plimsoll::bench
