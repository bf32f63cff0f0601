// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

#include <algorithm>
#include <cstdlib>

#include "base/result.h"
#include "kernels/tables.h"

namespace plimsoll::kernels {
namespace {

struct IsaName {
  Isa isa;
  std::string_view name;
};
constexpr IsaName kNames[] = {{Isa::kScalar, "scalar"},
                              {Isa::kAvx2, "avx2"},
                              {Isa::kAvx512, "avx512"},
                              {Isa::kAvx512Vnni, "avx512_vnni"},
                              {Isa::kAvx512Bf16, "avx512_bf16"}};

const Kernels& choose() {
  const std::vector<Isa> isas = available_isas();
  if (const char* wanted = std::getenv("PLIMSOLL_ISA"))
    for (const IsaName& row : kNames)
      if (row.name == wanted && std::find(isas.begin(), isas.end(), row.isa) != isas.end())
        return kernels_for(row.isa);
  return kernels_for(isas.back());
}

}  // namespace

std::string_view to_string(Isa isa) {
  for (const IsaName& row : kNames)
    if (row.isa == isa) return row.name;
  return "scalar";
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas{Isa::kScalar};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    isas.push_back(Isa::kAvx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      isas.push_back(Isa::kAvx512);
      if (__builtin_cpu_supports("avx512vnni")) {
        isas.push_back(Isa::kAvx512Vnni);
        if (__builtin_cpu_supports("avx512bf16")) isas.push_back(Isa::kAvx512Bf16);
      }
    }
  }
#endif
  return isas;
}

bool has_int8_products(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ8_0:
    case DType::kQ2K:
    case DType::kQ3K:
    case DType::kQ4K:
    case DType::kQ5K:
    case DType::kQ6K:
    case DType::kIQ4NL:
    case DType::kIQ4XS:
    case DType::kMXFP4:
      return true;
    default:
      return false;
  }
}

const Kernels& kernels_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512Bf16) return kAvx512Bf16Kernels;
  if (isa == Isa::kAvx512Vnni) return kAvx512VnniKernels;
  if (isa == Isa::kAvx512) return kAvx512Kernels;
  if (isa == Isa::kAvx2) return kAvx2Kernels;
#endif
  PLIMSOLL_CHECK(isa == Isa::kScalar, "the instruction set is available");
  return kScalarKernels;
}

const Kernels& select() {
  static const Kernels& chosen = choose();
  return chosen;
}

void rope(float* x, int heads, int head_dim, int rotary_dim, bool interleaved, const float* cos,
          const float* sin) {
  select().rope(x, heads, head_dim, rotary_dim, interleaved, cos, sin);
}

void softmax(float* scores, std::int64_t n) {
  select().softmax(scores, n);
}

}  // namespace plimsoll::kernels
