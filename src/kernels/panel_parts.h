// SPDX-License-Identifier: Apache-2.0
// What products of panels share, whatever they multiply: reads and writes of a few rows, and fetching ahead.
// Static throughout: included for each instruction set.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/panel_forms.h"
#include "kernels/simd_codes.h"

namespace plimsoll::kernels {

constexpr std::int64_t kHalfPanel = kPanelRows / 2;

static PLIMSOLL_INLINE __m256i load_256(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}
static PLIMSOLL_INLINE __m256i broadcast_word(const void* at) {
  return _mm256_set1_epi32(load_as<std::int32_t>(at));
}
static PLIMSOLL_INLINE __m256 halves_at(const Byte* at) {
  return _mm256_cvtph_ps(bytes_at(at));
}
static PLIMSOLL_INLINE __m256 floats_of_u8(const Byte* at) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}
static PLIMSOLL_INLINE __m256 floats_of_i8(const Byte* at) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}

/// Scales and offsets of eight rows of a panel, number `part` of four.
template <DType kType>
struct PanelScales {
  static PLIMSOLL_INLINE __m256 scale(const Byte*, const Byte* block, int, int part) {
    return halves_at(block + 16 * part);
  }
  static PLIMSOLL_INLINE __m256 offset(const Byte*, const Byte* block, int part) {
    return halves_at(block + kRowHalves + 16 * part);
  }
};
template <>
struct PanelScales<DType::kQ4K> {
  static PLIMSOLL_INLINE __m256 scale(const Byte* header, const Byte* block, int, int part) {
    return _mm256_mul_ps(floats_of_u8(block + 8 * part), halves_at(header + 16 * part));
  }
  static PLIMSOLL_INLINE __m256 offset(const Byte* header, const Byte* block, int part) {
    const __m256 negative = _mm256_xor_ps(halves_at(header + kRowHalves + 16 * part), _mm256_set1_ps(-0.0f));
    return _mm256_mul_ps(floats_of_u8(block + kPanelRows + 8 * part), negative);
  }
};
template <>
struct PanelScales<DType::kQ6K> {
  static PLIMSOLL_INLINE __m256 scale(const Byte* header, const Byte* block, int group, int part) {
    return _mm256_mul_ps(floats_of_i8(block + kPanelRows * group + 8 * part), halves_at(header + 16 * part));
  }
};

/// Writes the first `count` of 8 * kParts sums.
template <int kParts>
static PLIMSOLL_INLINE void store_first_sums(const __m256* sums, std::int64_t count, float* out) {
  if (count >= 8 * kParts) {
    for (int part = 0; part < kParts; ++part) _mm256_storeu_ps(out + 8 * part, sums[part]);
  } else if (count > 0) {
    float values[8 * kParts];
    for (int part = 0; part < kParts; ++part) _mm256_storeu_ps(values + 8 * part, sums[part]);
    std::memcpy(out, values, static_cast<std::size_t>(count) * sizeof(float));
  }
}

/// Fetches a share of the panel that comes next, while this one is computed.
static PLIMSOLL_INLINE void fetch_share(const PanelProduct& product, std::int64_t bytes, std::int64_t share,
                                        std::int64_t shares) {
  if (!product.next) return;
  const std::int64_t each = bytes / shares / 64 * 64 + 64, begin = share * each;
  for (std::int64_t at = begin; at < begin + each && at < bytes; at += 64)
    _mm_prefetch(reinterpret_cast<const char*>(product.next) + at, _MM_HINT_T1);
}

}  // namespace plimsoll::kernels
