// SPDX-License-Identifier: Apache-2.0
// Inputs made to be slow, each once. They take milliseconds where a reader is linear and minutes where one is
// not; the time limit of the test run tells the difference, no clock is asked here.
#include <gtest/gtest.h>

#include "tests/inspect/header_folder.h"
#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

std::string repeated(std::string_view part, int times) {
  std::string text;
  text.reserve(part.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

Json small_llama(const char* quantization) {
  Json config = *parse_json(std::string(kSmallLlama), "config.json");
  config.set("quantization_config", *parse_json(quantization, "quantization_config"));
  return config;
}

Report of(const Json& config, const std::vector<HeaderTensor>& tensors) {
  const HeaderFolder folder(config, tensors);
  auto report = inspect(folder.path());
  return report ? std::move(*report) : Report{};
}

TEST(SlowInputs, ACardOfOneLongSentence) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("README.md", repeated("1b ", 350'000));
  EXPECT_TRUE(folder.inspected().card_claims["total"].is_null());
}

TEST(SlowInputs, ANameOfManySegments) {
  const Report report = of(small_llama(R"({"quant_method":"fp8","ignored_layers":["lm_head"]})"),
                           {{repeated("a.", 20'000) + "weight", "F8_E4M3", {2, 2}}});
  EXPECT_EQ(report.files.size(), 2U);
}

TEST(SlowInputs, ManyKindsOfQuantizedWeights) {
  std::vector<HeaderTensor> tensors;
  for (int i = 0; i < 20'000; ++i) {
    const std::string module = "m" + std::string(1, static_cast<char>('a' + i % 26)) + "x" +
                               std::string(static_cast<std::size_t>(1 + i / 2000), 'y') + std::to_string(i) +
                               "z";
    tensors.push_back({module + ".weight", "F8_E4M3", {1, 1}});
    tensors.push_back({module + ".weight_scale", "F32", {}});
  }
  const Report report = of(small_llama(R"({"quant_method":"fp8"})"), tensors);
  EXPECT_EQ(report.weights.num_tensors, 40'000);
}

TEST(SlowInputs, ManyModulesThatDoNotPairUp) {
  std::vector<HeaderTensor> tensors;
  for (int i = 0; i < 20'000; ++i)
    tensors.push_back({"model.layers." + std::to_string(i) + ".q_proj.weight_shape", "I64", {2}});
  const Report report =
      of(small_llama(R"({"quant_method":"compressed-tensors","format":"pack-quantized"})"), tensors);
  EXPECT_EQ(report.weights.num_tensors, 20'000);
}

TEST(SlowInputs, AHeaderOfTinyMembers) {
  std::string header = "{";
  for (int i = 0; i < 10'000; ++i) header += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
  header += "}";
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (8 * i));
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("model.safetensors", file + header);
  EXPECT_EQ(worst_level(folder.inspected().findings), FindingLevel::kError);
}

TEST(SlowInputs, PatternsOfManyStars) {
  const std::string stars = repeated("*a", 500);
  Json config = small_llama("{}");
  Json quantization = Json::object({{"quant_method", "modelopt"}, {"quant_algo", "FP8"}});
  quantization.set("exclude_modules",
                   Json(Json::Array{Json(stars), Json("re:(" + repeated("a*", 200) + ")*b")}));
  config.set("quantization_config", std::move(quantization));
  const Report report = of(config, {{"model." + repeated("a", 900) + ".weight", "F8_E4M3", {2, 2}}});
  EXPECT_EQ(report.files.size(), 2U);
}

Json many_layers(Json quantization) {
  Json config = *parse_json(std::string(kSmallLlama), "config.json");
  config.set("num_hidden_layers", 4096);
  config.set("quantization_config", std::move(quantization));
  return config;
}

Report of_config(const Json& config) {
  ModelFolder folder;
  folder.write("config.json", dump(config));
  return folder.inspected();
}

// Without files it is the spec's weights that are held against every rule.
TEST(SlowInputs, ManyGroupsOfModulesForManyLayers) {
  const auto report_with = [](int num_groups) {
    Json groups = Json::object({});
    for (int i = 0; i < num_groups; ++i)
      groups.set("g" + std::to_string(i),
                 *parse_json(R"({"targets":["re:.*y)" + std::to_string(i) +
                                 R"(.*"],"weights":{"num_bits":8,"type":"float","group_size":)" +
                                 std::to_string(i + 1) + "}}",
                             ""));
    return of_config(many_layers(Json::object({{"quant_method", "compressed-tensors"},
                                               {"format", "float-quantized"},
                                               {"config_groups", std::move(groups)}})));
  };
  const Report many = report_with(1000);
  EXPECT_EQ(many.weights.bytes, std::nullopt);
  EXPECT_NE(finding_of(many, "QUANT_MODULES_MANY"), nullptr);
  const Report more = report_with(2000);  // than rules are read
  EXPECT_EQ(more.weights.bytes, std::nullopt);
  EXPECT_NE(finding_of(more, "QUANT_VALUE"), nullptr);
  const Report few = report_with(4);
  EXPECT_NE(few.weights.bytes, std::nullopt);
  EXPECT_EQ(finding_of(few, "QUANT_MODULES_MANY"), nullptr);
}

TEST(SlowInputs, ManyExpressionsForManyLayers) {
  Json::Array ignore;
  for (int i = 0; i < 60'000; ++i) ignore.push_back("re:.*x" + std::to_string(i) + ".*");
  const Report report = of_config(many_layers(Json::object({{"quant_method", "compressed-tensors"},
                                                            {"format", "float-quantized"},
                                                            {"ignore", Json(std::move(ignore))}})));
  EXPECT_EQ(report.weights.bytes, std::nullopt);
  EXPECT_NE(finding_of(report, "QUANT_MODULES_MANY"), nullptr);
  EXPECT_LT(report.findings.size(), 100U);  // one for all expressions that are not read
}

// As long as they may be: each costs as much as a hundred usual ones.
TEST(SlowInputs, LongExpressionsForManyLayers) {
  Json::Array ignore;
  for (int i = 0; i < 40; ++i) ignore.push_back("re:" + std::to_string(i) + "?" + repeated(".*", 2000));
  const Report report = of_config(many_layers(Json::object({{"quant_method", "compressed-tensors"},
                                                            {"format", "float-quantized"},
                                                            {"ignore", Json(std::move(ignore))}})));
  EXPECT_EQ(report.weights.bytes, std::nullopt);
  EXPECT_NE(finding_of(report, "QUANT_MODULES_MANY"), nullptr);
}

TEST(SlowInputs, ManyBeginningsOfNames) {
  Json::Array exclude;
  for (int i = 200'000; i > 0; --i) exclude.push_back("m" + std::to_string(1'000'000 + i) + "*");
  const Report report = of_config(many_layers(Json::object(
      {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}, {"exclude_modules", Json(std::move(exclude))}})));
  EXPECT_EQ(report.files.size(), 1U);
}

}  // namespace
}  // namespace plimsoll::inspect
