// SPDX-License-Identifier: Apache-2.0
// Counts of tokens against transformers' own processors, and figures that no processor can have.
#include "model/image_tokens.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/golden.h"

namespace plimsoll::model {
namespace {

const Json kNone;

struct Folder {
  Json config, processor, image, video;
  ProcessorFiles files() const { return {config, processor, image, video}; }
};

Folder folder_of(const std::string& text) {
  const auto parsed = parse_json(text, "test");
  EXPECT_TRUE(parsed) << text;
  const Json& json = *parsed;
  return {json["config"], json["processor"], json["image"], json["video"]};
}

std::int64_t whole(const Json& row, std::string_view key) {
  const auto value = row[key].as_integer();
  EXPECT_TRUE(value) << key;
  return value.value_or(0);
}

Result<Expansion> expand(const ProcessorFiles& files, const Json& row) {
  if (row["kind"] == Json("image")) return expand_image(files, {whole(row, "height"), whole(row, "width")});
  if (row["kind"] == Json("audio")) return expand_audio(files, whole(row, "samples"));
  return expand_video(files, {{whole(row, "height"), whole(row, "width")},
                              whole(row, "frames"),
                              row["fps"].as_double().value_or(0)});
}

std::int64_t tokens_of(const ProcessorFiles& files, const Expansion& expansion) {
  std::int64_t tokens = expansion.media_tokens + expansion.mark_tokens;
  for (const TextRun& run : expansion.texts) tokens += run.times * text_tokens_by_rule(files, run.text);
  return tokens;
}

TEST(ImageTokens, CountsWhatTransformersPutsInThePrompt) {
  const auto cases = read_json_file(testing::data_path("processors/cases.json"));
  ASSERT_TRUE(cases) << cases.error().describe();
  ASSERT_GE(cases->size(), 50U);
  int rows = 0;
  for (const Json& one : cases->items()) {
    const ProcessorFiles files{one["config"], one["processor"], one["image"], one["video"]};
    for (const Json& row : one["rows"].items()) {
      SCOPED_TRACE(dump(one["name"]) + " " + dump(row));
      ++rows;
      const auto expansion = expand(files, row);
      if (row["tokens"].is_null()) {
        ASSERT_FALSE(expansion);
        EXPECT_EQ(expansion.error().code, ErrorCode::kNo) << expansion.error().describe();
        continue;
      }
      ASSERT_TRUE(expansion) << expansion.error().describe();
      EXPECT_EQ(expansion->media_tokens, whole(row, "media"));
      EXPECT_EQ(tokens_of(files, *expansion), whole(row, "tokens"));
    }
  }
  EXPECT_GE(rows, 500);
}

}  // namespace
}  // namespace plimsoll::model
