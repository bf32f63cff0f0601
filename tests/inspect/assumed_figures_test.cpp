// SPDX-License-Identifier: Apache-2.0
// Figures that a config leaves out or writes as null: counted as its class would, and told.
#include <gtest/gtest.h>

#include <algorithm>

#include "inspect/inspect.h"
#include "tests/inspect/header_folder.h"

namespace plimsoll::inspect {
namespace {

const Finding* find(const Report& report, const std::string& id) {
  const auto at = std::find_if(report.findings.begin(), report.findings.end(),
                               [&](const Finding& finding) { return finding.id == id; });
  return at == report.findings.end() ? nullptr : &*at;
}

TEST(AssumedFigures, AreTold) {
  Json config =
      *parse_json(R"({"architectures":["MixtralForCausalLM"],"model_type":"mixtral","hidden_size":64,
      "num_attention_heads":2,"num_key_value_heads":2,"num_hidden_layers":2,"intermediate_size":64})",
                  "test");
  {
    const HeaderFolder folder(config, {});
    const auto report = inspect(folder.path());
    ASSERT_TRUE(report) << report.error().describe();
    const Finding* told = find(*report, "CFG_DEFAULT");
    ASSERT_TRUE(told);
    EXPECT_EQ(told->level, FindingLevel::kInfo);
    EXPECT_NE(told->message.find("vocab_size 32000"), std::string::npos) << told->message;
    EXPECT_FALSE(find(*report, "CFG_NULL"));
  }
  {
    // Under another spelling: the file is told about the key that it has.
    Json spelled = config;
    spelled.set("padded_vocab_size", nullptr);
    const HeaderFolder folder(spelled, {});
    const auto report = inspect(folder.path());
    ASSERT_TRUE(report);
    const Finding* told = find(*report, "CFG_NULL");
    ASSERT_TRUE(told);
    EXPECT_EQ(told->where, "config.json: /padded_vocab_size");
    EXPECT_FALSE(find(*report, "CFG_DEFAULT"));
  }
  config.set("vocab_size", nullptr);
  const HeaderFolder folder(config, {});
  const auto report = inspect(folder.path());
  ASSERT_TRUE(report);
  const Finding* told = find(*report, "CFG_NULL");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->level, FindingLevel::kWarning);
  EXPECT_EQ(told->where, "config.json: /vocab_size");
  config.set("vocab_size", 256);
  const HeaderFolder whole(config, {});
  const auto complete = inspect(whole.path());
  ASSERT_TRUE(complete);
  EXPECT_FALSE(find(*complete, "CFG_DEFAULT"));
  EXPECT_FALSE(find(*complete, "CFG_NULL"));
}

}  // namespace
}  // namespace plimsoll::inspect
