// SPDX-License-Identifier: Apache-2.0
// Qwen3.8-Flash-Next from its config alone: every tensor of the published header census, the parameters of
// each part, and what a sequence keeps. Expected: golden/qwen38.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/json.h"
#include "model/model.h"
#include "tests/testing/golden.h"

namespace plimsoll::model {
namespace {

ModelSpec read() {
  const auto config = read_json_file(testing::golden_path("qwen38/config.json"));
  EXPECT_TRUE(config);
  auto spec = read_spec(*config, "config.json");
  EXPECT_TRUE(spec) << spec.error().describe();
  return *std::move(spec);
}

Json expected() {
  const auto json = read_json_file(testing::golden_path("qwen38/expected.json"));
  EXPECT_TRUE(json);
  return *json;
}

std::map<std::string, std::int64_t> groups_of(const ModelSpec& spec) {
  std::map<std::string, std::int64_t> groups;
  for (const Weight& weight : spec.weights)
    if (weight.is_parameter && !weight.is_optional)
      groups[std::string(to_string(weight.group))] += weight.elements();
  return groups;
}

// Name to shape as the census writes it; experts and vision apart: they stand under other names.
std::map<std::string, std::string> census() {
  std::map<std::string, std::string> tensors;
  std::ifstream file(testing::golden_path("qwen38/tensors.tsv"));
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::stringstream cells(line);
    std::string name, dtype, shape;
    std::getline(cells, name, '\t');
    std::getline(cells, dtype, '\t');
    std::getline(cells, shape, '\t');
    if (name.find(".experts.") == std::string::npos && name.find("visual") == std::string::npos)
      tensors[name] = dtype + " " + shape;
  }
  return tensors;
}

void add_names(const Weight& weight, std::map<std::string, std::string>& names) {
  std::string shape;
  for (const std::int64_t size : weight.shape) shape += (shape.empty() ? "" : ",") + std::to_string(size);
  std::string name = weight.hf_name;
  if (name.starts_with("model.")) name.insert(6, "language_model.");
  const auto at = name.find("{}");
  for (int i = 0; i < weight.copies; ++i) {
    std::string one = name;
    if (at != std::string::npos) one.replace(at, 2, std::to_string(i));
    names[one] = (weight.dtype == DType::kI64 ? "I64 " : "BF16 ") + shape;
  }
}

TEST(Qwen38, WeightsAreTheTensorsOfThePublishedFiles) {
  std::map<std::string, std::string> names;
  for (const Weight& weight : read().weights)
    if (weight.group != WeightGroup::kExperts && weight.group != WeightGroup::kEncoder &&
        !weight.is_optional && weight.hf_name.find(".experts.") == std::string::npos)
      add_names(weight, names);
  EXPECT_EQ(names, census());
}

TEST(Qwen38, PartsHaveTheirParameters) {
  const Json parts = expected()["parameters"]["by_part"];
  const auto groups = groups_of(read());
  const auto part = [&](std::string_view name) { return parts[name].as_integer().value_or(-1); };
  EXPECT_EQ(groups.at("embedding"), part("embed_tokens"));
  EXPECT_EQ(groups.at("head"), part("lm_head"));
  EXPECT_EQ(groups.at("experts"), part("routed_experts"));
  EXPECT_EQ(groups.at("shared_experts"), part("shared_experts"));
  EXPECT_EQ(groups.at("router"), part("routers"));
  EXPECT_EQ(groups.at("state"), part("gdn"));
  EXPECT_EQ(groups.at("table"), part("ngram_table"));
  EXPECT_EQ(groups.at("indexer"), part("qsa_indexer"));
  EXPECT_EQ(groups.at("attention") + groups.at("norm"), part("qsa_attention"));
  EXPECT_EQ(groups.at("other"), part("hyper_connections") + part("ple_dense"));
  EXPECT_EQ(groups.at("mtp"), expected()["parameters"]["mtp"].as_integer());
}

TEST(Qwen38, OneTokenUsesTheParametersOfTheCard) {
  const Json parameters = expected()["parameters"];
  const auto head = parameters["by_part"]["lm_head"].as_integer().value_or(0);
  const auto active = count_active_parameters(read(), false);
  EXPECT_EQ(active, parameters["active_per_token_with_lm_head"].as_integer());
  EXPECT_EQ(active.value_or(0) - head, parameters["active_per_token_without_lm_head"].as_integer());
}

TEST(Qwen38, TableOfNgramsIsAsLongAsItsPrimes) {
  for (const Weight& weight : read().weights)
    if (weight.group == WeightGroup::kTable) {
      EXPECT_EQ(weight.copies, expected()["ngram"]["shards"].as_integer());
      EXPECT_EQ(weight.shape[0], expected()["ngram"]["shard_rows"].as_integer());
      EXPECT_EQ(weight.layer, expected()["kv"]["layers"]["ple_layer_index_zero_based"].as_integer());
    }
}

// Bytes with two for each value, as the checkpoint declares.
std::int64_t bytes_of(const State& state) {
  std::int64_t size = 2;
  if (state.recurrent_dtype == DType::kF32) size = 4;
  if (state.recurrent_dtype == DType::kI64) size = 8;
  return state.recurrent_elements * size + state.convolution_elements * 2;
}

TEST(Qwen38, SequencesKeepTheirStates) {
  const Json states = expected()["kv"]["state_bytes_per_sequence"];
  std::map<StateKind, std::int64_t> bytes;
  std::int64_t total = 0;
  for (const Layer& layer : read().layers) {
    std::vector<State> all = layer.side_states;
    if (const auto* state = std::get_if<State>(&layer.mixer)) all.push_back(*state);
    for (const State& state : all) {
      bytes[state.kind] += bytes_of(state);
      total += bytes_of(state);
    }
  }
  EXPECT_EQ(bytes[StateKind::kGatedDeltaNet], states["gdn_36_layers"].as_integer());
  EXPECT_EQ(bytes[StateKind::kShortConv], states["ple_conv"].as_integer());
  EXPECT_EQ(bytes[StateKind::kIndexRing], states["indexer_ring_12_layers"].as_integer());
  EXPECT_EQ(total, states["total_no_speculation"].as_integer());
}

TEST(Qwen38, FiguresThatWouldSearchForeverAreRefused) {
  auto config = read_json_file(testing::golden_path("qwen38/config.json"));
  ASSERT_TRUE(config);
  for (auto& [key, value] : config->mutable_members()) {
    if (key != "text_config") continue;
    for (auto& [inner, figure] : value.mutable_members())
      if (inner == "heads_per_ngram" || inner == "ngram_size") figure = Json(std::int64_t{1'000'000'000});
  }
  EXPECT_FALSE(read_spec(*config, "config.json"));
}

}  // namespace
}  // namespace plimsoll::model
