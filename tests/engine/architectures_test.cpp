// SPDX-License-Identifier: Apache-2.0
// What the engine accepts is what docs/architectures.md lists: no architecture slips in that nobody looked
// at.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "artifact/artifact.h"
#include "base/mapped_file.h"
#include "memory/embedded.h"
#include "model/model.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

struct Table {
  std::set<std::string> architectures, tests;
};

// Rows "| `Name` | test, test | ... |".
Table read_table() {
  Table table;
  const auto text = read_file(testing::data_path("../docs/architectures.md"));
  EXPECT_TRUE(text);
  if (!text) return table;
  for (std::size_t at = 0; (at = text->find("\n| `", at)) != std::string::npos;) {
    const std::size_t name = at + 4, end = text->find('`', name), cell = text->find("| ", end) + 2;
    table.architectures.insert(text->substr(name, end - name));
    const std::string tests = text->substr(cell, text->find(" |", cell) - cell);
    for (std::size_t from = 0; from < tests.size();) {
      const std::size_t comma = std::min(tests.find(", ", from), tests.size());
      if (!tests.substr(from, comma - from).starts_with("as "))
        table.tests.insert(tests.substr(from, comma - from));
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

TEST(Architectures, NothingIsAcceptedThatTheTableDoesNotList) {
  const Table table = read_table();
  ASSERT_GE(table.architectures.size(), 18u);
  int accepted = 0;
  for (const char* folder : {"models", "configs", "quantized"}) {
    const fs::path root = testing::golden_path(folder);
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::directory_iterator(root)) {
      const auto spec = spec_of(entry.path());
      if (!spec) continue;
      const auto status = memory::check_embedded(*spec);
      accepted += status ? 1 : 0;
      if (status)
        EXPECT_TRUE(table.architectures.contains(spec->architecture)) << entry.path();
      else
        EXPECT_EQ(status.error().code, ErrorCode::kUnsupported) << entry.path();
    }
  }
  EXPECT_GT(accepted, 10);
}

TEST(Architectures, EveryTestOfTheTableIsAModelThatIsAccepted) {
  const Table table = read_table();
  const std::vector<std::string> names(table.tests.begin(), table.tests.end());
  const auto present = testing::present("models", names);
  EXPECT_GT(present.size(), 10u);
  for (const std::string& name : present) {
    const auto spec = spec_of(testing::golden_path("models/" + name));
    ASSERT_TRUE(spec) << name;
    EXPECT_TRUE(memory::check_embedded(*spec)) << name;
    EXPECT_TRUE(table.architectures.contains(spec->architecture)) << name;
  }
}

}  // namespace
}  // namespace plimsoll::engine
