// SPDX-License-Identifier: Apache-2.0
// The arithmetic of explaining a published total, on figures made for it.
#include "inspect/hub_causes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plimsoll::inspect {
namespace {

model::ModelSpec table_of(std::int64_t rows, int width, bool ties) {
  model::ModelSpec spec;
  spec.vocab_size = rows;
  spec.hidden_size = width;
  spec.ties_embeddings = ties;
  return spec;
}

TEST(HubCauses, TheFewestCausesThatComeNearest) {
  const std::vector<Difference> causes{{Cause::kMtp, 700, {}},
                                       {Cause::kStoredBuffers, 30, {}},
                                       {Cause::kPacked4Bit, -400, {}},
                                       {Cause::kQuantizationScales, 330, {}}};
  const Explanation whole = explain(330, causes);  // 330 alone, not 700 + 30 - 400
  EXPECT_EQ(whole.rest, 0);
  ASSERT_EQ(whole.differences.size(), 1U);
  EXPECT_EQ(whole.differences[0].cause, Cause::kQuantizationScales);
  EXPECT_EQ(explain(-401, causes).rest, -1);
  EXPECT_TRUE(explain(5, causes).differences.empty());
}

TEST(HubCauses, RowsOfTablesAreWholeAndPadded) {
  const auto padded = vocabulary_rows(64 * 96, table_of(1'000'000 / 64 * 64, 96, true));
  ASSERT_TRUE(padded);
  EXPECT_EQ(padded->parameters, 64 * 96);
  EXPECT_TRUE(vocabulary_rows(-16 * 2 * 96, table_of(32'016, 96, false)));
  EXPECT_FALSE(vocabulary_rows(-16 * 2 * 96, table_of(32'000, 96, false)));  // 31,984 is no multiple of 64
  EXPECT_FALSE(vocabulary_rows(96, table_of(49'152, 96, true)));             // a vector, not a row
  EXPECT_FALSE(vocabulary_rows(64 * 96 + 1, table_of(49'152, 96, true)));
  EXPECT_FALSE(vocabulary_rows(1024 * 96, table_of(49'152, 96, true)));  // too many
  EXPECT_FALSE(vocabulary_rows(0, table_of(49'152, 96, true)));
}

TEST(HubCauses, OnlyRoundTotalsAreRounded) {
  const auto round = explain_rounded(35'951'800'000, 35'107'181'936, {{Cause::kMtp, 844'640'768, {}}});
  ASSERT_TRUE(round);
  EXPECT_EQ(round->rest, 0);
  ASSERT_EQ(round->differences.size(), 2U);
  EXPECT_EQ(round->differences[1].cause, Cause::kRounding);
  EXPECT_EQ(round->differences[1].parameters, -22'704);
  EXPECT_FALSE(explain_rounded(35'951'800'000, 35'951'749'999, {}));  // farther than half a unit
  EXPECT_TRUE(explain_rounded(35'951'800'000, 35'951'750'000, {}));
  EXPECT_FALSE(explain_rounded(35'951'810'000, 35'951'810'001, {}));  // four zeros
  EXPECT_FALSE(explain_rounded(30'000'000'000, 31'577'937'344, {}));  // one digit says little
}

// A layer that reads another's keys has none of its own in the model, but in the file.
TEST(HubCauses, KeysOfLayersThatShareThem) {
  const auto config = parse_json(R"({"model_type":"gemma4_text","architectures":["Gemma4ForCausalLM"],
    "hidden_size":64,"num_hidden_layers":4,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":32,
    "global_head_dim":32,"intermediate_size":96,"vocab_size":320,"vocab_size_per_layer_input":320,
    "hidden_size_per_layer_input":16,"num_kv_shared_layers":2,"max_position_embeddings":128,
    "layer_types":["sliding_attention","full_attention","sliding_attention","full_attention"]})",
                                 "config.json");
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto causes = possible_causes(*spec, std::nullopt);
  const auto shared = std::find_if(causes.begin(), causes.end(),
                                   [](const Difference& cause) { return cause.cause == Cause::kSharedKv; });
  ASSERT_NE(shared, causes.end());
  EXPECT_EQ(shared->parameters, 2 * (2 * 64 * 32 + 32));
}

}  // namespace
}  // namespace plimsoll::inspect
