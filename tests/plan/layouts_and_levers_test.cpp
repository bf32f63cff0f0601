// SPDX-License-Identifier: Apache-2.0
// What cannot be, what would help, what is printed, and how sure it is.
#include "tests/plan/requests.h"

namespace plimsoll::plan {
namespace {

TEST(EngineAny, HeadsThatCannotBeSplitAreNamed) {
  const auto request = request_for("any", "H100:3", "meta-llama/Llama-3.1-70B");
  EXPECT_FALSE(make_plan(request)->fits());
  const Json row = row_of(request);
  EXPECT_EQ(row["fits"], Json(false));
  for (const char* key : {"weights_bytes_per_gpu", "kv_cache_bytes_per_gpu", "kv_bytes_per_token_per_gpu",
                          "kv_tokens", "estimated_max_model_len", "error_bar_bytes", "command"})
    EXPECT_TRUE(row[key].is_null()) << key;
  const Json* fault = finding_of(row, "TP_DIVISIBILITY");
  ASSERT_TRUE(fault);
  EXPECT_EQ((*fault)["level"], Json("error"));
  for (const char* number : {"64 query", "8 KV", "3 GPUs"})
    EXPECT_NE((*fault)["message"].as_string()->find(number), std::string::npos) << number;
  EXPECT_EQ((*fault)["fix"], Json("use 2 or 4 GPUs"));
  // 24 and 128 GPUs would do for 8 KV heads, not for 64 query heads.
  EXPECT_TRUE(
      finding_of(row_of(request_for("any", "H100:24", "meta-llama/Llama-3.1-70B")), "TP_DIVISIBILITY"));
  EXPECT_TRUE(
      finding_of(row_of(request_for("any", "H100:128", "meta-llama/Llama-3.1-70B")), "TP_DIVISIBILITY"));
}

TEST(EngineAny, KvHeadsAreCopiedBeyondTheirNumber) {
  const Json eight = row_of(request_for("any", "H100:8", "meta-llama/Llama-3.1-70B"));
  const Json sixteen = row_of(request_for("any", "H100:16", "meta-llama/Llama-3.1-70B"));
  EXPECT_EQ(eight["kv_bytes_per_token_per_gpu"], Json(327'680 / 8));
  EXPECT_FALSE(finding_of(eight, "KV_REPLICATED"));
  EXPECT_EQ(sixteen["kv_bytes_per_token_per_gpu"], Json(327'680 / 8));
  EXPECT_EQ(*sixteen["kv_tokens"].as_integer(),
            *sixteen["kv_cache_bytes_per_gpu"].as_integer() / (327'680 / 8));
  EXPECT_EQ(sixteen["kv_tokens"], sixteen["estimated_max_model_len"]);
  const Json* copies = finding_of(sixteen, "KV_REPLICATED");
  ASSERT_TRUE(copies);
  EXPECT_EQ((*copies)["level"], Json("warning"));
}

TEST(EngineAny, WhatItDoesNotCountIsSaidAndNeverGuessed) {
  auto request = request_for("any", "H100");
  request.settings.max_num_seqs = 8;
  EXPECT_TRUE(finding_of(row_of(request), "SETTING_NOT_USED"));
  request.settings.kv_cache_bytes = Bytes(kGiB);
  EXPECT_EQ(make_plan(request).error().code, ErrorCode::kUsage);

  auto multimodal = request_for("any", "H100");
  multimodal.models.front().spec.encoders = {"vision_config"};
  multimodal.models.front().spec.has_all_weights = false;
  EXPECT_EQ(make_plan(multimodal).error().code, ErrorCode::kUnsupported);
  multimodal.models.front().stored_weights = Bytes(16 * kGB);  // counted in the files' headers
  EXPECT_TRUE(make_plan(multimodal));
}

TEST(EngineAny, ARefusalSaysWhatItNeedsAndHas) {
  auto request = request_for("any", "80GB", "meta-llama/Llama-3.1-70B");
  request.settings.max_model_len = 8191;
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  const Json document = to_json(*plan);
  const Json& row = document["rows"].items()[0];
  EXPECT_EQ(row["kv_cache_bytes_per_gpu"], Json(0));
  const std::string text = to_text(*plan);
  EXPECT_NE(text.find("does not fit: needs 145.79 GB per GPU, has 73.60 GB per GPU"), std::string::npos)
      << text;
  EXPECT_NE(text.find("weights per GPU"), std::string::npos) << text;
  EXPECT_NE(text.find("error bar per GPU"), std::string::npos) << text;
  EXPECT_NE(text.find("--gpu 80GB:4"), std::string::npos) << text;  // two would not hold it
  EXPECT_EQ(document["basis"]["/rows/0/kv_cache_bytes_per_gpu"]["low"].as_double(), 0.0);
  request.is_simple = true;
  const std::string simple = to_text(*make_plan(request));
  EXPECT_NE(simple.find("does not fit: needs 145.79 GB, has 73.60 GB"), std::string::npos) << simple;
  for (char digit = '0'; digit <= '9'; ++digit)
    for (const std::string& page : {text, simple})
      EXPECT_EQ(page.find(std::string(" -") + digit), std::string::npos) << page;
}

TEST(Catalogue, EveryModelHasALineWithItsId) {
  auto request = request_for("any", "80GB");
  request.models.push_back(catalogued("meta-llama/Llama-3.1-70B"));
  const std::string text = to_text(*make_plan(request));
  for (const char* line : {"\nmeta-llama/Llama-3.1-8B   fits", "\nmeta-llama/Llama-3.1-70B  does not fit"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in" << text;
}

TEST(Levers, ThatBringNothingAreLeftOut) {
  auto request = request_for("plimsoll", "24GB");
  request.settings.max_model_len = 8192;
  const Json row = row_of(request);
  ASSERT_EQ(row["levers"].size(), 3U);
  const Json& pool = row["levers"].items()[0];
  EXPECT_EQ(pool["id"], Json("kv_cache_memory_bytes"));
  EXPECT_GT(*pool["kv_tokens_after"].as_integer(), *pool["kv_tokens_before"].as_integer());
  EXPECT_EQ(row["levers"].items()[1]["id"], Json("max_model_len"));
  EXPECT_EQ(row["levers"].items()[2]["flag"], Json("--kv-cache-dtype int8"));
  EXPECT_NE(row["memory"].items()[1]["why"].as_string()->find("default limit of 4 GiB"), std::string::npos);
  EXPECT_EQ(row["kv_cache_limited_by"], Json("default_limit"));
}

TEST(Levers, TheLengthOfARefusalIsTheOneThatFits) {
  auto request = request_for("plimsoll", "18GB");
  request.settings.max_model_len = 2225;  // odd, and one too long
  const Json refused = row_of(request);
  ASSERT_EQ(refused["fits"], Json(false));
  const Json& length = refused["levers"].items().at(0);
  EXPECT_EQ(length["flag"],
            Json("--max-model-len " + std::to_string(*refused["estimated_max_model_len"].as_integer())));
}

TEST(Commands, NeedWeightsAndAPlanThatFits) {
  auto request = request_for("plimsoll", "24GB");
  request.settings.max_model_len = 8192;
  EXPECT_TRUE(row_of(request)["command"].is_null());
  EXPECT_TRUE(finding_of(row_of(request), "NEEDS_WEIGHTS"));
  request.models[0].stored_weights = Bytes(16'060'522'496);
  EXPECT_EQ(row_of(request)["command"].items()[0], Json("plimsoll"));
  EXPECT_FALSE(finding_of(row_of(request), "NEEDS_WEIGHTS"));
  request.settings.max_model_len = 131'072;
  EXPECT_EQ(row_of(request)["fits"], Json(false));
  EXPECT_TRUE(row_of(request)["command"].is_null());
}

TEST(Basis, NamesEveryNumberThatFollowsFromMemory) {
  auto request = request_for("plimsoll", "20GB");
  request.settings.max_model_len = 8192;
  const auto kinds = [&] { return to_json(*make_plan(request))["basis"]; };
  for (const char* field :
       {"kv_cache_bytes_per_gpu", "num_blocks", "kv_tokens", "max_concurrency", "estimated_max_model_len",
        "error_bar_bytes", "memory/1/bytes", "memory/5/bytes", "memory/12/bytes"})
    EXPECT_EQ(kinds()["/rows/0/" + std::string(field)]["kind"], Json("assumed")) << field;
  for (const char* field : {"weights_bytes_per_gpu", "memory/0/bytes", "ranks/0/weights_bytes"})
    EXPECT_EQ(kinds()["/rows/0/" + std::string(field)]["kind"], Json("formula")) << field;
  request.models[0].stored_weights = Bytes(16'060'522'496);
  request.settings.num_blocks = 600;  // the flag decides now
  for (const char* field : {"weights_bytes_per_gpu", "kv_cache_bytes_per_gpu", "num_blocks", "kv_tokens",
                            "max_concurrency", "estimated_max_model_len", "error_bar_bytes"})
    EXPECT_TRUE(kinds()["/rows/0/" + std::string(field)].is_null()) << field;
}

}  // namespace
}  // namespace plimsoll::plan
