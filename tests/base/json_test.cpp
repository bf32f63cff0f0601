// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll {
namespace {

Json parsed(std::string_view text) {
  auto result = parse_json(text, "test");
  EXPECT_TRUE(result) << (result ? "" : result.error().describe()) << " for " << text;
  return result ? *result : Json();
}

TEST(Json, ReadsEveryKindOfValue) {
  const Json value = parsed(R"({"a":[1,-2.5,true,false,null,"x\u00e9\n"],"b":{"c":12345678901234567}})");
  EXPECT_EQ(value.at_pointer("/a/0").as_integer(), 1);
  EXPECT_EQ(value.at_pointer("/a/1").as_double(), -2.5);
  EXPECT_EQ(value.at_pointer("/a/2").as_bool(), true);
  EXPECT_TRUE(value.at_pointer("/a/4").is_null());
  EXPECT_EQ(*value.at_pointer("/a/5").as_string(), "x\u00e9\n");
  EXPECT_EQ(value.at_pointer("/b/c").as_integer(), 12345678901234567);
}

TEST(Json, ReadsBareScalars) {
  EXPECT_EQ(parsed("7").as_integer(), 7);
  EXPECT_EQ(*parsed("\"s\"").as_string(), "s");
  EXPECT_TRUE(parsed(" null ").is_null());
}

TEST(Json, KeepsHugeIntegersAsDoubles) {
  const Json value = parsed(R"({"model_max_length":1000000000000000019884624838656,"next":3})");
  EXPECT_DOUBLE_EQ(*value["model_max_length"].as_double(), 1e30);
  EXPECT_FALSE(value["model_max_length"].as_integer());
  EXPECT_EQ(value["next"].as_integer(), 3);
}

TEST(Json, TakesPythonsBareConstants) {
  const Json value = parsed(R"({"a": NaN, "b": -Infinity, "c": "NaN stays"})");
  EXPECT_TRUE(value["a"].is_null());
  EXPECT_TRUE(value["b"].is_null());
  EXPECT_EQ(*value["c"].as_string(), "NaN stays");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text :
       {"", "{", "[1,2", "{\"a\":}", "{\"a\":1,}", "[1]x", "[01]", "[1.]", "[nul]", "[tru]", "\"\xff\"",
        "{'a':1}", "[1 2]", "[\"a\" \"b\"]", "[-]", "[+1]", "[1.e5]", "1 2"}) {
    EXPECT_FALSE(parse_json(text, "test")) << text;
  }
}

TEST(Json, RefusesNestingBeyondTheLimit) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_FALSE(parse_json(deep, "test"));
  EXPECT_TRUE(parse_json(std::string(150, '[') + std::string(150, ']'), "test"));
}

TEST(Json, KeepsOrderAndDuplicatesAndFindsTheLast) {
  const Json value = parsed(R"({"z":1,"a":2,"z":3})");
  EXPECT_EQ(value.size(), 3u);
  EXPECT_EQ(value.members()[0].first, "z");
  EXPECT_EQ(value["z"].as_integer(), 3);
}

TEST(Json, WritesWhatItReads) {
  const std::string text = R"({"a":[1,-2.5,1e+30,true,null,"q\"\\\n\u0001é"],"b":{},"c":[]})";
  EXPECT_EQ(dump(parsed(text)), text);
  EXPECT_EQ(dump(Json(1.0)), "1.0");
  EXPECT_EQ(dump(Json(std::nan(""))), "null");
  EXPECT_EQ(dump(Json(std::string("a\xff"))), "\"a\uFFFD\"");
  EXPECT_EQ(parsed(dump_pretty(parsed(text))), parsed(text));
}

TEST(Json, RefusesMoreValuesThanAreAllowed) {
  EXPECT_TRUE(parse_json("[[],{\"a\":1},2]", "t", {.max_values = 4}));
  const auto refused = parse_json("[[],{\"a\":1},2]", "t", {.max_values = 3});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("more than 3 values"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace plimsoll
