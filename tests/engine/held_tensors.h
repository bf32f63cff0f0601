// SPDX-License-Identifier: Apache-2.0
// An artifact whose tensors a test fills by hand, byte by byte.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "artifact/artifact.h"

namespace plimsoll::engine {

class HeldTensors final : public artifact::Artifact {
 public:
  explicit HeldTensors(Json config) : config_(std::move(config)) {}

  /// Adds a tensor, or replaces the one of this name. Numbers are stored as T lies in memory, one byte off
  /// any alignment.
  template <class T>
  void put(const std::string& name, DType dtype, const artifact::Shape& shape, const std::vector<T>& values) {
    remove(name);
    Held& held = held_.emplace_back();
    held.name = name;
    held.bytes.resize(values.size() * sizeof(T) + 1);
    if (!values.empty()) std::memcpy(held.bytes.data() + 1, values.data(), values.size() * sizeof(T));
    artifact::Tensor tensor;
    tensor.name = held.name;
    tensor.dtype = dtype;
    tensor.shape = shape;
    tensor.bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
    tensors_.push_back(tensor);
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const artifact::Tensor& tensor) { return tensor.name == name; });
  }

  artifact::Form form() const override { return artifact::Form::kSafetensors; }
  const std::string& root() const override { return root_; }
  const std::vector<artifact::File>& files() const override { return files_; }
  const std::vector<artifact::Tensor>& tensors() const override { return tensors_; }
  const artifact::Tensor* find(std::string_view name) const override {
    for (const artifact::Tensor& tensor : tensors_)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
  const Json& config() const override { return config_; }
  const Json& json_file(std::string_view) const override { return none_; }
  Result<std::string> text_file(std::string_view name) const override {
    return fail(ErrorCode::kMalformed, "there are no texts", std::string(name));
  }
  Result<std::span<const std::byte>> data(const artifact::Tensor& tensor) const override {
    for (auto held = held_.rbegin(); held != held_.rend(); ++held)
      if (held->name == tensor.name) return std::span<const std::byte>(held->bytes).subspan(1);
    return fail(ErrorCode::kMalformed, "there is no such tensor", std::string(tensor.name));
  }
  const Findings& findings() const override { return findings_; }

 private:
  struct Held {
    std::string name;
    std::vector<std::byte> bytes;
  };

  Json config_, none_;
  std::string root_ = "held";
  std::vector<artifact::File> files_{artifact::File{"held", Bytes(0)}};
  std::deque<Held> held_;  // names stay where they are
  std::vector<artifact::Tensor> tensors_;
  Findings findings_;
};

}  // namespace plimsoll::engine
