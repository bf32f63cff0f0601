// SPDX-License-Identifier: Apache-2.0
// Specs against what transformers built from the same configs: parameter counts, the tensors of the files,
// and the two spellings of one config.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/json.h"
#include "model/model.h"
#include "tests/model/llama_config.h"
#include "tests/testing/golden.h"

namespace plimsoll::model {
namespace {

using testing::golden_path;

const std::vector<std::string> kModels = {
    "llama_bias",    "llama_f16",   "llama_f32",         "llama_headdim32",   "llama_k256",
    "llama_mqa",     "llama_plain", "llama_rope_linear", "llama_rope_llama3", "llama_rope_yarn",
    "llama_sharded", "llama_tied",  "llama_v5config",    "mistral",           "qwen2",
    "qwen2_sliding", "qwen3",
};

std::vector<std::string> models_here() {
  auto models = testing::present("models", kModels);
  EXPECT_FALSE(models.empty());
  return models;
}

Result<ModelSpec> spec_of(const std::string& path) {
  PLIMSOLL_TRY(const auto artifact, artifact::open(path));
  return read_spec(*artifact);
}

TEST(ReadSpec, CountsTheParametersThatTransformersBuilt) {
  for (const auto& model : models_here()) {
    SCOPED_TRACE(model);
    const auto spec = spec_of(golden_path("models/" + model));
    ASSERT_TRUE(spec) << spec.error().describe();
    const auto expected = read_json_file(golden_path("models/" + model + "/expected.json"));
    ASSERT_TRUE(expected);
    EXPECT_EQ(count_parameters(*spec), (*expected)["params_total"].as_integer());
    EXPECT_EQ(spec->name, model);
  }
}

TEST(ReadSpec, BothConfigSpellingsGiveOneSpec) {
  for (const auto& model : models_here()) {
    SCOPED_TRACE(model);
    const auto old_style = spec_of(golden_path("models/" + model + "/config.json"));
    const auto new_style = spec_of(golden_path("models/" + model + "/config.transformers5.json"));
    ASSERT_TRUE(old_style) << old_style.error().describe();
    ASSERT_TRUE(new_style) << new_style.error().describe();
    EXPECT_EQ(*old_style, *new_style);
  }
}

// The names and shapes that the spec calls for are those of the file, none more, none less.
void expect_same_tensors(const ModelSpec& spec, const artifact::Artifact& artifact, bool is_gguf) {
  std::set<std::string, std::less<>> expected;
  for (const Weight& weight : spec.weights) {
    const std::string& name = is_gguf ? weight.gguf_name : weight.hf_name;
    const artifact::Tensor* tensor = artifact.find(name);
    if (!tensor && weight.is_optional) continue;
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->shape, weight.shape) << name;
    expected.insert(name);
  }
  for (const auto& tensor : artifact.tensors()) EXPECT_TRUE(expected.contains(tensor.name)) << tensor.name;
  EXPECT_EQ(artifact.tensors().size(), expected.size());
}

TEST(ExpectedWeights, AreTheTensorsOfTheFolder) {
  int compared = 0;
  for (const auto& model : models_here()) {
    SCOPED_TRACE(model);
    const auto artifact = artifact::open(golden_path("models/" + model));
    ASSERT_TRUE(artifact) << artifact.error().describe();
    if ((*artifact)->tensors().empty()) continue;  // the copies in data/ hold the weights of a few only
    EXPECT_FALSE(artifact::first_error((*artifact)->findings()));
    const auto spec = read_spec(**artifact);
    ASSERT_TRUE(spec) << spec.error().describe();
    expect_same_tensors(*spec, **artifact, false);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(ExpectedWeights, AreTheTensorsOfTheGguf) {
  const auto files = testing::present(
      "gguf", {"llama_plain-bf16.gguf", "llama_plain-f16.gguf", "llama_rope_llama3-bf16.gguf",
               "llama_k256-Q4_K_M.gguf", "llama_k256-IQ4_XS.gguf", "llama_k256-Q8_0.gguf", "qwen2-f16.gguf",
               "qwen2-Q8_0.gguf", "qwen3-bf16.gguf", "qwen3-Q4_0.gguf"});
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    SCOPED_TRACE(file);
    const auto artifact = artifact::open(golden_path("gguf/" + file));
    ASSERT_TRUE(artifact) << artifact.error().describe();
    EXPECT_TRUE((*artifact)->findings().empty()) << (*artifact)->findings().front().message;
    const auto spec = read_spec(**artifact);
    ASSERT_TRUE(spec) << spec.error().describe();
    expect_same_tensors(*spec, **artifact, true);
    EXPECT_EQ(spec->rope.interleaved, file.starts_with("llama"));
    EXPECT_EQ(spec->rope.kind, RopeKind::kDefault);
  }
}

// A GGUF and the folder it was converted from describe one model.
TEST(ReadSpec, GgufAgreesWithItsFolder) {
  for (const auto& [file, model] :
       {std::pair("llama_plain-bf16.gguf", "llama_plain"), std::pair("qwen3-bf16.gguf", "qwen3"),
        std::pair("qwen2-f16.gguf", "qwen2")}) {
    if (testing::present("gguf", {file}).empty()) continue;
    auto gguf = spec_of(golden_path(std::string("gguf/") + file));
    const auto folder = spec_of(golden_path(std::string("models/") + model));
    ASSERT_TRUE(gguf && folder) << file;
    EXPECT_NEAR(gguf->norm_eps, folder->norm_eps, 1e-12);  // GGUF stores it as a 32-bit float
    gguf->norm_eps = folder->norm_eps;
    gguf->rope.interleaved = false;
    gguf->name = folder->name;
    gguf->declared_dtype = folder->declared_dtype;
    EXPECT_EQ(*gguf, *folder) << file;
  }
}

TEST(ReadSpec, CountsPublishedModels) {
  EXPECT_EQ(count_parameters(*read_spec(llama_config(), "config.json")), 8'030'261'248);
  const auto large = read_spec(llama_config({{"hidden_size", 8192},
                                             {"intermediate_size", 28672},
                                             {"num_hidden_layers", 80},
                                             {"num_attention_heads", 64}}),
                               "config.json");
  ASSERT_TRUE(large);
  EXPECT_EQ(count_parameters(*large), 70'553'706'496);
}

TEST(ReadSpec, ReadsLlama3Rope) {
  const auto spec = read_spec(llama_config(), "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->rope.kind, RopeKind::kLlama3);
  EXPECT_EQ(spec->rope.factor, 8.0);
  EXPECT_EQ(spec->rope.rotary_dim, 128);
  EXPECT_EQ(spec->native_context_tokens, 8192);
  EXPECT_EQ(spec->extended_context_tokens, 131'072);
  EXPECT_EQ(spec->declared_dtype, DType::kBF16);
}

TEST(ReadSpec, NullHeadDimAndAbsentKvHeadsFallBack) {
  auto spec =
      read_spec(llama_config({{"head_dim", nullptr}, {"num_key_value_heads", nullptr}}), "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto& attention = std::get<Attention>(spec->layers[0].mixer);
  EXPECT_EQ(attention.head_dim, 128);
  EXPECT_EQ(attention.kv_heads, 32);
}

TEST(ReadSpec, RefusesWithThePointer) {
  struct Case {
    const char* key;
    Json value;
    ErrorCode code;
    const char* where;
  };
  const std::vector<Case> cases = {
      {"hidden_size", "4096", ErrorCode::kMalformed, "config.json: /hidden_size"},
      {"hidden_size", nullptr, ErrorCode::kMalformed, "config.json: /hidden_size"},
      {"hidden_size", -1, ErrorCode::kMalformed, "config.json: /hidden_size"},
      {"hidden_size", 4096.5, ErrorCode::kMalformed, "config.json: /hidden_size"},
      {"num_hidden_layers", 1'000'000'000'000'000'000, ErrorCode::kMalformed,
       "config.json: /num_hidden_layers"},
      {"num_hidden_layers", 1e30, ErrorCode::kMalformed, "config.json: /num_hidden_layers"},
      {"num_key_value_heads", 3, ErrorCode::kMalformed, "config.json: /num_key_value_heads"},
      {"num_attention_heads", 24, ErrorCode::kMalformed, "config.json: /num_attention_heads"},
      {"rope_scaling", Json::object({{"rope_type", "spiral"}}), ErrorCode::kUnsupported,
       "config.json: /rope_scaling/rope_type"},
      {"rope_scaling", Json::object({{"type", "linear"}, {"factor", -2.0}}), ErrorCode::kMalformed,
       "config.json: /rope_scaling/factor"},
      {"architectures", Json(Json::Array{"FooBarForCausalLM"}), ErrorCode::kUnsupported,
       "config.json: /architectures"},
  };
  for (const auto& test : cases) {
    const auto spec = read_spec(llama_config({{test.key, test.value}}), "config.json");
    ASSERT_FALSE(spec) << test.where;
    EXPECT_EQ(spec.error().code, test.code) << test.where;
    EXPECT_EQ(spec.error().where, test.where);
  }
}

TEST(ReadSpec, AnUnknownActivationIsNoneThatAnEngineKnows) {
  const auto spec = read_spec(llama_config({{"hidden_act", "snake"}}), "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->layers.front().ffn.activation, Activation::kOther);
}

TEST(ReadSpec, RopeOfEachLayerTypeGivesTheFullLayersContext) {
  const Json scaled = Json::object({{"rope_type", "yarn"},
                                    {"factor", 4.0},
                                    {"rope_theta", 1e6},
                                    {"original_max_position_embeddings", 32'768}});
  const auto spec = read_spec(
      llama_config({{"rope_scaling", nullptr},
                    {"rope_parameters",
                     Json::object({{"full_attention", scaled},
                                   {"sliding_attention", Json::object({{"rope_type", "default"}})}})}}),
      "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->rope.kind, RopeKind::kYarn);
  EXPECT_EQ(spec->extended_context_tokens, 131'072);
  EXPECT_EQ(spec->traits, std::vector{Trait::kOwnRope});
}

// Figures that a config leaves to its class, or writes as null, are told.
TEST(ReadSpec, SaysWhichFiguresItsClassGave) {
  Json config = llama_config({{"architectures", Json(Json::Array{"MixtralForCausalLM"})},
                              {"model_type", "mixtral"},
                              {"vocab_size", nullptr}});
  auto spec = read_spec(config, "c");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->assumed, (std::vector<AssumedFigure>{{"vocab_size", 32'000, true}}));
  EXPECT_TRUE(read_spec(llama_config(), "c")->assumed.empty());
  const auto bare = parse_json(R"({"architectures":["GPT2LMHeadModel"],"n_layer":2,"vocab_size":9})", "c");
  spec = read_spec(*bare, "c");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->assumed,
            (std::vector<AssumedFigure>{{"hidden_size", 768, false}, {"num_attention_heads", 12, false}}));
}

// Only figures that are counted: these classes have keys of their own for the rest, or no such thing.
TEST(ReadSpec, SaysNothingOfFiguresThatItDoesNotCount) {
  for (const char* text : {
           R"({"architectures":["T5ForConditionalGeneration"],"d_ff":2048,"d_kv":64,"d_model":512,
               "num_heads":8,"num_layers":6,"vocab_size":32128})",
           R"({"architectures":["BartForConditionalGeneration"],"d_model":64,"decoder_attention_heads":4,
               "decoder_ffn_dim":128,"decoder_layers":2,"encoder_attention_heads":4,"encoder_ffn_dim":128,
               "encoder_layers":2,"vocab_size":99})",
           R"({"architectures":["MambaForCausalLM"],"hidden_size":64,"num_hidden_layers":2,"state_size":16,
               "vocab_size":99})",
           R"({"architectures":["NemotronHForCausalLM"],"model_type":"nemotron_h","hidden_size":64,
               "layers_block_type":["mamba","attention"],"intermediate_size":128,"num_attention_heads":4,
               "num_key_value_heads":2,"head_dim":16,"vocab_size":99})",
           R"({"architectures":["DeciLMForCausalLM"],"model_type":"nemotron-nas","hidden_size":256,
               "intermediate_size":null,"num_attention_heads":4,"num_hidden_layers":1,"vocab_size":99,
               "block_configs":[{"attention":{"n_heads_in_group":2},"ffn":{"ffn_mult":1.0}}]})",
       }) {
    const auto spec = read_spec(*parse_json(text, "c"), "c");
    ASSERT_TRUE(spec) << spec.error().describe();
    for (const AssumedFigure& figure : spec->assumed)
      ADD_FAILURE() << spec->architecture << ": " << figure.key << " " << figure.value;
  }
  const auto spec = read_spec(*parse_json(R"({"architectures":["T5ForConditionalGeneration"],"d_kv":64,
      "d_model":512,"num_heads":8,"num_layers":6,"vocab_size":32128})",
                                          "c"),
                              "c");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->assumed, (std::vector<AssumedFigure>{{"d_ff", 2048, false}}));
}

// What a class assumes where its key is absent, and what a null means. Source: the classes of
// transformers 5.24.
TEST(ReadSpec, ClassesAssumeTheirOwnFigures) {
  const auto read = [](const char* text) {
    const auto spec = read_spec(*parse_json(text, "c"), "c");
    EXPECT_TRUE(spec) << spec.error().describe();
    return *spec;
  };
  const auto inner = [](const ModelSpec& spec) { return spec.layers.front().ffn.intermediate_size; };
  const auto heads = [](const ModelSpec& spec) { return std::get<Attention>(spec.layers.front().mixer); };
  EXPECT_EQ(inner(read(R"({"architectures":["PhiForCausalLM"],"hidden_size":64,"num_attention_heads":2})")),
            8192);
  EXPECT_EQ(
      inner(read(R"({"architectures":["GPTNeoXForCausalLM"],"hidden_size":64,"num_attention_heads":2})")),
      24'576);
  EXPECT_EQ(
      inner(read(R"({"architectures":["PersimmonForCausalLM"],"hidden_size":64,"num_attention_heads":2})")),
      16'384);
  EXPECT_EQ(heads(read(R"({"architectures":["Qwen2MoeForCausalLM"],"num_attention_heads":16})")).kv_heads,
            16);
  EXPECT_EQ(heads(read(R"({"architectures":["Llama4ForCausalLM"],"hidden_size":64,"num_attention_heads":8})"))
                .head_dim,
            128);
  EXPECT_EQ(heads(read(R"({"architectures":["SeedOssForCausalLM"],"hidden_size":64,"num_attention_heads":8,
      "head_dim":null})"))
                .head_dim,
            8);
  EXPECT_EQ(heads(read(R"({"architectures":["FalconForCausalLM"],"multi_query":null})")).kv_heads, 71);
  for (const char* text : {R"({"architectures":["DeepseekV3ForCausalLM"],"num_hidden_layers":5})",
                           R"({"architectures":["DeepseekV32ForCausalLM"],"num_hidden_layers":5})"}) {
    const ModelSpec deepseek = read(text);
    EXPECT_EQ(deepseek.layers[2].ffn.kind, FfnKind::kDense);
    EXPECT_EQ(deepseek.layers[3].ffn.kind, FfnKind::kMoe);
  }
  EXPECT_EQ(heads(read(R"({"architectures":["Jais2ForCausalLM"],"num_attention_heads":52})")).head_dim, 64);
  EXPECT_EQ(heads(read(R"({"architectures":["DiffLlamaForCausalLM"],"num_attention_heads":64})")).kv_heads,
            64);
}

// Keys that a class reads, and keys that it passes over: parameters as transformers 5.24 counts them.
TEST(ReadSpec, KeysBesideTheUsualFigures) {
  const auto parameters = [](const std::string& text) {
    const auto spec = read_spec(*parse_json("{" + text + ",\"num_hidden_layers\":4}", "c"), "c");
    EXPECT_TRUE(spec) << spec.error().describe();
    return count_parameters(*spec);
  };
  const auto cohere2 = [&](const char* more) {
    return parameters(std::string(R"("architectures":["Cohere2ForCausalLM"])") + more);
  };
  EXPECT_EQ(cohere2(""), 5'385'527'296);
  EXPECT_EQ(cohere2(R"(,"head_dim":256)"), 6'459'269'120);
  EXPECT_EQ(parameters(R"("architectures":["GPTNeoXForCausalLM"],"head_dim":40,"num_key_value_heads":2)"),
            2'431'979'520);
  EXPECT_EQ(parameters(R"("architectures":["OPTForCausalLM"],"head_dim":40,"num_key_value_heads":2)"),
            68'536'320);
  EXPECT_EQ(parameters(R"("architectures":["StableLmForCausalLM"],"head_dim":40)"), 574'796'800);
  EXPECT_EQ(parameters(R"("architectures":["MambaForCausalLM"],"intermediate_size":3072)"), 68'785'920);
  EXPECT_EQ(parameters(R"("architectures":["LagunaForCausalLM"],"gating":false)"), 3'056'094'976);
  EXPECT_EQ(parameters(R"("architectures":["BailingHybridForCausalLM"],"linear_conv_kernel_dim":8)"),
            7'205'788'800);
  EXPECT_EQ(parameters(R"("architectures":["MiniCPM3ForCausalLM"],"hidden_size":5120)"), 915'465'216);
  EXPECT_EQ(parameters(R"("architectures":["Lfm3ForCausalLM"])"), 511'815'936);
}

TEST(ReadSpec, RatiosOfTheWrongTypeAreRefused) {
  Json ratios = Json(Json::Array{"x", 4, 128});
  const auto spec = read_spec(Json::object({{"architectures", Json(Json::Array{"DeepseekV4ForCausalLM"})},
                                            {"num_hidden_layers", 3},
                                            {"compress_ratios", ratios}}),
                              "c");
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(spec.error().where, "c: /compress_ratios");
}

TEST(ReadSpec, WindowsOfMistralAndQwen2) {
  Json mistral = llama_config({{"architectures", Json(Json::Array{"MistralForCausalLM"})}});
  const auto window = [](const Result<ModelSpec>& spec, std::size_t layer) {
    return std::get<Attention>(spec->layers.at(layer).mixer).window_tokens;
  };
  EXPECT_EQ(window(read_spec(mistral, "c"), 0), 4096);  // transformers' default where the config is silent
  mistral.set("sliding_window", nullptr);
  EXPECT_EQ(window(read_spec(mistral, "c"), 0), std::nullopt);
  mistral.set("sliding_window", 64);
  EXPECT_EQ(window(read_spec(mistral, "c"), 31), 64);

  Json qwen2 = llama_config({{"architectures", Json(Json::Array{"Qwen2ForCausalLM"})},
                             {"sliding_window", 48},
                             {"max_window_layers", 30}});
  EXPECT_EQ(window(read_spec(qwen2, "c"), 31), std::nullopt);  // use_sliding_window is off by default
  qwen2.set("use_sliding_window", true);
  EXPECT_EQ(window(read_spec(qwen2, "c"), 29), std::nullopt);
  EXPECT_EQ(window(read_spec(qwen2, "c"), 30), 48);
}

// A cache's folder is named by the commit, which nobody knows a model by.
TEST(ReadSpec, ASnapshotIsNamedByItsRepository) {
  namespace fs = std::filesystem;
  std::string above = (fs::temp_directory_path() / "plimsoll_spec_XXXXXX").string();
  ASSERT_NE(::mkdtemp(above.data()), nullptr);
  const fs::path folder = fs::path(above) / "models--org--some-name" / "snapshots" / std::string(40, 'a');
  fs::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
      "num_attention_heads":4,"intermediate_size":128,"vocab_size":320})";
  std::ofstream(folder / "README.md") << "a card";
  const auto spec = spec_of(folder.string());
  fs::remove_all(above);
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->name, "org/some-name");
}

}  // namespace
}  // namespace plimsoll::model
