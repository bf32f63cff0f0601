// SPDX-License-Identifier: Apache-2.0
#include "engine/stored_matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/result.h"

namespace plimsoll::engine {
namespace {

std::uint32_t word_at(const std::byte* words, std::int64_t i) {
  std::uint32_t word;
  std::memcpy(&word, words + i * 4, sizeof word);
  return word;
}

unsigned byte_at(const std::byte* bytes, std::int64_t i) {
  return std::to_integer<unsigned>(bytes[i]);
}

// Code i of codes that follow each other in words, where `next` words lie between one and the next. Their
// width is a power of two, so nothing is divided.
struct PackedCodes {
  const std::byte* words;
  std::int64_t first, next;
  int bits, log_bits = std::countr_zero(static_cast<unsigned>(bits));
  std::uint32_t mask = (1u << bits) - 1;

  int at(std::int64_t i) const {
    const int log_per_word = 5 - log_bits;
    const std::uint32_t word = word_at(words, first + (i >> log_per_word) * next);
    const auto place = static_cast<std::uint32_t>(i) & ((1u << log_per_word) - 1);
    return static_cast<int>(word >> (place << log_bits) & mask);
  }
};

// Where output `row` stands among the eight of its word.
int awq_code(const std::byte* words, std::int64_t first, std::int64_t row) {
  constexpr int kPlace[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  return static_cast<int>(word_at(words, first + row / 8) >> (4 * kPlace[row % 8]) & 15u);
}

struct Step {
  int zero = 0;
  float scale = 0;
};

// One row of integer codes: code_at(column), and what a group of columns has, step_of(group).
template <class CodeAt, class StepOf>
void widen_groups(const Groups& groups, std::int64_t columns, CodeAt code_at, StepOf step_of, float* out) {
  const auto widen = [&](std::int64_t begin, std::int64_t end, Step step) {
    for (std::int64_t i = begin; i < end; ++i)
      out[i] = static_cast<float>(code_at(i) - step.zero) * step.scale;
  };
  if (!groups.order) {
    for (std::int64_t begin = 0; begin < columns; begin += groups.size)
      widen(begin, std::min(begin + groups.size, columns), step_of(begin / groups.size));
    return;
  }
  // An order may change the group with every column: the groups of a row are looked up once where they are
  // few.
  constexpr std::int64_t kMostKept = 512;
  Step kept[kMostKept];
  const bool are_few = groups.count <= kMostKept;
  for (std::int64_t group = 0; are_few && group < groups.count; ++group) kept[group] = step_of(group);
  for (std::int64_t i = 0; i < columns; ++i) {
    const std::int64_t group = groups.of(i);
    widen(i, i + 1, are_few ? kept[group] : step_of(group));
  }
}

void widen_row(const PlainRows& plain, std::int64_t row, std::int64_t columns, float* out) {
  kernels::select().to_float(plain.dtype, plain.data + row * plain.row_bytes, columns, out);
}

void widen_row(const ByteRows& bytes, std::int64_t row, std::int64_t columns, float* out) {
  const std::byte* const codes = bytes.codes + row * columns;
  for (std::int64_t begin = 0, block = 0; begin < columns; begin += bytes.block_columns, ++block) {
    const std::int64_t at = row / bytes.block_rows * bytes.scale_columns + block;
    const float scale = bytes.scales.at(at);
    const auto zero =
        bytes.zero_points ? static_cast<float>(static_cast<std::int8_t>(bytes.zero_points[at])) : 0;
    const std::int64_t end = std::min(columns, begin + bytes.block_columns);
    for (std::int64_t i = begin; i < end; ++i)
      out[i] = (bytes.values[byte_at(codes, i)] - zero) * scale / bytes.divisor;
  }
}

void widen_row(const NibbleRows& nibbles, std::int64_t row, std::int64_t columns, float* out) {
  const std::byte* const codes = nibbles.codes + row * (columns / 2);
  const std::int64_t groups = columns / nibbles.group;
  for (std::int64_t group = 0; group < groups; ++group) {
    const float scale = nibbles.scales.at(row * groups + group) * nibbles.factor / nibbles.divisor;
    for (std::int64_t i = group * nibbles.group; i < (group + 1) * nibbles.group; ++i)
      out[i] = nibbles.values[byte_at(codes, i / 2) >> (i % 2 * 4) & 15u] * scale;
  }
}

void widen_row(const PackedRows& packed, std::int64_t row, std::int64_t columns, float* out) {
  const PackedCodes codes{packed.codes, row * packed.row_words, 1, packed.bits};
  const auto step_of = [&](std::int64_t group) {
    const int zero = packed.zero_points
                         ? PackedCodes{packed.zero_points, group, packed.groups.count, packed.bits}.at(row)
                         : 1 << (packed.bits - 1);
    return Step{zero, packed.scales.at(row * packed.groups.count + group)};
  };
  widen_groups(packed.groups, columns, [&](std::int64_t i) { return codes.at(i); }, step_of, out);
}

void widen_row(const GptqColumns& gptq, std::int64_t row, std::int64_t columns, float* out) {
  const PackedCodes codes{gptq.codes, row, gptq.rows, gptq.bits};
  const auto step_of = [&](std::int64_t group) {
    const std::int64_t zero_words = gptq.rows / (32 / gptq.bits);
    const PackedCodes zeros{gptq.zero_points, group * zero_words, 1, gptq.bits};
    const int zero = zeros.at(row) + gptq.zero_offset;
    return Step{zero, gptq.scales.at(group * gptq.rows + row)};
  };
  widen_groups(gptq.groups, columns, [&](std::int64_t i) { return codes.at(i); }, step_of, out);
}

void widen_row(const AwqColumns& awq, std::int64_t row, std::int64_t columns, float* out) {
  const auto code_at = [&](std::int64_t i) { return awq_code(awq.codes, i * (awq.rows / 8), row); };
  const auto step_of = [&](std::int64_t group) {
    const int zero = awq.zero_points ? awq_code(awq.zero_points, group * (awq.rows / 8), row) : 8;
    return Step{zero, awq.scales.at(group * awq.rows + row)};
  };
  widen_groups(awq.groups, columns, code_at, step_of, out);
}

float scale_of(const BookRows& book, std::int64_t block) {
  if (!book.nested_values.data) return book.scales.at(block);
  return book.nested_values.at(byte_at(book.scales.data, block)) *
             book.nested_scales.at(block / book.nested_block) +
         book.offset;
}

void widen_row(const BookRows& book, std::int64_t row, std::int64_t columns, float* out) {
  const std::int64_t first = row * columns, last = first + columns;
  for (std::int64_t begin = first, end = 0; begin < last; begin = end) {
    const std::int64_t block = begin / book.block;
    end = std::min((block + 1) * book.block, last);
    const float scale = scale_of(book, block);
    for (std::int64_t at = begin; at < end; ++at)
      out[at - first] = book.values[byte_at(book.codes, at / 2) >> (at % 2 ? 0 : 4) & 15u] * scale;
  }
}

void widen_row(const TurnedRows& turned, std::int64_t row, std::int64_t columns, float* out) {
  const Numbers numbers{turned.dtype, turned.data};
  for (std::int64_t i = 0; i < columns; ++i) out[i] = numbers.at(i * turned.rows + row);
}

void widen_row(const PanelRows&, std::int64_t, std::int64_t, float*) {
  PLIMSOLL_CHECK(false, "panels are multiplied, never read row by row");
}

// Rows that lie near each other side by side in the file are read together; false where they do not.
bool widen_turned(const TurnedRows& turned, const StoredMatrix& matrix, std::int64_t begin, std::int64_t end,
                  float* out) {
  constexpr std::int64_t kMost = 4 * kernels::kScratchRows;
  const std::int64_t first = matrix.runs.at(begin), span = matrix.runs.at(end - 1) + 1 - first;
  if (span > kMost) return false;
  float values[kMost];
  const std::int64_t bytes = info(turned.dtype).block_bytes;
  for (std::int64_t i = 0; i < matrix.columns; ++i) {
    kernels::select().to_float(turned.dtype, turned.data + (i * turned.rows + first) * bytes, span, values);
    for (std::int64_t row = begin; row < end; ++row)
      out[(row - begin) * matrix.columns + i] = values[matrix.runs.at(row) - first];
  }
  return true;
}

/// Calls use(row, its bytes, count) for rows that follow each other in the file.
template <class Use>
void each_run(const StoredMatrix& matrix, const PlainRows& plain, std::int64_t begin, std::int64_t end,
              Use use) {
  const std::int64_t run = matrix.runs.run;
  for (std::int64_t row = begin, next = end; row < end; row = next) {
    if (run > 0) next = std::min(end, (row / run + 1) * run);
    use(row, plain.data + matrix.runs.at(row) * plain.row_bytes, next - row);
  }
}

}  // namespace

StoredMatrix some_rows(const StoredMatrix& matrix, std::int64_t rows, const RowRuns& runs) {
  PLIMSOLL_CHECK(matrix.runs.run == 0 && rows > 0 && runs.at(rows - 1) < matrix.rows,
                 "a view lies within a matrix that is none");
  StoredMatrix some = matrix;
  some.rows = rows;
  some.runs = runs;
  some.runs.first += matrix.runs.first;
  return some;
}

float Numbers::at(std::int64_t i) const {
  if (const float* values = kernels::code_values(dtype)) return values[byte_at(data, i)];
  float value = 0;
  kernels::select().to_float(dtype, data + i * info(dtype).block_bytes, 1, &value);
  return value;
}

std::int64_t Groups::of(std::int64_t column) const {
  if (!order) return column / size;
  // Checked at load; the file behind the mapping may have been written to since.
  return std::min(static_cast<std::int64_t>(word_at(order, column)), count - 1);
}

void widen_rows(const StoredMatrix& matrix, std::int64_t begin, std::int64_t end, float* out) {
  const auto* turned = std::get_if<TurnedRows>(&matrix.stored);
  if (turned && begin < end && widen_turned(*turned, matrix, begin, end, out)) return;
  std::visit(
      [&](const auto& stored) {
        for (std::int64_t row = begin; row < end; ++row)
          widen_row(stored, matrix.runs.at(row), matrix.columns, out + (row - begin) * matrix.columns);
      },
      matrix.stored);
}

void multiply_rows(const kernels::Kernels& kernels, const StoredMatrix& matrix, std::int64_t begin,
                   std::int64_t end, const float* x, std::int64_t tokens, float* out, std::int64_t out_stride,
                   float* scratch) {
  if (const auto* plain = std::get_if<PlainRows>(&matrix.stored))
    return each_run(matrix, *plain, begin, end,
                    [&](std::int64_t row, const std::byte* stored, std::int64_t count) {
                      kernels.matmul(plain->dtype, stored, matrix.columns, 0, count, x, tokens, out + row,
                                     out_stride, scratch);
                    });
  for (std::int64_t row = begin; row < end; row += kernels::kScratchRows) {
    const std::int64_t count = std::min(end - row, kernels::kScratchRows);
    widen_rows(matrix, row, row + count, scratch);
    kernels.matmul(DType::kF32, reinterpret_cast<const std::byte*>(scratch), matrix.columns, 0, count, x,
                   tokens, out + row, out_stride, nullptr);
  }
}

bool has_int8_products(const StoredMatrix& matrix) {
  const auto* plain = std::get_if<PlainRows>(&matrix.stored);
  return plain && kernels::has_int8_products(plain->dtype);
}

void multiply_rows(const kernels::Kernels& kernels, const StoredMatrix& matrix, std::int64_t begin,
                   std::int64_t end, const kernels::Int8Block* x, std::int64_t tokens, int planes, float* out,
                   std::int64_t out_stride, float* scratch) {
  const auto& plain = std::get<PlainRows>(matrix.stored);
  each_run(matrix, plain, begin, end, [&](std::int64_t row, const std::byte* stored, std::int64_t count) {
    kernels.matmul_int8(plain.dtype, stored, matrix.columns, count, x, tokens, planes, out + row, out_stride,
                        scratch);
  });
}

}  // namespace plimsoll::engine
