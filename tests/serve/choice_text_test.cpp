// SPDX-License-Identifier: Apache-2.0
#include "serve/choice_text.h"

#include <gtest/gtest.h>

#include "tests/serve/doubles.h"

namespace plimsoll::serve {
namespace {

/// Feeds pieces and writes what comes out, "|" between the pieces and "!" at a stop.
std::string trace(StopMatcher matcher, const std::vector<std::string>& pieces) {
  std::string result;
  for (const auto& piece : pieces) {
    const auto found = matcher.push(piece);
    result += found.text + "|";
    if (found.stop) return result + "!" + *found.stop;
  }
  return result + matcher.flush();
}

TEST(StopMatcher, AcrossPieces) {
  EXPECT_EQ(trace(StopMatcher({"END"}), {"aE", "N", "Db"}), "a|||!END");
  EXPECT_EQ(trace(StopMatcher({"END"}), {"aE", "N", "x"}), "a||ENx|");
  EXPECT_EQ(trace(StopMatcher({"END"}), {"E", "E", "N"}), "|E||EN");
}

TEST(StopMatcher, TheEarliestWins) {
  EXPECT_EQ(trace(StopMatcher({"yz", "x"}), {"ayzx"}), "a|!yz");
  EXPECT_EQ(trace(StopMatcher({"yz", "x"}), {"axyz"}), "a|!x");
  EXPECT_EQ(trace(StopMatcher({"\n"}), {"a", "\nb"}), "a||!\n");
}

TEST(StopMatcher, NothingIsHeldThatCannotMatch) {
  EXPECT_EQ(trace(StopMatcher({"stop"}), {"hello", " world"}), "hello| world|");
  EXPECT_EQ(trace(StopMatcher({"aab"}), {"aaa", "b"}), "a||!aab");
}

engine::Output output_of(std::vector<TokenId> tokens, std::optional<engine::FinishReason> finish = {}) {
  engine::Output output;
  output.tokens = std::move(tokens);
  output.finish = finish;
  if (finish == engine::FinishReason::kStop) output.stop_token = output.tokens.back();
  return output;
}

TEST(ChoiceText, WholeCharactersOnly) {
  ChoiceText text(std::make_shared<ByteTokenizer>(), {});
  EXPECT_EQ(text.take(output_of({0xE2}), 0).text, "");
  EXPECT_EQ(text.take(output_of({0x82}), 0).text, "");
  EXPECT_EQ(text.take(output_of({0xAC}), 0).text, "€");
  const auto last = text.take(output_of({0xE2}, engine::FinishReason::kLength), 0);
  EXPECT_EQ(last.text, "\xEF\xBF\xBD");
  EXPECT_EQ(last.finish, "length");
}

TEST(ChoiceText, AStopStringEndsItAndIsNotShown) {
  ChoiceText text(std::make_shared<ByteTokenizer>(), {.stop = {"bc"}});
  EXPECT_EQ(text.take(output_of({'a'}), 0).text, "a");
  EXPECT_EQ(text.take(output_of({'b'}), 0).text, "");
  const auto last = text.take(output_of({'c'}), 0);
  EXPECT_EQ(last.text, "");
  EXPECT_EQ(last.finish, "stop");
  EXPECT_EQ(last.stop_reason, Json("bc"));
}

TEST(ChoiceText, HeldBackTextComesAtTheEnd) {
  ChoiceText text(std::make_shared<ByteTokenizer>(), {.stop = {"bc"}});
  const auto last = text.take(output_of({'b'}, engine::FinishReason::kLength), 0);
  EXPECT_EQ(last.text, "b");
  EXPECT_EQ(last.finish, "length");
}

TEST(ChoiceText, StopTokens) {
  ChoiceText own(std::make_shared<ByteTokenizer>(), {.asked_stop_ids = {'x'}});
  const auto asked = own.take(output_of({'x'}, engine::FinishReason::kStop), 0);
  EXPECT_EQ(asked.text, "");
  EXPECT_EQ(asked.stop_reason, Json('x' + 0));
  ChoiceText kept(std::make_shared<ByteTokenizer>(), {.include_stop = true});
  const auto model_end = kept.take(output_of({'x'}, engine::FinishReason::kStop), 0);
  EXPECT_EQ(model_end.text, "x");
  EXPECT_TRUE(model_end.stop_reason.is_null());
}

TEST(ChoiceText, StopStringsWaitForMinTokens) {
  ChoiceText text(std::make_shared<ByteTokenizer>(), {.stop = {"b"}, .min_tokens = 2});
  EXPECT_FALSE(text.take(output_of({'b'}), 0).finish);
  EXPECT_EQ(text.take(output_of({'b'}), 0).text, "b");
  EXPECT_EQ(text.take(output_of({'b'}), 0).finish, "stop");
}

TEST(ChoiceText, WithoutTokenizerTextIsEmpty) {
  ChoiceText text(nullptr, {});
  EXPECT_EQ(text.take(output_of({'x'}), 0).text, "");
  EXPECT_EQ(text.take(output_of({'x'}, engine::FinishReason::kLength), 0).finish, "length");
}

}  // namespace
}  // namespace plimsoll::serve
