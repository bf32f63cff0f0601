// SPDX-License-Identifier: Apache-2.0
#include "engine/load_quantization.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/division.h"
#include "kernels/to_blocks.h"

namespace plimsoll::engine {
namespace {

constexpr std::int64_t kRowsAtOnce = 16;  // of one thread

void add_matrices(FfnWeights& ffn, std::vector<StoredMatrix*>& list) {
  list.insert(list.end(), {&ffn.gate, &ffn.up, &ffn.down});
}

/// Those of a layer that the graph multiplies with and that become blocks.
std::vector<StoredMatrix*> matrices_of(LayerWeights& layer) {
  LatentWeights& latent = layer.latent;
  StateWeights& state = layer.state;
  std::vector<StoredMatrix*> list{&layer.query,
                                  &layer.key,
                                  &layer.value,
                                  &layer.output_gate,
                                  &layer.attention_output,
                                  &latent.query_compression,
                                  &latent.query_expansion,
                                  &latent.compression,
                                  &state.query_key_value,
                                  &state.gate,
                                  &state.step,
                                  &state.beta,
                                  &state.selection,
                                  &state.step_expansion,
                                  &state.gate_expansion,
                                  &state.output};
  for (auto* heads : {&latent.keys, &latent.values})
    for (StoredMatrix& head : *heads) list.push_back(&head);
  add_matrices(layer.ffn, list);
  add_matrices(layer.shared, list);
  for (FfnWeights& expert : layer.experts) add_matrices(expert, list);
  std::erase_if(list,
                [](const StoredMatrix* matrix) { return matrix->rows == 0 || !matrix->becomes_blocks; });
  return list;
}

/// All bytes that a matrix of plain numbers is read from.
std::span<const std::byte> source_of(const StoredMatrix& matrix) {
  if (const auto* turned = std::get_if<TurnedRows>(&matrix.stored))
    return {turned->data,
            static_cast<std::size_t>(turned->rows * matrix.columns * info(turned->dtype).block_bytes)};
  const auto& plain = std::get<PlainRows>(matrix.stored);
  const std::int64_t first = matrix.runs.at(0), last = matrix.runs.at(matrix.rows - 1);
  return {plain.data + first * plain.row_bytes,
          static_cast<std::size_t>((last - first + 1) * plain.row_bytes)};
}

Bytes plain_bytes(const StoredMatrix& matrix) {
  const auto* turned = std::get_if<TurnedRows>(&matrix.stored);
  const DType dtype = turned ? turned->dtype : std::get<PlainRows>(matrix.stored).dtype;
  return *stored_bytes(dtype, matrix.rows * matrix.columns);
}

std::int64_t row_bytes(const StoredMatrix& matrix, DType block) {
  return stored_bytes(block, matrix.columns)->value;
}

/// Memory that goes back to the system as a whole.
Result<std::shared_ptr<std::byte>> reserve(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return fail(ErrorCode::kNo,
                "the system refuses " + as_gib(Bytes(bytes)) + " for the weights: " + std::strerror(errno),
                "--quantization", "free memory, or take a smaller model");
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(data),
                                    [size](std::byte* mapped) { ::munmap(mapped, size); });
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
  PLIMSOLL_TRY(weights.blocks, reserve(total));
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
