// SPDX-License-Identifier: Apache-2.0
// The worked example of the published figures: Qwen3.8-Flash-Next by its config alone, and as the files that
// its header census describes (zeros without blocks on disk). Expected: golden/qwen38.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/json.h"
#include "inspect/inspect.h"
#include "tests/testing/golden.h"
#include "tests/testing/made_files.h"

namespace plimsoll::inspect {
namespace {

Json expected() {
  const auto json = read_json_file(testing::golden_path("qwen38/expected.json"));
  return json ? *json : Json();
}

// One file of all tensors in the census; its data is a hole.
std::int64_t write_weights(const std::filesystem::path& path) {
  std::ifstream census(testing::golden_path("qwen38/tensors.tsv"));
  std::string line, header = "{";
  std::getline(census, line);
  std::int64_t end = 0;
  while (std::getline(census, line)) {
    std::stringstream cells(line);
    std::string name, dtype, shape, bytes;
    for (std::string* cell : {&name, &dtype, &shape, &bytes}) std::getline(cells, *cell, '\t');
    header += (header.size() > 1 ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" +
              shape + "],\"data_offsets\":[" + std::to_string(end) + "," +
              std::to_string(end + std::stoll(bytes)) + "]}";
    end += std::stoll(bytes);
  }
  header += "}";
  std::ofstream(path, std::ios::binary) << testing::le64(header.size()) << header;
  std::filesystem::resize_file(path, 8 + header.size() + static_cast<std::uintmax_t>(end));
  return end;
}

void expect_cache(const Report& report) {
  ASSERT_TRUE(report.kv_cache);
  EXPECT_EQ(report.kv_cache->bytes_per_token.value, 24'576);
  EXPECT_EQ(report.kv_cache->growing_bytes_per_token.value, 24'576);
  EXPECT_EQ(report.kv_cache->indexer_bytes_per_token.value, 768);
  EXPECT_EQ(report.kv_cache->state_bytes_per_sequence.value,
            expected()["kv"]["state_bytes_per_sequence"]["total_no_speculation"].as_integer());
  EXPECT_EQ(report.kv_cache->sequence_tokens, 262'144);
  EXPECT_EQ(report.kv_cache->bytes_per_sequence,
            Bytes(6 * kGiB + 768 * 262'144 + report.kv_cache->state_bytes_per_sequence.value));
}

TEST(Qwen38Sizes, OfTheLoneConfig) {
  if (expected().is_null()) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  const auto report = inspect(testing::golden_path("qwen38/config.json"));
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_EQ(report->weights.bytes, Bytes(359'999'963'128));
  EXPECT_EQ(report->parameters.hub_total, expected()["parameters"]["total_values"].as_integer());
  EXPECT_EQ(report->parameters.mtp, expected()["parameters"]["mtp"].as_integer());
  expect_cache(*report);
  const std::string page = to_text(*report);
  for (const char* part :
       {"359,999,963,128 bytes (360.00 GB, 335.28 GiB)", "24,576 (bf16)",
        "6,442,450,944 bytes (6.44 GB, 6.00 GiB)", "201,326,592 bytes", "115,655,808 bytes"})
    EXPECT_NE(page.find(part), std::string::npos) << part << " in\n" << page;
}

TEST(Qwen38Sizes, OfItsFiles) {
  if (expected().is_null()) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  const testing::MadeFolder folder;
  std::filesystem::copy_file(testing::golden_path("qwen38/config.json"), folder.path() / "config.json");
  ASSERT_EQ(write_weights(folder.path() / "model.safetensors"), 359'999'963'128);
  const auto report = inspect(folder.path().string());
  ASSERT_TRUE(report) << report.error().describe();
  EXPECT_EQ(report->weights.bytes, Bytes(359'999'963'128));
  EXPECT_EQ(report->weights.num_tensors, 1'658);
  ASSERT_EQ(report->weights.by_dtype.size(), 2U);
  EXPECT_EQ(report->weights.by_dtype[0].dtype, DType::kBF16);
  EXPECT_EQ(report->weights.by_dtype[0].num_tensors, 1'655);
  EXPECT_EQ(report->weights.by_dtype[0].parameters, 179'999'981'424);
  EXPECT_EQ(report->weights.by_dtype[1].dtype, DType::kI64);
  EXPECT_EQ(report->weights.by_dtype[1].bytes, Bytes(280));
  EXPECT_EQ(report->parameters.hub_total, 179'999'981'459);
  EXPECT_EQ(report->parameters.mtp, expected()["parameters"]["mtp"].as_integer());
  std::int64_t sum = report->parameters.total.value_or(0);
  for (const Difference& difference : report->parameters.differences) sum += difference.parameters;
  EXPECT_EQ(sum, 179'999'981'459);
  expect_cache(*report);
}

}  // namespace
}  // namespace plimsoll::inspect
