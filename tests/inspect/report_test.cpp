// SPDX-License-Identifier: Apache-2.0
// The figures of a report against what transformers measured, and the shape of the document.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "inspect/inspect.h"
#include "tests/testing/golden.h"

namespace plimsoll::inspect {
namespace {

namespace fs = std::filesystem;
using testing::golden_path;

constexpr const char* kLlama8b =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":4096,
  "intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,
  "vocab_size":128256,"max_position_embeddings":131072,"rope_theta":500000.0,"torch_dtype":"bfloat16",
  "rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
  "original_max_position_embeddings":8192,"rope_type":"llama3"}})";

// A lone config file for one test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    std::string name = (fs::temp_directory_path() / "plimsoll_report_XXXXXX").string();
    if (const char* made = ::mkdtemp(name.data())) folder_ = made;
    std::ofstream(path()) << text;
  }
  ~ConfigFile() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string path() const { return (folder_ / "some_config.json").string(); }

 private:
  fs::path folder_;
};

std::int64_t number(const Json& document, const char* pointer) {
  return document.at_pointer(pointer).as_integer().value_or(-1);
}

TEST(Report, FiguresOfALoneConfig) {
  const ConfigFile config(kLlama8b);
  const auto report = inspect(config.path());
  ASSERT_TRUE(report) << report.error().describe();
  const Json document = to_json(*report);
  EXPECT_EQ(document["schema"], Json("plimsoll.inspect/1"));
  EXPECT_EQ(number(document, "/parameters/total"), 8'030'261'248);
  EXPECT_EQ(number(document, "/parameters/active"), 8'030'261'248);
  EXPECT_EQ(number(document, "/parameters/active_without_embedding"), 8'030'261'248 - 128'256LL * 4096);
  EXPECT_EQ(number(document, "/weights/bytes"), 16'060'522'496);
  EXPECT_EQ(document.at_pointer("/basis")["/weights/bytes"]["kind"], Json("formula"));
  EXPECT_EQ(number(document, "/kv_cache/bytes_per_token"), 131'072);
  EXPECT_EQ(number(document, "/kv_cache/without_gqa_bytes_per_token"), 524'288);
  EXPECT_EQ(number(document, "/context/native_tokens"), 8192);
  EXPECT_EQ(number(document, "/context/extended_tokens"), 131'072);
  EXPECT_EQ(number(document, "/kv_cache/sequence_tokens"), 8192);
  EXPECT_EQ(number(document, "/kv_cache/bytes_per_sequence"), 8192LL * 131'072);
  EXPECT_EQ(document["verdict"], Json("ok"));
  std::int64_t grouped = 0;
  for (const Json& group : document.at_pointer("/parameters/by_group").items())
    grouped += *group["parameters"].as_integer();
  EXPECT_EQ(grouped, 8'030'261'248);
  EXPECT_FALSE(verdict_code(report->findings));
}

TEST(Report, FlagsReachTheKvCache) {
  const ConfigFile config(kLlama8b);
  Options options;
  options.sequence_tokens = 1000;
  options.kv_cache_dtype = "fp8";
  const auto report = inspect(config.path(), options);
  ASSERT_TRUE(report) << report.error().describe();
  const Json document = to_json(*report);
  EXPECT_EQ(number(document, "/kv_cache/bytes_per_token"), 65'536);
  EXPECT_EQ(number(document, "/kv_cache/bytes_per_sequence"), 65'536'000);
  EXPECT_EQ(document.at_pointer("/kv_cache/dtype"), Json("f8_e4m3"));
  options.kv_cache_dtype = "nonsense";
  const auto refused = inspect(config.path(), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
}

TEST(Report, UnknownArchitectureLeavesTheRestComplete) {
  const auto report = inspect(golden_path("artifacts/cfg_unknown_arch"));
  ASSERT_TRUE(report) << report.error().describe();
  const Json document = to_json(*report);
  for (const char* key :
       {"model", "files", "parameters", "weights", "layers", "kv_cache", "context", "tokenizer", "multimodal",
        "support", "environment", "findings", "verdict", "basis"})
    EXPECT_TRUE(document.contains(key)) << key;
  EXPECT_EQ(document.at_pointer("/model/architecture"), Json("FooBarForCausalLM"));
  EXPECT_TRUE(document["layers"].is_null());
  EXPECT_TRUE(document.at_pointer("/kv_cache/bytes_per_token").is_null());
  EXPECT_EQ(number(document, "/weights/bytes"), 7264);
  EXPECT_EQ(number(document, "/parameters/total"), 3632);
  EXPECT_EQ(verdict_code(report->findings), ErrorCode::kUnsupported);
}

TEST(Report, MeasuresWhatTransformersMeasured) {
  const auto models = testing::present("models", {"llama_bias", "llama_mqa", "llama_plain", "llama_sharded",
                                                  "llama_tied", "qwen2", "qwen3", "mistral"});
  ASSERT_FALSE(models.empty());
  for (const auto& model : models) {
    SCOPED_TRACE(model);
    const auto report = inspect(golden_path("models/" + model));
    ASSERT_TRUE(report) << report.error().describe();
    const auto expected = read_json_file(golden_path("models/" + model + "/expected.json"));
    ASSERT_TRUE(expected);
    const Json document = to_json(*report);
    EXPECT_EQ(document.at_pointer("/parameters/total"), (*expected)["params_total"]);
    EXPECT_EQ(document.at_pointer("/kv_cache/bytes_per_token"), (*expected)["kv"]["bytes_per_token_bf16"]);
    std::int64_t stored = 0;
    for (const auto& [_, row] : (*expected)["stored_by_dtype"].members())
      stored += *row["bytes"].as_integer();
    EXPECT_EQ(number(document, "/weights/bytes"), stored);
  }
}

TEST(Report, WindowsSplitTheLayersAndCapTheCache) {
  Options options;
  options.sequence_tokens = 200;
  const auto report = inspect(golden_path("models/qwen2_sliding/config.json"), options);
  ASSERT_TRUE(report) << report.error().describe();
  const Json document = to_json(*report);
  ASSERT_EQ(document["layers"].size(), 2U);
  EXPECT_EQ(document.at_pointer("/layers/0/kind"), Json("full"));
  EXPECT_EQ(document.at_pointer("/layers/1/kind"), Json("sliding"));
  EXPECT_EQ(number(document, "/layers/1/first"), 1);
  EXPECT_EQ(number(document, "/layers/1/count"), 2);
  EXPECT_EQ(number(document, "/layers/1/window"), 48);
  const std::int64_t per_layer = 2LL * 2 * 16 * 2;  // K and V, 2 heads of 16, 2 bytes
  EXPECT_EQ(number(document, "/kv_cache/bytes_per_token"), 3 * per_layer);
  EXPECT_EQ(number(document, "/kv_cache/growing_bytes_per_token"), per_layer);
  EXPECT_EQ(number(document, "/kv_cache/bytes_per_sequence"), per_layer * (200 + 2 * 48));
}

TEST(Report, StatisticsOfOneTensor) {
  Options options;
  options.tensor = "model.norm.weight";
  options.lists_tensors = true;
  const auto report = inspect(golden_path("artifacts/st_nan_weights"), options);
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_EQ(report->tensor["num_nan"], Json(4));
  EXPECT_EQ(report->tensor["num_inf"], Json(2));
  EXPECT_EQ(report->tensor["dtype"], Json("bf16"));
  EXPECT_EQ(report->tensor["first"].size(), 8U);
  EXPECT_LE(*report->tensor["min"].as_double(), *report->tensor["mean"].as_double());
  EXPECT_EQ(report->tensors.size(), 12U);
  options.tensor = "no.such.tensor";
  const auto refused = inspect(golden_path("artifacts/st_ok"), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
}

TEST(Report, TextOpensWithTheFourDecidingValues) {
  const ConfigFile config(kLlama8b);
  const auto report = inspect(config.path());
  ASSERT_TRUE(report);
  const std::string page = to_text(*report);
  std::size_t at = 0;
  for (const char* value :
       {"Weights", "16.06 GB, 14.96 GiB", "Total context", "131,072 tokens", "KV bytes per token",
        "131,072 (bf16)", "Traffic", "not known; give --workload", "Parameters", "Verdict"}) {
    const std::size_t found = page.find(value, at);
    ASSERT_NE(found, std::string::npos) << value << " after byte " << at << " of\n" << page;
    at = found;
  }
}

TEST(Report, GgufBitsAreThoseOfTheCodes) {
  for (const auto& [file, bits] : {std::pair<const char*, int>{"llama_k256-Q4_0.gguf", 4},
                                   {"llama_k256-Q4_1.gguf", 4},
                                   {"qwen2-Q8_0.gguf", 8}}) {
    SCOPED_TRACE(file);
    const auto report = inspect(golden_path("gguf/" + std::string(file)));
    ASSERT_TRUE(report) << report.error().describe();
    EXPECT_EQ(report->weights.quantization["bits"], Json(bits));
    const std::string page = to_text(*report);
    EXPECT_NE(page.find("gguf q" + std::to_string(bits)), std::string::npos) << page;
    EXPECT_NE(page.find(", " + std::to_string(bits) + " bits"), std::string::npos) << page;
    for (const char* odd : {"0.00 ", "{\"method\"", "1 tensors", "\n\n\n", " null"})
      EXPECT_EQ(page.find(odd), std::string::npos) << odd << " in\n" << page;
  }
}

TEST(Report, StopsWithoutATextArePrintedByTheirId) {
  std::string text = kLlama8b;
  text.insert(1, R"("eos_token_id":2,)");
  const ConfigFile config(text);
  const auto report = inspect(config.path());
  ASSERT_TRUE(report);
  const std::string page = to_text(*report);
  EXPECT_NE(page.find("Stops on              2\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("\n\n\n"), std::string::npos) << page;
}

TEST(Report, WrapperMayLeaveOutDefaults) {
  const ConfigFile config(R"({"architectures":["NobodysForConditionalGeneration"],"model_type":"nobodys",
    "text_config":{"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":32064},
    "vision_config":{"hidden_size":1024,"num_hidden_layers":24},"torch_dtype":"float16"})");
  const auto report = inspect(config.path());
  ASSERT_TRUE(report) << report.error().describe();
  ASSERT_TRUE(report->spec) << report->findings.front().message;
  EXPECT_EQ(report->spec->hidden_size, 4096);
  EXPECT_EQ(report->spec->layers.size(), 32U);
  EXPECT_EQ(to_json(*report).at_pointer("/multimodal/inputs").size(), 2U);
  // The encoder is part of the model, and this config does not tell its parameters.
  EXPECT_FALSE(report->parameters.total);
  EXPECT_FALSE(report->weights.bytes);
  EXPECT_TRUE(std::any_of(report->findings.begin(), report->findings.end(),
                          [](const Finding& finding) { return finding.id == "ENCODER_NOT_COUNTED"; }));
}

}  // namespace
}  // namespace plimsoll::inspect
