// SPDX-License-Identifier: Apache-2.0
#include "facts/unstated_parts.h"

#include <gtest/gtest.h>

namespace plimsoll::facts {
namespace {

TEST(UnstatedParts, RowsAreWhole) {
  for (const UnstatedPart& part : unstated_parts()) {
    SCOPED_TRACE(part.model_type);
    const auto values = parse_json(part.fill, part.model_type);
    ASSERT_TRUE(values);
    EXPECT_FALSE(values->members().empty());
    EXPECT_FALSE(part.what.empty());
    EXPECT_FALSE(part.source.empty());
  }
}

TEST(UnstatedParts, FillOnlyWhatIsNotStated) {
  const UnstatedPart part{"some", R"({"rank": null, "tower": {"width": 8}, "layers": 3})", "what", "source"};
  const auto with = [&](const char* text) { return filled(*parse_json(text, "config.json"), part); };
  EXPECT_EQ(
      with(R"({"model_type":"some","tower":null})"),
      *parse_json(R"({"model_type":"some","tower":{"width":8},"rank":null,"layers":3})", "config.json"));
  EXPECT_EQ(with(R"({"model_type":"some","tower":{"depth":2}})")["tower"],
            *parse_json(R"({"depth":2,"width":8})", "config.json"));
  EXPECT_TRUE(with(R"({"model_type":"some","layers":3})").is_null());
  EXPECT_TRUE(with(R"({"model_type":"some","rank":null})").is_null());
  EXPECT_TRUE(with(R"({"model_type":"some","tower":{"width":8}})").is_null());
  EXPECT_TRUE(with(R"({"model_type":"other"})").is_null());
  EXPECT_TRUE(with("[]").is_null());
}

}  // namespace
}  // namespace plimsoll::facts
