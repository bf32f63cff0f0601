// SPDX-License-Identifier: Apache-2.0
// What a quantization's declaration tells without weight files: bytes, why they are not known, figures that
// cannot be, the type of keys and values.
#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

Report declaring(const std::string& quantization, const Options& options = {}) {
  ModelFolder folder;
  std::string text(kSmallLlama);
  text.pop_back();
  folder.write("config.json", text + ",\"quantization_config\":" + quantization + "}");
  return folder.inspected(options);
}

TEST(Declarations, FiguresThatCannotBe) {
  for (const char* quantization : {
           R"({"quant_method":"awq","bits":4,"group_size":0})",
           R"({"quant_method":"awq","bits":4,"group_size":-5})",
           R"({"quant_method":"awq","bits":4,"group_size":1000000000000000000})",
           R"({"quant_method":"gptq","bits":64,"group_size":128})",
           R"({"quant_method":"gptq","bits":"4","group_size":128})",
           R"({"quant_method":"fp8","weight_block_size":[0,0]})",
           R"({"quant_method":"fp8","weight_block_size":[-1,-1]})",
           R"({"quant_method":"fp8","weight_block_size":[128,128,1]})",
           R"({"config_groups":{"g":{"weights":{"num_bits":4,"type":"int","group_size":0}}}})",
           R"("awq")",
           R"([4])",
       }) {
    const Report report = declaring(quantization);
    const auto* finding = finding_of(report, "QUANT_VALUE");
    ASSERT_NE(finding, nullptr) << quantization;
    EXPECT_EQ(finding->level, FindingLevel::kError);
    EXPECT_EQ(report.weights.bytes, std::nullopt) << quantization;
  }
  for (const char* quantization : {R"({"quant_method":"awq","bits":4,"group_size":-1})",
                                   R"({"quant_method":"awq","bits":4,"group_size":128})",
                                   R"({"quant_method":"fp8","weight_block_size":[128,128]})", "null", "{}"}) {
    const Report report = declaring(quantization);
    EXPECT_EQ(finding_of(report, "QUANT_VALUE"), nullptr) << quantization;
    EXPECT_NE(report.weights.bytes, std::nullopt) << quantization;
  }
}

TEST(Declarations, WhyBytesAreNotKnown) {
  for (const char* quantization : {R"({"quant_method":"aqlm"})", R"({"quant_method":"nobodys"})",
                                   R"({"quant_method":"torchao","quant_type":"int4_weight_only"})"}) {
    const Report report = declaring(quantization);
    EXPECT_EQ(report.weights.bytes, std::nullopt) << quantization;
    EXPECT_NE(finding_of(report, "QUANT_UNCOUNTED"), nullptr) << quantization;
  }
  EXPECT_EQ(finding_of(declaring(R"({"quant_method":"awq","bits":4,"group_size":128})"), "QUANT_UNCOUNTED"),
            nullptr);
}

// gpt2 and its age: no dtype is named, and the files have 32 bits.
TEST(Declarations, ADtypeThatNobodyNames) {
  for (const char* dtype : {"", R"(,"torch_dtype":"auto")", R"(,"dtype":null)"}) {
    std::string text(kSmallLlama);
    text = text.substr(0, text.find(R"(,"torch_dtype")")) + dtype + "}";
    ModelFolder folder;
    folder.write("config.json", text);
    const Report report = folder.inspected();
    ASSERT_TRUE(report.weights.bytes.has_value()) << dtype;
    const Json document = to_json(report);
    const Json& basis = document["basis"]["/weights/bytes"];
    EXPECT_EQ(basis["kind"], Json("assumed")) << dtype;
    EXPECT_EQ(basis["low"], Json(*report.parameters.total * 2));
    EXPECT_EQ(basis["high"], Json(*report.parameters.total * 4));
    const auto* finding = finding_of(report, "DTYPE_ASSUMED");
    ASSERT_NE(finding, nullptr) << dtype;
    EXPECT_EQ(finding->level, FindingLevel::kInfo);
  }
  const Report stated = declaring("null");
  EXPECT_EQ(finding_of(stated, "DTYPE_ASSUMED"), nullptr);
  EXPECT_EQ(to_json(stated)["basis"]["/weights/bytes"]["kind"], Json("formula"));
}

