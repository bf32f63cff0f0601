// SPDX-License-Identifier: Apache-2.0
#include "facts/environment.h"

#include <gtest/gtest.h>

#include "facts/compute_capability.h"

namespace plimsoll::facts {
namespace {

TEST(Environment, ReadsNvidiaSmi) {
  const auto gpus = parse_nvidia_smi(
      "NVIDIA H100 80GB HBM3, 81559 MiB, 570.124.06, 9.0\n"
      "NVIDIA GB10, [N/A], 580.95.05, 12.1\r\n"
      "\n"
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
      "a, b, c, d\n");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpus[0].memory, Bytes(std::int64_t{81559} * kMiB));
  EXPECT_EQ(gpus[0].driver, "570.124.06");
  EXPECT_EQ(gpus[0].compute_capability, 90);
  EXPECT_EQ(gpus[1].memory, std::nullopt);  // unified memory has no number
  EXPECT_EQ(gpus[1].compute_capability, 121);
  EXPECT_TRUE(parse_nvidia_smi("").empty());
  EXPECT_TRUE(parse_nvidia_smi(std::string(100'000, ',')).empty());
}

TEST(Environment, ReadsTheDriverOfProc) {
  EXPECT_EQ(
      parse_driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 2024\n"),
      "535.183.01");
  EXPECT_EQ(
      parse_driver_version(
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\nGCC version:"),
      "570.124.06");
  EXPECT_EQ(parse_driver_version("GCC version: 12.2.0"), "");
  EXPECT_EQ(parse_driver_version(""), "");
}

TEST(Environment, VersionsCompareByNumber) {
  EXPECT_TRUE(is_at_least("580.65.06", "580.65.06"));
  EXPECT_TRUE(is_at_least("570.124.06", "570.26"));
  EXPECT_FALSE(is_at_least("570.124.06", "580.65.06"));
  EXPECT_TRUE(is_at_least("580", "580"));
  EXPECT_FALSE(is_at_least("580", "580.65.06"));
}

TEST(ComputeCapability, Formats) {
  const auto native = [](const char* method, const char* format) {
    const auto* row = find_format_capability(method, format);
    return row ? std::pair(row->native, row->least) : std::pair(0, 0);
  };
  EXPECT_EQ(native("fp8", ""), std::pair(89, 75));
  EXPECT_EQ(native("compressed-tensors", "float-quantized"), std::pair(89, 75));
  EXPECT_EQ(native("compressed-tensors", "nvfp4-pack-quantized"), std::pair(100, 75));
  EXPECT_EQ(native("modelopt", "NVFP4"), std::pair(100, 75));
  EXPECT_EQ(native("modelopt", "FP8"), std::pair(89, 80));
  EXPECT_EQ(native("mxfp4", "mxfp4"), std::pair(100, 80));
  EXPECT_EQ(native("awq", "gemm"), std::pair(75, 75));
  EXPECT_EQ(native("gptq", ""), std::pair(75, 75));
  EXPECT_EQ(native("", "bf16"), std::pair(80, 75));
  EXPECT_EQ(native("no-such", ""), std::pair(0, 0));
  EXPECT_EQ(parse_capability("8.9"), 89);
  EXPECT_EQ(parse_capability("12.1"), 121);
  for (const char* text : {"gfx942", "", "9", "9.", ".9", "9.10", "-1.0", "9.0a"})
    EXPECT_EQ(parse_capability(text), std::nullopt) << text;
}

}  // namespace
}  // namespace plimsoll::facts
