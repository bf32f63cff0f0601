// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar_blocks.h"

#include "base/result.h"
#include "kernels/scalar_code_books.h"
#include "kernels/stored.h"

namespace plimsoll::kernels {
namespace {

using Byte = std::uint8_t;

float half_at(const Byte* at) {
  return float_of_half(load_as<std::uint16_t>(at));
}

void q4_0(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>((block[2 + i] & 15) - 8) * d;
    out[i + 16] = static_cast<float>((block[2 + i] >> 4) - 8) * d;
  }
}

void q4_1(const Byte* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(block[4 + i] & 15) * d + m;
    out[i + 16] = static_cast<float>(block[4 + i] >> 4) * d + m;
  }
}

// The fifth bits of 32 elements are one little-endian word.
int five_bits(const Byte* high, const Byte* low, int i) {
  const auto word = load_as<std::uint32_t>(high);
  const int nibble = i < 16 ? low[i] & 15 : low[i - 16] >> 4;
  return nibble | static_cast<int>(((word >> i) & 1u) << 4);
}

void q5_0(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(five_bits(block + 2, block + 6, i) - 16) * d;
}

void q5_1(const Byte* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(five_bits(block + 4, block + 8, i)) * d + m;
}

void q8_0(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
}

// Scales 0..15 (low nibble: scale, high: minimum), codes 16..79, d 80, dmin 82.
void q2_k(const Byte* block, float* out) {
  const float d = half_at(block + 80), dmin = half_at(block + 82);
  for (int i = 0; i < 256; ++i) {
    const Byte scale = block[i / 16];
    const int code = (block[16 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
    const float step = d * static_cast<float>(scale & 15), minimum = dmin * static_cast<float>(scale >> 4);
    out[i] = step * static_cast<float>(code) - minimum;
  }
}

// High bits 0..31 (bit n of byte l: element 32 n + l), low bits 32..95, scales 96..107, d 108.
void q3_k(const Byte* block, float* out) {
  const float d = half_at(block + 108);
  const ScaleBytes scales = unpack_k3_scales(block + 96);
  for (int i = 0; i < 256; ++i) {
    const int low = (block[32 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
    const int high = (block[i % 32] >> (i / 32)) & 1;
    const float step = d * static_cast<float>(byte_of(scales, i / 16) - 32);
    out[i] = step * static_cast<float>(low - (high ? 0 : 4));
  }
}

// d 0, dmin 2, scales 4..15, then [fifth bits 16..47 of q5_k,] nibbles: 32 bytes for each 64 elements.
void q45_k(const Byte* block, const Byte* fifth, const Byte* nibbles, float* out) {
  const float d = half_at(block), dmin = half_at(block + 2);
  const ScaleBytes scales = unpack_k4_scales(block + 4);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const Byte pair = nibbles[32 * (i / 64) + i % 32];
    int code = group % 2 ? pair >> 4 : pair & 15;
    if (fifth) code |= ((fifth[i % 32] >> group) & 1) << 4;
    const float step = d * static_cast<float>(byte_of(scales, group));
    const float minimum = dmin * static_cast<float>(byte_of(scales, 8 + group));
    out[i] = step * static_cast<float>(code) - minimum;
  }
}

void q4_k(const Byte* block, float* out) {
  q45_k(block, nullptr, block + 16, out);
}

void q5_k(const Byte* block, float* out) {
  q45_k(block, block + 16, block + 48, out);
}

// Low nibbles 0..127, high pairs 128..191, signed scales 192..207, d 208.
void q6_k(const Byte* block, float* out) {
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const Byte pair = block[64 * half + 32 * (quarter % 2) + l];
    const int low = quarter < 2 ? pair & 15 : pair >> 4;
    const int high = (block[128 + 32 * half + l] >> (2 * quarter)) & 3;
    const float step = d * static_cast<float>(static_cast<std::int8_t>(block[192 + i / 16]));
    out[i] = step * static_cast<float>((low | (high << 4)) - 32);
  }
}

void table_of_16(const std::int8_t* values, float d, const Byte* nibbles, float* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(values[nibbles[i] & 15]);
    out[i + 16] = d * static_cast<float>(values[nibbles[i] >> 4]);
  }
}

void iq4_nl(const Byte* block, float* out) {
  table_of_16(kIq4Values, half_at(block), block + 2, out);
}

void iq4_xs(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int group = 0; group < 8; ++group)
    table_of_16(kIq4Values, d * static_cast<float>(iq4_xs_scale(block, group)), block + 8 + 16 * group,
                out + 32 * group);
}

void mxfp4(const Byte* block, float* out) {
  table_of_16(kFp4DoubledValues, half_of_e8m0(block[0]), block + 1, out);
}

using BlockReader = void (*)(const Byte* block, float* out);

BlockReader block_reader(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return q4_0;
    case DType::kQ4_1:
      return q4_1;
    case DType::kQ5_0:
      return q5_0;
    case DType::kQ5_1:
      return q5_1;
    case DType::kQ8_0:
      return q8_0;
    case DType::kQ2K:
      return q2_k;
    case DType::kQ3K:
      return q3_k;
    case DType::kQ4K:
      return q4_k;
    case DType::kQ5K:
      return q5_k;
    case DType::kQ6K:
      return q6_k;
    case DType::kIQ4NL:
      return iq4_nl;
    case DType::kIQ4XS:
      return iq4_xs;
    case DType::kMXFP4:
      return mxfp4;
    case DType::kIQ2XXS:
      return read_iq2_xxs;
    case DType::kIQ2XS:
      return read_iq2_xs;
    case DType::kIQ2S:
      return read_iq2_s;
    case DType::kIQ3XXS:
      return read_iq3_xxs;
    case DType::kIQ3S:
      return read_iq3_s;
    case DType::kIQ1S:
      return read_iq1_s;
    case DType::kIQ1M:
      return read_iq1_m;
    case DType::kTQ1_0:
      return read_tq1_0;
    case DType::kTQ2_0:
      return read_tq2_0;
    case DType::kNVFP4:
      return read_nvfp4;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_read(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || block_reader(dtype);
}

void scalar_to_float(DType dtype, const std::byte* stored, std::int64_t elements, float* out) {
  const auto* bytes = reinterpret_cast<const Byte*>(stored);
  switch (dtype) {
    case DType::kF32:
      if (elements > 0) std::memcpy(out, bytes, static_cast<std::size_t>(elements) * sizeof(float));
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < elements; ++i) out[i] = half_at(bytes + 2 * i);
      return;
    case DType::kBF16:
      for (std::int64_t i = 0; i < elements; ++i)
        out[i] = float_of_bf16(load_as<std::uint16_t>(bytes + 2 * i));
      return;
    default:
      break;
  }
  const BlockReader read = block_reader(dtype);
  PLIMSOLL_CHECK(read != nullptr, "the caller asks can_read() first");
  const DTypeInfo& row = info(dtype);
  PLIMSOLL_DCHECK(elements % row.block_elements == 0, "blocks are whole");
  for (std::int64_t i = 0; i < elements; i += row.block_elements, bytes += row.block_bytes)
    read(bytes, out + i);
}

}  // namespace plimsoll::kernels
