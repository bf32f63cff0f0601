// SPDX-License-Identifier: Apache-2.0
#include "memory/embedded_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "memory/quantized_weights.h"

namespace plimsoll::memory {
namespace {

using model::Layout;

constexpr std::array<std::string_view, 8> kMethods{"gptq", "awq",        "compressed-tensors", "bitsandbytes",
                                                   "fp8",  "fbgemm_fp8", "modelopt",           "mxfp4"};

// How the format is named under which a method packs as it is read here; nothing is its default.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFormats{
    {{"gptq", "gptq"}, {"gptq", "gptq_v2"}, {"awq", "gemm"}, {"awq", "GEMM"}}};

tl::unexpected<Error> unsupported(const model::Quantization& declared, const std::string& what) {
  const std::string place = declared.pointer.empty() ? declared.file : "config.json: " + declared.pointer;
  return fail(ErrorCode::kUnsupported, "the embedded engine does not read " + what, place,
              "serve it with another engine, or take a GGUF or unquantized version");
}

bool is_packed_so(const model::Quantization& declared) {
  const std::string* format = declared.format.as_string();
  if (!format) return true;
  return std::any_of(kFormats.begin(), kFormats.end(),
                     [&](const auto& row) { return row.first == declared.method && row.second == *format; });
}

bool reads_bits(const model::QuantizationScheme& scheme) {
  const int bits = scheme.bits.value_or(0);
  switch (scheme.layout) {
    case Layout::kGptq:
    case Layout::kPackedInt:
      return bits == 2 || bits == 4 || bits == 8;
    case Layout::kAwq:
    case Layout::kNvfp4:
    case Layout::kMxfp4:
    case Layout::kMxfp4Blocks:
    case Layout::kBitsandbytes4:
      return bits == 4;
    case Layout::kFloat8:
    case Layout::kBitsandbytes8:
      return bits == 8;
    case Layout::kInt8:
      return bits >= 1 && bits <= 8;
    default:
      return false;
  }
}

}  // namespace

Status check_embedded_scheme(const model::Quantization& declared, const model::QuantizationScheme& scheme) {
  const bool is_by_words = scheme.layout == Layout::kGptq || scheme.layout == Layout::kAwq;
  if (is_by_words && !is_packed_so(declared))
    return unsupported(declared,
                       fmt::format("{} weights packed as {}", declared.method, *declared.format.as_string()));
  if (scheme.has_24_sparsity) return unsupported(declared, declared.method + " weights with 2:4 sparsity");
  if (!reads_bits(scheme))
    return unsupported(declared, fmt::format("{} weights of {} bits in this layout", declared.method,
                                             scheme.bits.value_or(0)));
  return {};
}

Status check_embedded_quantization(const model::Quantization& declared) {
  if (!declared.faults.empty())
    return fail(ErrorCode::kMalformed, declared.faults.front().message, declared.faults.front().pointer,
                "`plimsoll inspect` lists what is wrong");
  if (is_for_cache_alone(declared)) return {};
  if (std::find(kMethods.begin(), kMethods.end(), declared.method) == kMethods.end())
    return unsupported(declared, "weights quantized by " +
                                     (declared.method.empty() ? "an unnamed method" : declared.method));
  const model::QuantizationScheme* main = declared.main_scheme();
  if (!main) return unsupported(declared, declared.method + " weights whose layout the config does not tell");
  return check_embedded_scheme(declared, *main);
}

}  // namespace plimsoll::memory
