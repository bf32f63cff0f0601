// SPDX-License-Identifier: Apache-2.0
// Normalizers against the reference library's text, one name per kind.
#include "text/tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include "tests/testing/golden.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

std::vector<Json> kinds() {
  return read_rows(testing::data_path("text/normalizers.jsonl"));
}

class NormalizerKind : public ::testing::TestWithParam<Json> {};

TEST_P(NormalizerKind, GivesTheReferencesText) {
  const auto normalizer = Normalizer::from_json(GetParam()["normalizer"]);
  ASSERT_TRUE(normalizer) << normalizer.error().describe();
  for (const Json& row : GetParam()["rows"].items()) {
    const std::string& text = *row.items()[0].as_string();
    EXPECT_EQ(normalizer->apply(text), *row.items()[1].as_string()) << dump(row);
    std::string storage;
    std::vector<Span> origin;
    const std::string_view normalized = normalizer->apply(text, storage, &origin);
    EXPECT_TRUE(origin.empty() || origin.size() == normalized.size()) << dump(row);
    for (const Span span : origin)
      EXPECT_TRUE(span.begin <= span.end && span.end <= text.size()) << dump(row);
  }
  EXPECT_GT(GetParam()["rows"].size(), 10u);
}

INSTANTIATE_TEST_SUITE_P(Tokens, NormalizerKind, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return *kind.param["name"].as_string(); });

}  // namespace
}  // namespace plimsoll::text
