// SPDX-License-Identifier: Apache-2.0
// A model folder made of headers for one test: config.json and a model.safetensors whose tensors are zeros,
// but for the few whose values are given. Removed with the object. Tests only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace plimsoll::inspect {

struct HeaderTensor {
  std::string name, dtype;  // "BF16", as safetensors spells it
  std::vector<std::int64_t> shape;
  std::string values = {};  // bytes; empty: zeros
};

class HeaderFolder {
 public:
  HeaderFolder(const Json& config, const std::vector<HeaderTensor>& tensors);
  ~HeaderFolder();
  HeaderFolder(const HeaderFolder&) = delete;
  HeaderFolder& operator=(const HeaderFolder&) = delete;
  const std::string& path() const { return path_; }
  /// Adds a file beside the config.
  void add_file(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace plimsoll::inspect
