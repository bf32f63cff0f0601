// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "serve/eval/passkey_prompts.h"
#include "tests/serve/doubles.h"

namespace plimsoll::serve {
namespace {

TEST(Passkey, PromptsFillTheirLengthAndTheKeyStandsWhereItShould) {
  const ByteTokenizer tokenizer;
  const PasskeyPrompts prompts(tokenizer, 256);
  for (const std::int64_t length : {1200, 4001})
    for (const int depth : {0, 25, 50, 100}) {
      const auto ids = prompts.make(length, depth, "48213");
      ASSERT_TRUE(ids);
      EXPECT_EQ(std::ssize(*ids), length - kPasskeyAnswerTokens);
      EXPECT_EQ(ids->front(), 256);
      const std::string text = tokenizer.decode(std::span(*ids).subspan(1), false);
      const auto at = text.find("The pass key is 48213.");
      ASSERT_NE(at, std::string::npos);
      EXPECT_EQ(text[at - 1], '\n');
      EXPECT_TRUE(text.ends_with(" is"));
      // A line of the filler has some 140 bytes, opening and question beside it some 300.
      EXPECT_NEAR(static_cast<double>(at), static_cast<double>(length - 300) * depth / 100 + 50, 200)
          << length << " " << depth;
    }
}

TEST(Passkey, ALengthWithoutRoomForTheQuestionHasNoPrompt) {
  const ByteTokenizer tokenizer;
  const PasskeyPrompts prompts(tokenizer, std::nullopt);
  std::int64_t shortest = 1;
  while (!prompts.make(shortest, 50, "48213")) ++shortest;
  EXPECT_GT(shortest, 200);
  EXPECT_LT(shortest, 300);
  EXPECT_EQ(std::ssize(*prompts.make(shortest, 50, "48213")), shortest - kPasskeyAnswerTokens);
}

TEST(Passkey, TheNumberOfAnAnswer) {
  EXPECT_EQ(first_number(" 48213. Do not"), "48213");
  EXPECT_EQ(first_number("4821"), "4821");
  EXPECT_EQ(first_number("482137"), "482137");
  EXPECT_EQ(first_number("none"), "");
}

}  // namespace
}  // namespace plimsoll::serve
