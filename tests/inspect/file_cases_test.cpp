// SPDX-License-Identifier: Apache-2.0
// Faults of files that users of other tools reported, each as a test of its own: what `inspect` says, and
// with which exit class.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "inspect/inspect.h"
#include "tests/testing/golden.h"
#include "tests/testing/made_files.h"

namespace plimsoll::inspect {
namespace {

using testing::data_path;
using testing::MadeFolder;
using testing::safetensors_file;

Report report_of(const std::string& model, const Options& options = {}) {
  auto report = inspect(model, options);
  EXPECT_TRUE(report) << report.error().describe();
  return report ? std::move(*report) : Report{};
}

const Finding* finding_of(const Report& report, std::string_view id) {
  for (const Finding& finding : report.findings)
    if (finding.id == id) return &finding;
  return nullptr;
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(FileCases, GgufAlignmentOf16) {
  Options options;
  options.lists_tensors = true;
  const std::string file = data_path("cases/file/alignment_16/a16.gguf");
  const Report report = report_of(file, options);
  ASSERT_EQ(report.tensors.size(), 3U);
  const char* names[] = {"a.weight", "b.weight", "c.weight"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report.tensors.items()[i]["name"], Json(names[i]));
    EXPECT_EQ(report.tensors.items()[i]["offset_bytes"], Json(272 + 16 * static_cast<int>(i)));
    options.tensor = names[i];
    const Report one = report_of(file, options);
    ASSERT_FALSE(one.tensor["first"].items().empty());
    EXPECT_EQ(one.tensor["first"].items().front().as_double(), 4.0 * static_cast<double>(i) + 1) << names[i];
  }
}

TEST(FileCases, GgufAlignmentsThatAreNone) {
  const std::string whole = read_all(data_path("cases/file/alignment_16/a16.gguf"));
  const std::size_t at = whole.find("general.alignment") + 17 + 4;
  for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 48U, 0x80000000U}) {
    const MadeFolder folder;
    folder.put("a.gguf", std::string(whole).replace(at, 4, testing::le32(alignment)));
    const Report report = report_of((folder.path() / "a.gguf").string());
    const Finding* finding = finding_of(report, "GGUF_ALIGNMENT");
    ASSERT_NE(finding, nullptr) << alignment;
    EXPECT_NE(finding->message.find("general.alignment is " + std::to_string(alignment)), std::string::npos)
        << finding->message;
    EXPECT_EQ(verdict_code(report.findings), ErrorCode::kMalformed);
  }
}

TEST(FileCases, GgufDimensionsThatAreNone) {
  for (const char* name : {"zero_dim", "wrap", "ndims", "ndims_1e6", "neg_dim"}) {
    const Report report = report_of(data_path("cases/file/bad_dims/" + std::string(name) + ".gguf"));
    EXPECT_EQ(verdict_code(report.findings), ErrorCode::kMalformed) << name;
    bool names_tensor = false;
    for (const Finding& finding : report.findings)
      names_tensor |= finding.level == FindingLevel::kError &&
                      finding.where.find("t.weight") != std::string::npos &&
                      finding.message.find('\n') == std::string::npos;
    EXPECT_TRUE(names_tensor) << name;
    EXPECT_TRUE(!report.weights.bytes || report.weights.bytes->value == 0) << name;
  }
}

TEST(FileCases, LfsPointerInPlaceOfWeights) {
  const Report report = report_of(data_path("cases/file/lfs_pointer"));
  const Finding* finding = finding_of(report, "LFS_POINTER");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->where, "model.safetensors: byte 0");
  EXPECT_NE(finding->message.find("4976698672"), std::string::npos);
  EXPECT_EQ(verdict_code(report.findings), ErrorCode::kMalformed);
  EXPECT_EQ(report.weights.num_tensors, 0);
  EXPECT_EQ(finding_of(report, "ST_HEADER_LEN"), nullptr);
}

