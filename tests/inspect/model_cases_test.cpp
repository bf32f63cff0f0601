// SPDX-License-Identifier: Apache-2.0
// Public reports about sizes and configs (data/cases), one test each: what `inspect` has to say of them.
#include <gtest/gtest.h>

#include <map>
#include <variant>

#include "inspect/inspect.h"
#include "tests/inspect/model_folder.h"
#include "tests/testing/golden.h"

namespace plimsoll::inspect {
namespace {

Report report_of(const std::string& path, Options options = {}) {
  auto report = inspect(testing::data_path("cases/" + path), options);
  EXPECT_TRUE(report) << report.error().describe();
  return report ? std::move(*report) : Report{};
}

std::int64_t sequence_bytes(const std::string& path, std::int64_t tokens, const char* dtype = "auto") {
  Options options;
  options.sequence_tokens = tokens;
  options.kv_cache_dtype = dtype;
  const Report report = report_of(path, options);
  return report.kv_cache && report.kv_cache->bytes_per_sequence ? report.kv_cache->bytes_per_sequence->value
                                                                : -1;
}

TEST(ModelCases, Case01HeadsOfEachLayer) {
  const std::string path = "memory/01-mem-lfm2-kv-head-array/lfm2-meta.gguf";
  const Report report = report_of(path);
  ASSERT_TRUE(report.kv_cache);
  EXPECT_EQ(report.kv_cache->bytes_per_token, Bytes(12'288));
  std::map<std::string, int> kinds;
  for (const LayerRun& run : report.layers)
    kinds[std::holds_alternative<model::State>(run.layer.mixer) ? "convolution" : "attention"] += run.count;
  EXPECT_EQ(kinds["attention"], 6);
  EXPECT_EQ(kinds["convolution"], 10);
  const std::int64_t state = report.kv_cache->state_bytes_per_sequence.value;
  EXPECT_GT(state, 0);
  EXPECT_EQ(sequence_bytes(path, 4'096) - state, 50'331'648);
  EXPECT_EQ(sequence_bytes(path, 32'768) - state, 402'653'184);
}

TEST(ModelCases, Case02WindowsAreCountedAndToldApart) {
  const std::string path = "memory/02-mem-sliding-layers-not-free";
  const Report report = report_of(path);
  ASSERT_TRUE(report.kv_cache);
  EXPECT_EQ(report.kv_cache->bytes_per_token, Bytes(73'728));
  EXPECT_EQ(report.kv_cache->growing_bytes_per_token, Bytes(36'864));
  EXPECT_EQ(sequence_bytes(path, 8'192), 306'708'480);  // windows of 128 kept, as the model needs
}

TEST(ModelCases, Case05HeadsBelowTheRanks) {
  const auto row = [](const Report& report, int ranks) {
    for (const ParallelRow& one : report.parallel)
      if (one.tensor_parallel == ranks) return one;
    return ParallelRow{};
  };
  const Report eight = report_of("memory/05-mem-kv-heads-under-tp");
  EXPECT_EQ(eight.kv_cache->bytes_per_token, Bytes(262'144));
  EXPECT_EQ(memory::kv_bytes_per_token(*eight.spec, DType::kBF16, 4), Bytes(65'536));
  EXPECT_TRUE(row(eight, 8).is_possible);
  EXPECT_FALSE(row(eight, 8).kv_replicated);
  const Report four = report_of("memory/05-mem-kv-heads-under-tp/four_kv_heads");
  EXPECT_EQ(memory::kv_bytes_per_token(*four.spec, DType::kBF16, 4), Bytes(24'576));
  EXPECT_EQ(memory::kv_bytes_per_token(*four.spec, DType::kBF16, 8), Bytes(24'576));
  EXPECT_FALSE(row(four, 4).kv_replicated);
  EXPECT_TRUE(row(four, 8).kv_replicated);
}

TEST(ModelCases, Case07ExpertsAreAllResident) {
  const Report report = report_of("memory/07-mem-moe-total-not-active");
  EXPECT_EQ(report.parameters.total, 462'528);
  EXPECT_EQ(report.parameters.active, 204'480);
  EXPECT_EQ(report.weights.bytes, Bytes(925'056));
  for (const Group& group : report.parameters.by_group)
    if (group.group == model::WeightGroup::kExperts) {
      EXPECT_EQ(group.parameters, 294'912);
    }
}

TEST(ModelCases, Case08BlocksOfQuantizedCaches) {
  const std::string path = "memory/08-mem-quantized-kv-block-bytes/llama-meta.gguf";
  EXPECT_EQ(sequence_bytes(path, 8'192, "float16"), 1'073'741'824);
  EXPECT_EQ(sequence_bytes(path, 8'192, "q8_0"), 570'425'344);
  EXPECT_EQ(sequence_bytes(path, 8'192, "q4_0"), 301'989'888);
}

TEST(ModelCases, Case09LayersThatReadTheKeysOfOthers) {
  const std::string path = "memory/09-mem-shared-kv-layers";
  const Report report = report_of(path);
  int owners = 0, readers = 0;
  for (const LayerRun& run : report.layers) (run.layer.kv_source ? readers : owners) += run.count;
  EXPECT_EQ(owners, 20);
  EXPECT_EQ(readers, 15);
  EXPECT_EQ(report.kv_cache->bytes_per_token, Bytes(20 * 2'048));
  EXPECT_EQ(sequence_bytes(path, 32'768), 285'212'672);
}

TEST(ModelCases, Case11TextModelTwoLevelsDown) {
  const Report report = report_of("config/11-cfg-two-level-text-config");
  ASSERT_EQ(report.layers.size(), 1U);
  EXPECT_EQ(report.layers.front().count, 3);
  const auto& attention = std::get<model::Attention>(report.layers.front().layer.mixer);
  EXPECT_EQ(attention.q_heads, 4);
  EXPECT_EQ(attention.kv_heads, 2);
  EXPECT_EQ(report.spec->hidden_size, 64);
  EXPECT_EQ(report.kv_cache->bytes_per_token, Bytes(384));
  EXPECT_EQ(report.kv_cache->dtype, DType::kBF16);
}

TEST(ModelCases, Case13RotaryBaseInEitherPlace) {
  const auto rope = [](const char* folder) {
    const Report report = report_of(std::string("config/13-cfg-rope-theta-two-places/") + folder);
    EXPECT_EQ(report.spec->declared_dtype, DType::kBF16);
    return dump(to_json(report)["context"]["rope"]);
  };
  EXPECT_EQ(rope("new"), R"({"type":"default","theta":500000.0,"factor":1.0})");
  EXPECT_EQ(rope("old"), rope("new"));
  EXPECT_EQ(rope("none"), R"({"type":"default","theta":10000.0,"factor":1.0})");
  EXPECT_EQ(rope("linear"), R"({"type":"linear","theta":20000.0,"factor":2.0})");
  auto old_spec = report_of("config/13-cfg-rope-theta-two-places/old").spec;
  const auto new_spec = report_of("config/13-cfg-rope-theta-two-places/new").spec;
  ASSERT_TRUE(old_spec && new_spec);
  old_spec->name = new_spec->name;  // the folder's
  EXPECT_EQ(*old_spec, *new_spec);
}

// The sources of case 16; what serving does with them is checked there.
TEST(ModelCases, Case16StopIdsAreAUnion) {
  ModelFolder folder;
  std::string config(kSmallLlama);
  config.insert(1, R"("eos_token_id":258,)");
  folder.write("config.json", config).write("generation_config.json", R"({"eos_token_id":[0,3]})");
  folder.write("tokenizer_config.json", R"({"eos_token":"</s>"})");
  folder.write("tokenizer.json",
               R"({"version":"1.0","added_tokens":[{"id":258,"content":"</s>","special":true}],
    "model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"d":3},"merges":[]}})");
  const Report report = folder.inspected();
  std::map<std::int64_t, std::string> stops;
  for (const Json& stop : report.tokenizer["stop_ids"].items())
    stops[stop["id"].as_integer().value_or(-1)] = dump(stop["sources"]);
  ASSERT_EQ(stops.size(), 3U) << dump(report.tokenizer["stop_ids"]);
  EXPECT_NE(stops[0].find("generation_config.json"), std::string::npos);
  EXPECT_NE(stops[3].find("generation_config.json"), std::string::npos);
  EXPECT_NE(stops[258].find("\"config.json"), std::string::npos);
  EXPECT_NE(stops[258].find("tokenizer_config.json"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::inspect
