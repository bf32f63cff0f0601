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

TEST(ImageTokens, RuleComesFromTheProcessorAndElseFromTheModel) {
  const auto rule = [](const std::string& text) {
    const Folder folder = folder_of(text);
    return std::string(processor_rule(folder.files()));
  };
  EXPECT_EQ(rule(R"({"config":{"model_type":"llava"},"processor":{"processor_class":"PixtralProcessor"}})"),
            "pixtral");
  EXPECT_EQ(rule(R"({"config":{"model_type":"x"},"image":{"processor_class":"Qwen2_5_VLProcessor"}})"),
            "qwen2_vl");
  EXPECT_EQ(rule(R"({"config":{"model_type":"qwen3_5_moe"}})"), "qwen3_vl");
  EXPECT_EQ(rule(R"({"config":{"model_type":"qwen2_vl"},"image":{"processor_class":"OtherProcessor"}})"), "");
  EXPECT_EQ(rule(R"({"config":{"model_type":"llama"}})"), "");
  EXPECT_EQ(rule(R"({"config":{"model_type":7},"processor":[],"image":{"processor_class":{}}})"), "");
}

TEST(ImageTokens, ConfigAloneDecidesWhereImagesHaveOneSize) {
  const auto tokens = [](const std::string& text) {
    const Folder folder = folder_of(text);
    const auto expansion = expand_image(folder.files(), {1080, 1920});
    return expansion ? tokens_of(folder.files(), *expansion) : -1;
  };
  EXPECT_EQ(tokens(R"({"config":{"model_type":"llava","vision_feature_select_strategy":"default",
    "vision_config":{"image_size":336,"patch_size":14}}})"),
            576);
  EXPECT_EQ(tokens(R"({"config":{"model_type":"gemma3","mm_tokens_per_image":256,"vision_config":{}}})"),
            260);
  EXPECT_EQ(
      tokens(R"({"config":{"model_type":"paligemma","vision_config":{"image_size":448,"patch_size":14}}})"),
      1024);
  // Published with code of its own: 12 tiles at most and the whole, (448 / 14 / 2)^2 tokens each, start and
  // end.
  EXPECT_EQ(tokens(R"({"config":{"model_type":"internvl_chat","force_image_size":448,"downsample_ratio":0.5,
    "min_dynamic_patch":1,"max_dynamic_patch":12,"use_thumbnail":true,"dynamic_image_size":true,
    "vision_config":{"image_size":448,"patch_size":14}}})"),
            9 * 256 + 2);
  EXPECT_EQ(tokens(R"({"config":{"model_type":"qwen2_vl","vision_config":{}}})"), -1);
}

TEST(ImageTokens, FiguresThatCannotBeAreNamed) {
  const char* const bad[] = {
      R"({"image":{"processor_class":"Qwen2VLProcessor","patch_size":0}})",
      R"({"image":{"processor_class":"Qwen2VLProcessor","merge_size":-2}})",
      R"({"image":{"processor_class":"Qwen2VLProcessor","patch_size":"14"}})",
      R"({"image":{"processor_class":"Qwen2VLProcessor","max_pixels":1e300}})",
      R"({"image":{"processor_class":"Qwen2VLProcessor","size":"large"}})",
      R"({"image":{"processor_class":"Kimi_K25Processor","size":{"max_height":0,"max_width":0}}})",
      R"({"processor":{"processor_class":"Llama4Processor","pixel_shuffle_ratio":0}})",
      R"({"processor":{"processor_class":"PixtralProcessor","spatial_merge_size":9223372036854775807}})",
      R"({"processor":{"processor_class":"LlavaNextProcessor","patch_size":14,
          "image_processor":{"image_grid_pinpoints":[[336,0]]}}})",
      R"({"processor":{"processor_class":"LlavaNextProcessor","patch_size":14,
          "image_processor":{"image_grid_pinpoints":{}}}})",
      R"({"processor":{"processor_class":"InternVLProcessor","image_processor":{"max_patches":1000000000}}})",
      R"({"processor":{"processor_class":"InternVLProcessor","image_processor":{"size":[448]}}})",
      R"({"processor":{"processor_class":"Idefics3Processor","image_processor":{"do_resize":"no"}}})",
      R"({"image":{"processor_class":"Lfm2VlProcessor","max_pixels_tolerance":null,"tile_size":[]}})",
      R"({"image":{"processor_class":"KimiVLProcessor","merge_kernel_size":[0,2]}})",
  };
  for (const char* text : bad) {
    SCOPED_TRACE(text);
    const Folder folder = folder_of(text);
    const auto expansion = expand_image(folder.files(), {1080, 1920});
    ASSERT_FALSE(expansion);
    EXPECT_EQ(expansion.error().code, ErrorCode::kMalformed);
    EXPECT_NE(expansion.error().message.find("reading the model's figures"), std::string::npos);
  }
}

TEST(ImageTokens, HugeSizesAndCountsEndInAnAnswer) {
  const auto cases = read_json_file(testing::data_path("processors/cases.json"));
  ASSERT_TRUE(cases);
  for (const Json& one : cases->items()) {
    SCOPED_TRACE(dump(one["name"]));
    const ProcessorFiles files{one["config"], one["processor"], one["image"], one["video"]};
    for (const PixelSize size : {PixelSize{kMaxSide, kMaxSide}, {1, kMaxSide}, {kMaxSide, 1}}) {
      if (const auto image = expand_image(files, size)) {
        EXPECT_GE(image->media_tokens, 0);
      }
      if (const auto video = expand_video(files, {size, 20'000, 1e-3})) {
        EXPECT_GE(video->media_tokens, 0);
      }
    }
    for (const PixelSize size : {PixelSize{0, 10}, {10, -1}, {kMaxSide + 1, 10}})
      EXPECT_FALSE(expand_image(files, size));
    EXPECT_FALSE(expand_video(files, {{10, 10}, 0, 1}));
    EXPECT_FALSE(expand_video(files, {{10, 10}, 10, 0}));
    EXPECT_FALSE(expand_audio(files, 0));
  }
}

TEST(ImageTokens, TextWithoutATokenizerCountsByItsWords) {
  const Folder one = folder_of(R"({"config":{"model_type":"qwen3_vl"}})");
  EXPECT_EQ(text_tokens_by_rule(one.files(), ""), 0);
  EXPECT_EQ(text_tokens_by_rule(one.files(), "\n\n"), 1);
  EXPECT_EQ(text_tokens_by_rule(one.files(), "<12.3 seconds>"), 7);
  EXPECT_EQ(text_tokens_by_rule(one.files(), "\nFrame12: "), 6);
  EXPECT_EQ(text_tokens_by_rule(one.files(), "Here is  one"), 4);
  const Folder three = folder_of(R"({"config":{"model_type":"kimi_k25"}})");
  EXPECT_EQ(text_tokens_by_rule(three.files(), "00:01:07.250"), 7);
}

}  // namespace
}  // namespace plimsoll::model
