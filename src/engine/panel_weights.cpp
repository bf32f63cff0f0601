// SPDX-License-Identifier: Apache-2.0
#include "engine/panel_weights.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/division.h"
#include "base/log.h"
#include "engine/panel_file.h"
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

/// Pages that only the old form of a matrix was read from. What quantize_at_load made lies in memory of its
/// own, where whole pages inside can go.
void let_go(const artifact::Artifact& artifact, const ModelWeights& weights,
            std::span<const std::byte> source) {
  const bool is_made = weights.blocks && source.data() >= weights.blocks.get() &&
                       source.data() < weights.blocks.get() + weights.blocks_bytes;
  if (!is_made) return artifact.release(source);
  constexpr std::uintptr_t kPage = 4096;
  const auto begin = (reinterpret_cast<std::uintptr_t>(source.data()) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(source.data()) + source.size()) / kPage * kPage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

/// What becomes panels, part by part: the layers, then the head.
using Parts = std::vector<std::vector<StoredMatrix*>>;

Parts parts_of(ModelWeights& weights) {
  Parts parts;
  for (LayerWeights& layer : weights.layers) parts.push_back(multiplied_matrices(layer));
  parts.push_back({&weights.output_head});
  for (auto& part : parts)
    std::erase_if(part, [](const StoredMatrix* matrix) { return !becomes_panels(*matrix); });
  return parts;
}

/// Calls make(matrix, where its panels begin), and lets each matrix be its panels.
template <class Make>
void take_over(const Parts& parts, const artifact::Artifact& artifact, ModelWeights& weights,
               const std::byte* panels, Make make) {
  std::int64_t at = 0;
  for (const auto& part : parts) {
    std::vector<std::span<const std::byte>> sources;
    for (StoredMatrix* matrix : part) {
      const auto& plain = std::get<PlainRows>(matrix->stored);
      sources.push_back(source_of(*matrix));
      make(*matrix, at);
      const std::int64_t bytes = bytes_of(*matrix);
      const PanelRows rows{plain.dtype, panels + at, kernels::panel_bytes(plain.dtype, matrix->columns)};
      *matrix = {matrix->rows, matrix->columns, rows};
      at += bytes;
    }
    for (const auto source : sources) let_go(artifact, weights, source);
  }
}

}  // namespace

Status pack_at_load(const artifact::Artifact& artifact, const Packing& packing, ThreadPool& team,
                    ModelWeights& weights) {
  const Parts parts = parts_of(weights);
  std::int64_t total = 0;
  for (const auto& part : parts)
    for (const StoredMatrix* matrix : part) total += bytes_of(*matrix);
  if (total == 0) return {};
  const std::string& folder = packing.packed_cache_dir;
  const std::string identity = folder.empty() ? "" : panels_identity(artifact, packing.quantization);
  if (!folder.empty()) {
    auto kept = map_panels(folder, identity, total);
    if (!kept) log_warning(kept.error());
    if (kept && kept->file) {
      weights.kept_panels = std::move(*kept);
      take_over(parts, artifact, weights, weights.kept_panels.panels().data(),
                [](const StoredMatrix&, std::int64_t) {});
      return {};
    }
  }
  PLIMSOLL_TRY(weights.panels, reserve_weights(total, "--dtype"));
  std::byte* const made = weights.panels.get();
  take_over(parts, artifact, weights, made, [&](const StoredMatrix& matrix, std::int64_t at) {
    packing.on_progress(fmt::format("arranging weights: {} of {} MB", at / 1'000'000, total / 1'000'000));
    move_panels(matrix, team, made + at);
  });
  if (folder.empty()) return {};
  const auto stored = keep_panels(folder, identity, {weights.panels.get(), static_cast<std::size_t>(total)});
  if (!stored) log_warning(stored.error());
  return {};
}

}  // namespace plimsoll::engine
