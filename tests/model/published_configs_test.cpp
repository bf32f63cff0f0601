// SPDX-License-Identifier: Apache-2.0
// Parameters by the config alone against what transformers built from the same configs on the meta device:
// every row of golden/configs whose truth is exact or counted so. Rows without such a truth are printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

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

// Why a row has no figure that the count has to equal.
std::string reason_of(const Row& row, const std::optional<std::int64_t>& total) {
  const std::string& use = row.at("truth_use");
  const std::string& hub = row.at("params_hub(llmfit_1.1.17)");
  if (use == "hub_wrong") return "the hub's " + hub + " is another model's";
  if (hub.empty()) return "no class of transformers 5.24 builds it, and no hub shows a total";
  if (!total) return "no class of transformers 5.24 builds it, and some part's weights are not known";
  const std::int64_t apart = std::stoll(hub) - *total;
  return "no class of transformers 5.24 builds it; " +
         (apart == 0 ? std::string("the hub shows the same")
                     : "the hub shows " + hub + ", " + std::to_string(apart) +
                           " apart (scales, packing, prediction layers or rounding)");
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
      std::cout << model << " (" << row.at("model_type") << "): counted "
                << (total ? std::to_string(*total) : std::string("nothing")) << "; " << reason_of(row, total)
                << "\n";
      continue;
    }
    EXPECT_EQ(total ? std::to_string(*total) : "nothing", expected);
    ++counted;
  }
  // The small copies of this repository, or the full set: none may shrink unseen.
  EXPECT_TRUE(counted == 35 || counted == 140) << counted;
}

// The keys from the top of `tree` to each place where `key` stands; lists are not looked into.
void find_key(const Json& tree, const std::string& key, std::vector<std::string>& above,
              std::vector<std::vector<std::string>>& found) {
  for (const auto& [name, value] : tree.members()) {
    above.push_back(name);
    if (name == key) found.push_back(above);
    find_key(value, key, above, found);
    above.pop_back();
  }
}

Json with_value(const Json& tree, const std::vector<std::string>& path, std::size_t depth,
                const Json& value) {
  if (depth == path.size()) return value;
  Json copy = tree;
  copy.set(path[depth], with_value(tree[path[depth]], path, depth + 1, value));
  return copy;
}

// Other values of a key's type, of which one changes the model where the key is read.
std::vector<Json> other_values(const Json& value) {
  std::vector<Json> others{Json()};
  if (value.is_null()) others.emplace_back(64);
  if (const auto flag = value.as_bool()) others.emplace_back(!*flag);
  if (const auto number = value.as_integer()) {
    others.emplace_back(*number * 2);
    others.emplace_back(*number + 1);
    others.emplace_back(1);
  }
  if (value.is_array()) {
    Json::Array turned(value.items().rbegin(), value.items().rend());
    others.emplace_back(std::move(turned));
    others.emplace_back(value.size() > 0 ? Json::Array{} : Json::Array{0});
  }
  return others;
}

// Keys that say the same, or hide it, in every published config that has the first one.
constexpr std::pair<const char*, const char*> kBeside[] = {
    {"n_ctx", "n_positions"},
    {"max_sequence_length", "max_position_embeddings"},
    {"block_dim", "hidden_size"},
    {"block_ff_dim", "intermediate_size"},
    {"sliding_window_size", "sliding_window"},
    {"full_attn_idxs", "layer_types"},
    {"max_window_layers", "layer_types"},
};
// Read by inspect where no family lists what they count, and not at all where a class does not.
constexpr const char* kNoPartOfTheSpec[] = {"num_mtp_modules", "attn_type_list"};

// The config with that key alone to say it.
Json alone(Json config, const std::string& key) {
  for (const auto& [own, other] : kBeside) {
    if (key != own) continue;
    std::vector<std::string> above;
    std::vector<std::vector<std::string>> places;
    find_key(config, other, above, places);
    for (const auto& place : places) config = with_value(config, place, 0, Json());
  }
  if (key == "max_window_layers") {
    config.set("use_sliding_window", true);
    config.set("sliding_window", 4096);
  }
  return config;
}

// True when some other value under the key gives another model, or none.
bool matters(const Json& config, const std::string& key) {
  const auto as_written = read_spec(config, "c");
  if (!as_written) return false;
  std::vector<std::string> above;
  std::vector<std::vector<std::string>> places;
  find_key(config, key, above, places);
  for (const auto& place : places) {
    const Json* value = &config;
    for (const std::string& step : place) value = &(*value)[step];
    for (const Json& other : other_values(*value)) {
      const auto changed = read_spec(with_value(config, place, 0, other), "c");
      if (!changed || *changed != *as_written) return true;
    }
  }
  return false;
}

// Every spelling that published configs use is read: another value under it makes another model.
TEST(PublishedConfigs, EverySpellingOfAFigureIsRead) {
  std::vector<Json> configs;
  for (const Row& row : truth())
    if (auto config = read_json_file(folder_of(row.at("model")))) configs.push_back(std::move(*config));
  std::ifstream file(testing::golden_path("configs/field_aliases.tsv"));
  int asked = 0;
  std::string line;
  for (std::getline(file, line); std::getline(file, line);) {
    const std::string path = cells(line).at(1), key = path.substr(path.rfind('.') + 1);
    SCOPED_TRACE(path);
    int tried = 0;
    bool is_read = false;
    for (std::size_t i = 0; i < configs.size() && !is_read; ++i) {
      std::vector<std::string> above;
      std::vector<std::vector<std::string>> places;
      find_key(configs[i], key, above, places);
      if (places.empty()) continue;
      ++tried;
      is_read = matters(alone(configs[i], key), key);
    }
    if (tried == 0) continue;  // only in configs of the full set
    if (std::find(std::begin(kNoPartOfTheSpec), std::end(kNoPartOfTheSpec), key) !=
        std::end(kNoPartOfTheSpec))
      continue;
    // One or two of the copies in this repository may have the key where it changes nothing.
    constexpr std::size_t kFullSet = 100;
    if (!is_read && configs.size() < kFullSet && tried < 3) continue;
    EXPECT_TRUE(is_read) << "none of " << tried << " configs hangs on it";
    ++asked;
  }
  EXPECT_GT(asked, 50);
}

}  // namespace
}  // namespace plimsoll::model
