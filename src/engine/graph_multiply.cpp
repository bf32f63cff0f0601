// SPDX-License-Identifier: Apache-2.0
// The products of engine/graph.h: inputs rounded as matrices want them, rows of matrices shared by the team.
#include <algorithm>

#include "engine/graph_parts.h"
#include "kernels/panels.h"

namespace plimsoll::engine {

bool Graph::takes_codes(const StoredMatrix& matrix) const {
  if (const auto* panels = std::get_if<PanelRows>(&matrix.stored)) return panels->dtype != DType::kBF16;
  return !codes_.empty() && kernels_.matmul_int8 && has_int8_products(matrix);
}

Graph::Rounded Graph::round_inputs(std::span<const Product> products, const float* input,
                                   std::int64_t num_rows) {
  using Form = Rounded::Form;
  Rounded rounded{.floats = input};
  for (const Product& product : products) {
    if (takes_codes(*product.matrix)) rounded.form = Form::kCodes;
    if (rounded.form == Form::kFloats && kernels_.panel_bf16 &&
        std::holds_alternative<PanelRows>(product.matrix->stored))
      rounded.form = Form::kPairs;
  }
  if (rounded.form == Form::kFloats) return rounded;
  rounded.codes = codes_.data();
  const std::int64_t columns = products.front().matrix->columns, blocks = columns / kernels::kInt8Block;
  const int planes = products.front().planes;
  each_row(team_, num_rows, [&](std::int64_t row) {
    if (rounded.form == Form::kCodes)
      kernels_.to_int8_blocks(input + row * columns, blocks, planes, codes_.data() + row * planes * blocks);
    else
      kernels_.to_bf16(input + row * columns, columns, pairs() + row * columns);
  });
  return rounded;
}

// Enough chunks for the team to share, and few enough that handing them out costs little.
std::int64_t Graph::rows_per_chunk(const StoredMatrix& matrix, std::int64_t num_rows) const {
  if (!std::holds_alternative<PanelRows>(matrix.stored)) return kRowsPerChunk;
  constexpr std::int64_t kChunksPerThread = 8, kMostPanels = 8, kManyRows = 8;
  if (num_rows >= kManyRows) return kernels::kPanelRows;
  const std::int64_t panels = matrix.rows / kernels::kPanelRows / (kChunksPerThread * team_.threads());
  return std::clamp<std::int64_t>(panels, 1, kMostPanels) * kernels::kPanelRows;
}

// Rows [begin, end) of one matrix; `begin` is that of a chunk.
void Graph::multiply_some(const Product& product, std::int64_t begin, std::int64_t end, const Rounded& input,
                          std::int64_t num_rows, int thread) {
  using Form = Rounded::Form;
  const StoredMatrix& matrix = *product.matrix;
  float* const scratch = scratch_.data() + thread * scratch_stride_;
  const auto* panels = std::get_if<PanelRows>(&matrix.stored);
  if (!panels && takes_codes(matrix))
    return multiply_rows(kernels_, matrix, begin, end, input.codes, num_rows, product.planes, product.output,
                         product.output_stride, scratch);
  if (!panels)
    return multiply_rows(kernels_, matrix, begin, end, input.floats, num_rows, product.output,
                         product.output_stride, scratch);
  kernels::PanelProduct of{.dtype = panels->dtype, .columns = matrix.columns};
  of.tokens = num_rows;
  of.planes = product.planes;
  of.out_stride = product.output_stride;
  of.scratch = reinterpret_cast<std::byte*>(scratch);
  of.panel = panels->panels + begin / kernels::kPanelRows * panels->panel_bytes;
  for (std::int64_t row = begin; row < end; row += kernels::kPanelRows, of.panel += panels->panel_bytes) {
    of.rows = std::min(end - row, kernels::kPanelRows);
    of.out = product.output + row;
    of.next = row + kernels::kPanelRows < matrix.rows ? of.panel + panels->panel_bytes : nullptr;
    if (panels->dtype != DType::kBF16)
      kernels_.panel_int8(of, input.codes);
    else if (input.form == Form::kPairs)
      kernels_.panel_bf16(of, pairs());
    else
      kernels_.panel_float(of, input.floats);
  }
}

void Graph::multiply(std::span<const Product> products, const Rounded& input, std::int64_t num_rows) {
  std::int64_t chunks = 0;
  for (const auto& product : products)
    chunks += divided_up(product.matrix->rows, rows_per_chunk(*product.matrix, num_rows));
  team_.run(chunks, [&](std::int64_t chunk, int thread) {
    for (const Product& product : products) {
      const std::int64_t share = rows_per_chunk(*product.matrix, num_rows), rows = product.matrix->rows;
      const std::int64_t begin = chunk * share;
      if (begin < rows)
        return multiply_some(product, begin, std::min(begin + share, rows), input, num_rows, thread);
      chunk -= divided_up(rows, share);
    }
  });
}

void Graph::multiply(std::span<const Product> products, const float* input, std::int64_t num_rows) {
  multiply(products, round_inputs(products, input, num_rows), num_rows);
}

}  // namespace plimsoll::engine
