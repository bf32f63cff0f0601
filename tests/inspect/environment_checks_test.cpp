// SPDX-License-Identifier: Apache-2.0
#include "inspect/environment_checks.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

std::string quantized(const std::string& quantization) {
  std::string text(kSmallLlama);
  text.pop_back();
  return text + R"(,"quantization_config":)" + quantization + "}";
}

Report on(const std::string& gpu, const std::string& config) {
  ModelFolder folder;
  folder.write("config.json", config);
  Options options;
  options.gpu = gpu;
  return folder.inspected(options);
}

const std::string kFp8 = quantized(R"({"quant_method":"fp8","weight_block_size":[128,128]})");

TEST(EnvironmentChecks, NullUnlessAsked) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  EXPECT_TRUE(to_json(folder.inspected())["environment"].is_null());
}

TEST(EnvironmentChecks, FormatsAgainstComputeCapability) {
  EXPECT_EQ(finding_of(on("H100", kFp8), "ENV_COMPUTE_CAPABILITY"), nullptr);
  const Report ampere = on("A100-PCIe-40GB", kFp8);  // 8.0: loads, computes wider
  ASSERT_NE(finding_of(ampere, "ENV_COMPUTE_CAPABILITY"), nullptr);
  EXPECT_EQ(finding_of(ampere, "ENV_COMPUTE_CAPABILITY")->level, FindingLevel::kInfo);
  EXPECT_NE(finding_of(ampere, "ENV_COMPUTE_CAPABILITY")->message.find("8.9"), std::string::npos);
  const Report volta = on("V100-SXM2-16GB", kFp8);  // 7.0: not at all
  ASSERT_NE(finding_of(volta, "ENV_COMPUTE_CAPABILITY"), nullptr);
  EXPECT_EQ(finding_of(volta, "ENV_COMPUTE_CAPABILITY")->level, FindingLevel::kError);
  EXPECT_EQ(verdict_code(volta.findings), ErrorCode::kNo);
  const Json row = to_json(ampere)["environment"].items().front();
  EXPECT_EQ(row["found"], Json("8.0"));
  EXPECT_EQ(row["ok"], Json(true));
  EXPECT_FALSE(row["source"].is_null());
}

TEST(EnvironmentChecks, PlainBf16OnTuring) {
  const Report report = on("T4", std::string(kSmallLlama));
  ASSERT_NE(finding_of(report, "ENV_COMPUTE_CAPABILITY"), nullptr);
  EXPECT_EQ(finding_of(report, "ENV_COMPUTE_CAPABILITY")->level, FindingLevel::kInfo);
}

TEST(EnvironmentChecks, WeightsThatDoNotFit) {
  Options options;
  options.gpu = "T4:2";
  const auto report = inspect("meta-llama/Llama-3.1-70B", options);
  ASSERT_TRUE(report) << report.error().describe();
  const auto* finding = finding_of(*report, "ENV_GPU_MEMORY");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("141107412992"), std::string::npos) << finding->message;
  EXPECT_NE(finding_of(*report, "ENV_INTERCONNECT"), nullptr);  // T4s talk over PCIe
  options.gpu = "H100:8";
  const auto large = inspect("meta-llama/Llama-3.1-70B", options);
  ASSERT_TRUE(large);
  EXPECT_EQ(finding_of(*large, "ENV_GPU_MEMORY"), nullptr);
  EXPECT_EQ(finding_of(*large, "ENV_INTERCONNECT"), nullptr);
}

TEST(EnvironmentChecks, ASizeInsteadOfAName) {
  const auto two = surroundings_of_gpu("24GB:2");
  ASSERT_TRUE(two) << two.error().describe();
  EXPECT_EQ(two->num_gpus, 2);
  EXPECT_EQ(two->gpu_memory, Bytes(24'000'000'000));
  EXPECT_EQ(two->gpu, nullptr);
  EXPECT_EQ(surroundings_of_gpu("22.05GiB")->gpu_memory, Bytes(23'676'007'219));
  Options options;
  options.gpu = "24GB:2";
  const auto report = inspect("meta-llama/Llama-3.1-70B", options);
  ASSERT_TRUE(report);
  EXPECT_NE(finding_of(*report, "ENV_GPU_MEMORY"), nullptr);
}

TEST(EnvironmentChecks, NamesThatAreNone) {
  EXPECT_FALSE(surroundings_of_gpu("NoSuchGpu"));
  EXPECT_FALSE(surroundings_of_gpu("H100:0"));
  EXPECT_FALSE(surroundings_of_gpu("H100:many"));
  EXPECT_FALSE(surroundings_of_gpu(""));
  const auto four = surroundings_of_gpu("h100:4");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->num_gpus, 4);
  EXPECT_EQ(four->compute_capability, 90);
}

struct MachineRows {
  Report report;
  Json rows;
};

// A small model on a machine that has what `change` says.
MachineRows machine_rows(const std::function<void(Surroundings&)>& change) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  MachineRows result{folder.inspected(), {}};
  const auto artifact = artifact::open(folder.path());
  EXPECT_TRUE(artifact);
  if (!artifact) return result;
  const Options options;
  const Subject subject{**artifact, options, "config.json", "", (*artifact)->config()};
  Surroundings around;
  around.origin = "this machine";
  around.is_machine = true;
  change(around);
  result.rows = environment_json(subject, around, result.report);
  return result;
}

TEST(EnvironmentChecks, AnOldDriverAndASmallHost) {
  const auto [report, rows] = machine_rows([](Surroundings& around) {
    around.gpu_name = "NVIDIA H100 80GB HBM3";
    around.num_gpus = 1;
    around.driver = "535.183.01";
    around.free_disk = Bytes(1000);
  });
  ASSERT_NE(finding_of(report, "ENV_DRIVER"), nullptr);
  EXPECT_NE(finding_of(report, "ENV_DRIVER")->message.find("535.183.01"), std::string::npos);
  ASSERT_NE(finding_of(report, "ENV_DISK"), nullptr);
  EXPECT_FALSE(rows.items().empty());
  for (const Json& row : rows.items()) EXPECT_FALSE(row["need"].is_null());
}

TEST(EnvironmentChecks, AMachineWithoutAGpu) {
  const auto [report, rows] = machine_rows([](Surroundings&) {});
  const auto* finding = finding_of(report, "ENV_GPU_NONE");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kWarning);
  EXPECT_FALSE(finding->fix.empty());
}

TEST(EnvironmentChecks, ThisMachineIsRead) {
  const Surroundings here = surroundings_here(".");
  EXPECT_TRUE(here.is_machine);
  ASSERT_TRUE(here.host_memory.has_value());
  EXPECT_GT(here.host_memory->value, 0);
  EXPECT_TRUE(here.free_disk.has_value());
}

}  // namespace
}  // namespace plimsoll::inspect
