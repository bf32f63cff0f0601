// SPDX-License-Identifier: Apache-2.0
#include "engine/load_quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "base/division.h"
#include "engine/weight_memory.h"
#include "kernels/to_blocks.h"

namespace plimsoll::engine {
namespace {

constexpr std::int64_t kRowsAtOnce = 16;  // of one thread

/// Those of a layer that the graph multiplies with and that become blocks.
std::vector<StoredMatrix*> matrices_of(LayerWeights& layer) {
  std::vector<StoredMatrix*> list = multiplied_matrices(layer);
  for (auto* heads : {&layer.latent.keys, &layer.latent.values})
    for (StoredMatrix& head : *heads) list.push_back(&head);
  std::erase_if(list, [](const StoredMatrix* matrix) { return !matrix->becomes_blocks; });
  return list;
}

Bytes plain_bytes(const StoredMatrix& matrix) {
  const auto* turned = std::get_if<TurnedRows>(&matrix.stored);
  const DType dtype = turned ? turned->dtype : std::get<PlainRows>(matrix.stored).dtype;
  return *stored_bytes(dtype, matrix.rows * matrix.columns);
}

std::int64_t row_bytes(const StoredMatrix& matrix, DType block) {
  return stored_bytes(block, matrix.columns)->value;
}

/// False when a number cannot be told in blocks.
bool write_blocks(const StoredMatrix& matrix, DType block, ThreadPool& team, std::vector<float>& scratch,
                  std::byte* out) {
  const std::int64_t bytes = row_bytes(matrix, block), chunks = divided_up(matrix.rows, kRowsAtOnce);
  const std::int64_t share = kRowsAtOnce * matrix.columns;
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(share * team.threads())));
  std::atomic<bool> is_sound = true;
  team.run(chunks, [&](std::int64_t chunk, int thread) {
    const std::int64_t begin = chunk * kRowsAtOnce, end = std::min(begin + kRowsAtOnce, matrix.rows);
    float* const values = scratch.data() + thread * share;
    widen_rows(matrix, begin, end, values);
    if (!kernels::to_blocks(block, values, (end - begin) * matrix.columns, out + begin * bytes))
      is_sound = false;
  });
  return is_sound;
}

}  // namespace

Status quantize_at_load(const artifact::Artifact& artifact, DType block, ThreadPool& team,
                        const std::function<void(std::string_view)>& on_progress, ModelWeights& weights) {
  std::vector<std::vector<StoredMatrix*>> layers;
  std::int64_t total = 0;
  for (LayerWeights& layer : weights.layers) {
    layers.push_back(matrices_of(layer));
    for (const StoredMatrix* matrix : layers.back()) total += matrix->rows * row_bytes(*matrix, block);
  }
  if (total == 0) return {};
  PLIMSOLL_TRY(weights.blocks, reserve_weights(total, "--quantization"));
  weights.blocks_bytes = total;
  std::byte* out = weights.blocks.get();
  std::vector<float> scratch;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    on_progress(fmt::format("quantizing weights: layer {} of {}", i + 1, layers.size()));
    std::vector<std::span<const std::byte>> sources;
    for (StoredMatrix* matrix : layers[i]) {
      if (!write_blocks(*matrix, block, team, scratch, out))
        return fail(ErrorCode::kMalformed,
                    fmt::format("a weight of layer {} is not finite, or too large for a scale of 16 bits", i),
                    artifact.root(), "leave --quantization out, or get a sound version of the model");
      sources.push_back(source_of(*matrix));
      const std::int64_t bytes = row_bytes(*matrix, block);
      weights.stored += Bytes(matrix->rows * bytes) - plain_bytes(*matrix);
      *matrix = {matrix->rows, matrix->columns, PlainRows{block, out, bytes}};
      out += matrix->rows * bytes;
    }
    for (const auto source : sources) artifact.release(source);
  }
  return {};
}

}  // namespace plimsoll::engine
