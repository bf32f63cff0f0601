// SPDX-License-Identifier: Apache-2.0
// The length that a lock record gives, held against the model's.
#include <gtest/gtest.h>

#include <algorithm>

#include "artifact/lock.h"
#include "base/mapped_file.h"
#include "inspect/inspect.h"
#include "tests/testing/made_files.h"

namespace plimsoll::inspect {
namespace {

TEST(LockedLength, AnotherDefaultLengthIsAWarning) {
  const testing::MadeFolder folder, other;
  const std::string config =
      R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":8,"num_hidden_layers":1,)"
      R"("num_attention_heads":2,"vocab_size":16,"intermediate_size":8,"max_position_embeddings":1024})";
  folder.put("config.json", config);
  artifact::LockRecord record;
  record.files = {{"config.json", static_cast<std::int64_t>(config.size()), {}}};
  record.repo = "org/name";
  record.commit = std::string(40, 'a');
  const auto told = [&](std::optional<std::int64_t> length) {
    record.max_model_len = length;
    other.put("x.lock", dump_pretty(artifact::to_json(record)));
    const auto report = inspect(folder.path().string(), {.lock = (other.path() / "x.lock").string()});
    EXPECT_TRUE(report);
    Findings found;
    if (!report) return found;
    EXPECT_EQ(report->context.max_model_len, 1024);
    std::copy_if(report->findings.begin(), report->findings.end(), std::back_inserter(found),
                 [](const Finding& finding) { return finding.id == "LOCK_MISMATCH"; });
    return found;
  };
  EXPECT_TRUE(told(1024).empty());
  EXPECT_TRUE(told(std::nullopt).empty());
  const Findings findings = told(4096);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].level, FindingLevel::kWarning);
  EXPECT_NE(findings[0].message.find("4096 tokens, the model has 1024"), std::string::npos)
      << findings[0].message;
}

}  // namespace
}  // namespace plimsoll::inspect
