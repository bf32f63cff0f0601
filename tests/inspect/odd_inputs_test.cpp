// SPDX-License-Identifier: Apache-2.0
// Inputs at the edge of what is meant: weights without tensors, a tokenizer alone, numbers at the ends of
// their types, and patterns by the thousand.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "inspect/inspect.h"
#include "tests/inspect/header_folder.h"
#include "tests/inspect/model_folder.h"
#include "tests/testing/made_files.h"

namespace plimsoll::inspect {
namespace {

TEST(OddInputs, WeightsWithoutTensorsAreNoWeights) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("model.safetensors", testing::safetensors_file("{}"));
  const Report report = folder.inspected();
  ASSERT_NE(finding_of(report, "WEIGHTS_EMPTY"), nullptr);
  const Json weights = to_json(report)["weights"];
  EXPECT_EQ(weights["bytes"], Json(0));
  EXPECT_EQ(weights["num_tensors"], Json(0));
  EXPECT_EQ(weights["num_files"], Json(1));
  EXPECT_EQ(weights["file_bytes"], Json(10));
}

std::vector<HeaderTensor> llama_layers(int count, const std::string& before = "") {
  std::vector<HeaderTensor> tensors{{before + "model.embed_tokens.weight", "BF16", {320, 64}},
                                    {before + "model.norm.weight", "BF16", {64}},
                                    {before + "lm_head.weight", "BF16", {320, 64}}};
  for (int i = 0; i < count; ++i) {
    const std::string at = before + "model.layers." + std::to_string(i) + ".";
    for (const char* name : {"input_layernorm", "post_attention_layernorm"})
      tensors.push_back({at + name + ".weight", "BF16", {64}});
    for (const char* name : {"q_proj", "o_proj"})
      tensors.push_back({at + "self_attn." + name + ".weight", "BF16", {64, 64}});
    for (const char* name : {"k_proj", "v_proj"})
      tensors.push_back({at + "self_attn." + name + ".weight", "BF16", {16, 64}});
    for (const char* name : {"gate_proj", "up_proj"})
      tensors.push_back({at + "mlp." + name + ".weight", "BF16", {128, 64}});
    tensors.push_back({at + "mlp.down_proj.weight", "BF16", {64, 128}});
  }
  return tensors;
}

TEST(OddInputs, LayersBehindTheConfigsLast) {
  const auto reported = [](const std::vector<HeaderTensor>& tensors) {
    const HeaderFolder folder(*parse_json(kSmallLlama, ""), tensors);
    return inspect(folder.path(), {}).value_or(Report{});
  };
  EXPECT_EQ(finding_of(reported(llama_layers(4)), "CFG_LAYERS_MISMATCH"), nullptr);
  const Report more = reported(llama_layers(6));
  ASSERT_NE(finding_of(more, "CFG_LAYERS_MISMATCH"), nullptr);
  EXPECT_NE(finding_of(more, "CFG_LAYERS_MISMATCH")->message.find("4, 5"), std::string::npos);
  EXPECT_EQ(finding_of(more, "ST_UNEXPECTED_TENSOR"), nullptr);
  // A layer that predicts further tokens is none of the decoder's.
  std::vector<HeaderTensor> predicting = llama_layers(5);
  predicting.push_back({"model.layers.4.eh_proj.weight", "BF16", {64, 128}});
  EXPECT_EQ(finding_of(reported(predicting), "CFG_LAYERS_MISMATCH"), nullptr);
}

// A config that differs from the small llama's in one key.
Report with_key(const std::string& key) {
  std::string text(kSmallLlama);
  text.pop_back();
  ModelFolder folder;
  return folder.write("config.json", text + "," + key + "}").inspected();
}

TEST(OddInputs, TypesAndWordsOfAConfig) {
  for (const char* key : {R"("rms_norm_eps":"1e-5")", R"("rope_theta":"10000.0")",
                          R"("rope_scaling":{"rope_type":"linear","factor":"2"})",
                          R"("rope_scaling":{"rope_type":5,"factor":2})", R"("tie_word_embeddings":"no")"}) {
    const Report report = with_key(key);
    EXPECT_NE(finding_of(report, "CFG_TYPE"), nullptr) << key;
    EXPECT_EQ(finding_of(report, "CFG_VALUE"), nullptr) << key;
  }
  EXPECT_NE(finding_of(with_key(R"("rms_norm_eps":-1)"), "CFG_VALUE"), nullptr);
  EXPECT_NE(finding_of(with_key(R"("torch_dtype":"float7")"), "CFG_DTYPE_UNKNOWN"), nullptr);
  EXPECT_EQ(finding_of(with_key(R"("torch_dtype":"torch.float16")"), "CFG_DTYPE_UNKNOWN"), nullptr);
  EXPECT_NE(finding_of(with_key(R"("hidden_act":"foo")"), "CFG_ACTIVATION"), nullptr);
  EXPECT_EQ(finding_of(with_key(R"("hidden_act":"silu")"), "CFG_ACTIVATION"), nullptr);
  EXPECT_NE(finding_of(with_key(R"("rope_scaling":{"rope_type":"yarn"})"), "CFG_ROPE_FACTOR"), nullptr);
  EXPECT_NE(finding_of(with_key(R"("custom_pipelines":{"t":{"impl":"own.Pipeline"}})"), "REMOTE_CODE"),
            nullptr);
}

TEST(OddInputs, SidecarsThatContradictThemselves) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("generation_config.json", R"({"eos_token_id":"1"})");
  folder.write("tokenizer_config.json", R"({"eos_token":"a","eos_token":"b"})");
  const Report report = folder.inspected();
  EXPECT_NE(finding_of(report, "CFG_TYPE"), nullptr);
  ASSERT_NE(finding_of(report, "CFG_DUP_KEY"), nullptr);
  EXPECT_EQ(finding_of(report, "CFG_DUP_KEY")->where, "tokenizer_config.json: /eos_token");
  folder.write("model.safetensors.index.json", R"({"weight_map":{}})");
  EXPECT_FALSE(inspect(folder.path() + "/model.safetensors.index.json", {}));
}