TEST(Declarations, WhereNumbersAreNotExactTheBasisSaysSo) {
  const Json basis = to_json(declaring("null"))["basis"];
  EXPECT_TRUE(basis.contains("/weights/bytes"));
  EXPECT_TRUE(basis.contains("/parameters/hub_total"));
}

// vLLM 0.33.0: attention.py for compressed-tensors, torch_utils.py for modelopt.
TEST(Declarations, TheTypeOfKeysAndValues) {
  const std::string scheme = R"("kv_cache_scheme":{"num_bits":8,"type":"float","dynamic":false})";
  const std::string groups =
      R"("config_groups":{"g":{"targets":["Linear"],"weights":{"num_bits":8,"type":"float"}}},)";
  const Report honoured = declaring(R"({"quant_method":"compressed-tensors",)" + groups + scheme + "}");
  // `auto` counts 16 bits whatever the engine's version; the finding tells what engines do.
  EXPECT_EQ(honoured.kv_cache->dtype, DType::kBF16);
  ASSERT_NE(finding_of(honoured, "KV_CACHE_DECLARED"), nullptr);
  EXPECT_NE(finding_of(honoured, "KV_CACHE_DECLARED")->message.find("takes for auto: 128 bytes per token"),
            std::string::npos);
  EXPECT_NE(finding_of(honoured, "KV_CACHE_DECLARED")->message.find("256 are counted"), std::string::npos);
  Options options;
  options.kv_cache_dtype = "fp8";
  const Report asked = declaring(R"({"quant_method":"compressed-tensors",)" + groups + scheme + "}", options);
  EXPECT_EQ(asked.kv_cache->dtype, DType::kF8E4M3);
  EXPECT_EQ(asked.kv_cache->bytes_per_token, Bytes(4 * 2 * 2 * 8));
  EXPECT_EQ(finding_of(asked, "KV_CACHE_DECLARED"), nullptr);  // the flag decides, and is counted
  // Other methods' words are not taken.
  const Report other = declaring(R"({"quant_method":"fp8",)" + scheme + "}");
  EXPECT_EQ(other.kv_cache->dtype, DType::kBF16);
  EXPECT_NE(finding_of(other, "KV_CACHE_DECLARED"), nullptr);
  for (const char* name : {"fp8", "fp8_inc", "fp8_ds_mla"}) {
    options.kv_cache_dtype = name;
    EXPECT_EQ(declaring("null", options).kv_cache->dtype, DType::kF8E4M3) << name;
  }
}

// The published checkpoint has 864.7e9 bytes: routed experts in four bits with a scale for 32 of them.
TEST(Declarations, ExpertsOfFourBitsBesideAnFp8Declaration) {
  const auto report = inspect("deepseek-ai/DeepSeek-V4-Pro");
  ASSERT_TRUE(report) << report.error().describe();
  ASSERT_TRUE(report->weights.bytes.has_value());
  EXPECT_NEAR(static_cast<double>(report->weights.bytes->value), 864.7e9, 4e9);
}

TEST(Declarations, EetqLeavesTheHead) {
  const std::int64_t whole = declaring(R"({"quant_method":"eetq"})").weights.bytes.value_or(Bytes(0)).value;
  const std::int64_t without = declaring(R"({"quant_method":"eetq","modules_to_not_convert":["lm_head"]})")
                                   .weights.bytes.value_or(Bytes(1))
                                   .value;
  EXPECT_EQ(whole, without);
}

