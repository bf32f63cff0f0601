// SPDX-License-Identifier: Apache-2.0
// Which known models run here, in which form, in which order; several models and places in one table.
#include "tests/plan/requests.h"

namespace plimsoll::plan {
namespace {

Request fit(const char* engine, const std::string& gpu) {
  Request request;
  request.engine = *facts::parse_engine(engine);
  request.targets.push_back(*parse_target(gpu));
  request.is_fit = true;
  return request;
}

const Row& row_of(const Plan& plan, std::string_view model) {
  static const Row none;
  for (const Row& row : plan.rows)
    if (row.model == model) return row;
  ADD_FAILURE() << model;
  return none;
}

TEST(Fit, TakesTheFirstFormThatFits) {
  Request request = fit("vllm", "24GB");
  for (const char* id : {"meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-8B",
                         "Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B"})
    request.models.push_back(catalogued(id));
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan) << plan.error().describe();
  ASSERT_EQ(plan->rows.size(), 5U);
  // 16 GB of weights leave room for less than 131,072 tokens.
  const Row& shorter = row_of(*plan, "meta-llama/Llama-3.1-8B");
  EXPECT_TRUE(shorter.fits);
  EXPECT_FALSE(shorter.form->format);
  EXPECT_FALSE(shorter.form->is_full_length);
  EXPECT_GE(shorter.max_model_len.value, 4096);
  EXPECT_TRUE(row_of(*plan, "Qwen/Qwen3-0.6B").form->is_full_length);
  EXPECT_EQ(row_of(*plan, "Qwen/Qwen3-32B").form->format, memory::WeightFormat::kInt4);
  EXPECT_FALSE(row_of(*plan, "meta-llama/Llama-3.1-70B").fits);
  // As published and whole, then shorter, then with fewer bits, then not at all.
  EXPECT_EQ(plan->rows.front().model, "Qwen/Qwen3-0.6B");
  EXPECT_EQ(plan->rows[3].model, "Qwen/Qwen3-32B");
  EXPECT_EQ(plan->rows.back().model, "meta-llama/Llama-3.1-70B");
  const Json document = to_json(*plan);
  EXPECT_EQ(document["rows"].items()[3]["form"]["quantization"], Json("int4"));
  EXPECT_EQ(document["rows"].items()[0]["form"]["full_length"], Json(true));
  EXPECT_NE(to_text(*plan).find("fits shorter"), std::string::npos);
}

TEST(Fit, WholeCatalogueIsRankedOrLeftOut) {
  // Of some models 2,048 tokens are more than the context.
  for (const auto& [engine, length] : {std::pair<const char*, std::optional<std::int64_t>>{"vllm", {}},
                                       {"plimsoll", {}},
                                       {"vllm", 2048},
                                       {"plimsoll", 2048}}) {
    Request request = fit(engine, "24GB");
    request.settings.max_model_len = length;
    for (const facts::CatalogueEntry& entry : facts::catalogue())
      request.models.push_back(*catalogue_model(entry));
    const auto plan = make_plan(request);
    ASSERT_TRUE(plan) << engine << ": " << plan.error().describe();
    std::size_t told = plan->rows.size();
    for (const Model& model : request.models) {
      bool has_row = false;
      for (const Row& row : plan->rows) has_row |= row.model == model.source;
      for (const Finding& finding : plan->findings)
        if (!has_row && finding.message.find(model.source) != std::string::npos) {
          ++told;
          break;
        }
    }
    EXPECT_EQ(told, request.models.size()) << engine;
    EXPECT_GT(plan->rows.size(), 20U) << engine;
    bool has_ended = false;
    for (const Row& row : plan->rows) {
      EXPECT_FALSE(has_ended && row.fits) << row.model;
      has_ended |= !row.fits;
      EXPECT_TRUE(row.form);
    }
  }
}

TEST(Tables, OfSeveralModelsAndGpus) {
  Request request = request_for("vllm", "H100", "Qwen/Qwen3-8B");
  request.targets.push_back(*parse_target("L40S:2"));
  request.models.push_back(catalogued("Qwen/Qwen3-32B"));
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->rows.size(), 4U);
  EXPECT_EQ(plan->rows[1].target->name, "L40S");
  EXPECT_EQ(plan->rows[1].tensor_parallel, 2);
  const std::string text = to_text(*plan);
  EXPECT_NE(text.find("Qwen/Qwen3-8B   fits"), std::string::npos) << text;
  EXPECT_NE(text.find("2 x L40S"), std::string::npos) << text;
}

}  // namespace
}  // namespace plimsoll::plan
