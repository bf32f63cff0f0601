// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/quantized_modules.h"

#include "model/declarations.h"

namespace plimsoll::engine {
namespace {

const std::string kModule = "model.layers.0.mlp.up_proj";

}  // namespace

HeldTensors with_config(const std::string& declaration) {
  auto config = parse_json("{\"quantization_config\": " + declaration + "}", "test");
  EXPECT_TRUE(config);
  return HeldTensors(std::move(*config));
}

std::string part(const std::string& ending) {
  return kModule + "." + ending;
}

Result<StoredMatrix> load(const HeldTensors& tensors, std::int64_t rows, std::int64_t columns) {
  const auto declared = model::declared_quantization(tensors);
  EXPECT_TRUE(declared && declared->scheme_of(kModule));
  model::Weight weight;
  weight.shape = {rows, columns};
  weight.hf_name = kModule + ".weight";
  return load_quantized(tensors, weight, *declared, *declared->scheme_of(kModule));
}

// Codes [lines, length] packed along the lines, lowest first.
std::vector<std::uint32_t> packed(const Codes& codes, std::int64_t length, int bits) {
  const std::int64_t lines = static_cast<std::int64_t>(codes.size()) / length, per_word = 32 / bits;
  const std::int64_t words = (length + per_word - 1) / per_word;
  std::vector<std::uint32_t> result(static_cast<std::size_t>(lines * words));
  for (std::int64_t line = 0; line < lines; ++line)
    for (std::int64_t i = 0; i < length; ++i)
      result[static_cast<std::size_t>(line * words + i / per_word)] |=
          static_cast<std::uint32_t>(codes[static_cast<std::size_t>(line * length + i)])
          << (i % per_word * bits);
  return result;
}

HeldTensors GroupedWeights::gptq(const Grouped& made, int bits, const std::string& format) {
  HeldTensors tensors =
      with_config("{\"quant_method\": \"gptq\", \"group_size\": 16, \"checkpoint_format\": \"" + format +
                  "\", \"bits\": " + std::to_string(bits) + "}");
  const auto columns_first = transposed(made.codes, Grouped::kRows, Grouped::kColumns);
  const auto words = packed(made.codes, Grouped::kColumns, bits);  // [rows, words]
  const std::int64_t per_line = Grouped::kColumns * bits / 32;
  tensors.put(part("qweight"), DType::kI32, {per_line, Grouped::kRows},
              transposed(words, Grouped::kRows, per_line));
  tensors.put(part("qzeros"), DType::kI32, {Grouped::kGroups, Grouped::kRows * bits / 32},
              packed(made.zeros, Grouped::kRows, bits));
  tensors.put(part("scales"), DType::kF32, {Grouped::kGroups, Grouped::kRows}, made.scales);
  tensors.put(part("g_idx"), DType::kI32, {Grouped::kColumns}, made.order);
  return tensors;
}

}  // namespace plimsoll::engine