// A value of another type is passed over by readers, so that it has to be told.
TEST(Declarations, ValuesOfAnotherType) {
  for (const char* value :
       {R"("max_position_embeddings":"8")", R"("max_position_embeddings":true)", R"("layer_types":"x")",
        R"("rope_scaling":[1])", R"("rope_parameters":5)", R"("eos_token_id":"x")", R"("eos_token_id":1.5)",
        R"("sliding_window":"x")", R"("torch_dtype":7)", R"("architectures":0)"}) {
    ModelFolder folder;
    std::string text(kSmallLlama);
    text.pop_back();
    folder.write("config.json", text + "," + value + "}");
    EXPECT_NE(finding_of(folder.inspected(), "CFG_TYPE"), nullptr) << value;
  }
  ModelFolder sound;
  sound.write("config.json", kSmallLlama);
  EXPECT_EQ(finding_of(sound.inspected(), "CFG_TYPE"), nullptr);
}

// Engines read the file beside the config only where the config declares no quantization.
TEST(Declarations, OfTheCacheBesideTheConfig) {
  const auto tells_cache = [](const std::string& config_member) {
    ModelFolder folder;
    std::string config(kSmallLlama);
    config.pop_back();
    folder.write("config.json", config + config_member + "}")
        .write("hf_quant_config.json",
               R"({"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8"}})");
    return finding_of(folder.inspected(), "KV_CACHE_DECLARED") != nullptr;
  };
  EXPECT_TRUE(tells_cache(""));
  EXPECT_FALSE(tells_cache(R"(,"quantization_config":{"quant_method":"modelopt","quant_algo":"FP8"})"));
}

// Of two declarations one is wrong, whichever engines take.
TEST(Declarations, TwoThatDisagree) {
  const auto differ = [](const std::string& config_member, const char* file, const char* text) {
    ModelFolder folder;
    std::string config(kSmallLlama);
    config.pop_back();
    folder.write("config.json", config + config_member + "}");
    if (*file) folder.write(file, text);
    const Report report = folder.inspected();
    const auto* finding = finding_of(report, "QUANT_DECLARATIONS_DIFFER");
    if (finding) {
      EXPECT_EQ(finding->level, FindingLevel::kWarning);
      EXPECT_FALSE(finding->fix.empty());
    }
    return finding ? finding->where : std::string();
  };
  const char* nvfp4 =
      R"({"quantization":{"quant_algo":"NVFP4","group_size":16,"exclude_modules":["lm_head"]}})";
  const char* fp8 = R"(,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]})";
  EXPECT_EQ(differ(fp8, "hf_quant_config.json", nvfp4), "hf_quant_config.json: /quantization");
  EXPECT_EQ(differ(R"(,"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"})",
                   "hf_quant_config.json", nvfp4),
            "");
  EXPECT_EQ(differ(R"(,"quantization_config":{"quant_method":"gptq","bits":4,"group_size":128})",
                   "quantize_config.json", R"({"bits":4,"group_size":32})"),
            "quantize_config.json");
  EXPECT_EQ(differ(R"(,"quantization_config":{"quant_method":"awq","bits":4,"group_size":128},
                   "compression_config":{"config_groups":{"g":{"targets":["Linear"],
                   "weights":{"num_bits":8,"type":"int"}}}})",
                   "", ""),
            "config.json: /compression_config");
  EXPECT_EQ(differ(fp8, "", ""), "");
  const char* gptq =
      R"(,"quantization_config":{"quant_method":"gptq","bits":4,"group_size":128,"desc_act":true})";
  for (const char* other : {R"({"bits":4,"group_size":128,"desc_act":false})",
                            R"({"bits":4,"group_size":128,"quant_method":"awq"})"})
    EXPECT_EQ(differ(gptq, "quantize_config.json", other), "quantize_config.json") << other;
  EXPECT_EQ(differ(gptq, "quantize_config.json", R"({"bits":4,"group_size":128,"desc_act":true})"), "");
  const char* awq =
      R"(,"quantization_config":{"quant_method":"awq","bits":4,"group_size":128,"zero_point":true,
                     "modules_to_not_convert":["visual"]})";
  for (const char* other :
       {R"({"w_bit":4,"q_group_size":128,"zero_point":false})",
        R"({"w_bit":4,"q_group_size":128,"zero_point":true,"modules_to_not_convert":["visual","gate"]})"})
    EXPECT_EQ(differ(awq, "quant_config.json", other), "quant_config.json") << other;
  EXPECT_EQ(differ(awq, "quant_config.json", R"({"w_bit":4,"q_group_size":128,"zero_point":true})"), "");
}

