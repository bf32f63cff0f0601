// SPDX-License-Identifier: Apache-2.0
#include "kernels/panels.h"

#include <cstring>

#include "kernels/panel_forms.h"
#include "kernels/stored.h"

namespace plimsoll::kernels {
namespace {

using Byte = std::uint8_t;

/// A block of 32 numbers of each row, before it is woven: as codes of eight bits.
struct OpenBlock {
  alignas(64) Byte codes[kPanelRows][kInt8Block];
};

void read_nibbles(const Byte* stored, Byte* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = stored[i] & 15;
    codes[16 + i] = stored[i] >> 4;
  }
}

// What a row's blocks hold: half(i) is the scale number i of the header or block, codes(block) the codes
// of 32.
template <DType kType>
struct StoredRow;

template <>
struct StoredRow<DType::kQ4_0> {
  static constexpr int kBytes = 18;
  static void scales(const Byte* block, int, int row, Byte* out) { std::memcpy(out + 2 * row, block, 2); }
  static void codes(const Byte* block, int, Byte* out) { read_nibbles(block + 2, out); }
};

template <>
struct StoredRow<DType::kQ4_1> {
  static constexpr int kBytes = 20;
  static void scales(const Byte* block, int, int row, Byte* out) {
    std::memcpy(out + 2 * row, block, 2);
    std::memcpy(out + kRowHalves + 2 * row, block + 2, 2);
  }
  static void codes(const Byte* block, int, Byte* out) { read_nibbles(block + 4, out); }
};

template <>
struct StoredRow<DType::kQ8_0> {
  static constexpr int kBytes = 34;
  static void scales(const Byte* block, int, int row, Byte* out) { std::memcpy(out + 2 * row, block, 2); }
  static void codes(const Byte* block, int, Byte* out) {
    for (int i = 0; i < 32; ++i) out[i] = block[2 + i] ^ 0x80;
  }
};

template <>
struct StoredRow<DType::kQ4K> {
  static constexpr int kBytes = 144;
  static void header(const Byte* block, int row, Byte* out) {
    std::memcpy(out + 2 * row, block, 2);
    std::memcpy(out + kRowHalves + 2 * row, block + 2, 2);
  }
  static void scales(const Byte* block, int group, int row, Byte* out) {
    const ScaleBytes scales = unpack_k4_scales(block + 4);
    out[row] = static_cast<Byte>(byte_of(scales, group));
    out[kPanelRows + row] = static_cast<Byte>(byte_of(scales, 8 + group));
  }
  static void codes(const Byte* block, int group, Byte* out) {
    const Byte* const stored = block + 16 + group / 2 * 32;
    for (int i = 0; i < 32; ++i) out[i] = static_cast<Byte>(stored[i] >> (group % 2 * 4) & 15);
  }
};

template <>
struct StoredRow<DType::kQ6K> {
  static constexpr int kBytes = 210;
  static void header(const Byte* block, int row, Byte* out) { std::memcpy(out + 2 * row, block + 208, 2); }
  static void scales(const Byte* block, int group, int row, Byte* out) {
    out[row] = block[192 + 2 * group];
    out[kPanelRows + row] = block[192 + 2 * group + 1];
  }
  static void codes(const Byte* block, int group, Byte* out) {
    const int half = group / 4, quarter = group % 4;
    const Byte* const low = block + 64 * half + 32 * (quarter % 2);
    const Byte* const high = block + 128 + 32 * half;
    for (int i = 0; i < 32; ++i)
      out[i] = static_cast<Byte>((low[i] >> (quarter / 2 * 4) & 15) | (high[i] >> (2 * quarter) & 3) << 4);
  }
};

std::uint32_t word_of(const OpenBlock& open, std::int64_t row, int step) {
  return load_as<std::uint32_t>(open.codes[row] + 4 * step);
}

void put_word(Byte* out, std::int64_t at, std::uint32_t word) {
  std::memcpy(out + 4 * at, &word, sizeof word);
}

// Four codes of each row after the other, and so for all steps of four.
template <PanelForm kForm>
void weave(const OpenBlock& open, Byte* out) {
  constexpr std::int64_t kHalf = kPanelRows / 2, kQuarter = kPanelRows / 4;
  for (int step = 0; step < kStepsOf4; ++step) {
    if constexpr (kForm.largest > 63) {
      for (std::int64_t row = 0; row < kPanelRows; ++row) put_word(out, row, word_of(open, row, step));
      out += kCodesOf4;
    } else {
      for (std::int64_t row = 0; row < kHalf; ++row)
        put_word(out, row,
                 (word_of(open, row, step) & 0x0f0f0f0fu) | (word_of(open, row + kHalf, step) & 0x0f0f0f0fu)
                                                                << 4);
      out += kNibblesOf4;
      if constexpr (kForm.largest > 15) {
        for (std::int64_t row = 0; row < kQuarter; ++row) {
          std::uint32_t crumbs = 0;
          for (int part = 0; part < 4; ++part)
            crumbs |= (word_of(open, row + part * kQuarter, step) >> 4 & 0x03030303u) << (2 * part);
          put_word(out, row, crumbs);
        }
        out += kNibblesOf4 / 2;
      }
    }
  }
}

template <DType kType>
void pack(const std::byte* const* rows, std::int64_t columns, Byte* out) {
  using Row = StoredRow<kType>;
  constexpr PanelForm kForm = kPanelForm<kType>;
  OpenBlock open;
  std::memset(open.codes, kForm.bias, sizeof open.codes);  // zeros, for rows that are not there
  for (std::int64_t at = 0; at < columns / kForm.elements; ++at) {
    const auto block_of = [&](std::int64_t row) {
      return reinterpret_cast<const Byte*>(rows[row]) + at * Row::kBytes;
    };
    std::memset(out, 0, kForm.header_bytes);
    if constexpr (kForm.header_bytes > 0) {
      for (int row = 0; row < kPanelRows; ++row)
        if (rows[row]) Row::header(block_of(row), row, out);
      out += kForm.header_bytes;
    }
    for (int group = 0; group < kForm.elements / kInt8Block; ++group) {
      std::memset(out, 0, kForm.scale_bytes);
      for (int row = 0; row < kPanelRows; ++row) {
        if (!rows[row]) continue;
        Row::scales(block_of(row), group, row, out);
        Row::codes(block_of(row), group, open.codes[row]);
      }
      weave<kForm>(open, out + kForm.scale_bytes);
      out += kForm.block_bytes();
    }
  }
}

void pack_bf16(const std::byte* const* rows, std::int64_t columns, Byte* out) {
  for (std::int64_t pair = 0; pair < columns / 2; ++pair)
    for (std::int64_t row = 0; row < kPanelRows; ++row)
      put_word(out, pair * kPanelRows + row,
               rows[row] ? load_as<std::uint32_t>(rows[row] + 4 * pair) : std::uint32_t{0});
}

}  // namespace

bool has_panels(DType dtype) {
  bool has = dtype == DType::kBF16;
  for_panel_type(dtype, [&](auto) { has = true; });
  return has;
}

bool fits_panels(DType dtype, std::int64_t columns) {
  if (dtype == DType::kBF16) return columns % 2 == 0;
  bool fits = false;
  for_panel_type(dtype, [&](auto type) { fits = columns % kPanelForm<type()>.elements == 0; });
  return fits;
}

std::int64_t panel_bytes(DType dtype, std::int64_t columns) {
  if (dtype == DType::kBF16) return 2 * kPanelRows * columns;
  std::int64_t bytes = 0;
  for_panel_type(dtype, [&](auto type) { bytes = kPanelForm<type()>.bytes(columns); });
  return bytes;
}

void pack_panel(DType dtype, const std::byte* const* rows, std::int64_t columns, std::byte* panel) {
  auto* const out = reinterpret_cast<Byte*>(panel);
  if (dtype == DType::kBF16) return pack_bf16(rows, columns, out);
  for_panel_type(dtype, [&](auto type) { pack<type()>(rows, columns, out); });
}

}  // namespace plimsoll::kernels
