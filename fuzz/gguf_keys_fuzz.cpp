// SPDX-License-Identifier: Apache-2.0
// The keys of a GGUF file of any architecture, out of any JSON: a spec or an error, never a crash; and
// whatever spec comes out can be asked for its bytes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "fuzz/made_artifact.h"
#include "memory/memory.h"
#include "model/model.h"

namespace {

using namespace plimsoll;

void check(const Result<Bytes>& bytes) {
  if (bytes && bytes->value < 0) std::abort();
}

void ask_for_bytes(const model::ModelSpec& spec) {
  check(memory::kv_bytes_per_token(spec, DType::kF16));
  if (memory::kv_bytes_per_token_without_gqa(spec, DType::kQ8_0).value < 0) std::abort();
  for (const auto& layer : spec.layers) {
    check(memory::kv_layer_growing_bytes_per_token(layer, DType::kF16));
    check(memory::indexer_layer_bytes_per_token(layer, DType::kF16));
    check(memory::state_layer_bytes(layer, DType::kF32));
    for (const std::int64_t tokens : {std::int64_t{0}, std::int64_t{4096}, INT64_MAX})
      check(memory::layer_bytes_per_sequence(layer, DType::kF16, DType::kF16, tokens));
    if (layer.kv_source && static_cast<std::size_t>(*layer.kv_source) >= spec.layers.size()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto json = parse_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!json) return 0;
  const fuzz::MadeArtifact made(artifact::Form::kGguf, *json);
  const auto spec = model::read_spec(made);
  if (!spec) return 0;
  ask_for_bytes(*spec);
  if (memory::stored_weights_bytes(made, *spec).value_or(Bytes(0)).value < 0) std::abort();
  for (const auto& weight : spec->weights) (void)model::find_tensor(made, weight);
  if (model::count_parameters(*spec).value_or(0) < 0) std::abort();
  if (model::count_active_parameters(*spec, true).value_or(0) < 0) std::abort();
  return 0;
}
