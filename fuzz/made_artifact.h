// SPDX-License-Identifier: Apache-2.0
// An artifact out of one JSON text, for readers that look at configs and at tensors' names, types and shapes:
// {"config": {...}, "files": {NAME: {...}}, "tensors": {NAME: [DTYPE, dimensions...]}, "values": "..."}.
// Tensors are those that a header could hold: sizes that do not fit 63 bits are left out, as the readers of
// headers do. The first bytes of "values" stand for the content of every tensor that is no longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/json.h"
#include "tests/engine/held_tensors.h"

namespace plimsoll::fuzz {

class MadeArtifact final : public engine::HeldTensors {
 public:
  MadeArtifact(artifact::Form form, const Json& parts) : HeldTensors(parts["config"], form, parts["files"]) {
    const std::string* values = parts["values"].as_string();
    for (const auto& [name, entry] : parts["tensors"].members())
      add_tensor(name, entry.items(), values ? *values : std::string_view());
  }

 private:
  void add_tensor(const std::string& name, const Json::Array& entry, std::string_view values) {
    constexpr std::size_t kMaxTensors = 512, kMaxRank = 64;
    const std::string* spelling = entry.empty() ? nullptr : entry.front().as_string();
    if (!spelling || entry.size() > kMaxRank || tensors().size() == kMaxTensors || find(name)) return;
    const auto dtype =
        form() == artifact::Form::kGguf ? dtype_by_name(*spelling) : dtype_from_safetensors(*spelling);
    if (!dtype) return;
    std::vector<std::int64_t> shape;
    std::int64_t elements = 1;
    for (std::size_t i = 1; i < entry.size(); ++i) {
      const auto dimension = entry[i].as_integer();
      if (!dimension || *dimension < 0 || __builtin_mul_overflow(elements, *dimension, &elements)) return;
      shape.push_back(*dimension);
    }
    const auto bytes = stored_bytes(*dtype, elements);
    if (!bytes) return;
    const auto size = static_cast<std::uint64_t>(bytes->value);
    if (size > values.size())
      declare(name, *dtype, artifact::Shape(std::span(shape)), bytes->value);
    else
      put(name, *dtype, artifact::Shape(std::span(shape)),
          std::vector<char>(values.begin(), values.begin() + bytes->value));
  }

  static std::optional<DType> dtype_by_name(std::string_view spelling) {
    constexpr std::uint32_t kMostTypes = 64;
    for (std::uint32_t type = 0; type < kMostTypes; ++type)
      if (const auto dtype = dtype_from_gguf(type); dtype && name(*dtype) == spelling) return dtype;
    return std::nullopt;
  }
};

}  // namespace plimsoll::fuzz
