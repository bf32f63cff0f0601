// SPDX-License-Identifier: Apache-2.0
#include "engine/weight_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/large_pages.h"

namespace plimsoll::engine {
namespace {

void add_matrices(FfnWeights& ffn, std::vector<StoredMatrix*>& list) {
  list.insert(list.end(), {&ffn.gate, &ffn.up, &ffn.down});
}

}  // namespace

std::vector<StoredMatrix*> multiplied_matrices(LayerWeights& layer) {
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
  add_matrices(layer.ffn, list);
  add_matrices(layer.shared, list);
  for (FfnWeights& expert : layer.experts) add_matrices(expert, list);
  std::erase_if(list, [](const StoredMatrix* matrix) { return matrix->rows == 0; });
  return list;
}

std::span<const std::byte> source_of(const StoredMatrix& matrix) {
  if (const auto* turned = std::get_if<TurnedRows>(&matrix.stored))
    return {turned->data,
            static_cast<std::size_t>(turned->rows * matrix.columns * info(turned->dtype).block_bytes)};
  const auto& plain = std::get<PlainRows>(matrix.stored);
  const std::int64_t first = matrix.runs.at(0), last = matrix.runs.at(matrix.rows - 1);
  return {plain.data + first * plain.row_bytes,
          static_cast<std::size_t>((last - first + 1) * plain.row_bytes)};
}

Result<std::shared_ptr<std::byte>> reserve_weights(std::int64_t bytes, const std::string& flag) {
  const auto size = static_cast<std::size_t>(bytes);
  void* data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return fail(ErrorCode::kNo,
                "the system refuses " + as_gib(Bytes(bytes)) + " for the weights: " + std::strerror(errno),
                flag, "free memory, or take a smaller model");
  use_large_pages(data, size);
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(data),
                                    [size](std::byte* mapped) { ::munmap(mapped, size); });
}

}  // namespace plimsoll::engine