TEST(OddInputs, TemplatesThatNameInternals) {
  for (const char* text : {"{{ ''|attr('__class__') }}", "{{ x.__class__ }}",
                           "{{ raise_exception.__globals__ }}", "{{ '{0.__class__}'.format(1) }}"}) {
    ModelFolder folder;
    folder.write("config.json", kSmallLlama).write("chat_template.jinja", text);
    EXPECT_NE(finding_of(folder.inspected(), "TMPL_UNSAFE"), nullptr) << text;
  }
  // Text and comments are not evaluated.
  for (const char* text :
       {"{# see __init__ #}{{ x }}", "edit __init__.py, { __class__ }", "{{ x }} __dict__ {"}) {
    ModelFolder folder;
    folder.write("config.json", kSmallLlama).write("chat_template.jinja", text);
    EXPECT_EQ(finding_of(folder.inspected(), "TMPL_UNSAFE"), nullptr) << text;
  }
}

TEST(OddInputs, ATokenizerAlone) {
  ModelFolder folder;
  folder.write("tokenizer.json",
               R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"added_tokens":[]})");
  const auto report = inspect(folder.path() + "/tokenizer.json", {});
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_NE(finding_of(*report, "TOKENIZER_ALONE"), nullptr);
  EXPECT_FALSE(verdict_code(report->findings)) << dump(to_json(*report)["findings"]);
  EXPECT_EQ(to_json(*report)["verdict"], Json("ok"));
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

Json statistics_of(const char* dtype, std::int64_t count, const std::string& values) {
  const HeaderFolder folder(*parse_json(kSmallLlama, ""), {{"t", dtype, {count}, values}});
  Options options;
  options.tensor = "t";
  const auto report = inspect(folder.path(), options);
  EXPECT_TRUE(report) << report.error().describe();
  return report ? report->tensor : Json();
}

TEST(OddInputs, IntegersOf64BitsAreExact) {
  constexpr std::int64_t kBase = std::int64_t{1} << 62;  // doubles are 1,024 apart there
  const Json found = statistics_of("I64", 3, bytes_of<std::int64_t>({kBase + 2, kBase + 1, kBase + 3}));
  EXPECT_EQ(found["min"], Json(kBase + 1));
  EXPECT_EQ(found["max"], Json(kBase + 3));
  EXPECT_EQ(found["first"], Json(Json::Array{kBase + 2, kBase + 1, kBase + 3}));
  const Json small = statistics_of("I8", 3, bytes_of<std::int8_t>({-128, 0, 127}));
  EXPECT_EQ(small["min"], Json(-128));
  EXPECT_EQ(small["max"], Json(127));
}

TEST(OddInputs, MeanAndDeviationAtTheEndsOfDouble) {
  const Json found = statistics_of("F64", 2, bytes_of<double>({1.7e308, -1.7e308}));
  EXPECT_DOUBLE_EQ(found["mean"].as_double().value_or(1), 0);
  EXPECT_DOUBLE_EQ(found["std"].as_double().value_or(0), 1.7e308);
}

TEST(OddInputs, ASequenceTooLongForItsBytesIsTold) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  Options options;
  options.sequence_tokens = INT64_MAX;
  const Report report = folder.inspected(options);
  EXPECT_TRUE(to_json(report).at_pointer("/kv_cache/bytes_per_sequence").is_null());
  EXPECT_NE(finding_of(report, "KV_SEQUENCE_SIZE"), nullptr);
}

// Modules times patterns is what a hostile config makes large; a real one has some dozens of patterns.
TEST(OddInputs, PatternsTimesModulesAreBounded) {
  const auto report_with = [](int num_patterns) {
    Json::Array ignore;
    for (int i = 0; i < num_patterns; ++i) ignore.push_back("re:.*lm_head" + std::to_string(i) + ".*");
    Json config = *parse_json(kSmallLlama, "");
    config.set("quantization_config", Json::object({{"quant_method", "compressed-tensors"},
                                                    {"format", "float-quantized"},
                                                    {"ignore", Json(std::move(ignore))}}));
    std::vector<HeaderTensor> tensors;
    for (int i = 0; i < 600; ++i) {
      const std::string module = "model.layers." + std::to_string(i) + ".mlp.up_proj.";
      tensors.push_back({module + "weight", "F8_E4M3", {4, 4}});
      tensors.push_back({module + "weight_scale", "BF16", {4, 1}});
    }
    const HeaderFolder folder(config, tensors);
    auto report = inspect(folder.path());
    EXPECT_TRUE(report);
    return report ? std::move(*report) : Report{};
  };
  EXPECT_EQ(finding_of(report_with(40), "QUANT_MODULES_MANY"), nullptr);
  EXPECT_NE(finding_of(report_with(1000), "QUANT_MODULES_MANY"), nullptr);
}

}  // namespace
}  // namespace plimsoll::inspect
