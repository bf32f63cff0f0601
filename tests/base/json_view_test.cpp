// SPDX-License-Identifier: Apache-2.0
#include "base/json_view.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

JsonDocument document(std::string_view text) {
  auto parsed = JsonDocument::parse(std::string(text), "test");
  EXPECT_TRUE(parsed) << parsed.error().describe();
  return std::move(*parsed);
}

TEST(JsonView, AnswersEveryKind) {
  const auto doc =
      document(R"({"s":"\u00e9","i":-7,"d":1.5,"w":8.0,"b":true,"n":null,"a":[1,[2]],"o":{"k":"v"}})");
  const JsonView root = doc.root();
  EXPECT_TRUE(root.is_object());
  EXPECT_EQ(root.size(), 8u);
  EXPECT_EQ(root["s"].as_string(), "é");
  EXPECT_EQ(root["i"].as_integer(), -7);
  EXPECT_EQ(root["i"].as_double(), -7.0);
  EXPECT_EQ(root["d"].as_double(), 1.5);
  EXPECT_EQ(root["d"].as_integer(), std::nullopt);
  EXPECT_EQ(root["w"].as_integer(), 8);
  EXPECT_EQ(root["b"].as_bool(), true);
  EXPECT_TRUE(root["n"].is_null());
  EXPECT_TRUE(root["absent"].is_null());
  EXPECT_TRUE(root["absent"]["deeper"].is_null());
  EXPECT_EQ(root["absent"].as_string(), std::nullopt);
  EXPECT_EQ(root["a"].size(), 2u);
  EXPECT_EQ(root["s"]["k"].as_string(), std::nullopt);
}

TEST(JsonView, TreesAreWhatTheOtherReaderMakes) {
  const std::string text = R"({"a":[1,2.5,"x",null,true,{"b":[]}],"a2":18446744073709551615,"k":1,"k":2})";
  EXPECT_EQ(document(text).root().to_json(), *parse_json(text, "test"));
}

TEST(JsonView, TheLastOfEqualKeysCounts) {
  EXPECT_EQ(document(R"({"k":1,"k":2})").root()["k"].as_integer(), 2);
}

TEST(JsonView, WalksInOrderAndStopsAtTheFirstError) {
  const auto doc = document(R"({"b":1,"a":2,"c":[3,4,5]})");
  std::string keys;
  EXPECT_TRUE(doc.root().for_each_member([&](std::string_view key, JsonView) -> Status {
    keys += key;
    return {};
  }));
  EXPECT_EQ(keys, "bac");
  int seen = 0;
  const Status stopped = doc.root()["c"].for_each_item([&](JsonView item) -> Status {
    ++seen;
    if (item.as_integer() == 4) return fail(ErrorCode::kMalformed, "four");
    return {};
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "four");
  EXPECT_EQ(seen, 2);
}

TEST(JsonView, RefusesWhatIsNoJsonWithItsPlace) {
  for (const char* text : {"", "{", "{\"a\":1} x", "[1,]", "\"\xff\"", "{\"a\":NaN}"}) {
    const auto parsed = JsonDocument::parse(text, "file.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kMalformed);
    EXPECT_NE(parsed.error().describe().find("file.json"), std::string::npos);
  }
  EXPECT_FALSE(JsonDocument::parse(std::string(5000, '['), "deep"));
}

}  // namespace
}  // namespace plimsoll
