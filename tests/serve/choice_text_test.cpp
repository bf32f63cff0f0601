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
  EXPECT_EQ(trace(StopMatcher({"abcd", "bc"}), {"xabcd"}),
            "xa|!bc");  // complete first, though it begins later
  EXPECT_EQ(trace(StopMatcher({"bc", "abc"}), {"xabcd"}), "xa|!bc");  // complete at once: as listed
  EXPECT_EQ(trace(StopMatcher({"abc", "bc"}), {"xabcd"}), "x|!abc");
}

// The stop string that a text read one character at a time completes first, and the text before it.
std::string by_characters(const std::vector<std::string>& stops, const std::string& text,
                          std::size_t barred) {
  for (std::size_t end = barred + 1; end <= text.size(); ++end)
    for (const std::string& stop : stops)
      if (std::string_view(text).substr(0, end).ends_with(stop))
        return text.substr(0, end - stop.size()) + "!" + stop;
  return text;
}

// All texts of eight characters of two letters, cut in all 128 ways, for stop strings that overlap in every
// manner; with the first piece or two barred as min_tokens bars them.
TEST(StopMatcher, EverySplitOfATextStopsAtTheSamePlace) {
  const std::vector<std::vector<std::string>> lists = {{"ab"},         {"aab", "ab"},  {"abba", "bb"},
                                                       {"bb", "abba"}, {"aaaa", "ba"}, {"bab", "abab", "aa"}};
  for (const auto& stops : lists)
    for (unsigned letters = 0; letters < 256; ++letters) {
      std::string text;
      for (unsigned at = 0; at < 8; ++at) text += (letters >> at & 1) != 0 ? 'b' : 'a';
      for (unsigned cuts = 0; cuts < 128; ++cuts)
        for (std::size_t min_pieces = 0; min_pieces < 3; ++min_pieces) {
          std::vector<std::string> pieces(1);
          for (unsigned at = 0; at < 8; ++at) {
            pieces.back() += text[at];
            if (at < 7 && (cuts >> at & 1) != 0) pieces.emplace_back();
          }
          StopMatcher matcher(stops);
          std::string got;
          std::size_t barred = 0;
          std::optional<std::string> stop;
          for (std::size_t i = 0; i < pieces.size() && !stop; ++i) {
            barred += i < min_pieces ? pieces[i].size() : 0;
            const auto found = matcher.push(pieces[i], i >= min_pieces);
            got += found.text;
            stop = found.stop;
          }
          got += stop ? "!" + *stop : matcher.flush();
          ASSERT_EQ(got, by_characters(stops, text, barred))
              << text << " cut " << cuts << " from " << min_pieces;
        }
    }
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
  // It may begin among the first tokens: only where it is complete counts, as in vLLM.
  ChoiceText across(std::make_shared<ByteTokenizer>(), {.stop = {"bc"}, .min_tokens = 1});
  EXPECT_EQ(across.take(output_of({'b'}), 0).text, "");
  EXPECT_EQ(across.take(output_of({'c'}), 0).finish, "stop");
}

TEST(ChoiceText, WithoutTokenizerTextIsEmpty) {
  ChoiceText text(nullptr, {});
  EXPECT_EQ(text.take(output_of({'x'}), 0).text, "");
  EXPECT_EQ(text.take(output_of({'x'}, engine::FinishReason::kLength), 0).finish, "length");
}

}  // namespace
}  // namespace plimsoll::serve
