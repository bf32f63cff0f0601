// SPDX-License-Identifier: Apache-2.0
// Parameters by the config alone against what transformers built from the same configs on the meta device:
// every row of golden/configs whose truth is exact or counted so. Rows without such a truth are printed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "model/model.h"
#include "tests/testing/golden.h"

namespace plimsoll::model {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '\t');) result.push_back(cell);
  return result;
}

std::vector<Row> truth() {
  std::ifstream file(testing::golden_path("configs/models_truth.tsv"));
  std::string line;
  std::getline(file, line);
  const auto names = cells(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const auto values = cells(line);
    Row row;
    for (std::size_t i = 0; i < std::min(names.size(), values.size()); ++i) row[names[i]] = values[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string folder_of(std::string model) {
  if (const std::size_t slash = model.find('/'); slash != std::string::npos) model.replace(slash, 1, "__");
  return testing::golden_path("configs/" + model + "/config.json");
}

TEST(PublishedConfigs, GiveTheParametersThatTransformersBuilt) {
  int counted = 0;
  for (const Row& row : truth()) {
    const std::string& model = row.at("model");
    SCOPED_TRACE(model);
    if (!std::filesystem::exists(folder_of(model))) continue;
    const auto artifact = artifact::open(folder_of(model));
    ASSERT_TRUE(artifact) << artifact.error().describe();
    const auto spec = read_spec(**artifact);
    const std::string& expected = row.at("params_meta(transformers_5.24)");
    if (!spec) {
      EXPECT_TRUE(expected.empty()) << spec.error().describe();
      std::cout << model << ": not read: " << spec.error().describe() << "\n";
      continue;
    }
    const auto total = count_parameters(*spec);
    if (expected.empty()) {
      std::cout << model << " (" << row.at("model_type") << "): " << row.at("truth_use")
                << ", transformers builds none of it; counted "
                << (total ? std::to_string(*total) : std::string("nothing")) << "\n";
      continue;
    }
    EXPECT_EQ(total ? std::to_string(*total) : "nothing", expected);
    ++counted;
  }
  // The small copies of this repository, or the full set: none may shrink unseen.
  EXPECT_TRUE(counted == 35 || counted == 140) << counted;
}

// All code of the readers as one text.
std::string readers() {
  std::string text;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(PLIMSOLL_SOURCE_DIR) + "/src/model")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    text += std::string(std::istreambuf_iterator<char>(file), {});
  }
  return text;
}

TEST(PublishedConfigs, EverySpellingOfAFigureIsAskedFor) {
  const std::string code = readers();
  std::ifstream file(testing::golden_path("configs/field_aliases.tsv"));
  int asked = 0;
  std::string line;
  for (std::getline(file, line); std::getline(file, line);) {
    std::stringstream path(cells(line).at(1));  // attn_config.kv_n_heads: each part is a key
    for (std::string key; std::getline(path, key, '.'); ++asked)
      EXPECT_NE(code.find('"' + key + '"'), std::string::npos) << key;
  }
  EXPECT_GT(asked, 100);
}

}  // namespace
}  // namespace plimsoll::model
