// SPDX-License-Identifier: Apache-2.0
// What a report says about images, videos and sounds, from the files of a folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/json.h"
#include "inspect/inspect.h"

namespace plimsoll::inspect {
namespace {

namespace fs = std::filesystem;

// A model folder for one test: file name -> text.
class ModelFolder {
 public:
  explicit ModelFolder(const std::map<std::string, std::string>& files) {
    std::string name = (fs::temp_directory_path() / "plimsoll_multimodal_XXXXXX").string();
    if (const char* made = ::mkdtemp(name.data())) path_ = made;
    for (const auto& [file, text] : files) std::ofstream(path_ / file) << text;
  }
  ~ModelFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

constexpr const char* kText =
    R"("text_config":{"model_type":"qwen2","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
  "num_key_value_heads":2,"intermediate_size":128,"vocab_size":1000,"max_position_embeddings":4096})";

std::string config(const std::string& type, const std::string& more = R"("vision_config":{"depth":2})") {
  return R"({"architectures":["X"],"model_type":")" + type + "\"," + kText + "," + more + "}";
}

struct Answer {
  Json multimodal;
  Findings findings;

  Json tokens(std::string_view kind, std::string_view size, std::string_view key = "tokens") const {
    for (const Json& example : multimodal["examples"].items())
      if (example["kind"] == Json(kind) && example["size"] == Json(size)) return example[key];
    return "absent";
  }
  const Finding* finding(std::string_view id) const {
    const auto found =
        std::find_if(findings.begin(), findings.end(), [&](const Finding& one) { return one.id == id; });
    return found == findings.end() ? nullptr : &*found;
  }
};

Answer inspected(const std::map<std::string, std::string>& files) {
  const ModelFolder folder(files);
  const auto report = inspect(folder.path());
  EXPECT_TRUE(report) << report.error().describe();
  if (!report) return {};
  return {to_json(*report)["multimodal"], report->findings};
}

TEST(Multimodal, CountsByTheProcessorFiles) {
  const Answer answer =
      inspected({{"config.json", config("qwen2_5_vl")},
                 {"preprocessor_config.json", R"({"image_processor_type":"Qwen2VLImageProcessor",
         "processor_class":"Qwen2_5_VLProcessor","min_pixels":3136,"max_pixels":12845056,"patch_size":14,
         "temporal_patch_size":2,"merge_size":2})"}});
  EXPECT_EQ(dump(answer.multimodal["inputs"]), R"(["text","image","video"])");
  EXPECT_EQ(answer.multimodal["processor_known"], Json(true));
  EXPECT_EQ(answer.tokens("image", "224x224"), Json(64));
  EXPECT_EQ(answer.tokens("image", "1024x1024"), Json(1369));
  EXPECT_EQ(answer.tokens("image", "1920x1080"), Json(2691));
  EXPECT_EQ(answer.tokens("video", "60s 1920x1080@30fps"),
            Json(900 * 2691));  // its processor samples nothing
  EXPECT_EQ(answer.tokens("video", "60s 1920x1080@2fps"), Json(60 * 2691));
  EXPECT_EQ(answer.finding("PROCESSOR_UNKNOWN"), nullptr);
}

TEST(Multimodal, TextBetweenSpecialTokensIsCounted) {
  const Answer answer = inspected(
      {{"config.json", config("gemma3")},
       {"processor_config.json", R"({"processor_class":"Gemma3Processor","image_seq_length":256})"}});
  EXPECT_EQ(answer.tokens("image", "224x224"), Json(260));
  EXPECT_EQ(answer.tokens("image", "224x224", "media_tokens"), Json(256));
}

TEST(Multimodal, UnknownProcessorIsOneFindingAndNoGuess) {
  const Answer answer = inspected(
      {{"config.json", config("qwen2_vl")},
       {"preprocessor_config.json", R"({"processor_class":"NeverHeardOfProcessor","patch_size":14})"}});
  EXPECT_EQ(dump(answer.multimodal["inputs"]), R"(["text","image"])");
  EXPECT_EQ(answer.multimodal["processor_known"], Json(false));
  EXPECT_TRUE(answer.tokens("image", "1024x1024").is_null());
  const Finding* finding = answer.finding("PROCESSOR_UNKNOWN");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kInfo);
  EXPECT_EQ(finding->where, "preprocessor_config.json: /processor_class");
  EXPECT_EQ(std::count_if(answer.findings.begin(), answer.findings.end(),
                          [](const Finding& one) { return one.id.starts_with("PROCESSOR"); }),
            1);
}

