// SPDX-License-Identifier: Apache-2.0
#include "serve/eval/passkey_prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace plimsoll::serve {
namespace {

using Ids = std::vector<text::TokenId>;

constexpr std::string_view kOpening =
    "Somewhere in the text below stands a pass key. Keep it in mind, at the end you are asked for it.\n\n";
constexpr std::string_view kFiller =
    "Boats lie at the pier and the water is calm. The harbour clock strikes the hour, gulls circle over the "
    "sheds, and nobody is in a hurry.\n";
constexpr std::string_view kQuestion = "\nNow tell the pass key from the text above. The pass key is";

void append(Ids& ids, std::span<const text::TokenId> more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

void append_repeated(Ids& ids, std::span<const text::TokenId> line, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(line[static_cast<std::size_t>(i % std::ssize(line))]);
}

}  // namespace

PasskeyPrompts::PasskeyPrompts(const text::Tokenizer& tokenizer, std::optional<text::TokenId> leading)
    : tokenizer_(tokenizer) {
  if (leading) opening_.push_back(*leading);
  append(opening_, encode(kOpening));
  filler_ = encode(kFiller);
  question_ = encode(kQuestion);
}

Ids PasskeyPrompts::encode(std::string_view text) const {
  return tokenizer_.encode(text, {.add_special_tokens = false});
}

std::optional<Ids> PasskeyPrompts::make(std::int64_t length, int depth, const std::string& key) const {
  const Ids line =
      encode(fmt::format("The pass key is {}. Do not forget it: {} is the pass key.\n", key, key));
  const std::int64_t room =
      length - kPasskeyAnswerTokens - std::ssize(opening_) - std::ssize(line) - std::ssize(question_);
  if (room < 0 || filler_.empty()) return std::nullopt;
  const std::int64_t before = room * depth / 100 / std::ssize(filler_) * std::ssize(filler_);
  Ids ids = opening_;
  append_repeated(ids, filler_, before);
  append(ids, line);
  append_repeated(ids, filler_, room - before);
  append(ids, question_);
  return ids;
}

std::string first_number(std::string_view answer) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto begin = std::ranges::find_if(answer, is_digit);
  return {begin, std::find_if_not(begin, answer.end(), is_digit)};
}

}  // namespace plimsoll::serve
