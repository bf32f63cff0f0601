// SPDX-License-Identifier: Apache-2.0
#include "engine/panel_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/division.h"
#include "engine/weight_memory.h"
#include "kernels/panels.h"

namespace plimsoll::engine {
namespace {

bool becomes_panels(const StoredMatrix& matrix) {
  const auto* plain = std::get_if<PlainRows>(&matrix.stored);
  return plain && matrix.rows > 0 && kernels::has_panels(plain->dtype) &&
         kernels::fits_panels(plain->dtype, matrix.columns);
}

std::int64_t panels_of(const StoredMatrix& matrix) {
  return divided_up(matrix.rows, kernels::kPanelRows);
}

std::int64_t bytes_of(const StoredMatrix& matrix) {
  return panels_of(matrix) * kernels::panel_bytes(std::get<PlainRows>(matrix.stored).dtype, matrix.columns);
}

void move_panels(const StoredMatrix& matrix, ThreadPool& team, std::byte* out) {
  const auto& plain = std::get<PlainRows>(matrix.stored);
  const std::int64_t bytes = kernels::panel_bytes(plain.dtype, matrix.columns);
  team.run(panels_of(matrix), [&](std::int64_t panel, int) {
    const std::byte* rows[kernels::kPanelRows] = {};
    const std::int64_t first = panel * kernels::kPanelRows;
    for (std::int64_t row = first; row < std::min(first + kernels::kPanelRows, matrix.rows); ++row)
      rows[row - first] = plain.data + matrix.runs.at(row) * plain.row_bytes;
    kernels::pack_panel(plain.dtype, rows, matrix.columns, out + panel * bytes);
  });
}

}  // namespace

Status pack_at_load(const artifact::Artifact& artifact, ThreadPool& team,
                    const std::function<void(std::string_view)>& on_progress, ModelWeights& weights) {
  std::vector<std::vector<StoredMatrix*>> parts;
  for (LayerWeights& layer : weights.layers) parts.push_back(multiplied_matrices(layer));
  parts.push_back({&weights.output_head});
  std::int64_t total = 0;
  for (auto& part : parts) {
    std::erase_if(part, [](const StoredMatrix* matrix) { return !becomes_panels(*matrix); });
    for (const StoredMatrix* matrix : part) total += bytes_of(*matrix);
  }
  if (total == 0) return {};
  PLIMSOLL_TRY(weights.panels, reserve_weights(total, "--model"));
  std::byte* out = weights.panels.get();
  const auto* table = std::get_if<PlainRows>(&weights.token_embedding.stored);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    on_progress(fmt::format("arranging weights: part {} of {}", i + 1, parts.size()));
    std::vector<std::span<const std::byte>> sources;
    for (StoredMatrix* matrix : parts[i]) {
      const auto& plain = std::get<PlainRows>(matrix->stored);
      if (!table || plain.data != table->data) sources.push_back(source_of(*matrix));
      move_panels(*matrix, team, out);
      const std::int64_t bytes = bytes_of(*matrix);
      const PanelRows panels{plain.dtype, out, kernels::panel_bytes(plain.dtype, matrix->columns)};
      *matrix = {matrix->rows, matrix->columns, panels};
      out += bytes;
    }
    for (const auto source : sources) artifact.release(source);
  }
  return {};
}

}  // namespace plimsoll::engine
