// SPDX-License-Identifier: Apache-2.0
// Quantized checkpoints whose tensors do not fit together, or not with their config, and layouts that mix.
#include <gtest/gtest.h>

#include <algorithm>

#include "inspect/inspect.h"
#include "tests/inspect/header_folder.h"

namespace plimsoll::inspect {
namespace {

using Tensors = std::vector<HeaderTensor>;

Json config_with(Json quantization) {
  return Json::object({{"architectures", Json(Json::Array{"OwnForCausalLM"})},
                       {"model_type", "own"},
                       {"hidden_size", 256},
                       {"num_hidden_layers", 2},
                       {"torch_dtype", "bfloat16"},
                       {"quantization_config", std::move(quantization)}});
}

Json fp8_blocks() {
  return Json::object({{"quant_method", "fp8"}, {"weight_block_size", Json(Json::Array{128, 128})}});
}

Json gptq(int bits) {
  return Json::object({{"quant_method", "gptq"}, {"bits", bits}, {"group_size", 128}, {"desc_act", false}});
}

Report report_of(const Json& config, const Tensors& tensors) {
  const HeaderFolder folder(config, tensors);
  auto report = inspect(folder.path());
  EXPECT_TRUE(report) << report.error().describe();
  return report ? *report : Report{};
}

const Finding* find(const Report& report, const std::string& id) {
  const auto at = std::find_if(report.findings.begin(), report.findings.end(),
                               [&](const Finding& finding) { return finding.id == id; });
  return at == report.findings.end() ? nullptr : &*at;
}

std::vector<std::string> left_of(const Report& report) {
  std::vector<std::string> names;
  for (const Json& item : report.weights.quantization["unquantized_modules"].items())
    names.push_back(*item.as_string());
  return names;
}

TEST(QuantizedFaults, RaggedBlocksFitAndShortOnesDoNot) {
  const Tensors ragged{{"model.layers.0.mlp.up_proj.weight", "F8_E4M3", {300, 200}},
                       {"model.layers.0.mlp.up_proj.weight_scale_inv", "F32", {3, 2}}};
  const Report good = report_of(config_with(fp8_blocks()), ragged);
  EXPECT_EQ(good.parameters.total, 60'000);
  EXPECT_EQ(good.parameters.hub_total, 60'006);
  EXPECT_FALSE(find(good, "QUANT_LAYOUT"));
  Tensors bad = ragged;
  bad[1].shape = {2, 2};
  const Report wrong = report_of(config_with(fp8_blocks()), bad);
  ASSERT_TRUE(find(wrong, "QUANT_LAYOUT"));
  EXPECT_EQ(find(wrong, "QUANT_LAYOUT")->where, "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(wrong.parameters.total, 60'000);  // codes are counted all the same: each is one weight
}

TEST(QuantizedFaults, MissingScaleIsToldByTheNameOfItsWeight) {
  Tensors tensors;
  for (const char* layer : {"0", "1"}) {
    const std::string module = std::string("model.layers.") + layer + ".mlp.up_proj.";
    tensors.push_back({module + "weight", "F8_E4M3", {256, 256}});
    if (layer[0] == '0') tensors.push_back({module + "weight_scale_inv", "F32", {2, 2}});
  }
  const Report report = report_of(config_with(fp8_blocks()), tensors);
  ASSERT_TRUE(find(report, "QUANT_LAYOUT"));
  EXPECT_EQ(find(report, "QUANT_LAYOUT")->where, "model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(verdict_code(report.findings), ErrorCode::kUnsupported);  // the architecture is unknown besides
}

TEST(QuantizedFaults, ScaleWithoutItsWeight) {
  const Report report =
      report_of(config_with(fp8_blocks()), {{"model.layers.0.mlp.up_proj.weight", "F8_E4M3", {256, 256}},
                                            {"model.layers.0.mlp.up_proj.weight_scale_inv", "F32", {2, 2}},
                                            {"model.layers.1.mlp.up_proj.weight_scale_inv", "F32", {2, 2}}});
  ASSERT_TRUE(find(report, "QUANT_LAYOUT"));
  EXPECT_EQ(find(report, "QUANT_LAYOUT")->where, "model.layers.1.mlp.up_proj.weight_scale_inv");
}

Tensors gptq_module(const std::string& module, std::int64_t in, std::int64_t out, std::int64_t bits) {
  return {{module + ".qweight", "I32", {in * bits / 32, out}},
          {module + ".qzeros", "I32", {in / 128, out * bits / 32}},
          {module + ".scales", "F16", {in / 128, out}},
          {module + ".g_idx", "I32", {in}}};
}

TEST(QuantizedFaults, GptqOfEveryWidth) {
  for (const int bits : {2, 3, 4, 8}) {
    SCOPED_TRACE(bits);
    const Report report =
        report_of(config_with(gptq(bits)), gptq_module("model.layers.0.mlp.up_proj", 256, 384, bits));
    EXPECT_EQ(report.parameters.total, 256 * 384);
    EXPECT_FALSE(find(report, "QUANT_LAYOUT"));
    EXPECT_EQ(report.weights.quantization["bits"], Json(bits));
  }
}

TEST(QuantizedFaults, BitsOfTheConfigAgainstThoseOfTheShapes) {
  const Report report =
      report_of(config_with(gptq(8)), gptq_module("model.layers.0.mlp.up_proj", 256, 384, 4));
  ASSERT_TRUE(find(report, "QUANT_LAYOUT"));
  EXPECT_NE(find(report, "QUANT_LAYOUT")->message.find("4-bit"), std::string::npos);
  EXPECT_EQ(report.parameters.total, 256 * 384);
}

TEST(QuantizedFaults, LayersOfOtherBitsByGptqsDynamicRules) {
  Json config = gptq(4);
  config.set("dynamic",
             Json::object({{R"(+:.*\.1\..*)", Json::object({{"bits", 8}})}, {"-:.*o_proj", Json::object()}}));
  Tensors tensors = gptq_module("model.layers.0.mlp.up_proj", 256, 384, 4);
  for (const auto& tensor : gptq_module("model.layers.1.mlp.up_proj", 256, 384, 8)) tensors.push_back(tensor);
  tensors.push_back({"model.layers.0.self_attn.o_proj.weight", "BF16", {256, 256}});
  const Report report = report_of(config_with(config), tensors);
  EXPECT_EQ(report.parameters.total, 2 * 256 * 384 + 256 * 256);
  EXPECT_FALSE(find(report, "QUANT_LAYOUT"));
  EXPECT_FALSE(find(report, "QUANT_MODULES_DIFFER"));
  EXPECT_EQ(left_of(report), std::vector<std::string>{"model.layers.*.self_attn"});
}

// modelopt: fp8 and four-bit floats side by side, rules in hf_quant_config.json.
TEST(QuantizedFaults, MixedPrecisionOfModelopt) {
  const HeaderFolder folder(
      Json::object({{"architectures", Json(Json::Array{"OwnForCausalLM"})}, {"num_hidden_layers", 2}}),
      {{"model.layers.0.self_attn.o_proj.weight", "F8_E4M3", {64, 64}},
       {"model.layers.0.self_attn.o_proj.weight_scale", "F32", {}},
       {"model.layers.0.self_attn.o_proj.input_scale", "F32", {}},
       {"model.layers.0.self_attn.k_proj.weight", "BF16", {64, 64}},
       {"model.layers.0.self_attn.k_proj.k_scale", "F32", {}},
       {"model.layers.0.mlp.experts.0.up_proj.weight", "U8", {128, 32}},
       {"model.layers.0.mlp.experts.0.up_proj.weight_scale", "F8_E4M3", {128, 4}},
       {"model.layers.0.mlp.experts.0.up_proj.weight_scale_2", "F32", {}},
       {"model.layers.1.mlp.experts.0.up_proj.weight", "BF16", {128, 64}},
       {"lm_head.weight", "BF16", {32, 64}}});
  folder.add_file("hf_quant_config.json",
                  R"({"quantization":{"quant_algo":"MIXED_PRECISION","kv_cache_quant_algo":"FP8",
    "exclude_modules":["lm_head","model.layers.1*"],
    "quantized_layers":{"model.layers.0.self_attn.o_proj":{"quant_algo":"FP8"},
                        "model.layers.0.mlp.experts":{"quant_algo":"NVFP4","group_size":16}}}})");
  const auto report = inspect(folder.path());
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_EQ(report->parameters.total, 64 * 64 + 64 * 64 + 2 * 128 * 64 + 32 * 64);
  EXPECT_EQ(report->weights.quantization["method"], Json("modelopt"));
  EXPECT_EQ(report->weights.quantization["bits"], Json(4));
  EXPECT_FALSE(find(*report, "QUANT_LAYOUT"));
  EXPECT_FALSE(find(*report, "QUANT_MODULES_DIFFER"));
  EXPECT_EQ(left_of(*report),
            (std::vector<std::string>{"model.layers.*.self_attn.k_proj", "model.layers.1", "lm_head"}));
}

TEST(QuantizedFaults, ModulesThatTheConfigNamesOtherwise) {
  Json config = Json::object(
      {{"quant_method", "fp8"}, {"modules_to_not_convert", Json(Json::Array{"model.layers.0.mlp"})}});
  const Tensors tensors{{"model.layers.0.mlp.up_proj.weight", "F8_E4M3", {64, 64}},
                        {"model.layers.0.mlp.up_proj.weight_scale", "F32", {}},
                        {"model.layers.1.mlp.up_proj.weight", "BF16", {64, 64}}};
  const Report report = report_of(config_with(config), tensors);
  std::string messages;
  for (const auto& finding : report.findings)
    if (finding.id == "QUANT_MODULES_DIFFER") messages += finding.message + "\n";
  EXPECT_NE(messages.find("hold quantized weights: model.layers.0.mlp.up_proj"), std::string::npos)
      << messages;
  EXPECT_NE(messages.find("stayed as they were: model.layers.1.mlp.up_proj"), std::string::npos) << messages;
  EXPECT_EQ(left_of(report), std::vector<std::string>{"model.layers.1"});
}

TEST(QuantizedFaults, ConfigWithoutCodesAndCodesWithoutConfig) {
  const Report plain =
      report_of(config_with(gptq(4)), {{"model.layers.0.mlp.up_proj.weight", "BF16", {64, 64}}});
  EXPECT_TRUE(find(plain, "QUANT_NOT_STORED"));
  EXPECT_EQ(plain.parameters.total, 64 * 64);
  const Report silent =
      report_of(config_with(Json()), gptq_module("model.layers.0.mlp.up_proj", 256, 384, 4));
  EXPECT_TRUE(find(silent, "QUANT_UNDECLARED"));
  EXPECT_EQ(silent.parameters.total, 256 * 384);
  EXPECT_EQ(silent.weights.quantization["method"], Json("gptq"));
  EXPECT_EQ(silent.weights.quantization["bits"], Json(4));
}

TEST(QuantizedFaults, CodesOfUnknownWidthAreNotCounted) {
  const Report report = report_of(config_with(Json::object({{"quant_method", "of_ours"}})),
                                  {{"model.layers.0.mlp.up_proj.weight", "I32", {64, 8}},
                                   {"model.layers.0.mlp.up_proj.weight_scale", "BF16", {64, 2}}});
  EXPECT_TRUE(find(report, "QUANT_LAYOUT"));
  EXPECT_FALSE(report.parameters.total);
  EXPECT_EQ(report.parameters.hub_total, 64 * 8 + 64 * 2);
  EXPECT_EQ(report.weights.bytes, Bytes(64 * 8 * 4 + 64 * 2 * 2));
}

// A plain model may hold integers and names that sound like scales.
TEST(QuantizedFaults, PlainModelsKeepTheirScalesAndTables) {
  const Report report =
      report_of(config_with(Json()), {{"model.logit_scale", "F32", {1}},
                                      {"model.layers.0.mlp.router.scale", "BF16", {64}},
                                      {"vision_model.embeddings.position_ids", "I64", {1, 77}},
                                      {"model.embed_tokens.weight", "BF16", {32, 64}}});
  EXPECT_EQ(report.parameters.total, 1 + 64 + 32 * 64);
  EXPECT_TRUE(report.weights.quantization.is_null());
  ASSERT_EQ(report.parameters.differences.size(), 1U);
  EXPECT_EQ(report.parameters.differences[0].cause, Cause::kStoredBuffers);
}

TEST(QuantizedFaults, PredictionLayersStandApart) {
  Json config = config_with(fp8_blocks());
  config.set("num_nextn_predict_layers", 1);
  Tensors tensors;
  for (const char* layer : {"0", "1", "2"}) {
    const std::string module = std::string("model.layers.") + layer + ".mlp.up_proj.";
    tensors.push_back({module + "weight", "F8_E4M3", {256, 256}});
    tensors.push_back({module + "weight_scale_inv", "F32", {2, 2}});
  }
  const Report report = report_of(config, tensors);
  EXPECT_EQ(report.parameters.total, 2 * 256 * 256);
  EXPECT_EQ(report.parameters.mtp, 256 * 256);
  EXPECT_EQ(report.parameters.hub_total, 3 * 256 * 256 + 12);
}

}  // namespace
}  // namespace plimsoll::inspect