TEST(Multimodal, AbsentFilesAreSaidOrNotNeeded) {
  const Answer absent = inspected({{"config.json", config("qwen2_vl")}});
  EXPECT_EQ(absent.multimodal["processor_known"], Json(false));
  EXPECT_TRUE(absent.tokens("image", "224x224").is_null());
  ASSERT_NE(absent.finding("PROCESSOR_ABSENT"), nullptr);
  EXPECT_EQ(absent.finding("PROCESSOR_UNKNOWN"), nullptr);
  const Answer fixed =
      inspected({{"config.json", config("llava", R"("vision_config":{"image_size":336,"patch_size":14})")}});
  EXPECT_EQ(fixed.tokens("image", "1920x1080"), Json(576));
  EXPECT_EQ(fixed.multimodal["processor_known"], Json(true));
  EXPECT_EQ(fixed.finding("PROCESSOR_ABSENT"), nullptr);
}

TEST(Multimodal, BadFiguresAndRefusalsAreSaidOnce) {
  const Answer bad =
      inspected({{"config.json", config("qwen2_vl")},
                 {"preprocessor_config.json", R"({"processor_class":"Qwen2VLProcessor","patch_size":0})"}});
  const Finding* finding = bad.finding("PROCESSOR_FIGURES");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kWarning);
  EXPECT_EQ(finding->where, "preprocessor_config.json: /patch_size");
  EXPECT_TRUE(bad.tokens("image", "224x224").is_null());
  const Answer refused = inspected(
      {{"config.json", config("qwen2_vl")},
       {"preprocessor_config.json", R"({"processor_class":"Qwen2VLProcessor","do_resize":false})"}});
  EXPECT_EQ(refused.tokens("image", "224x224"), Json(64));
  EXPECT_TRUE(refused.tokens("image", "1024x1024").is_null());
  EXPECT_NE(refused.finding("PROCESSOR_REFUSES"), nullptr);
  const Answer torn =
      inspected({{"config.json", config("qwen2_vl")}, {"preprocessor_config.json", R"({"processor_cl)"}});
  EXPECT_NE(torn.finding("PROCESSOR_FIGURES"), nullptr);
}

TEST(Multimodal, TextModelsHaveNoExamples) {
  const Answer answer =
      inspected({{"config.json", R"({"architectures":["Qwen2ForCausalLM"],"model_type":"qwen2",
    "hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
    "intermediate_size":128,"vocab_size":1000,"max_position_embeddings":4096})"}});
  EXPECT_EQ(dump(answer.multimodal), R"({"inputs":["text"],"examples":[],"processor_known":null})");
}

TEST(Multimodal, OmniModelsHearAndSeeThroughTheirThinker) {
  const Answer answer = inspected(
      {{"config.json", R"({"architectures":["Qwen2_5OmniModel"],"model_type":"qwen2_5_omni","thinker_config":{
         "vision_config":{"depth":2},"audio_config":{"d_model":8}}})"},
       {"preprocessor_config.json", R"({"processor_class":"Qwen2_5OmniProcessor","hop_length":160,
         "chunk_length":300,"sampling_rate":16000,"patch_size":14,"merge_size":2})"}});
  EXPECT_EQ(dump(answer.multimodal["inputs"]), R"(["text","image","video","audio"])");
  EXPECT_EQ(answer.tokens("audio", "30s"), Json(750));
}

}  // namespace
}  // namespace plimsoll::inspect