// The file of another tool declares nothing.
TEST(Declarations, AFileOfThatNameByAnotherTool) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("quant_config.json", R"({"foo":1})");
  const Report report = folder.inspected();
  EXPECT_TRUE(report.weights.quantization.is_null());
  EXPECT_EQ(finding_of(report, "QUANT_UNDECLARED"), nullptr);
}

// Keys and values alone are quantized: the weights have the bytes of plain ones.
TEST(Declarations, OfTheCacheAlone) {
  ModelFolder plain;
  plain.write("config.json", kSmallLlama);
  const auto bytes = plain.inspected().weights.bytes;
  for (const char* quantization :
       {R"({"quant_method":"modelopt","quant_algo":null,"kv_cache_quant_algo":"FP8"})",
        R"({"quant_method":"compressed-tensors","format":"dense","config_groups":{},
            "kv_cache_scheme":{"num_bits":8,"type":"float"},"ignore":[]})"}) {
    const Report report = declaring(quantization);
    EXPECT_EQ(report.weights.bytes, bytes) << quantization;
    EXPECT_EQ(finding_of(report, "QUANT_UNCOUNTED"), nullptr);
  }
  EXPECT_NE(finding_of(declaring(R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION",
                                     "kv_cache_quant_algo":"FP8"})"),
                       "QUANT_UNCOUNTED"),
            nullptr);
}

TEST(Declarations, WhatIsShownHasItsType) {
  const Report report = declaring(R"({"quant_method":"gptq","bits":4,"group_size":32,"desc_act":-1,
                                      "format":[1],"version":{}})");
  EXPECT_NE(finding_of(report, "QUANT_VALUE"), nullptr);
  for (const char* key : {"desc_act", "format", "version"})
    EXPECT_TRUE(report.weights.quantization[key].is_null()) << key;
}

// AutoGPTQ and AutoAWQ write a file of their own; some repositories have nothing else.
TEST(Declarations, OfAQuantizersOwnFile) {
  ModelFolder gptq, awq, plain;
  gptq.write("config.json", kSmallLlama).write("quantize_config.json", R"({"bits":4,"group_size":32})");
  awq.write("config.json", kSmallLlama)
      .write("quant_config.json", R"({"w_bit":4,"q_group_size":32,"zero_point":true,"version":"GEMM"})");
  plain.write("config.json", kSmallLlama);
  for (const auto& [folder, method] : {std::pair(&gptq, "gptq"), std::pair(&awq, "awq")}) {
    const Report report = folder->inspected();
    EXPECT_EQ(report.weights.quantization["method"], Json(method));
    EXPECT_EQ(report.spec->quantization, method);  // what plan and the engine ask
    EXPECT_EQ(report.weights.quantization["bits"], Json(4));
    EXPECT_EQ(report.weights.quantization["group_size"], Json(32));
    ASSERT_TRUE(report.weights.bytes.has_value());
    EXPECT_LT(*report.weights.bytes, *plain.inspected().weights.bytes);
    const auto* finding = finding_of(report, "QUANT_UNDECLARED");
    ASSERT_NE(finding, nullptr);
    EXPECT_NE(finding->fix.find(method), std::string::npos);
  }
  EXPECT_EQ(finding_of(plain.inspected(), "QUANT_UNDECLARED"), nullptr);
  ModelFolder broken;
  broken.write("config.json", kSmallLlama).write("quantize_config.json", "{");
  EXPECT_NE(finding_of(broken.inspected(), "QUANT_JSON"), nullptr);
}

}  // namespace
}  // namespace plimsoll::inspect
