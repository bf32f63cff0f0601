// SPDX-License-Identifier: Apache-2.0
// The types of tagged arguments, and that schemas and literals made to cost much are read in one pass.
#include "text/parsers/argument_types.h"

#include <gtest/gtest.h>

#include "text/parsers/python_literal.h"

namespace plimsoll::text {
namespace {

Json tools_with(const std::string& properties) {
  return *parse_json(
      R"([{"type":"function","function":{"name":"g"}},
          {"type":"function","function":{"name":"f","parameters":{"properties":)" +
          properties + R"(,"$defs":{"loop":{"anyOf":[{"$ref":"#/$defs/loop"},{"$ref":"#/$defs/loop"}]}}}}}])",
      "tools");
}

TEST(ArgumentTypes, BelongToTheToolThatIsCalled) {
  ArgumentTypes types(tools_with(R"({"days":{"type":"string"},"days":{"type":"integer"}})"));
  EXPECT_FALSE(types.is_declared("days"));
  types.begin_call("f");
  EXPECT_TRUE(types.is_declared("days"));
  EXPECT_EQ(types.type_of("days").to_json("3", UntypedValue::kText), "3");  // the last of equal keys
  types.begin_call("g");
  EXPECT_FALSE(types.is_declared("days"));
  EXPECT_EQ(types.type_of("days").to_json("3", UntypedValue::kText), R"("3")");
  types.begin_call("nobody");
  EXPECT_EQ(types.type_of("days").to_json("3", UntypedValue::kJson), "3");
  types.begin_call("f");
  EXPECT_EQ(types.type_of("days").kinds(), std::vector{ArgumentKind::kInteger});
}

TEST(ArgumentTypes, AKindIsTriedOnceHoweverOftenTheSchemaNamesIt) {
  std::string repeated = R"({"type":["array")";
  for (int i = 0; i < 20'000; ++i) repeated += R"(,"object")";
  ArgumentTypes types(tools_with(R"({"x":)" + repeated +
                                 R"(]},"y":{"anyOf":[{"type":"int"},{"type":"integer"},{"type":"null"}]},)"
                                 R"("z":{"$ref":"#/$defs/loop"}})"));
  types.begin_call("f");
  EXPECT_EQ(types.type_of("x").kinds(), std::vector{ArgumentKind::kContainer});
  EXPECT_EQ(types.type_of("y").kinds(), (std::vector{ArgumentKind::kInteger, ArgumentKind::kNull}));
  EXPECT_TRUE(types.type_of("z").kinds().empty());
}

TEST(PythonLiteral, KeysBecomeStrings) {
  EXPECT_EQ(python_literal_to_json(R"({1: 2, None: 'x', -2.5: {True: ()}, 'k': 0})"),
            R"({"1": 2, "null": "x", "-2.5": {"true": []}, "k": 0})");
  for (const char* refused : {"{[1]: 2}", "{(1,): 2}", "{{}: 2}", "{1 2: 3}", "{: 1}", "{1}", "{'a': }"})
    EXPECT_EQ(python_literal_to_json(refused), std::nullopt) << refused;
}

TEST(PythonLiteral, ManyKeysAreWrittenInOnePass) {
  std::string literal = "{", expected = "{";
  for (int i = 0; i < 100'000; ++i) {
    literal += std::to_string(i) + ":1,";
    expected += (i == 0 ? "\"" : ", \"") + std::to_string(i) + "\": 1";
  }
  EXPECT_EQ(python_literal_to_json(literal + "}"), expected + "}");
}

}  // namespace
}  // namespace plimsoll::text