// The same pointer under every name that a loader opens.
TEST(FileCases, LfsPointersInPlaceOfOtherFiles) {
  const std::string pointer = read_all(data_path("cases/file/lfs_pointer/model.safetensors"));
  const std::string config = read_all(data_path("cases/file/lfs_pointer/config.json"));
  for (const char* name : {"tokenizer.json", "tokenizer.model", "config.json", "generation_config.json",
                           "model.safetensors.index.json", "pytorch_model.bin", "model.gguf"}) {
    const MadeFolder folder;
    folder.put("config.json", config);
    folder.put(name, pointer);
    const Report report = report_of(folder.path().string());
    const Finding* finding = finding_of(report, "LFS_POINTER");
    ASSERT_NE(finding, nullptr) << name;
    EXPECT_EQ(finding->where, std::string(name) + ": byte 0");
    EXPECT_NE(finding->message.find("4976698672"), std::string::npos);
    EXPECT_EQ(verdict_code(report.findings), ErrorCode::kMalformed) << name;
  }
  const MadeFolder folder;
  folder.put("tokenizer.json", pointer);
  const auto lone = inspect((folder.path() / "tokenizer.json").string());
  ASSERT_FALSE(lone);
  EXPECT_NE(lone.error().message.find("LFS pointer"), std::string::npos);
}

constexpr const char* kIndex =
    R"({"metadata":{"total_size":98304},"weight_map":{
 "model.embed_tokens.weight":"model-00001-of-00002.safetensors",
 "model.layers.0.self_attn.q_proj.weight":"model-00001-of-00002.safetensors",
 "model.layers.1.self_attn.q_proj.weight":"model-00002-of-00002.safetensors",
 "lm_head.weight":"model-00002-of-00002.safetensors"}})";

// The public case's folder: two shards of 49,152 bytes; values do not matter to it.
void put_shards(const MadeFolder& folder, int count) {
  folder.put("config.json", read_all(data_path("cases/file/lfs_pointer/config.json")));
  folder.put("model.safetensors.index.json", kIndex);
  folder.put(
      "model-00001-of-00002.safetensors",
      safetensors_file(
          R"({"model.embed_tokens.weight": {"dtype": "BF16", "shape": [320, 64], "data_offsets": [0, 40960]}, "model.layers.0.self_attn.q_proj.weight": {"dtype": "BF16", "shape": [64, 64], "data_offsets": [40960, 49152]}}    )",
          std::string(49152, '\0')));
  if (count > 1)
    folder.put(
        "model-00002-of-00002.safetensors",
        safetensors_file(
            R"({"model.layers.1.self_attn.q_proj.weight": {"dtype": "BF16", "shape": [64, 64], "data_offsets": [0, 8192]}, "lm_head.weight": {"dtype": "BF16", "shape": [320, 64], "data_offsets": [8192, 49152]}})",
            std::string(49152, '\0')));
}

TEST(FileCases, IndexNamesAShardThatIsAbsent) {
  const MadeFolder folder;
  put_shards(folder, 1);
  const Report report = report_of(folder.path().string());
  const Finding* finding = finding_of(report, "IDX_ABSENT_SHARD");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("model-00002-of-00002.safetensors"), std::string::npos);
  EXPECT_NE(finding->message.find("2 tensors"), std::string::npos);
  EXPECT_EQ(verdict_code(report.findings), ErrorCode::kMalformed);
  EXPECT_EQ(report.weights.index_total_size_bytes, 98304);
}

TEST(FileCases, StraySecondCopiesAreNotAdded) {
  const MadeFolder folder;
  put_shards(folder, 2);
  const std::string copy = safetensors_file(
      R"({"embed_tokens.weight": {"dtype": "BF16", "shape": [320, 64], "data_offsets": [0, 40960]}})",
      std::string(40960, '\0'));
  folder.put("consolidated.safetensors", copy);
  folder.put("original/model.safetensors", copy);
  const Report report = report_of(folder.path().string());
  EXPECT_EQ(report.weights.bytes, Bytes(98304));
  EXPECT_EQ(report.weights.num_tensors, 4);
  EXPECT_EQ(report.weights.num_files, 2);
  std::size_t told = 0;
  for (const Finding& finding : report.findings)
    if (finding.id == "WEIGHTS_DUPLICATE_SET") {
      EXPECT_NE(finding.message.find(std::to_string(copy.size())), std::string::npos) << finding.message;
      EXPECT_TRUE(finding.where == "consolidated.safetensors" || finding.where == "original")
          << finding.where;
      ++told;
    }
  EXPECT_EQ(told, 2U);
}

}  // namespace
}  // namespace plimsoll::inspect
