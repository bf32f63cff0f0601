// SPDX-License-Identifier: Apache-2.0
// What the engine accepts is what docs/architectures.md lists, and every row there names tests that exist: no
// architecture slips in that nobody looked at.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "artifact/artifact.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "memory/embedded.h"
#include "model/model.h"
#include "tests/testing/golden.h"
#include "tests/testing/recorded_model.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

// The tests that each architecture's row names.
using Table = std::map<std::string, std::set<std::string>>;

// Rows "| `Name` | test, test | ... |".
Table read_table() {
  Table table;
  const auto text = read_file(testing::data_path("../docs/architectures.md"));
  EXPECT_TRUE(text);
  if (!text) return table;
  for (std::size_t at = 0; (at = text->find("\n| `", at)) != std::string::npos;) {
    const std::size_t name = at + 4, end = text->find('`', name), cell = text->find("| ", end) + 2;
    auto& tests = table[text->substr(name, end - name)];
    const std::string list = text->substr(cell, text->find(" |", cell) - cell);
    for (std::size_t from = 0; from < list.size();) {
      const std::size_t comma = std::min(list.find(", ", from), list.size());
      tests.insert(list.substr(from, comma - from));
      from = comma + 2;
    }
    at = end;
  }
  return table;
}

std::optional<model::ModelSpec> spec_of(const fs::path& path) {
  const auto artifact = artifact::open(path.string());
  if (!artifact) return std::nullopt;
  auto spec = model::read_spec(**artifact);
  return spec ? std::optional(std::move(*spec)) : std::nullopt;
}

// Whether it is accepted, which it may be if the table lists it.
bool is_accepted(const model::ModelSpec& spec, const Table& table, const std::string& where) {
  const auto status = memory::check_embedded(spec);
  if (!status) {
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported) << where;
    return false;
  }
  EXPECT_TRUE(table.contains(spec.architecture)) << spec.architecture << " of " << where;
  return true;
}

TEST(Architectures, NothingIsAcceptedThatTheTableDoesNotList) {
  const Table table = read_table();
  ASSERT_GE(table.size(), 18u);
  int accepted = 0;
  for (const char* folder : {"models", "configs", "quantized"}) {
    const fs::path root = testing::golden_path(folder);
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::directory_iterator(root))
      if (const auto spec = spec_of(entry.path()))
        accepted += is_accepted(*spec, table, entry.path().string()) ? 1 : 0;
  }
  for (const auto& entry : fs::directory_iterator(testing::data_path("model/inventories"))) {
    const auto file = read_json_file(entry.path().string());
    ASSERT_TRUE(file) << entry.path();
    if (const auto spec = model::read_spec((*file)["config"], entry.path().string()))
      accepted += is_accepted(*spec, table, entry.path().string()) ? 1 : 0;
  }
  EXPECT_GT(accepted, 10);
}

TEST(Architectures, EveryRecordingIsInTheRowOfItsArchitecture) {
  const Table table = read_table();
  for (const std::string& name : testing::recorded_names()) {
    const auto config = parse_json(testing::read_recorded(name).config, name);
    ASSERT_TRUE(config) << name;
    const auto spec = model::read_spec(*config, name);
    ASSERT_TRUE(spec) << name << ": " << (spec ? "" : spec.error().describe());
    EXPECT_TRUE(is_accepted(*spec, table, name)) << name;
    const auto row = table.find(spec->architecture);
    EXPECT_TRUE(row != table.end() && row->second.contains(name)) << spec->architecture << " " << name;
  }
}

TEST(Architectures, EveryTestOfTheTableExists) {
  const auto recorded = testing::recorded_names();
  const bool has_all_models = std::getenv("PLIMSOLL_GOLDEN") != nullptr;
  for (const auto& [architecture, tests] : read_table()) {
    EXPECT_FALSE(tests.empty()) << architecture;
    for (const std::string& name : tests) {
      if (std::ranges::binary_search(recorded, name)) continue;
      // Encoders are held to models of their own, several heads to one.
      const std::string embedded = name.starts_with("as ") ? name.substr(3) : name;
      if (fs::exists(testing::data_path("embeddings/" + embedded + ".json"))) continue;
      if (!has_all_models && testing::present("models", {name}).empty()) continue;  // of the full set
      const auto spec = spec_of(testing::golden_path("models/" + name));
      ASSERT_TRUE(spec) << architecture << ": " << name;
      EXPECT_TRUE(memory::check_embedded(*spec)) << name;
      EXPECT_EQ(spec->architecture, architecture) << name;
    }
  }
}

}  // namespace
}  // namespace plimsoll::engine
