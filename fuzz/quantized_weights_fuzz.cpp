// SPDX-License-Identifier: Apache-2.0
// Quantized modules out of any JSON: what the engine takes is read row by row, and no index, shape or state
// leads outside a tensor.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/quantized_weights.h"
#include "fuzz/made_artifact.h"
#include "model/declarations.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll;
  constexpr std::int64_t kMost = 4096;  // of a row, and of rows that are tried
  auto json = parse_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!json) return 0;
  const Json asked = (*json)["asked"];  // [module, rows, columns]
  const fuzz::MadeArtifact made(artifact::Form::kSafetensors, *json);
  const auto declared = model::declared_quantization(made);
  const std::string* module = asked.size() == 3 ? asked.items()[0].as_string() : nullptr;
  if (!declared || !module) return 0;
  const auto rows = asked.items()[1].as_integer().value_or(0),
             columns = asked.items()[2].as_integer().value_or(0);
  const model::QuantizationScheme* scheme = declared->scheme_of(*module);
  if (!scheme || rows < 1 || columns < 1 || rows > kMost || columns > kMost) return 0;
  model::Weight weight;
  weight.shape = {rows, columns};
  weight.hf_name = *module + ".weight";
  std::vector<float> row(static_cast<std::size_t>(columns));
  const auto read = [&](const Result<engine::StoredMatrix>& matrix) {
    if (!matrix) return;
    if (matrix->rows != rows || matrix->columns != columns) std::abort();
    for (std::int64_t i = 0; i < rows; ++i) engine::widen_rows(*matrix, i, i + 1, row.data());
  };
  read(engine::load_quantized(made, weight, *declared, *scheme));
  read(engine::load_expert_blocks(made, *module, 1, 0, rows, columns));
  return 0;
}
