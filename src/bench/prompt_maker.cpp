// SPDX-License-Identifier: Apache-2.0
#include "bench/prompt_maker.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace plimsoll::bench {
namespace {

using workload::Random;

constexpr text::EncodeOptions kPlain{.add_special_tokens = false, .parse_special = false};

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

/// Tokens that are a blank and letters and that the tokenizer gives back when they stand alone: joined, each
/// stays one token in nearly every vocabulary.
std::vector<std::string> joinable_words(const text::Tokenizer& tokenizer, Random& random) {
  constexpr std::size_t kEnough = 4096;
  constexpr int kTries = 60'000;
  std::vector<std::string> words;
  std::unordered_set<text::TokenId> tried;
  const auto vocab = static_cast<std::uint64_t>(std::max<std::int64_t>(tokenizer.vocab_size(), 0));
  for (int i = 0; i < kTries && words.size() < kEnough && vocab > 0; ++i) {
    const auto id = static_cast<text::TokenId>(random() % vocab);
    if (!tried.insert(id).second || tokenizer.is_special(id)) continue;
    const std::string bytes = tokenizer.token_bytes(id);
    if (bytes.size() < 3 || bytes[0] != ' ') continue;
    const bool is_word =
        std::all_of(bytes.begin() + 1, bytes.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    if (!is_word) continue;
    // Twice, since some tokenizers put a blank of their own before the first word.
    if (tokenizer.encode(bytes + bytes, kPlain).size() <= 3) words.push_back(bytes);
  }
  return words;
}

std::string_view any_of(const std::vector<std::string>& words, Random& random) {
  return words[static_cast<std::size_t>(random() % words.size())];
}

/// Spreads neighbouring ids over all seeds (the finalizer of MurmurHash3, 64 bits).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

std::string joined(std::string head, const std::vector<std::string_view>& words, PromptMaker::Place place) {
  const bool is_opening = head.empty() && place == PromptMaker::Place::kFirst;
  for (std::string_view word : words) head += word;
  if (is_opening && head.starts_with(' ')) head.erase(0, 1);
  return head;
}

}  // namespace

Status check_total(std::optional<std::int64_t> tokens) {
  if (tokens && *tokens <= 500'000'000) return {};
  return fail(ErrorCode::kUsage,
              "all prompts together would be more than 500,000,000 tokens, and they are held in memory",
              "--num-prompts, --num-warmups");
}

Result<PromptMaker> PromptMaker::make(const text::Tokenizer* tokenizer, const std::string& tokenizer_name,
                                      std::uint64_t seed) {
  PromptMaker maker;
  maker.tokenizer_ = tokenizer;
  maker.seed_ = seed;
  maker.random_.seed(seed);
  if (!tokenizer) {
    for (std::string_view word : kWords) maker.words_.push_back(" " + std::string(word));
    maker.openers_ = maker.words_;
    return maker;
  }
  maker.words_ = joinable_words(*tokenizer, maker.random_);
  if (maker.words_.size() < 2)
    return fail(ErrorCode::kUnsupported,
                "the vocabulary of " + tokenizer_name + " holds no words to make random prompts of",
                "--tokenizer", "use --dataset-name custom, or leave --tokenizer out");
  for (const std::string& word : maker.words_)
    if (tokenizer->encode(std::string_view(word).substr(1), kPlain).size() == 1)
      maker.openers_.push_back(word);
  if (maker.openers_.empty()) maker.openers_ = maker.words_;
  maker.num_special_ = static_cast<std::int64_t>(tokenizer->encode("").size());
  return maker;
}

std::string_view PromptMaker::word(Random& random) const {
  return any_of(words_, random);
}

std::string_view PromptMaker::opener(Random& random) const {
  return any_of(openers_, random);
}

std::int64_t PromptMaker::count(std::string_view text, Place place) const {
  if (tokenizer_) {
    const text::EncodeOptions options{.add_special_tokens = place == Place::kFirst};
    return static_cast<std::int64_t>(tokenizer_->encode(text, options).size());
  }
  const std::int64_t blanks = std::count(text.begin(), text.end(), ' ');
  return blanks + (text.empty() || text.starts_with(' ') ? 0 : 1);
}

std::string PromptMaker::complete(std::string head, std::int64_t tokens, Place place) {
  constexpr int kRepairs = 200;
  const std::int64_t missing = tokens - count(head, place);
  std::vector<std::string_view> words;
  for (std::int64_t i = 0; i < missing; ++i) words.push_back(i == 0 ? opener(random_) : word(random_));
  for (int repair = 0; repair < kRepairs; ++repair) {
    std::string prompt = joined(head, words, place);
    const std::int64_t excess = count(prompt, place) - tokens;
    if (excess == 0) return prompt;
    if (excess > 0) {
      if (words.empty()) return {};
      // Fewer words by the excess; each is at least one token, so this never drops too many for long.
      words.resize(words.size() - std::min(words.size(), static_cast<std::size_t>(excess)));
    } else {
      for (std::int64_t i = 0; i < -excess; ++i) words.push_back(word(random_));
    }
    // A pair of words that merge would otherwise come back for ever.
    if (!words.empty() && repair > 4)
      words[static_cast<std::size_t>(random_() % words.size())] = word(random_);
  }
  return {};
}

void PromptMaker::append_block(std::int64_t id, std::int64_t tokens, std::string& text) const {
  Random random(mixed(seed_ ^ mixed(static_cast<std::uint64_t>(id) + 1)));
  for (std::int64_t i = 0; i < tokens; ++i) text += i == 0 ? opener(random) : word(random);
}

std::string PromptMaker::of_blocks(std::span<const std::int64_t> ids, std::int64_t block_tokens,
                                   std::int64_t tokens) {
  std::string text;
  std::vector<std::size_t> ends;  // of the text, after so many blocks
  std::int64_t filled = num_special_;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ends.push_back(text.size());
    const std::int64_t end = std::min((static_cast<std::int64_t>(i) + 1) * block_tokens, tokens);
    append_block(ids[i], std::max<std::int64_t>(end - filled, 0), text);
    filled = std::max(filled, end);
  }
  ends.push_back(text.size());
  for (; !ends.empty(); ends.pop_back()) {
    std::string head = text.substr(0, ends.back());
    if (head.starts_with(' ')) head.erase(0, 1);
    std::string prompt = complete(std::move(head), tokens, Place::kFirst);
    if (!prompt.empty()) return prompt;
  }
  return {};
}

}  // namespace plimsoll::bench
