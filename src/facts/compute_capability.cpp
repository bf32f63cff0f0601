// SPDX-License-Identifier: Apache-2.0
#include "facts/compute_capability.h"

#include <charconv>
#include <string>

namespace plimsoll::facts {
namespace {

constexpr std::string_view kVllm = "min_capability of vLLM 0.33.0's quantization classes, 2026-11-29";
constexpr std::string_view kHardware =
    "tensor core formats by NVIDIA's architecture papers; vLLM 0.33.0, 2026-11-29";
constexpr std::string_view kLibrary =
    "bitsandbytes' documented minimum; vLLM 0.33.0 does not read it, 2026-11-29";

constexpr std::string_view kWeightOnly =
    "weights stay packed and are widened in the kernel: less memory, no faster arithmetic";
constexpr std::string_view kEmulated = "emulated or weight-only kernels: less memory, no faster arithmetic";

// A row with a format goes before the one for any format.
constexpr FormatCapability kFormats[] = {
    {"", "bf16", 80, 75, "bfloat16 is computed as float16 below 8.0", kHardware},
    {"", "f16", 75, 75, "", "CUDA architectures that vLLM 0.33.0 is built for, 2026-11-29"},
    {"", "f32", 75, 75, "", "CUDA architectures that vLLM 0.33.0 is built for, 2026-11-29"},
    {"fp8", "", 89, 75, kWeightOnly, kVllm},
    {"fbgemm_fp8", "", 89, 80, kWeightOnly, kVllm},
    {"modelopt", "nvfp4", 100, 75, kEmulated, kVllm},
    {"modelopt", "mxfp8", 100, 80, kEmulated, kVllm},
    {"modelopt", "", 89, 80, kWeightOnly, kVllm},
    {"modelopt_fp4", "", 100, 75, kEmulated, kVllm},
    {"compressed-tensors", "nvfp4", 100, 75, kEmulated, kVllm},
    {"compressed-tensors", "mxfp4", 100, 80, kEmulated, kVllm},
    {"compressed-tensors", "mxfp8", 100, 75, kEmulated, kVllm},
    {"compressed-tensors", "pack-quantized", 75, 75, "", kVllm},
    {"compressed-tensors", "int-quantized", 75, 75, "", kVllm},
    {"compressed-tensors", "float-quantized", 89, 75, kWeightOnly, kVllm},
    {"awq", "", 75, 75, "", kVllm},
    {"gptq", "", 75, 75, "", kVllm},
    {"auto-round", "", 75, 75, "", kVllm},
    {"mxfp4", "", 100, 80, "Triton kernels from 9.0, Marlin's weight-only from 8.0", kVllm},
    {"mxfp8", "", 100, 80, kEmulated, kVllm},
    {"torchao", "", 75, 75, "", kVllm},
    {"experts_int8", "", 80, 80, "", kVllm},
    {"fp_quant", "", 100, 100, "", kVllm},
    {"bitsandbytes", "llm.int8", 75, 75, "", kLibrary},
    {"bitsandbytes", "", 60, 60, "", kLibrary},
};

std::string lower(std::string_view text) {
  std::string result(text.substr(0, 200));
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

}  // namespace

const FormatCapability* find_format_capability(std::string_view method, std::string_view format) {
  const std::string wanted = lower(method), kind = lower(format);
  for (const FormatCapability& row : kFormats)
    if (row.method == wanted && kind.find(row.format) != std::string::npos) return &row;
  return nullptr;
}

std::optional<int> parse_capability(std::string_view text) {
  int major = 0, minor = 0;
  const char *begin = text.data(), *end = begin + text.size();
  const auto [dot, error] = std::from_chars(begin, end, major);
  if (error != std::errc{} || dot == end || *dot != '.' || major < 1 || major > 99) return std::nullopt;
  const auto [stop, minor_error] = std::from_chars(dot + 1, end, minor);
  if (minor_error != std::errc{} || stop != end || minor < 0 || minor > 9) return std::nullopt;
  return major * 10 + minor;
}

}  // namespace plimsoll::facts
