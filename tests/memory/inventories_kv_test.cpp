// SPDX-License-Identifier: Apache-2.0
// One small config per family: bytes that a token costs, as transformers' cache held them after a forward
// pass.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "memory/memory.h"
#include "model/model.h"
#include "tests/testing/golden.h"

namespace plimsoll::memory {
namespace {

TEST(Inventories, CachesHoldWhatTheReferenceHeld) {
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::data_path("model/inventories"))) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto row = read_json_file(entry.path().string());
    ASSERT_TRUE(row) << row.error().describe();
    const auto expected = (*row)["kv_bytes_per_token"].as_integer();
    if (!expected) continue;
    const auto spec = model::read_spec((*row)["config"], "config.json");
    ASSERT_TRUE(spec) << spec.error().describe();
    const auto bytes = kv_bytes_per_token(*spec, DType::kBF16);
    ASSERT_TRUE(bytes) << bytes.error().describe();
    EXPECT_EQ(bytes->value, *expected);
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

}  // namespace
}  // namespace plimsoll::memory
