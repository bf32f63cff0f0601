// SPDX-License-Identifier: Apache-2.0
// Every stored layout that a golden set or a maker's own package gives: logical parameters, bytes by dtype,
// the differences, what stayed as it was. Headers of both are in data/quantized.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "base/json.h"
#include "inspect/inspect.h"
#include "tests/inspect/header_folder.h"
#include "tests/testing/golden.h"

namespace plimsoll::inspect {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::vector<HeaderTensor> tensors_of(const Json& layout) {
  std::vector<HeaderTensor> tensors;
  for (const Json& row : layout["tensors"].items()) {
    HeaderTensor tensor{*row.items()[0].as_string(), *row.items()[1].as_string(), {}};
    for (const Json& dimension : row.items()[2].items()) tensor.shape.push_back(*dimension.as_integer());
    if (const std::string* hex = layout["values"][tensor.name].as_string()) tensor.values = from_hex(*hex);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

const std::map<std::string, std::string> kSpellings = {
    {"bfloat16", "bf16"}, {"float16", "f16"}, {"float32", "f32"}, {"float8_e4m3fn", "f8_e4m3"},
    {"int8", "i8"},       {"uint8", "u8"},    {"int32", "i32"},   {"int64", "i64"}};

void expect_sizes(const Json& expected, const Report& report) {
  EXPECT_EQ(report.parameters.total, expected["logical_params"].as_integer());
  EXPECT_EQ(report.weights.bytes, Bytes(*expected["stored_bytes"].as_integer()));
  EXPECT_EQ(report.weights.by_dtype.size(), expected["stored_by_dtype"].size());
  std::int64_t stored = 0;
  for (const auto& row : report.weights.by_dtype) stored += row.parameters;
  for (const auto& [spelling, figures] : expected["stored_by_dtype"].members()) {
    bool is_found = false;
    for (const auto& row : report.weights.by_dtype) {
      if (name(row.dtype) != kSpellings.at(spelling)) continue;
      is_found = true;
      EXPECT_EQ(row.parameters, figures["elements"].as_integer()) << spelling;
      EXPECT_EQ(row.bytes.value, figures["bytes"].as_integer()) << spelling;
      EXPECT_EQ(row.num_tensors, figures["tensors"].as_integer()) << spelling;
    }
    EXPECT_TRUE(is_found) << spelling;
  }
  std::int64_t sum = report.parameters.total.value_or(0), grouped = 0;
  for (const auto& difference : report.parameters.differences) sum += difference.parameters;
  EXPECT_EQ(sum, report.parameters.hub_total);
  const bool counts_blocks_twice = report.weights.quantization["method"] == Json("mxfp4");
  if (!counts_blocks_twice) {
    EXPECT_EQ(report.parameters.hub_total, stored);
  }
  for (const auto& group : report.parameters.by_group) grouped += group.parameters;
  EXPECT_EQ(grouped, report.parameters.total);
}

void expect_no_quantization_finding(const Report& report) {
  for (const auto& finding : report.findings)
    EXPECT_FALSE(finding.id.starts_with("QUANT_"))
        << finding.id << " [" << finding.where << "] " << finding.message;
}

TEST(QuantizedLayouts, AreExactToTheByteAndTheParameter) {
  const auto layouts = read_json_file(testing::data_path("quantized/layouts.json"));
  ASSERT_TRUE(layouts) << layouts.error().describe();
  int from_files = 0, from_headers = 0;
  for (const Json& layout : (*layouts)["layouts"].items()) {
    const std::string& name = *layout["name"].as_string();
    SCOPED_TRACE(name);
    const std::string golden = testing::golden_path("quantized/" + name);
    const bool is_golden = std::filesystem::exists(golden);
    const HeaderFolder folder(layout["config"], tensors_of(layout));
    const auto report = inspect(is_golden ? golden : folder.path());
    ASSERT_TRUE(report) << report.error().describe();
    expect_sizes(layout["expected"], *report);
    expect_no_quantization_finding(*report);
    const Json& quantization = report->weights.quantization;
    EXPECT_EQ(quantization["method"], layout["config"]["quantization_config"]["quant_method"]);
    EXPECT_TRUE(quantization["bits"].is_integer());
    const Json& left = quantization["unquantized_modules"];
    EXPECT_EQ(left.items().front(), Json("lm_head"));
    EXPECT_GE(left.size(), 2U);
    ++(is_golden ? from_files : from_headers);
  }
  std::cout << from_files << " layouts from golden files, " << from_headers << " from their headers\n";
  EXPECT_EQ(from_files + from_headers, 31);
}

Json quantization_of(const char* name) {
  const auto layouts = read_json_file(testing::data_path("quantized/layouts.json"));
  for (const Json& layout : (*layouts)["layouts"].items()) {
    if (layout["name"] != Json(name)) continue;
    const HeaderFolder folder(layout["config"], tensors_of(layout));
    const auto report = inspect(folder.path());
    return report ? report->weights.quantization : Json();
  }
  return {};
}

TEST(QuantizedLayouts, AreNamedAsTheContractSays) {
  const Json gptq = quantization_of("gptq_int4_asym_desc_act");
  EXPECT_EQ(gptq["format"], Json("gptq"));
  EXPECT_EQ(gptq["bits"], Json(4));
  EXPECT_EQ(gptq["group_size"], Json(32));
  EXPECT_EQ(gptq["desc_act"], Json(true));
  EXPECT_EQ(quantization_of("gptq_v2_int4_asym")["format"], Json("gptq_v2"));
  EXPECT_EQ(quantization_of("awq_int4_gemm")["version"], Json("gemm"));
  EXPECT_EQ(quantization_of("bnb_nf4")["format"], Json("nf4"));
  EXPECT_EQ(quantization_of("bnb_int8")["format"], Json("llm.int8"));
  EXPECT_EQ(quantization_of("bnb_int8")["bits"], Json(8));
  EXPECT_EQ(quantization_of("ct_nvfp4")["format"], Json("nvfp4-pack-quantized"));
  EXPECT_EQ(quantization_of("ct_nvfp4")["group_size"], Json(16));
  EXPECT_EQ(quantization_of("ct_w3a16_asym")["bits"], Json(3));
  EXPECT_EQ(quantization_of("torchao_intx4")["bits"], Json(4));
  EXPECT_EQ(quantization_of("torchao_intx4")["group_size"], Json(32));
}

// As the config of gpt-oss itself lists them.
TEST(QuantizedLayouts, ModulesThatStayedAreToldInFewWords) {
  EXPECT_EQ(dump(quantization_of("gpt_oss_mxfp4")["unquantized_modules"]),
            R"(["lm_head","model.embed_tokens","model.layers.*.mlp.router","model.layers.*.self_attn"])");
}

TEST(QuantizedLayouts, QuantizationConfigInTextConfig) {
  const auto report = inspect(testing::data_path("cases/config/12-cfg-quant-config-in-text-config"));
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_EQ(report->parameters.total, 65'792);
  EXPECT_EQ(report->weights.bytes, Bytes(37'392));
  EXPECT_EQ(report->weights.quantization["method"], Json("compressed-tensors"));
  EXPECT_EQ(report->weights.quantization["bits"], Json(4));
  EXPECT_EQ(report->weights.quantization["group_size"], Json(32));
  expect_no_quantization_finding(*report);
}

}  // namespace
}  // namespace plimsoll::inspect
