// SPDX-License-Identifier: Apache-2.0
// One small config per family: parameters as transformers builds the class on its meta device, kinds of
// layers. What their caches hold: tests/memory/inventories_kv_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/json.h"
#include "model/model.h"
#include "tests/testing/golden.h"

namespace plimsoll::model {
namespace {

std::vector<std::filesystem::path> files_here() {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(testing::data_path("model/inventories")))
    if (entry.path().extension() == ".json") files.insert(entry.path());
  return {files.begin(), files.end()};
}

std::string kind_of(const Layer& layer) {
  if (const auto* attention = std::get_if<Attention>(&layer.mixer)) {
    if (attention->is_cross) return "cross";
    if (attention->chunk_tokens) return "chunked";
    return attention->window_tokens ? "sliding" : "full";
  }
  if (const auto* latent = std::get_if<Latent>(&layer.mixer))
    return latent->indexer || latent->tokens_per_entry > 1 ? "sparse_mla" : "mla";
  if (const auto* state = std::get_if<State>(&layer.mixer)) return std::string(to_string(state->kind));
  return "none";
}

std::vector<std::string> runs_of(const ModelSpec& spec) {
  std::vector<std::string> kinds;
  for (const Layer& layer : spec.layers) kinds.push_back(kind_of(layer));
  return kinds;
}

std::vector<std::string> expected_runs(const Json& layers) {
  std::vector<std::string> kinds;
  for (const Json& run : layers.items())
    for (std::int64_t i = 0; i < run["count"].as_integer().value_or(1); ++i)
      kinds.push_back(*run["kind"].as_string());
  return kinds;
}

TEST(Inventories, AreThoseOfTheReference) {
  const auto files = files_here();
  ASSERT_FALSE(files.empty());
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename().string());
    const auto row = read_json_file(path.string());
    ASSERT_TRUE(row) << row.error().describe();
    const auto spec = read_spec((*row)["config"], "config.json");
    ASSERT_TRUE(spec) << spec.error().describe();
    EXPECT_EQ(count_parameters(*spec), (*row)["parameters"].as_integer());
    if (const auto expected = (*row)["mtp_parameters"].as_integer()) {
      std::int64_t mtp = 0;
      for (const Weight& weight : spec->weights)
        if (weight.group == WeightGroup::kMtp) mtp += weight.elements();
      EXPECT_EQ(mtp, *expected);
    }
    EXPECT_EQ(runs_of(*spec), expected_runs((*row)["layers"]));
  }
}

TEST(Inventories, NoTwoWeightsOfOneModelHaveOneName) {
  for (const auto& path : files_here()) {
    SCOPED_TRACE(path.filename().string());
    const auto row = read_json_file(path.string());
    ASSERT_TRUE(row);
    const auto spec = read_spec((*row)["config"], "config.json");
    ASSERT_TRUE(spec);
    std::set<std::string> names;
    for (const Weight& weight : spec->weights)
      EXPECT_TRUE(weight.hf_name.empty() || names.insert(weight.hf_name).second) << weight.hf_name;
  }
}

}  // namespace
}  // namespace plimsoll::model
