// SPDX-License-Identifier: Apache-2.0
// How is a linear layer's matrix stored, and what are its numbers? One struct for each layout, over bytes
// that stay where the file has them (mapped, never copied); all of them read as rows of floats. Who checks
// shapes and codes before: load_quantized(). Owns nothing; reading is safe from any thread. Source:
// docs/formats/quantized_layouts.md, docs/formats/gguf_blocks.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace plimsoll::engine {

/// Scales as stored: f32 f16 bf16, or a type whose codes are a byte.
struct Numbers {
  DType dtype = DType::kF32;
  const std::byte* data = nullptr;
  float at(std::int64_t i) const;
};

/// Which columns share a scale: `size` that follow each other, or those that `order` gives one number.
struct Groups {
  std::int64_t size = 0;
  std::int64_t count = 0;
  const std::byte* order = nullptr;  // i32 [columns], each below count; null: column / size
  std::int64_t of(std::int64_t column) const;
};

/// Numbers one after the other, or GGUF's blocks.
struct PlainRows {
  DType dtype = DType::kF32;
  const std::byte* data = nullptr;  // [rows, row_bytes]
  std::int64_t row_bytes = 0;
};

/// fp8 and int8: a byte for each weight; weight = (value of code - zero point) * scale / divisor.
struct ByteRows {
  const std::byte* codes = nullptr;        // [rows, columns]
  const float* values = nullptr;           // [256]: what codes stand for
  Numbers scales;                          // [ceil(rows / block_rows), scale_columns]
  const std::byte* zero_points = nullptr;  // i8, as scales; or null
  std::int64_t block_rows = 1, block_columns = 1, scale_columns = 1;
  float divisor = 1;
};

/// Four-bit floats, two to a byte, the lower half first; weight = value * (scale * factor / divisor).
struct NibbleRows {
  const std::byte* codes = nullptr;  // [rows, columns / 2]
  const float* values = nullptr;     // [16]
  Numbers scales;                    // [rows, columns / group]
  std::int64_t group = 16;
  float factor = 1, divisor = 1;  // of the whole tensor; one of them is 1
};

/// compressed-tensors' words of 32 / bits codes along the row, lowest first; weight = (code - zero) * scale.
struct PackedRows {
  int bits = 4;
  const std::byte* codes = nullptr;  // i32 [rows, row_words]
  const std::byte* zero_points =
      nullptr;     // i32 [ceil(rows * bits / 32), groups], packed along the rows; or null
  Numbers scales;  // [rows, groups]
  Groups groups;
  std::int64_t row_words = 0;
};

/// GPTQ's words along the input, of one output each; weight = (code - (stored zero + zero_offset)) * scale.
struct GptqColumns {
  int bits = 4;
  const std::byte* codes = nullptr;        // i32 [columns * bits / 32, rows]
  const std::byte* zero_points = nullptr;  // i32 [groups, rows * bits / 32]
  Numbers scales;                          // [groups, rows]
  Groups groups;
  std::int64_t rows = 0;
  int zero_offset = 1;  // version 1 stores one less than the zero point
};

/// AWQ's words along the output, eight outputs each in the order 0 2 4 6 1 3 5 7; weight = (code - zero) *
/// scale.
struct AwqColumns {
  const std::byte* codes = nullptr;        // i32 [columns, rows / 8]
  const std::byte* zero_points = nullptr;  // i32 [groups, rows / 8]; null: 8
  Numbers scales;                          // [groups, rows]
  Groups groups;
  std::int64_t rows = 0;
};

/// bitsandbytes' codes of four bits over the matrix as one row, the upper half of a byte first.
/// weight = values[code] * scale of its block; a scale is stored, or is
/// nested_values[code] * nested_scales[block / nested_block] + offset.
struct BookRows {
  const std::byte* codes = nullptr;  // [rows * columns / 2]
  float values[16] = {};
  std::int64_t block = 64;
  Numbers scales;         // [blocks]; the codes of nested scales when nested_values are given
  Numbers nested_values;  // [256], or no data
  Numbers nested_scales;  // [ceil(blocks / nested_block)]
  std::int64_t nested_block = 256;
  float offset = 0;
};

/// Numbers one after the other, column by column: GPT-2 keeps its matrices as [columns, rows].
struct TurnedRows {
  DType dtype = DType::kF32;  // f32 f16 bf16
  const std::byte* data = nullptr;
  std::int64_t rows = 0;
};

/// Rows in panels of 32, which were moved there when the model was loaded (kernels/panels.h).
struct PanelRows {
  DType dtype = DType::kF32;
  const std::byte* panels = nullptr;  // [ceil(rows / kPanelRows), panel_bytes]
  std::int64_t panel_bytes = 0;
};

/// Which of the stored rows a matrix has: all from `first` on, or `run` of every `step`.
struct RowRuns {
  std::int64_t first = 0;
  std::int64_t run = 0;  // 0: they follow each other
  std::int64_t step = 0;
  std::int64_t at(std::int64_t row) const { return first + (run > 0 ? row / run * step + row % run : row); }
};

struct StoredMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::variant<PlainRows, ByteRows, NibbleRows, PackedRows, GptqColumns, AwqColumns, BookRows, TurnedRows,
               PanelRows>
      stored;
  RowRuns runs = {};
  bool becomes_blocks = false;  // when a load quantizes: memory::becomes_blocks of its weight
};

/// Some rows of a matrix whose rows follow each other; the bytes stay where they are.
StoredMatrix some_rows(const StoredMatrix& matrix, std::int64_t rows, const RowRuns& runs);

/// Rows [begin, end) as floats. out: [end - begin, columns].
void widen_rows(const StoredMatrix& matrix, std::int64_t begin, std::int64_t end, float* out);

/// out[t, r] = sum_k x[t, k] * w[r, k] for rows [begin, end), as kernels' matmul: the same bits for any
/// split. x: [tokens, columns], out: [tokens, out_stride], scratch: [kernels::kScratchRows, columns] of this
/// thread.
void multiply_rows(const kernels::Kernels& kernels, const StoredMatrix& matrix, std::int64_t begin,
                   std::int64_t end, const float* x, std::int64_t tokens, float* out, std::int64_t out_stride,
                   float* scratch);

/// Whether the matrix can be multiplied with inputs in eight bits.
bool has_int8_products(const StoredMatrix& matrix);
/// The same for inputs in eight bits, as kernels' matmul_int8. x: [tokens, planes, columns / 32].
void multiply_rows(const kernels::Kernels& kernels, const StoredMatrix& matrix, std::int64_t begin,
                   std::int64_t end, const kernels::Int8Block* x, std::int64_t tokens, int planes, float* out,
                   std::int64_t out_stride, float* scratch);

}  // namespace plimsoll::engine
