// SPDX-License-Identifier: Apache-2.0
#include "verify/verify.h"

#include <gtest/gtest.h>

#include "plan/plan.h"

namespace plimsoll::verify {
namespace {

/// A plan of the embedded engine for Llama 3.1 8B with a pool of `blocks`.
Json plan_of(std::int64_t blocks, std::int64_t max_model_len) {
  plan::Request request;
  request.engine = *facts::parse_engine("plimsoll");
  request.models.push_back(*plan::catalogue_model(*facts::find_catalogue("meta-llama/Llama-3.1-8B")));
  request.settings.num_blocks = blocks;
  request.settings.max_model_len = max_model_len;
  const auto plan = plan::make_plan(request);
  EXPECT_TRUE(plan) << plan.error().describe();
  return plan::to_json(*plan);
}

std::string exact_line(std::int64_t weights, std::int64_t blocks) {
  return "plimsoll memory: {\"weights_bytes\":" + std::to_string(weights) +
         ",\"kv_cache_bytes\":" + std::to_string(blocks * 2'097'152) +
         ",\"kv_bytes_per_token\":131072,\"num_blocks\":" + std::to_string(blocks) +
         ",\"block_size\":16,\"kv_tokens\":" + std::to_string(blocks * 16) + "}\n";
}

Log read(std::string_view text) {
  LogReader reader;
  reader.feed(text);
  return reader.finish();
}

Report compared(std::string_view log, const Json& plan) {
  auto report = compare(read(log), &plan, nullptr);
  EXPECT_TRUE(report) << report.error().describe();
  return std::move(*report);
}

constexpr std::int64_t kWeights = 16'060'522'496;

TEST(Verify, APlanAndItsLogAgree) {
  const Json plan = plan_of(1000, 8192);
  // The very sentence that the plan says the engine will print.
  const std::string log = "Model loading took 14.96 GiB memory and 1.0 seconds\n" +
                          *plan["rows"].items()[0]["log_line"].as_string() + "\n" +
                          exact_line(kWeights, 1000);
  const Report report = compared(log, plan);
  EXPECT_TRUE(report.agrees()) << to_text(report);
  ASSERT_EQ(report.deltas.size(), 4U);
  for (const Delta& delta : report.deltas) EXPECT_TRUE(delta.within_error_bar) << delta.part;
  const Json document = to_json(report);
  EXPECT_EQ(document["schema"], Json("plimsoll.verify/1"));
  EXPECT_EQ(document["deltas"].items()[0]["part"], Json("weights"));
  EXPECT_EQ(document["deltas"].items()[0]["difference_bytes"], Json(0));
  EXPECT_EQ(document["log"]["kv_tokens"], Json(16'000));
  EXPECT_EQ(document["log"]["as_printed"]["max_concurrency"], Json("1.95x"));
}

/// The plan's pool is said to have been decided by `limit`.
Json limited_by(Json plan, const char* limit) {
  for (auto& [key, value] : plan.mutable_members())
    if (key == "rows") value.mutable_items()[0].set("kv_cache_limited_by", limit);
  return plan;
}

TEST(Verify, ASmallerPoolSuggestsAnotherProcess) {
  const Report report = compared(exact_line(kWeights, 900), limited_by(plan_of(1000, 8192), "memory"));
  EXPECT_FALSE(report.agrees());
  ASSERT_EQ(report.causes.size(), 1U);
  EXPECT_EQ(report.causes[0].id, "OTHER_PROCESS");
  EXPECT_EQ(report.causes[0].explains_bytes, 100 * 2'097'152);
  EXPECT_EQ(*report.deltas[1].difference_bytes, -100 * 2'097'152);
  EXPECT_EQ(*report.deltas[2].difference_bytes, -1600 * 131'072);  // tokens, in bytes
}

TEST(Verify, AnotherPoolByFlagIsASetting) {
  const Report report = compared(exact_line(kWeights, 900), plan_of(1000, 8192));
  ASSERT_EQ(report.causes.size(), 1U);
  EXPECT_EQ(report.causes[0].id, "SETTING_DIFFERS");
  EXPECT_NE(report.causes[0].fix.find("--num-gpu-blocks-override"), std::string::npos);
}

TEST(Verify, FewerSequencesAreASetting) {
  // 512 blocks hold one request of 8,192 tokens.
  const Json plan = limited_by(plan_of(4 * 512, 8192), "max_num_seqs");
  EXPECT_EQ(compared(exact_line(kWeights, 2 * 512), plan).causes.at(0).id, "SETTING_DIFFERS");
  EXPECT_EQ(compared(exact_line(kWeights, 2 * 512 + 1), plan).causes.at(0).id, "OTHER_PROCESS");
}

TEST(Verify, TokensOfAnotherSizeTellNoBytes) {
  // The same pool in f32: half the tokens, twice the bytes each.
  const std::string log = "plimsoll memory: {\"weights_bytes\":" + std::to_string(kWeights) +
                          ",\"kv_cache_bytes\":2097152000,\"kv_bytes_per_token\":262144,\"num_blocks\":500,"
                          "\"block_size\":16,\"kv_tokens\":8000}\n";
  const Report report = compared(log, limited_by(plan_of(1000, 8192), "memory"));
  EXPECT_FALSE(report.agrees());
  EXPECT_EQ(report.deltas.at(2).part, "kv_tokens");
  EXPECT_FALSE(report.deltas[2].difference_bytes);
  ASSERT_EQ(report.causes.size(), 1U);
  EXPECT_EQ(report.causes[0].id, "SETTING_DIFFERS");
}

TEST(Verify, WeightsByFormulaHaveABar) {
  const Json plan = plan_of(1000, 8192);
  const Report near = compared(exact_line(kWeights + 32'000'000, 1000), plan);
  EXPECT_TRUE(near.agrees()) << to_text(near);
  EXPECT_NE(to_text(near).find("agrees: +32,000,000 bytes, error bar 160,605,2"), std::string::npos)
      << to_text(near);
  EXPECT_FALSE(compared(exact_line(kWeights + 320'000'000, 1000), plan).agrees());
  Json exact = plan;
  exact.set("basis", Json::object());
  EXPECT_FALSE(compared(exact_line(kWeights + 32'000'000, 1000), exact).agrees());
}

TEST(Verify, CausesComeByLikelihood) {
  const Report report = compared(
      "Model loading took 14.96 GiB memory and 1.0 seconds\nAvailable KV cache memory: 1.00 GiB\n"
      "CPU KV cache size: 8,192 tokens, Maximum concurrency for 4,096 tokens per request: 2.00x\n",
      limited_by(plan_of(1000, 8192), "memory"));
  ASSERT_EQ(report.causes.size(), 2U);
  EXPECT_EQ(report.causes[0].id, "SETTING_DIFFERS");  // and no OTHER_PROCESS beside it
  EXPECT_EQ(report.causes[1].id, "LOG_ROUNDING");     // of the weights, which agree
  EXPECT_GT(report.causes[0].likelihood, report.causes[1].likelihood);
}

TEST(Verify, RoundedLogsAgreeWithinTheirDigits) {
  const Report report = compared(
      "Model loading took 14.96 GiB memory and 1.0 seconds\nAvailable KV cache memory: 1.95 GiB\n"
      "CPU KV cache size: 16,000 tokens, Maximum concurrency for 8,192 tokens per request: 1.95x\n",
      plan_of(1000, 8192));
  EXPECT_TRUE(report.agrees()) << to_text(report);
  ASSERT_EQ(report.causes.size(), 2U);
  for (const Cause& cause : report.causes) EXPECT_EQ(cause.id, "LOG_ROUNDING");
}

TEST(Verify, OneTokenOffIsADisagreementWhenThePlanIsExact) {
  const Report report = compared("CPU KV cache size: 15,999 tokens\n", plan_of(1000, 8192));
  EXPECT_FALSE(report.agrees());
}

TEST(Verify, OtherSettingsAreNamed) {
  const Report report =
      compared("CPU KV cache size: 16,000 tokens, Maximum concurrency for 4,096 tokens per request: 3.91x\n",
               plan_of(1000, 8192));
  EXPECT_FALSE(report.agrees());
  ASSERT_EQ(report.causes.size(), 1U);
  EXPECT_EQ(report.causes[0].id, "SETTING_DIFFERS");
  EXPECT_NE(report.causes[0].evidence.find("4,096"), std::string::npos);
}

TEST(Verify, TheErrorBarOfThePlanCounts) {
  Json plan = plan_of(1000, 8192);
  plan.mutable_members();
  for (auto& [key, value] : plan.mutable_members())
    if (key == "rows") value.mutable_items()[0].set("error_bar_bytes", 10 * 2'097'152);
  EXPECT_TRUE(compared(exact_line(kWeights, 995), plan).agrees());
  EXPECT_FALSE(compared(exact_line(kWeights, 985), plan).agrees());
}

TEST(Verify, AFailedStartIsNoAgreement) {
  const std::string refusal =
      "plimsoll: To serve at least one request with the model's max seq len (131072), (16.00 GiB KV cache is "
      "needed, "
      "which is larger than the available KV cache memory (1.95 GiB). Based on the available memory, the "
      "estimated "
      "maximum model length is 16000.\n";
  const Report unplanned = *compare(read(refusal), nullptr, nullptr);
  EXPECT_TRUE(unplanned.is_recognised());
  EXPECT_FALSE(unplanned.agrees());
  EXPECT_TRUE(to_json(unplanned)["plan"].is_null());
  EXPECT_TRUE(to_json(unplanned)["agrees"].is_null());
  EXPECT_EQ(to_json(unplanned)["deltas"].size(), 0U);
  EXPECT_EQ(to_json(unplanned)["log"]["failed"], Json(true));
  const Report planned = compared(refusal, plan_of(1000, 8192));
  EXPECT_TRUE(planned.disagreement);
  EXPECT_FALSE(compared(refusal, plan_of(1000, 131'072)).disagreement);  // the plan said no as well
}

TEST(Verify, NothingRecognisedIsNull) {
  const Report report = compared("hello\nworld\n", plan_of(1000, 8192));
  EXPECT_FALSE(report.is_recognised());
  EXPECT_TRUE(to_json(report)["log"]["engine"].is_null());
  EXPECT_TRUE(to_json(report)["agrees"].is_null());
}

TEST(Verify, TheLastStartIsCompared) {
  const Report report =
      compared(exact_line(kWeights, 900) + "Model loading took 14.96 GiB memory and 1 seconds\n" +
                   exact_line(kWeights, 1000),
               plan_of(1000, 8192));
  EXPECT_EQ(to_json(report)["runs"].size(), 2U);
  EXPECT_TRUE(report.agrees());
}

TEST(Verify, MeasurementsStandBeside) {
  const Json plan = plan_of(1000, 8192);
  const Json bench = *parse_json(
      R"({"plimsoll":{"max_concurrent_requests_exact":8,"memory_used_bytes":{"peak":17000000000},"live_tokens":{"peak":900}}})",
      "bench");
  const auto report = compare(read(exact_line(kWeights, 1000)), &plan, &bench);
  ASSERT_TRUE(report);
  const Json rows = to_json(*report)["comparison"];
  bool has_peak = false;
  for (const Json& row : rows.items())
    if (row["quantity"] == Json("peak_memory_bytes")) {
      has_peak = true;
      EXPECT_EQ(row["measured"].as_double(), 17'000'000'000.0);
      EXPECT_GT(*row["predicted"].as_double(), 18e9);
    }
  EXPECT_TRUE(has_peak);
}

TEST(Verify, DocumentsOfAnotherKindAreRefused) {
  for (const char* text :
       {"[]", "{}", R"({"schema":"plimsoll.plan/2"})", R"({"schema":"plimsoll.plan/1","rows":[]})",
        R"({"schema":"plimsoll.plan/1","rows":[7]})",
        R"({"schema":"plimsoll.plan/1","rows":[{"fits":true}]})"}) {
    const Json plan = *parse_json(text, "plan");
    const auto report = compare(read("x"), &plan, nullptr);
    ASSERT_FALSE(report) << text;
    EXPECT_EQ(report.error().code, ErrorCode::kMalformed);
  }
  const Json bench = *parse_json("[1]", "bench");
  EXPECT_FALSE(compare(read("x"), nullptr, &bench));
}

TEST(Verify, AbsurdPlansDoNoHarm) {
  const Json plan = *parse_json(
      R"({"schema":"plimsoll.plan/1","rows":[{"fits":true,"weights_bytes_per_gpu":9e18,"kv_cache_bytes_per_gpu":-5,
          "kv_tokens":2000000000000000000,"kv_bytes_per_token_per_gpu":2000000000000000000,"max_concurrency":1e308,
          "error_bar_bytes":9223372036854775807,"kv_bytes_per_request_per_gpu":2000000000000000000,"memory":[1,2]}]})",
      "plan");
  const Report report = compared(
      "CPU KV cache size: 1 tokens, Maximum concurrency for 2 tokens per request: 3.00x\n" + exact_line(1, 1),
      plan);
  EXPECT_FALSE(report.agrees());
  EXPECT_FALSE(dump(to_json(report)).empty());
}

}  // namespace
}  // namespace plimsoll::verify
