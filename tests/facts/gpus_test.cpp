// SPDX-License-Identifier: Apache-2.0
#include "facts/gpus.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "tests/testing/golden.h"

namespace plimsoll::facts {
namespace {

std::string name_of(std::string_view text) {
  const auto gpu = find_gpu(text);
  return gpu ? std::string((*gpu)->name) : "error: " + gpu.error().message;
}

TEST(Gpus, NamesMatchWithoutCaseSpacesOrVendor) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"H100", "H100-SXM5-80GB"},
      {"h100-80gb", "H100-SXM5-80GB"},
      {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"},
      {"NVIDIA H100 PCIe", "H100-PCIe-80GB"},
      {"H100 NVL", "H100-NVL-94GB"},
      {"A100-80GB", "A100-SXM4-80GB"},
      {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"},
      {"A100-PCIe-80GB", "A100-PCIe-80GB"},
      {"H200", "H200-SXM-141GB"},
      {"B200", "B200-SXM-180GB"},
      {"B300", "B300-SXM-270GB"},
      {"GB10", "DGX-Spark-GB10"},
      {"DGX Spark", "DGX-Spark-GB10"},
      {"RTX PRO 6000", "RTX-PRO-6000-Blackwell"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Blackwell"},
      {"NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"},
      {"NVIDIA GeForce RTX 4090", "RTX-4090"},
      {"4090", "RTX-4090"},
      {"rtx4090 24GB", "RTX-4090"},
      {"Tesla V100-SXM2-32GB", "V100-SXM2-32GB"},
      {"GH200 96GB", "GH200-96GB"},
      {"NVIDIA GH200 480GB", "GH200-96GB"},
      {"GH200 120GB", "GH200-96GB"},
      {"L4", "L4"},
      {"L40S", "L40S"},
      {"AMD Instinct MI300X", "MI300X"},
      {"Apple M4 Max", "Apple-M4-Max"},
  };
  for (const auto& [text, name] : cases) EXPECT_EQ(name_of(text), name) << text;
}

TEST(Gpus, EveryRowIsFoundByItsOwnName) {
  for (const GpuFacts& gpu : all_gpus()) {
    EXPECT_EQ(name_of(gpu.name), gpu.name);
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
  }
}

TEST(Gpus, AnOpenSizeListsTheChoices) {
  for (const char* text : {"A100", "V100", "GH200"}) {
    const auto gpu = find_gpu(text);
    ASSERT_FALSE(gpu) << text;
    EXPECT_EQ(gpu.error().code, ErrorCode::kUsage);
    EXPECT_NE(gpu.error().message.find(std::string(text) + "-"), std::string::npos) << gpu.error().message;
  }
  EXPECT_NE(find_gpu("A100").error().message.find("A100-PCIe-40GB"), std::string::npos);
}

TEST(Gpus, UnknownNamesAndWrongSizesAreRefused) {
  const std::string long_name(5000, '4');
  for (const std::string& text :
       {std::string(), std::string("nvidia"), std::string("H1000"), std::string("H100 24GB"),
        std::string("80gb80gb80gb"), std::string("\xff\xfe"), long_name}) {
    const auto gpu = find_gpu(text);
    ASSERT_FALSE(gpu) << text;
    EXPECT_EQ(gpu.error().code, ErrorCode::kUsage);
  }
}

std::optional<double> cell(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(std::stod(text));
}

TEST(Gpus, RowsAreThoseOfTheTable) {
  const auto text = read_file(testing::golden_path("gpus.tsv"));
  ASSERT_TRUE(text) << text.error().describe();
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);  // header
  std::size_t row = 0;
  for (; std::getline(lines, line); ++row) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == '\t')
        cells.emplace_back();
      else
        cells.back() += c;
    }
    ASSERT_GE(cells.size(), 14U) << line;
    ASSERT_LT(row, all_gpus().size());
    const GpuFacts& gpu = all_gpus()[row];
    EXPECT_EQ(gpu.name, cells[0]);
    EXPECT_EQ(gpu.vendor, cells[1]);
    const auto memory = cell(cells[2]);
    EXPECT_EQ(gpu.memory_mib.has_value(), memory.has_value()) << gpu.name;
    if (memory) {
      EXPECT_EQ(*gpu.memory_mib, static_cast<std::int64_t>(*memory)) << gpu.name;
    }
    EXPECT_EQ(gpu.bandwidth_gb_per_s, cell(cells[4])) << gpu.name;
    EXPECT_EQ(gpu.bf16_dense_tflops, cell(cells[5])) << gpu.name;
    EXPECT_EQ(gpu.fp8_dense_tflops, cell(cells[6])) << gpu.name;
    EXPECT_EQ(gpu.int8_dense_tops, cell(cells[7])) << gpu.name;
    EXPECT_EQ(gpu.fp4_dense_tflops, cell(cells[8])) << gpu.name;
    EXPECT_EQ(gpu.link_gb_per_s, cell(cells[9])) << gpu.name;
    EXPECT_EQ(gpu.has_fp8, cells[12] == "1") << gpu.name;
    EXPECT_EQ(gpu.has_fp4, cells[13] == "1") << gpu.name;
  }
  EXPECT_EQ(row, all_gpus().size());
}

}  // namespace
}  // namespace plimsoll::facts
