// SPDX-License-Identifier: Apache-2.0
// Layouts of makers whose packages are not at hand: names and shapes as their sources write them, one module
// of each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "inspect/inspect.h"
#include "tests/inspect/header_folder.h"

namespace plimsoll::inspect {
namespace {

struct Case {
  const char* name;
  const char* quantization_config;
  std::vector<HeaderTensor> tensors;
  std::int64_t parameters;
  int bits;
};

// Two numbers as little-endian 64-bit values.
std::string shape_values(std::int64_t out, std::int64_t in) {
  std::string bytes(16, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(out >> (8 * i) & 0xff);
    bytes[8 + i] = static_cast<char>(in >> (8 * i) & 0xff);
  }
  return bytes;
}

std::vector<Case> cases() {
  const std::string m = "model.layers.0.mlp.up_proj";
  return {
      {"awq gemv",
       R"({"quant_method":"awq","bits":4,"group_size":64,"zero_point":true,"version":"gemv"})",
       {{m + ".qweight", "I32", {96, 32}}, {m + ".qzeros", "I32", {96, 2}}, {m + ".scales", "F16", {96, 16}}},
       96 * 256,
       4},
      {"auto-round packed as awq",
       R"({"quant_method":"auto-round","bits":4,"group_size":64,"packing_format":"auto_round:auto_awq"})",
       {{m + ".qweight", "I32", {256, 12}}, {m + ".qzeros", "I32", {4, 12}}, {m + ".scales", "F16", {4, 96}}},
       96 * 256,
       4},
      {"sparse bitmask",
       R"({"quant_method":"compressed-tensors","sparsity_config":{"format":"sparse-24-bitmask"}})",
       {{m + ".compressed", "BF16", {96, 128}},
        {m + ".bitmask", "U8", {96, 32}},
        {m + ".shape", "I64", {2}, shape_values(96, 256)}},
       96 * 256,
       16},
      {"hqq",
       R"({"quant_method":"hqq","quant_config":{"weight_quant_params":{"nbits":4,"group_size":64}}})",
       {{m + ".W_q", "U8", {32, 384}},
        {m + ".scale", "F16", {384, 1}},
        {m + ".zero", "F16", {384, 1}},
        {m + ".nbits", "I32", {}},
        {m + ".shape", "I64", {2}, shape_values(96, 256)}},
       96 * 256,
       4},
      {"modelopt int4",
       R"({"quant_method":"modelopt","quant_algo":"W4A16_AWQ","group_size":128})",
       {{m + ".weight", "U8", {48, 256}},
        {m + ".weight_scale", "BF16", {96, 2}},
        {m + ".pre_quant_scale", "BF16", {256}}},
       96 * 256,
       4},
      {"four-bit floats in signed bytes",
       R"({"quant_method":"fp8","weight_block_size":[128,128],"scale_fmt":"ue8m0"})",
       {{m + ".weight", "I8", {96, 128}}, {m + ".scale", "F8_E8M0", {96, 8}}},
       96 * 256,
       8},
      {"eetq",
       R"({"quant_method":"eetq","modules_to_not_convert":["lm_head"]})",
       {{m + ".weight", "I8", {256, 96}}, {m + ".weight_scales", "F16", {96}}},
       96 * 256,
       8},
      {"bitnet",
       R"({"quant_method":"bitnet"})",
       {{m + ".weight", "U8", {24, 256}}, {m + ".weight_scale", "BF16", {1}}},
       96 * 256,
       2},
      {"quark mxfp4",
       R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp4","group_size":32}},"exclude":["*lm_head"]})",
       {{m + ".weight", "U8", {96, 128}}, {m + ".weight_scale", "U8", {96, 8}}},
       96 * 256,
       4},
      {"experts of one stack, four-bit floats",
       R"({"quant_method":"modelopt","quant_algo":"NVFP4","group_size":16})",
       {{"model.layers.0.mlp.experts.gate_up_proj", "U8", {4, 64, 16}},
        {"model.layers.0.mlp.experts.gate_up_proj_weight_scale", "F8_E4M3", {4, 64, 2}},
        {"model.layers.0.mlp.experts.gate_up_proj_weight_scale_2", "F32", {}},
        {"model.layers.0.mlp.experts.gate_up_proj_input_scale", "F32", {}}},
       4 * 64 * 32,
       4},
      {"experts of one stack, fp8 blocks",
       R"({"quant_method":"fp8","weight_block_size":[32,32]})",
       {{"model.layers.0.mlp.experts.down_proj", "F8_E4M3", {4, 64, 48}},
        {"model.layers.0.mlp.experts.down_proj_scale_inv", "F32", {4, 2, 2}}},
       4 * 64 * 48,
       8},
      {"fp8 per channel of fbgemm",
       R"({"quant_method":"fbgemm_fp8"})",
       {{m + ".weight", "F8_E4M3", {96, 256}}, {m + ".weight_scale", "F32", {96, 1}}},
       96 * 256,
       8},
      {"marlin",
       R"({"quant_method":"gptq","bits":4,"group_size":128,"checkpoint_format":"marlin"})",
       {{m + ".B", "I32", {16, 192}}, {m + ".s", "F16", {2, 96}}},
       96 * 256,
       4},
      {"mlx",
       R"({"group_size":64,"bits":4,"mode":"affine"})",
       {{m + ".weight", "U32", {96, 32}}, {m + ".scales", "BF16", {96, 4}}, {m + ".biases", "BF16", {96, 4}}},
       96 * 256,
       4},
      {"mlx of six bits",
       R"({"group_size":64,"bits":6})",
       {{m + ".weight", "U32", {96, 48}}, {m + ".scales", "F16", {96, 4}}, {m + ".biases", "F16", {96, 4}}},
       96 * 256,
       6},
      {"mlx: experts in one stack, four-bit floats",
       R"({"group_size":32,"bits":4,"mode":"mxfp4"})",
       {{"model.layers.0.mlp.switch_mlp.up_proj.weight", "U32", {4, 96, 32}},
        {"model.layers.0.mlp.switch_mlp.up_proj.scales", "U8", {4, 96, 8}}},
       4 * 96 * 256,
       4},
  };
}

TEST(QuantizedMakers, ModulesHoldTheWeightsTheyStandFor) {
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    const auto quantization = parse_json(test.quantization_config, "config.json");
    ASSERT_TRUE(quantization) << quantization.error().describe();
    std::vector<HeaderTensor> tensors = test.tensors;
    tensors.push_back({"lm_head.weight", "BF16", {32, 64}});
    const HeaderFolder folder(Json::object({{"architectures", Json(Json::Array{"OwnForCausalLM"})},
                                            {"num_hidden_layers", 1},
                                            {"quantization_config", *quantization}}),
                              tensors);
    const auto report = inspect(folder.path());
    ASSERT_TRUE(report) << report.error().describe();
    EXPECT_EQ(report->parameters.total, test.parameters + 32 * 64);
    EXPECT_EQ(report->weights.quantization["bits"], Json(test.bits));
    EXPECT_EQ(dump(report->weights.quantization["unquantized_modules"]), R"(["lm_head"])");
    std::int64_t sum = report->parameters.total.value_or(0);
    for (const auto& difference : report->parameters.differences) sum += difference.parameters;
    EXPECT_EQ(sum, report->parameters.hub_total);
    for (const auto& finding : report->findings)
      EXPECT_FALSE(finding.id.starts_with("QUANT_")) << finding.id << " " << finding.message;
  }
}

// MLX writes the object twice, and names no method in either; modules may have figures of their own.
TEST(QuantizedMakers, MlxFolders) {
  const std::string m = "model.layers.0.mlp.up_proj", gate = "model.layers.0.mlp.gate";
  const std::string object =
      R"({"group_size":64,"bits":4,"model.layers.0.mlp.gate":{"group_size":64,"bits":8},
                                 "lm_head":false})";
  for (const std::string& keys :
       {"\"quantization\":" + object, "\"quantization\":" + object + ",\"quantization_config\":" + object}) {
    const auto config = parse_json(
        R"({"architectures":["OwnForCausalLM"],"num_hidden_layers":1,)" + keys + "}", "config.json");
    ASSERT_TRUE(config) << config.error().describe();
    const HeaderFolder folder(*config, {{m + ".weight", "U32", {96, 32}},
                                        {m + ".scales", "BF16", {96, 4}},
                                        {m + ".biases", "BF16", {96, 4}},
                                        {gate + ".weight", "U32", {8, 64}},
                                        {gate + ".scales", "BF16", {8, 4}},
                                        {gate + ".biases", "BF16", {8, 4}},
                                        {"lm_head.weight", "BF16", {32, 64}}});
    const auto report = inspect(folder.path());
    ASSERT_TRUE(report) << report.error().describe();
    EXPECT_EQ(report->parameters.total, 96 * 256 + 8 * 256 + 32 * 64);
    EXPECT_EQ(report->weights.quantization["method"], Json("mlx"));
    EXPECT_EQ(report->weights.quantization["bits"], Json(4));
    EXPECT_EQ(report->weights.quantization["group_size"], Json(64));
    EXPECT_EQ(dump(report->weights.quantization["unquantized_modules"]), R"(["lm_head"])");
    for (const auto& finding : report->findings)
      EXPECT_FALSE(finding.id.starts_with("QUANT_")) << finding.id << " " << finding.message;
  }
}

TEST(QuantizedMakers, ShapesThatLieAreTold) {
  const std::string m = "model.layers.0.mlp.up_proj";
  const HeaderFolder folder(
      Json::object({{"quantization_config",
                     Json::object({{"quant_method", "hqq"},
                                   {"quant_config", Json::object({{"weight_quant_params",
                                                                   Json::object({{"nbits", 4}})}})}})}}),
      {{m + ".W_q", "U8", {32, 384}},
       {m + ".scale", "F16", {384, 1}},
       {m + ".shape", "I64", {2}, shape_values(std::int64_t{1} << 40, std::int64_t{1} << 40)}});
  const auto report = inspect(folder.path());
  ASSERT_TRUE(report) << report.error().describe();
  bool is_told = false;
  for (const auto& finding : report->findings) is_told |= finding.id == "QUANT_LAYOUT";
  EXPECT_TRUE(is_told);
}

}  // namespace
}  // namespace plimsoll::inspect
