// SPDX-License-Identifier: Apache-2.0
// An artifact whose tensors a test fills by hand, byte by byte. It is built in place, never copied: names of
// tensors point into it.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "artifact/artifact.h"

namespace plimsoll::engine {

class HeldTensors : public artifact::Artifact {
 public:
  explicit HeldTensors(Json config, artifact::Form form = artifact::Form::kSafetensors, Json json_files = {})
      : form_(form), config_(std::move(config)), json_files_(std::move(json_files)) {}

  /// Adds a tensor, or replaces the one of this name. Numbers are stored as T lies in memory, one byte off
  /// any alignment.
  template <class T>
  void put(const std::string& name, DType dtype, const artifact::Shape& shape, const std::vector<T>& values) {
    declare(name, dtype, shape, static_cast<std::int64_t>(values.size() * sizeof(T)));
    auto& bytes = held_.back().bytes;
    bytes.resize(values.size() * sizeof(T) + 1);
    if (!values.empty()) std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  }
  /// The same without content: it cannot be read.
  void declare(const std::string& name, DType dtype, const artifact::Shape& shape, std::int64_t bytes) {
    remove(name);
    artifact::Tensor tensor;
    tensor.name = held_.emplace_back(name).name;
    tensor.dtype = dtype;
    tensor.shape = shape;
    tensor.bytes = bytes;
    tensors_.push_back(tensor);
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const artifact::Tensor& tensor) { return tensor.name == name; });
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
  const Json& config() const override { return config_; }
  const Json& json_file(std::string_view name) const override { return json_files_[name]; }
  Result<std::string> text_file(std::string_view name) const override {
    return fail(ErrorCode::kMalformed, "there are no texts", std::string(name));
  }
  Result<std::span<const std::byte>> data(const artifact::Tensor& tensor) const override {
    for (auto held = held_.rbegin(); held != held_.rend(); ++held)
      if (held->name == tensor.name && !held->bytes.empty())
        return std::span<const std::byte>(held->bytes).subspan(1);
    return fail(ErrorCode::kMalformed, "nothing is held of the tensor", std::string(tensor.name));
  }
  const Findings& findings() const override { return findings_; }

 private:
  struct Held {
    std::string name;
    std::vector<std::byte> bytes = {};  // one more, at the front; none of a tensor that is only declared
  };

  artifact::Form form_;
  Json config_, json_files_;
  std::string root_ = "held";
  std::vector<artifact::File> files_{artifact::File{"held", Bytes(0)}};
  std::deque<Held> held_;  // names stay where they are
  std::vector<artifact::Tensor> tensors_;
  Findings findings_;
};

}  // namespace plimsoll::engine
