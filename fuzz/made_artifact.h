// SPDX-License-Identifier: Apache-2.0
// An artifact out of one JSON text, for readers that look at configs and at tensors' names, types and shapes:
// {"config": {...}, "files": {NAME: {...}}, "tensors": {NAME: [DTYPE, dimensions...]}, "values": "..."}.
// Tensors are those that a header could hold: sizes that do not fit 63 bits are left out, as the readers of
// headers do. The first bytes of "values" stand for the content of every tensor that is no longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "base/json.h"

namespace plimsoll::fuzz {

class MadeArtifact final : public artifact::Artifact {
 public:
  MadeArtifact(artifact::Form form, Json parts) : form_(form), parts_(std::move(parts)) {
    for (const auto& [name, entry] : parts_["tensors"].members()) add_tensor(name, entry.items());
  }

  artifact::Form form() const override { return form_; }
  const std::string& root() const override { return root_; }
  const std::vector<artifact::File>& files() const override { return files_; }
  const std::vector<artifact::Tensor>& tensors() const override { return tensors_; }
  const artifact::Tensor* find(std::string_view name) const override {
    for (const artifact::Tensor& tensor : tensors_)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
  const Json& config() const override { return parts_["config"]; }
  const Json& json_file(std::string_view name) const override { return parts_["files"][name]; }
  Result<std::string> text_file(std::string_view name) const override {
    return fail(ErrorCode::kMalformed, "made artifacts have no texts", std::string(name), "");
  }
  Result<std::span<const std::byte>> data(const artifact::Tensor& tensor) const override {
    const std::string* values = parts_["values"].as_string();
    if (!values || static_cast<std::uint64_t>(tensor.bytes) > values->size())
      return fail(ErrorCode::kMalformed, "the file ends before the tensor", std::string(tensor.name), "");
    return std::as_bytes(std::span(*values)).first(static_cast<std::size_t>(tensor.bytes));
  }
  const Findings& findings() const override { return findings_; }

 private:
  void add_tensor(const std::string& name, const Json::Array& entry) {
    constexpr std::size_t kMaxTensors = 512, kMaxRank = 64;
    const std::string* spelling = entry.empty() ? nullptr : entry.front().as_string();
    if (!spelling || entry.size() > kMaxRank || tensors_.size() == kMaxTensors || find(name)) return;
    const auto dtype =
        form_ == artifact::Form::kGguf ? dtype_by_name(*spelling) : dtype_from_safetensors(*spelling);
    if (!dtype) return;
    artifact::Tensor tensor;
    tensor.name = name;
    tensor.dtype = *dtype;
    std::int64_t elements = 1;
    for (std::size_t i = 1; i < entry.size(); ++i) {
      const auto dimension = entry[i].as_integer();
      if (!dimension || *dimension < 0 || __builtin_mul_overflow(elements, *dimension, &elements)) return;
      tensor.shape.push_back(*dimension);
    }
    const auto bytes = stored_bytes(*dtype, elements);
    if (!bytes) return;
    tensor.bytes = bytes->value;
    tensors_.push_back(std::move(tensor));
  }

  static std::optional<DType> dtype_by_name(std::string_view spelling) {
    constexpr std::uint32_t kMostTypes = 64;
    for (std::uint32_t type = 0; type < kMostTypes; ++type)
      if (const auto dtype = dtype_from_gguf(type); dtype && name(*dtype) == spelling) return dtype;
    return std::nullopt;
  }

  artifact::Form form_;
  Json parts_;
  std::string root_ = "input";
  std::vector<artifact::File> files_;
  std::vector<artifact::Tensor> tensors_;
  Findings findings_;
};

}  // namespace plimsoll::fuzz
