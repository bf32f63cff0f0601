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

TEST(JsonReader, ReadsOneDocumentAfterTheOther) {
  JsonReader reader;
  for (int i = 0; i < 3; ++i) {
    const auto root = reader.read("{\"a\":[" + std::to_string(i) + ",\"x\"]}", "event");
    ASSERT_TRUE(root);
    EXPECT_EQ((*root)["a"].item(0).as_integer(), i);
    EXPECT_EQ((*root)["a"].item(1).as_string(), "x");
    EXPECT_TRUE((*root)["a"].item(2).is_null());
    EXPECT_TRUE((*root)["b"].item(0).is_null());
  }
}

TEST(JsonReader, TakesWhatTheTreeReaderTakes) {
  JsonReader reader;
  const auto constants = reader.read(R"({"p":-Infinity,"n":123456789012345678901234567890,"k":1})", "event");
  ASSERT_TRUE(constants) << constants.error().describe();
  EXPECT_TRUE((*constants)["p"].is_null());
  EXPECT_DOUBLE_EQ(*(*constants)["n"].as_double(), 123456789012345678901234567890.0);
  EXPECT_EQ((*constants)["k"].as_integer(), 1);
  for (const std::string_view wrong : {"", "{", "{}{}", "{\"a\":01}", "\xff", "[1,]"})
    EXPECT_FALSE(reader.read(wrong, "event")) << wrong;
  const std::string large = "[\"" + std::string(3 << 20, 'x') + "\"]";
  EXPECT_EQ(reader.read(large, "event")->item(0).as_string()->size(), std::size_t{3} << 20);
  EXPECT_TRUE(reader.read("{}", "event")->is_object());
}

}  // namespace
}  // namespace plimsoll
